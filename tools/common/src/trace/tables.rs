//! Reports on traces, as tables and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use downbeat_clock_core::Duration;
use downbeat_trace::check::{Relations, Verdict};
use downbeat_trace::{EventId, LeftOut, Totals};
use serde::Serialize;

use super::archive_report::accepted_lines;
use super::recording::ArchiveRead;
use super::settings::LatencySetting;
use crate::output::{self, time};
use crate::units;

/// Number of items of each kind in a trace.
#[derive(Debug, Serialize)]
pub struct Contents {
    /// Number of locations.
    pub locations: usize,
    /// Number of events.
    pub events: u64,
    /// Number of messages that were received.
    pub messages: usize,
    /// Number of collective operations.
    pub collectives: usize,
    /// Number of receives, and of exits of collective operations that depend on other members.
    pub arrivals: usize,
    /// Unmatched items that were left out.
    pub left_out: Missing,
    /// Relations of an archive that are not examined, by kind.
    pub not_examined: BTreeMap<&'static str, u64>,
    /// Definitions of an archive that a later one replaced.
    pub redefined: usize,
    /// Locations of an archive with another number of events than defined.
    pub miscounted: u64,
    /// Files of an archive whose checksums are wrong.
    pub changed: Vec<PathBuf>,
}

/// Unmatched items that were left out.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// Messages without a receive.
    pub sends: u64,
    /// Messages without a send.
    pub receives: u64,
    /// Collective operations without some members.
    pub collectives: u64,
}

impl Contents {
    /// Creates the report on a trace with this number of locations; `archive` is what was read of it
    /// besides its events, if it is an archive.
    pub fn new(locations: usize, totals: &Totals, archive: &ArchiveRead) -> Self {
        let LeftOut {
            sends,
            receives,
            collectives,
            ..
        } = totals.left_out;
        Self {
            locations,
            events: totals.events,
            messages: totals.messages as usize,
            collectives: totals.collectives as usize,
            arrivals: totals.arrivals as usize,
            left_out: Missing {
                sends,
                receives,
                collectives,
            },
            not_examined: archive.part.unexamined.iter().collect(),
            redefined: archive.redefined,
            miscounted: archive.part.miscounted,
            changed: archive.changed.clone(),
        }
    }

    /// Formats the numbers of items.
    pub fn counts(&self) -> String {
        [
            output::count(self.locations, "location"),
            output::count(self.events as usize, "event"),
            output::count(self.messages, "message"),
            output::count(self.collectives, "collective operation"),
        ]
        .join(", ")
    }

    /// Formats what was left out, accepted or not examined, each in one line.
    pub fn remarks(&self) -> String {
        let Missing {
            sends,
            receives,
            collectives,
        } = self.left_out;
        let mut text = String::new();
        if sends + receives + collectives > 0 {
            text += &left_out_line([sends, receives, collectives].map(|number| number as usize));
        }
        text += &accepted_lines(self.redefined, self.miscounted, &self.changed);
        for (kind, count) in &self.not_examined {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "Not examined, {kind}: {count}");
        }
        text
    }
}

