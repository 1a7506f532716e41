//! Reports on traces, as tables and as JSON.

use downbeat_clock_core::Duration;
use downbeat_trace::check::{RelationCounts, Verdict, WithinClocks};
use downbeat_trace::{EventId, Latencies, Totals};
use serde::Serialize;

use super::archive_report::ArchiveRead;
use crate::output::{self, percent, time};
use crate::page::svg::visible;
use crate::units;

/// Number of items of each kind in a trace.
#[derive(Debug, Serialize)]
pub struct Contents {
    /// Number of locations.
    pub locations: usize,
    /// Numbers of events, messages and operations.
    #[serde(flatten)]
    pub totals: Totals,
    /// Counts of an archive besides its events.
    #[serde(flatten)]
    pub archive: ArchiveRead,
}

impl Contents {
    /// Formats the numbers of items.
    pub fn counts(&self) -> String {
        [
            output::count(self.locations, "location"),
            output::count(self.totals.events as usize, "event"),
            output::count(self.totals.messages as usize, "message"),
            output::count(self.totals.collectives as usize, "collective operation"),
        ]
        .join(", ")
    }

    /// Formats what was left out, accepted or not examined, each in one line.
    pub fn remarks(&self) -> String {
        let left_out = self.totals.left_out;
        let left_out = [left_out.sends, left_out.receives, left_out.collectives];
        left_out_line(left_out) + &self.archive.remarks()
    }
}

/// Names in one line what is not complete, if there is anything: sends, receives and
/// collective operations.
pub fn left_out_line([sends, receives, collectives]: [u64; 3]) -> String {
    if sends + receives + collectives == 0 {
        return String::new();
    }
    format!(
        "Left out: {} without a receive, {} without a send, {} without some members\n",
        output::count(sends as usize, "message"),
        output::count(receives as usize, "message"),
        output::count(collectives as usize, "collective operation")
    )
}

/// Levels of latencies.
const LEVELS: [&str; 3] = ["within a process", "within a node", "between nodes"];

/// Minimum latencies of messages.
#[derive(Debug, Serialize)]
pub struct LatencyReport {
    /// Origin of the latencies, in one to three words.
    pub source: &'static str,
    /// Latency within a process.
    pub same_process_nanos: i64,
    /// Latency within a node.
    pub same_node_nanos: i64,
    /// Latency between nodes.
    pub other_node_nanos: i64,
    /// Names of those that could not be measured although there are different clocks at that
    /// distance.
    pub unknown: Vec<&'static str>,
}

impl LatencyReport {
    /// Creates the report on latencies of this origin, given the levels at which there
    /// are different clocks.
    pub fn new(source: &'static str, latencies: Latencies, levels: [bool; 3]) -> Self {
        let nanos = latencies.levels().map(Duration::as_nanos);
        let [same_process_nanos, same_node_nanos, other_node_nanos] = nanos;
        let unknown = latencies.unknown();
        let unknown = (0..3).filter(|level| unknown[*level] && levels[*level]);
        Self {
            source,
            unknown: unknown.map(|level| LEVELS[level]).collect(),
            same_process_nanos,
            same_node_nanos,
            other_node_nanos,
        }
    }

    /// Formats the latencies as `--latencies` takes them, and their source.
    pub fn text(&self) -> String {
        format!(
            "{}ns,{}ns,{}ns ({})",
            self.same_process_nanos, self.same_node_nanos, self.other_node_nanos, self.source
        )
    }

    /// Names in one line the latencies that are not known, if there are any.
    pub fn remarks(&self) -> String {
        match &self.unknown[..] {
            [] => String::new(),
            unknown => format!(
                "Unknown, as no cycle of messages shows it: latency {}; without --latencies, \
                 events may stay too early by it\n",
                unknown.join(" and ")
            ),
        }
    }
}

