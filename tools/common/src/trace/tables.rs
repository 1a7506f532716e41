//! What is found out about times, as tables and as JSON.

use std::fmt::Write as _;

use downbeat_clock_core::Duration;
use downbeat_sync::postmortem::{
    Census, Deviation, Displacement, Intervals, LeftOut, Relations, Trace, TruthError, Verdict,
};
use serde::Serialize;

use super::settings::Found;
use crate::output::{self, Table, time};

/// What a trace consists of.
#[derive(Debug, Serialize)]
pub struct Contents {
    locations: usize,
    events: u64,
    messages: usize,
    collectives: usize,
    left_out: Missing,
}

/// What a lenient reader left out.
#[derive(Debug, Serialize)]
struct Missing {
    sends: u64,
    receives: u64,
    collectives: u64,
}

impl Contents {
    /// Counts.
    pub fn of(trace: &Trace) -> Self {
        let LeftOut { sends, receives, collectives, .. } = trace.left_out();
        Self {
            locations: trace.locations().len(),
            events: trace.events(),
            messages: trace.messages().count(),
            collectives: trace.collectives().len(),
            left_out: Missing { sends, receives, collectives },
        }
    }

    /// The same of a stream.
    pub fn of_stream(census: &Census) -> Self {
        let LeftOut { sends, receives, collectives, .. } = census.left_out;
        Self {
            locations: census.ids().len(),
            events: census.events,
            messages: census.messages as usize,
            collectives: census.collectives as usize,
            left_out: Missing { sends, receives, collectives },
        }
    }

    /// One line, or two.
    pub fn text(&self) -> String {
        let Self { locations, events, messages, collectives, left_out } = self;
        let count = |number: usize, what| output::count(number, what);
        let mut text = format!(
            "{}, {}, {}, {}\n",
            count(*locations, "location"),
            count(*events as usize, "event"),
            count(*messages, "message"),
            count(*collectives, "collective operation")
        );
        let Missing { sends, receives, collectives } = left_out;
        if sends + receives + collectives > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "Left out: {} that nobody received, {} that nobody sent, {} without some members",
                count(*sends as usize, "message"),
                count(*receives as usize, "message"),
                count(*collectives as usize, "collective operation")
            );
        }
        text
    }
}

/// How long messages take at least.
#[derive(Debug, Serialize)]
pub struct LatencyReport {
    source: &'static str,
    same_process_nanos: i64,
    same_node_nanos: i64,
    other_node_nanos: i64,
}

impl LatencyReport {
    /// Those that count.
    pub fn of(found: Found) -> Self {
        let [process, node, beyond] = found.latencies.levels().map(Duration::as_nanos);
        let source = found.source;
        Self { source, same_process_nanos: process, same_node_nanos: node, other_node_nanos: beyond }
    }

    /// As `--latencies` takes them, too.
    pub fn text(&self) -> String {
        let Self { source, same_process_nanos, same_node_nanos, other_node_nanos } = self;
        format!("Latencies: {same_process_nanos}ns,{same_node_nanos}ns,{other_node_nanos}ns ({source})\n")
    }
}

/// A share, of which one that is not 0 does not look as if it were.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 5e-5 { format!("{:.1e} %", 100.0 * share) } else { output::percent(share) }
}

/// How many of a kind are wrong.
#[derive(Clone, Debug, Serialize)]
struct RelationsReport {
    total: u64,
    reversed: u64,
    violated: u64,
}

impl From<Relations> for RelationsReport {
    fn from(found: Relations) -> Self {
        Self { total: found.total, reversed: found.reversed, violated: found.violated }
    }
}

/// What is wrong with times.
#[derive(Clone, Debug, Serialize)]
pub struct Violations {
    holds: bool,
    messages: RelationsReport,
    collectives: RelationsReport,
    largest_reversal_nanos: i64,
    /// Events that are before the one before.
    pub decreasing: u64,
    /// Events that are no longer after the one before.
    pub merged: u64,
    /// The first few.
    faults: Vec<String>,
}

