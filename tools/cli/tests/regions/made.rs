//! Synthetic reports: an ocean model on a grid of ranks, some of which have only land.

use std::path::Path;

use downbeat_clock_core::histogram::DecimalBin;

use downbeat_clock_core::region::RegionEvent;
use downbeat_regions::{
    Overhead, Profile, ProfileReport, RegionProfile, ReportRemarks, ThreadEvent,
};
use downbeat_timers::Duration;

/// A program run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadeRegions {
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// Number of ranks in a row of the grid.
    pub(crate) columns: u32,
    /// Number of time steps.
    pub(crate) steps: u64,
    /// True if ranks with land have as much work as the others.
    pub(crate) balanced: bool,
    /// Name of the region that computes the ocean.
    pub(crate) name: &'static str,
    /// Duration of a tick.
    pub(crate) tick: Duration,
}

impl MadeRegions {
    pub(crate) const fn on(ranks: u32, columns: u32) -> Self {
        let tick = Duration::from_nanos(1);
        Self {
            ranks,
            columns,
            steps: 128,
            balanced: false,
            name: "barotropic",
            tick,
        }
    }

    pub(crate) fn write(&self, file: &Path) {
        self.report().save(file).expect("a test may write here");
    }

    pub(crate) fn report(&self) -> ProfileReport {
        let report_of_rank = |rank| ProfileReport::new(&self.profile(rank));
        // Merge in pairs: adding one rank after another would copy the lists of ranks each time.
        let mut parts: Vec<ProfileReport> = (0..self.ranks).map(report_of_rank).collect();
        while parts.len() > 1 {
            let mut pairs = parts.into_iter();
            parts = Vec::new();
            while let Some(first) = pairs.next() {
                parts.push(match pairs.next() {
                    Some(second) => first.merge(second).expect("they count in the same ticks"),
                    None => first,
                });
            }
        }
        parts.swap_remove(0)
    }

    fn profile(&self, rank: u32) -> Profile {
        let mut random = fastrand::Rng::with_seed(rank.into());
        let mut lengths = |typical: u64, count: u64| -> Vec<u64> {
            let length = |number: u64| {
                if number == 0 {
                    6_000_000
                } else {
                    typical + random.u64(0..typical / 5 + 2)
                }
            };
            (0..count).map(length).collect()
        };
        let all = if self.balanced { 4_000_000 } else { 5_100_000 };
        let ocean = lengths(self.ocean(rank), self.steps);
        let steps: Vec<u64> = (0..self.steps).map(|_| all + 900_000).collect();
        let mut regions = vec![
            region("step", &steps),
            region(self.name, &ocean),
            region(
                "exchange of borders",
                &lengths(30_000 + 1_000 * u64::from(rank % 7), 4 * self.steps),
            ),
        ];
        // One rank of each node writes.
        if rank.is_multiple_of(16) {
            regions.push(region("output", &lengths(450_000, 5)));
        }
        if rank == 3 {
            let remarks = ReportRemarks {
                running: 1,
                ..ReportRemarks::default()
            };
            regions.push(RegionProfile {
                remarks,
                ..RegionProfile::new("never left")
            });
        }
        let overhead = Overhead {
            within_picos: 9_200,
            whole_picos: 31_400,
            subtracted: false,
        };
        Profile::new("TSC, rdtsc", self.tick, overhead, regions)
    }

    /// Duration of the ocean region of a rank: almost nothing on land, less at coasts.
    fn ocean(&self, rank: u32) -> u64 {
        let rows = self.ranks.div_ceil(self.columns);
        let (x, y) = (
            f64::from(rank % self.columns) / f64::from(self.columns),
            f64::from(rank / self.columns) / f64::from(rows),
        );
        let inside =
            |(cx, cy): (f64, f64), r: f64| ((x - cx) / r).powi(2) + ((y - cy) / (1.6 * r)).powi(2);
        let continent = inside((0.28, 0.4), 0.16)
            .min(inside((0.72, 0.62), 0.19))
            .min(inside((0.8, 0.15), 0.07));
        match continent {
            _ if self.balanced => 3_600_000,
            ..0.8 => 650,
            ..1.2 => 3_300_000,
            _ => 5_000_000,
        }
    }
}

/// Makes a region with events of these lengths.
pub(crate) fn region(name: &str, lengths: &[u64]) -> RegionProfile {
    let mut ordered: Vec<ThreadEvent> = (1..)
        .zip(lengths)
        .map(|(number, length)| ThreadEvent {
            event: RegionEvent {
                length: *length,
                number,
            },
            thread: 0,
        })
        .collect();
    ordered.sort_by_key(|found| found.event.length);
    let bins: Vec<DecimalBin> = ordered
        .iter()
        .map(|found| DecimalBin::containing(found.event.length))
        .collect();
    RegionProfile {
        threads: 1,
        events: lengths.len() as u64,
        total: lengths.iter().sum(),
        longest: ordered.last().copied(),
        second_longest: ordered.iter().rev().nth(1).copied(),
        shortest: ordered.first().copied(),
        bins: bins
            .chunk_by(|one, other| one == other)
            .map(|run| (run[0], run.len() as u64))
            .collect(),
        ..RegionProfile::new(name)
    }
}

/// Makes a report in which every rank is a group of its own.
pub(crate) fn many_groups(ranks: usize) -> ProfileReport {
    let report_of_rank = |rank: usize| {
        let length = DecimalBin::from_index(20 + rank).map_or(0, DecimalBin::low);
        let regions = vec![region("solve", &[length, length, length + 1, 5])];
        ProfileReport::new(&Profile::new(
            "TSC",
            Duration::from_nanos(1),
            Overhead::default(),
            regions,
        ))
    };
    let more = (1..ranks).map(report_of_rank);
    more.fold(report_of_rank(0), |all, rank| {
        all.merge(rank).expect("they count in the same ticks")
    })
}
