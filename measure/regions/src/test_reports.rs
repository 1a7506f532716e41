//! Reports of known events, for tests.

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;
use downbeat_clock_core::region::RegionEvent;

use super::profile::{Profile, RegionProfile, ThreadEvent};
use super::report::ProfileReport;
use super::setup::Overhead;

/// Regions, and the lengths of their events on each rank; `None` on ranks without the region.
pub(super) type Lengths<'a> = [(&'a str, &'a [Option<&'a [u64]>])];

pub(super) fn report(tick_nanos: i64, regions: &Lengths<'_>) -> ProfileReport {
    let ranks = regions
        .iter()
        .map(|(_, ranks)| ranks.len())
        .max()
        .unwrap_or(1);
    let rank_report = |rank: usize| {
        let present = regions
            .iter()
            .filter_map(|(name, ranks)| Some((name, (*ranks.get(rank)?)?)));
        let profiles = present
            .map(|(name, lengths)| profile(name, lengths))
            .collect();
        ProfileReport::new(&Profile::new(
            "clock",
            Duration::from_nanos(tick_nanos),
            Overhead::default(),
            profiles,
        ))
    };
    (1..ranks).fold(rank_report(0), |all, rank| {
        all.merge(rank_report(rank)).unwrap()
    })
}

fn profile(name: &str, lengths: &[u64]) -> RegionProfile {
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
    let mut bins: Vec<(DecimalBin, u64)> = vec![];
    for found in &ordered {
        let bin = DecimalBin::containing(found.event.length);
        match bins.last_mut().filter(|last| last.0 == bin) {
            Some(last) => last.1 += 1,
            None => bins.push((bin, 1)),
        }
    }
    RegionProfile {
        threads: 1,
        events: lengths.len() as u64,
        total: lengths.iter().sum(),
        longest: ordered.last().copied(),
        second_longest: ordered.iter().rev().nth(1).copied(),
        shortest: ordered.first().copied(),
        bins,
        ..RegionProfile::new(name)
    }
}