/// Names in one line what is not complete: sends, receives and collective operations.
pub fn left_out_line([sends, receives, collectives]: [usize; 3]) -> String {
    format!(
        "Left out: {} without a receive, {} without a send, {} without some members\n",
        output::count(sends, "message"),
        output::count(receives, "message"),
        output::count(collectives, "collective operation")
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
    /// Creates the report, given the levels at which there are different clocks.
    pub fn new(found: LatencySetting, levels: [bool; 3]) -> Self {
        let [process, node, beyond] = found.latencies.levels().map(Duration::as_nanos);
        let source = found.source;
        let unknown = found.latencies.unknown();
        let unknown = (0..3).filter(|level| unknown[*level] && levels[*level]);
        Self {
            source,
            unknown: unknown.map(|level| LEVELS[level]).collect(),
            same_process_nanos: process,
            same_node_nanos: node,
            other_node_nanos: beyond,
        }
    }

    /// Formats the latencies as `--latencies` takes them, and their source.
    pub fn text(&self) -> String {
        let Self {
            source,
            same_process_nanos,
            same_node_nanos,
            other_node_nanos,
            ..
        } = self;
        format!("{same_process_nanos}ns,{same_node_nanos}ns,{other_node_nanos}ns ({source})")
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

/// Formats a share in percent, so that a positive one does not look like 0.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 5e-5 {
        format!("{:.1e} %", 100.0 * share)
    } else {
        output::percent(share)
    }
}

/// Numbers of dependences and of violated ones.
#[derive(Clone, Debug, Serialize)]
pub struct RelationsReport {
    /// All dependences.
    pub total: u64,
    /// Dependences in which the receive is before the send.
    pub reversed: u64,
    /// Dependences in which the receive is earlier than the send plus the latency.
    pub violated: u64,
}

impl From<Relations> for RelationsReport {
    fn from(found: Relations) -> Self {
        Self {
            total: found.total,
            reversed: found.reversed,
            violated: found.violated,
        }
    }
}

/// Numbers of dependences between locations with the same clock, which are no violations.
#[derive(Clone, Debug, Serialize)]
pub struct WithinClocksReport {
    /// All dependences.
    pub total: u64,
    /// Dependences in which the receive is before the send.
    pub reversed: u64,
}

/// Violations in the times of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Violations {
    /// True if there are no violations.
    pub holds: bool,
    /// Dependences by messages.
    pub messages: RelationsReport,
    /// Dependences of exits on enters of collective operations, counted as one message per pair.
    pub collectives: RelationsReport,
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
    pub within_clocks: WithinClocksReport,
    /// First violations.
    pub faults: Vec<String>,
}

impl Violations {
    /// Creates the report, with names of locations.
    pub fn new(verdict: &Verdict, names: &[String]) -> Self {
        let words = |event: EventId| match names.get(event.location.index()) {
            Some(name) => format!("{event} ({})", short_name(name)),
            None => event.to_string(),
        };
        Self {
            holds: verdict.holds(),
            messages: verdict.messages.into(),
            collectives: verdict.collectives.into(),
            mean_reversal_nanos: verdict.reversal.total as f64
                / verdict.messages.reversed.max(1) as f64,
            largest_reversal_nanos: verdict.reversal.largest.as_nanos(),
            decreasing: verdict.decreasing,
            merged: verdict.merged,
            reordered: verdict.reordered,
            within_clocks: WithinClocksReport {
                total: verdict.within_clocks.total,
                reversed: verdict.within_clocks.reversed,
            },
            faults: verdict
                .faults
                .iter()
                .map(|fault| fault.describe(words))
                .collect(),
        }
    }
}

/// Shortens a name to fit in a line, and removes control characters.
pub(super) fn short_name(name: &str) -> String {
    const LONGEST: usize = 40;
    let mut plain = name.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut short: String = plain.by_ref().take(LONGEST).collect();
    if plain.next().is_some() {
        short += "...";
    }
    short
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
        let of = |found: &RelationsReport, what: &str| {
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
        let mut parts = vec![of(&self.messages, "message")];
        if self.messages.reversed > 0 {
            parts[0] += &format!(
                ", {} of them reversed, by at most {}",
                units::count(self.messages.reversed),
                time(self.largest_reversal_nanos as f64)
            );
        }
        if self.collectives.total > 0 {
            parts.push(of(&self.collectives, "pair") + " in collective operations");
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
    fn a_small_share_is_not_shown_as_none() {
        let shown = [0.0, 1.26e-9, 4.9e-5, 5e-5, 0.5].map(percent);
        assert_eq!(shown, ["0 %", "1.3e-7 %", "4.9e-3 %", "0.01 %", "50.0 %"]);
    }
}
