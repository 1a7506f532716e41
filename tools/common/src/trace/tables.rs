//! What is found out about times, as tables and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_trace::{Census, Collective, EventId, LeftOut, Relations, Totals, Trace, Verdict};
use serde::Serialize;

use super::settings::LatencySetting;
use crate::Failure;
use crate::output::{self, Table, time};

/// What a trace consists of.
#[derive(Debug, Serialize)]
pub struct Contents {
    /// Threads of processes.
    pub locations: usize,
    /// All of them.
    pub events: u64,
    /// Those that were received.
    pub messages: usize,
    /// Collective operations.
    pub collectives: usize,
    /// Receives, and exits of collective operations that wait for somebody.
    pub arrivals: usize,
    /// What a lenient reader left out.
    pub left_out: Missing,
}

/// What a lenient reader left out.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// Messages that nobody received.
    pub sends: u64,
    /// Messages that nobody sent.
    pub receives: u64,
    /// Collective operations without some members.
    pub collectives: u64,
}

impl Contents {
    /// Counts.
    pub fn new(trace: &Trace) -> Self {
        let LeftOut {
            sends,
            receives,
            collectives,
            ..
        } = trace.left_out();
        let messages = trace.messages().count();
        let exits =
            |of: Collective<'_>| of.members().filter(|member| member.exit.is_some()).count();
        Self {
            locations: trace.locations().len(),
            events: trace.events(),
            messages,
            collectives: trace.collectives().len(),
            arrivals: messages + trace.collectives().map(exits).sum::<usize>(),
            left_out: Missing {
                sends,
                receives,
                collectives,
            },
        }
    }

    /// The same of a stream, with so many arrivals.
    pub fn from_census(census: &Census, arrivals: u64) -> Self {
        let LeftOut {
            sends,
            receives,
            collectives,
            ..
        } = census.left_out;
        Self {
            locations: census.ids().len(),
            events: census.events,
            messages: census.messages as usize,
            collectives: census.collectives as usize,
            arrivals: arrivals as usize,
            left_out: Missing {
                sends,
                receives,
                collectives,
            },
        }
    }

    /// The same of a trace with so many locations that ranks share.
    pub fn from_totals(locations: usize, totals: &Totals) -> Self {
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
        }
    }

    /// One line, or two.
    pub fn text(&self) -> String {
        let Self {
            locations,
            events,
            messages,
            collectives,
            left_out,
            ..
        } = self;
        let count = |number: usize, what| output::count(number, what);
        let mut text = format!(
            "{}, {}, {}, {}\n",
            count(*locations, "location"),
            count(*events as usize, "event"),
            count(*messages, "message"),
            count(*collectives, "collective operation")
        );
        let Missing {
            sends,
            receives,
            collectives,
        } = left_out;
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
    /// Where they come from, in a word or two.
    pub source: &'static str,
    /// In a process.
    pub same_process_nanos: i64,
    /// On a node.
    pub same_node_nanos: i64,
    /// Between nodes.
    pub other_node_nanos: i64,
}

impl LatencyReport {
    /// Those that count.
    pub fn new(found: LatencySetting) -> Self {
        let [process, node, beyond] = found.latencies.levels().map(Duration::as_nanos);
        let source = found.source;
        Self {
            source,
            same_process_nanos: process,
            same_node_nanos: node,
            other_node_nanos: beyond,
        }
    }

    /// As `--latencies` takes them, too.
    pub fn text(&self) -> String {
        let Self {
            source,
            same_process_nanos,
            same_node_nanos,
            other_node_nanos,
        } = self;
        format!(
            "Latencies: {same_process_nanos}ns,{same_node_nanos}ns,{other_node_nanos}ns ({source})\n"
        )
    }
}

/// A share, of which one that is not 0 does not look as if it were.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 5e-5 {
        format!("{:.1e} %", 100.0 * share)
    } else {
        output::percent(share)
    }
}

/// How many of a kind are wrong.
#[derive(Clone, Debug, Serialize)]
pub struct RelationsReport {
    /// All.
    pub total: u64,
    /// Those that arrive before they are sent.
    pub reversed: u64,
    /// Those that arrive before they can have arrived.
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

/// What is wrong with times.
#[derive(Clone, Debug, Serialize)]
pub struct Violations {
    /// Whether that is nothing.
    pub holds: bool,
    /// Messages.
    pub messages: RelationsReport,
    /// Enters of collective operations and exits that wait for them, as if there were a message from each to each.
    pub collectives: RelationsReport,
    /// By how much messages arrived before they were sent: those that did, on average.
    pub mean_reversal_nanos: f64,
    /// At most.
    pub largest_reversal_nanos: i64,
    /// Events that are before the one before.
    pub decreasing: u64,
    /// Events that are no longer after the one before.
    pub merged: u64,
    /// The first few.
    pub faults: Vec<String>,
}

impl Violations {
    /// What was found, with names of locations.
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
            faults: verdict
                .faults
                .iter()
                .map(|fault| fault.describe(words))
                .collect(),
        }
    }
}

/// A name that fits into a line, and does nothing to a terminal.
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
    /// All of them.
    pub fn count(&self) -> u64 {
        self.messages.violated + self.collectives.violated + self.decreasing + self.merged
    }

    /// That there are none in what became of the trace at `input`.
    ///
    /// # Errors
    /// When there are.
    pub fn check_none_left(&self, input: &Path) -> Result<(), Failure> {
        if self.count() == 0 {
            return Ok(());
        }
        let count = output::count(self.count() as usize, "violation");
        Err(Failure::Run(format!(
            "{}: {count} are left, which is a mistake of this program",
            input.display()
        )))
    }

    /// The first few by name.
    pub fn named(&self) -> String {
        self.faults
            .iter()
            .map(|fault| format!("  {fault}\n"))
            .collect()
    }
}

/// What is wrong with times, at several stages.
pub fn violations<'a>(stages: impl IntoIterator<Item = (&'a str, &'a Violations)>) -> String {
    let cell =
        |count: u64, of: u64| format!("{count} ({})", percent(count as f64 / (of.max(1)) as f64));
    let [messages, collectives] = ["messages: reversed", "collective pairs: reversed"];
    let mut table = Table::new([
        "times",
        messages,
        "violated",
        collectives,
        "violated",
        "reversed by",
        "at most",
    ]);
    for (
        stage,
        Violations {
            messages,
            collectives,
            mean_reversal_nanos,
            largest_reversal_nanos,
            ..
        },
    ) in stages
    {
        table.row([
            stage.to_owned(),
            cell(messages.reversed, messages.total),
            cell(messages.violated, messages.total),
            cell(collectives.reversed, collectives.total),
            cell(collectives.violated, collectives.total),
            time(*mean_reversal_nanos),
            time(*largest_reversal_nanos as f64),
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