/// Violations in the times of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Violations {
    /// True if there are no violations.
    pub holds: bool,
    /// Dependences by messages.
    pub messages: RelationCounts,
    /// Dependences of exits on enters of collective operations, counted as one message per pair.
    pub collectives: RelationCounts,
    /// Mean time by which reversed messages arrived before they were sent.
    pub mean_reversal_nanos: f64,
    /// Largest such time.
    pub largest_reversal_nanos: i64,
    /// Events that are before their predecessors.
    pub decreasing: u64,
    /// Events that are no longer after their predecessors.
    pub merged: u64,
    /// Events that are before their predecessors of another location with the same clock.
    pub reordered: u64,
    /// Dependences between locations with the same clock.
    pub within_clocks: WithinClocks,
    /// First violations.
    pub faults: Vec<String>,
}

impl Violations {
    /// Creates the report, with names of locations.
    pub fn new(verdict: &Verdict, names: &[String]) -> Self {
        let words = |event: EventId| match names.get(event.location.index()) {
            Some(name) => format!("{event} ({})", short_name(name, 40)),
            None => event.to_string(),
        };
        let faults = verdict.faults.iter();
        Self {
            holds: verdict.holds(),
            messages: verdict.messages,
            collectives: verdict.collectives,
            mean_reversal_nanos: verdict.reversal.total as f64
                / verdict.messages.reversed.max(1) as f64,
            largest_reversal_nanos: verdict.reversal.largest.as_nanos(),
            decreasing: verdict.decreasing,
            merged: verdict.merged,
            reordered: verdict.reordered,
            within_clocks: verdict.within_clocks,
            faults: faults.map(|fault| fault.describe(words)).collect(),
        }
    }
}

/// Shortens a name of the program, in which there may be anything, to this number of
/// letters: the first and the last ones, since threads differ in these.
pub fn short_name(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().map(visible).collect();
    if letters.len() <= most {
        return letters.into_iter().collect();
    }
    let last = most / 2;
    let (first, rest) = letters.split_at(most - 1 - last);
    let rest = &rest[rest.len() - last..];
    first.iter().chain(&['…']).chain(rest).collect()
}

impl Violations {
    /// Returns the number of violations.
    pub fn count(&self) -> u64 {
        self.messages.violated + self.collectives.violated + self.disordered()
    }

    /// Returns the number of events that lost their order on a location or a clock.
    pub fn disordered(&self) -> u64 {
        self.decreasing + self.merged + self.reordered
    }

    /// Formats the mean and the largest time by which messages are reversed; "-" if none
    /// is. Collective operations have no such sum.
    pub(super) fn reversal(&self) -> [String; 2] {
        if self.messages.reversed == 0 {
            return ["-", "-"].map(str::to_owned);
        }
        [
            time(self.mean_reversal_nanos),
            time(self.largest_reversal_nanos as f64),
        ]
    }

    /// Formats the violations as a part of a sentence; those within clocks are no violations,
    /// and named if there are any.
    pub fn sentence_part(&self) -> String {
        let of = |found: RelationCounts, what: &str| {
            let total = output::count(found.total as usize, what);
            match found.violated {
                0 => format!("none of {total}"),
                wrong => format!(
                    "{} of {total} ({})",
                    units::count(wrong),
                    percent(wrong as f64 / found.total as f64)
                ),
            }
        };
        let mut parts = vec![of(self.messages, "message")];
        if self.messages.reversed > 0 {
            parts[0] += &format!(
                ", {} of them reversed, by at most {}",
                units::count(self.messages.reversed),
                time(self.largest_reversal_nanos as f64)
            );
        }
        if self.collectives.total > 0 {
            parts.push(of(self.collectives, "pair") + " in collective operations");
        }
        if self.within_clocks.reversed > 0 {
            parts.push(format!(
                "{} within clocks, which stay",
                units::count(self.within_clocks.reversed)
            ));
        }
        parts.join("; ")
    }

    /// Formats the first violations, one per line.
    pub fn named(&self) -> String {
        self.faults
            .iter()
            .map(|fault| format!("  {fault}\n"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut() {
        assert_eq!(short_name("MPI_Allreduce", 24), "MPI_Allreduce");
        assert_eq!(short_name("a\u{1b}b", 24), "a\u{fffd}b");
        assert_eq!(short_name("a\u{202e}\u{9b}", 24), "a\u{fffd}\u{fffd}");
        let long = short_name(&("x".repeat(20) + "thread 17"), 24);
        assert_eq!(long, "x".repeat(11) + "…xxxthread 17");
    }
}