impl From<&Verdict> for Violations {
    fn from(verdict: &Verdict) -> Self {
        Self {
            holds: verdict.holds(),
            messages: verdict.messages.into(),
            collectives: verdict.collectives.into(),
            largest_reversal_nanos: verdict.reversal.largest.as_nanos(),
            decreasing: verdict.decreasing,
            merged: verdict.merged,
            faults: verdict.faults.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Violations {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.messages.violated + self.collectives.violated + self.decreasing + self.merged
    }

    /// The first few by name.
    pub fn named(&self) -> String {
        self.faults.iter().map(|fault| format!("  {fault}\n")).collect()
    }
}

/// What is wrong with times, at several stages.
pub fn violations<'a>(stages: impl IntoIterator<Item = (&'a str, &'a Violations)>) -> String {
    let cell = |count: u64, of: u64| format!("{count} ({})", percent(count as f64 / (of.max(1)) as f64));
    let headings =
        ["times", "messages: reversed", "violated", "collective pairs: reversed", "violated", "largest reversal"];
    let mut table = Table::new(headings);
    for (stage, Violations { messages, collectives, largest_reversal_nanos, .. }) in stages {
        table.row([
            stage.to_owned(),
            cell(messages.reversed, messages.total),
            cell(messages.violated, messages.total),
            cell(collectives.reversed, collectives.total),
            cell(collectives.violated, collectives.total),
            time(*largest_reversal_nanos as f64),
        ]);
    }
    table.render()
}

/// What became of times: tables 3 and 4 of Becker et al. (2009).
#[derive(Debug, Serialize)]
pub struct DeviationReport {
    displacement: DisplacementReport,
    event_position: IntervalReport,
    event_distance: IntervalReport,
}

#[derive(Debug, Serialize)]
struct DisplacementReport {
    events: u64,
    moved: u64,
    mean_nanos: f64,
    bias_nanos: f64,
    largest_nanos: i64,
}

#[derive(Debug, Serialize)]
struct IntervalReport {
    intervals: u64,
    mean_share: f64,
    mean_nanos: f64,
    largest_nanos: i64,
    /// Nothing, if an interval of no length got one.
    largest_share: Option<f64>,
    above: Vec<AboveReport>,
}

#[derive(Debug, Serialize)]
struct AboveReport {
    threshold: f64,
    share_of_intervals: f64,
    share_of_time: f64,
}

impl From<&Deviation> for DeviationReport {
    fn from(found: &Deviation) -> Self {
        let Displacement { events, moved, largest, .. } = found.displacement;
        let displacement = DisplacementReport {
            events,
            moved,
            mean_nanos: found.displacement.mean(),
            bias_nanos: found.displacement.bias(),
            largest_nanos: largest.as_nanos(),
        };
        let intervals = |of: &Intervals| IntervalReport {
            intervals: of.intervals,
            mean_share: of.mean_share(),
            mean_nanos: of.mean(),
            largest_nanos: of.largest.as_nanos(),
            largest_share: of.largest_share.is_finite().then_some(of.largest_share),
            above: Intervals::THRESHOLDS
                .iter()
                .zip(of.shares())
                .map(|(threshold, (share_of_intervals, share_of_time))| AboveReport {
                    threshold: *threshold,
                    share_of_intervals,
                    share_of_time,
                })
                .collect(),
        };
        let [event_position, event_distance] = [&found.position, &found.distance].map(intervals);
        Self { displacement, event_position, event_distance }
    }
}

impl DeviationReport {
    /// Both tables.
    pub fn text(&self) -> String {
        let Self { displacement, event_position, event_distance } = self;
        let mut text = format!(
            "{} of {} events moved ({}); mean {}, largest {}\n\n",
            displacement.moved,
            displacement.events,
            percent(displacement.moved as f64 / displacement.events.max(1) as f64),
            time(displacement.mean_nanos),
            time(displacement.largest_nanos as f64)
        );
        let mut table = Table::new(["intervals changed", "on average", "at most", "at most, of itself"]);
        let both = [("event position", event_position), ("event distance", event_distance)];
        for (name, of) in both {
            table.row([
                name.to_owned(),
                percent(of.mean_share),
                time(of.largest_nanos as f64),
                of.largest_share.map_or_else(|| "from 0".to_owned(), percent),
            ]);
        }
        text += &table.render();
        text.push('\n');
        let names = ["changed by more than", "0 %", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"];
        let mut table = Table::new(names);
        for (name, of) in both {
            let row = |what: &str, share: fn(&AboveReport) -> f64| {
                let cells = of.above.iter().map(|above| percent(share(above)));
                std::iter::once(format!("{name}, share of {what}")).chain(cells).collect::<Vec<_>>()
            };
            table.row(row("intervals", |above| above.share_of_intervals));
            table.row(row("time", |above| above.share_of_time));
        }
        text + &table.render()
    }
}

/// How far times are from the truth.
#[derive(Debug, Serialize)]
pub struct TruthReport {
    bias_nanos: f64,
    centred_nanos: f64,
    largest_centred_nanos: f64,
}

impl From<TruthError> for TruthReport {
    fn from(error: TruthError) -> Self {
        Self {
            bias_nanos: error.bias(),
            centred_nanos: error.centred(),
            largest_centred_nanos: error.largest_centred(),
        }
    }
}

/// How far times are from the truth, at several stages.
pub fn truth<'a>(stages: impl IntoIterator<Item = (&'a str, &'a TruthReport)>) -> String {
    let mut table = Table::new(["error against the truth", "bias", "centred", "largest, centred"]);
    for (stage, error) in stages {
        table.row([
            stage.to_owned(),
            time(error.bias_nanos),
            time(error.centred_nanos),
            time(error.largest_centred_nanos),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_is_not_shown_as_none() {
        let shown = [0.0, 1.26e-9, 4.9e-5, 5e-5, 0.5].map(percent);
        assert_eq!(shown, ["0 %", "1.3e-7 %", "4.9e-3 %", "0.01 %", "50.0 %"]);
    }
}
