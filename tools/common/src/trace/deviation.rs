//! What became of times: tables 3 and 4 of Becker et al. (2009), and histograms.

use downbeat_clock_core::DecimalBin;
use downbeat_trace::{Bins, Deviation, Displacement, Intervals};
use serde::Serialize;

use super::tables::percent;
use crate::output::{Table, time};

/// What became of times: tables 3 and 4 of Becker et al. (2009).
#[derive(Debug, Serialize)]
pub struct DeviationReport {
    /// How far events are moved.
    pub displacement: DisplacementReport,
    /// What became of intervals from the first event of a location to each other one.
    pub event_position: IntervalsReport,
    /// What became of intervals from each event of a location to the next one.
    pub event_distance: IntervalsReport,
}

/// How far events are moved.
#[derive(Debug, Serialize)]
pub struct DisplacementReport {
    /// All.
    pub events: u64,
    /// Those that are moved.
    pub moved: u64,
    /// How far on average, either way.
    pub mean_nanos: f64,
    /// How far forward on average.
    pub bias_nanos: f64,
    /// How far at most.
    pub largest_nanos: i64,
    /// How many are moved so far.
    pub bins: Vec<BinReport>,
}

/// By how much intervals are longer or shorter.
#[derive(Debug, Serialize)]
pub struct IntervalsReport {
    /// All.
    pub intervals: u64,
    /// The sum of all changes over the sum of all lengths.
    pub mean_share: f64,
    /// On average.
    pub mean_nanos: f64,
    /// At most.
    pub largest_nanos: i64,
    /// Nothing, if an interval of no length got one.
    pub largest_share: Option<f64>,
    /// More than such shares of themselves.
    pub above: Vec<AboveReport>,
    /// How many are changed by so much.
    pub bins: Vec<BinReport>,
}

/// Intervals that changed by more than a share of themselves.
#[derive(Debug, Serialize)]
pub struct AboveReport {
    /// That share.
    pub threshold: f64,
    /// Which share of all intervals they are.
    pub share_of_intervals: f64,
    /// Which share of the time of all intervals they take.
    pub share_of_time: f64,
}

/// One bin of a decimal histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BinReport {
    /// The shortest time in it.
    pub low_nanos: u64,
    /// The longest.
    pub high_nanos: u64,
    /// How many there are.
    pub count: u64,
}

/// Those in which there is something, from the shortest.
fn bins(found: &Bins) -> Vec<BinReport> {
    let report = |(bin, count): (DecimalBin, u64)| BinReport {
        low_nanos: bin.low(),
        high_nanos: bin.high(),
        count,
    };
    found.iter().map(report).collect()
}

impl From<&Deviation> for DeviationReport {
    fn from(found: &Deviation) -> Self {
        let Displacement {
            events,
            moved,
            largest,
            ..
        } = found.displacement;
        let displacement = DisplacementReport {
            events,
            moved,
            mean_nanos: found.displacement.mean(),
            bias_nanos: found.displacement.bias(),
            largest_nanos: largest.as_nanos(),
            bins: bins(&found.displacement.bins),
        };
        let intervals = |of: &Intervals| IntervalsReport {
            intervals: of.intervals,
            mean_share: of.mean_share(),
            mean_nanos: of.mean(),
            largest_nanos: of.largest.as_nanos(),
            largest_share: of.largest_share.is_finite().then_some(of.largest_share),
            above: Intervals::THRESHOLDS
                .iter()
                .zip(of.shares())
                .map(
                    |(threshold, (share_of_intervals, share_of_time))| AboveReport {
                        threshold: *threshold,
                        share_of_intervals,
                        share_of_time,
                    },
                )
                .collect(),
            bins: bins(&of.bins),
        };
        let [event_position, event_distance] = [&found.position, &found.distance].map(intervals);
        Self {
            displacement,
            event_position,
            event_distance,
        }
    }
}

impl DeviationReport {
    /// Both tables.
    pub fn text(&self) -> String {
        let Self {
            displacement,
            event_position,
            event_distance,
        } = self;
        let mut text = format!(
            "{} of {} events moved ({}); mean {}, largest {}\n\n",
            displacement.moved,
            displacement.events,
            percent(displacement.moved as f64 / displacement.events.max(1) as f64),
            time(displacement.mean_nanos),
            time(displacement.largest_nanos as f64)
        );
        let mut table = Table::new([
            "intervals changed",
            "on average",
            "at most",
            "at most, of itself",
        ]);
        let both = [
            ("event position", event_position),
            ("event distance", event_distance),
        ];
        for (name, of) in both {
            table.row([
                name.to_owned(),
                percent(of.mean_share),
                time(of.largest_nanos as f64),
                of.largest_share
                    .map_or_else(|| "from 0".to_owned(), percent),
            ]);
        }
        text += &table.render();
        text.push('\n');
        let names = [
            "changed by more than",
            "0 %",
            "0.01 %",
            "0.1 %",
            "1 %",
            "10 %",
            "100 %",
        ];
        let mut table = Table::new(names);
        for (name, of) in both {
            let row = |what: &str, share: fn(&AboveReport) -> f64| {
                let cells = of.above.iter().map(|above| percent(share(above)));
                std::iter::once(format!("{name}, share of {what}"))
                    .chain(cells)
                    .collect::<Vec<_>>()
            };
            table.row(row("intervals", |above| above.share_of_intervals));
            table.row(row("time", |above| above.share_of_time));
        }
        text + &table.render()
    }

    /// All three histograms, a row for every bin in which there is something, the longest times first.
    pub fn histograms(&self) -> String {
        let all = [
            &self.displacement.bins,
            &self.event_position.bins,
            &self.event_distance.bins,
        ];
        let mut edges: Vec<_> = all.into_iter().flatten().map(|bin| bin.low_nanos).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut table = Table::new([
            "nanoseconds",
            "events moved",
            "event positions changed",
            "event distances changed",
        ]);
        for low in edges.into_iter().rev() {
            let count = |bins: &Vec<BinReport>| {
                bins.iter()
                    .find(|bin| bin.low_nanos == low)
                    .map_or(0, |bin| bin.count)
            };
            let counts = all.map(|bins| count(bins).to_string());
            table.row(
                std::iter::once(DecimalBin::containing(low).to_string())
                    .chain(counts)
                    .collect::<Vec<_>>(),
            );
        }
        table.render()
    }
}
