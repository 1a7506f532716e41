//! Report of a correction, as text and as JSON.

use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_trace::CorrectionReport;
use serde::Serialize;

use super::{ArchiveReport, Contents, DeviationReport, LatencyReport, TruthStages, Violations};
use crate::text::Text;
use crate::{output, units};

/// Report of a correction.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Name of the document format.
    pub schema: &'static str,
    /// Version of the document format.
    pub version: u32,
    /// Numbers of locations and events of the trace.
    pub contents: Contents,
    /// Pre-synchronization of the clocks.
    pub pre_synchronization: PreSyncReport,
    /// Minimum latencies of messages.
    pub latencies: LatencyReport,
    /// Passes in their order; the last one gives the result.
    pub passes: Vec<PassReport>,
    /// Maximum displacement of an event, if the last pass moved some further.
    #[serde(skip)]
    pub missed_threshold: Option<Duration>,
    /// Number of receives and exits that were moved farther than the events before them.
    pub explicitly_corrected: u64,
    /// Violations by the timestamps in the file.
    pub as_measured: Violations,
    /// Violations after pre-synchronization.
    pub pre_synchronized: Violations,
    /// Violations after the correction.
    pub corrected: Violations,
    /// Deviation of the corrected timestamps from the pre-synchronized ones.
    pub deviation: DeviationReport,
    /// Errors against the true timestamps, if these are known.
    pub truth: Option<TruthStages>,
    /// Clock offsets and rewritten locations of the corrected archive.
    pub archive: Option<ArchiveReport>,
    /// True if the events were in a temporary file instead of in memory.
    pub in_file: bool,
}

/// Name of the pre-synchronization by messages.
pub(super) const HULL: &str = "hull";

/// Name of the pre-synchronization by the clock offsets that an archive states.
pub(super) const ARCHIVE: &str = "archive";

/// Name of the pre-synchronization that changes nothing.
pub(super) const NONE: &str = "none";

/// Report of the pre-synchronization.
#[derive(Debug, Default, Serialize)]
pub struct PreSyncReport {
    /// Name of the method, as in the option, or `archive`.
    pub method: &'static str,
    /// Maximum number of sessions of a clock.
    pub sessions: usize,
    /// Number of locations without samples, whose clock was taken as correct.
    pub unknown: usize,
    /// Number of sessions left out because they contradict earlier ones.
    pub sessions_left_out: usize,
    /// Upper limit of the errors of the clocks, in ns, if the method states one and clocks drift at a
    /// constant rate.
    pub clock_error_nanos: Option<i64>,
    /// Time that the clock offsets of an archive cover, and that of the trace, if it is far longer.
    #[serde(skip)]
    pub extrapolated: Option<[Duration; 2]>,
    /// True if the method is not one that the user asked for.
    #[serde(skip)]
    pub is_default: bool,
}

/// Report of one pass over the trace.
#[derive(Debug, Serialize)]
pub struct PassReport {
    /// Speed of clocks after they were moved forward, as a share of their measured speed.
    pub control: f64,
    /// Largest displacement of an event, in ns.
    pub largest_displacement_nanos: i64,
}

impl Document {
    /// Formats the report as one paragraph, after what was left out or not examined; as one
    /// line if nothing moved.
    pub fn text(&self, input: &Path, output: &Path) -> Text {
        let mut text = Text::from(self.contents.remarks());
        text += self.pre_synchronization.remarks() + &self.latencies.remarks();
        let output = output.display();
        if self.is_unmoved() {
            let (latencies, outcome) = (self.latencies.text(), self.outcome());
            text += format!("{output}: nothing moved; {outcome}, by latencies of {latencies}\n");
        } else {
            text += format!("{}: {}. ", input.display(), self.contents.counts());
            text += self.sentences_on_violations();
            text += match self.passes.last() {
                Some(pass) => format!(" {} {output}: {}.\n", self.effect(pass), self.outcome()),
                None => format!(" {output}: pre-synchronized only, and these are left.\n"),
            };
        }
        if self.in_file {
            text += "The events were in a temporary file instead of in memory\n";
        }
        text
    }

    /// Returns true if all times are as they were read.
    fn is_unmoved(&self) -> bool {
        let is_mapped = !matches!(self.pre_synchronization.method, NONE | ARCHIVE);
        let is_moved = is_mapped || self.deviation.0.displacement.moved > 0;
        !self.passes.is_empty() && !is_moved
    }

    /// Formats the violations of the times as measured, and after pre-synchronization.
    fn sentences_on_violations(&self) -> String {
        let (latencies, method) = (self.latencies.text(), self.pre_synchronization.text());
        let measured = self.as_measured.sentence_part();
        let mut text = format!("As measured, too early for latencies of {latencies}: {measured}.");
        if self.pre_synchronization.method != NONE {
            let left = self.pre_synchronized.sentence_part();
            text += &format!(" After pre-synchronization ({method}): {left}.");
        }
        text
    }

    /// Formats the passes of the logical clock in one line, if there are any.
    pub(super) fn passes_line(&self) -> String {
        let passes = units::counted(self.passes.len(), "pass", "passes");
        match self.passes.last() {
            Some(last) => format!(
                "Logical clock: {passes}, the last one with control factor {} and events moved by up to {}\n",
                control_factor(last.control),
                units::time(last.largest_displacement_nanos as f64)
            ),
            None => String::new(),
        }
    }

    /// Formats how many events the logical clock moved, and how the error against the
    /// truth changed; `last` is the last pass.
    fn effect(&self, last: &PassReport) -> String {
        let found = &self.deviation.0.displacement;
        let passes = units::counted(self.passes.len(), "pass", "passes");
        let passes = match (self.passes.len(), self.missed_threshold) {
            (_, Some(most)) => format!("{passes}, the threshold of {most} was not reached, "),
            (1, None) => String::new(),
            (_, None) => format!("{passes}, "),
        };
        let events = output::count(found.events as usize, "event");
        let control = control_factor(last.control);
        let mut text = format!("The logical clock ({passes}control factor {control}) moved ");
        text += &match found.moved {
            0 => format!("none of {events}."),
            moved => format!(
                "{} of {events} ({}), by at most {}; explicitly, {} of {} receives and exits.",
                units::count(moved),
                self.deviation.moved_share(),
                found.largest,
                units::count(self.explicitly_corrected),
                units::count(self.contents.totals.arrivals)
            ),
        };
        if let Some(truth) = &self.truth {
            text += &format!(" {}", truth.sentence());
        }
        text
    }

    /// Formats what the corrected times violate. Relations within clocks keep their times,
    /// right or wrong.
    fn outcome(&self) -> String {
        let examined = match self.contents.archive.not_examined.is_empty() {
            true => "",
            false => " among the relations that were examined",
        };
        match self.corrected.within_clocks.reversed {
            0 => format!("no violation is left{examined}"),
            reversed => format!(
                "no violation between clocks is left{examined}; {}",
                stay_within_clocks(reversed)
            ),
        }
    }
}

/// Tells how many relations within clocks are reversed.
pub(super) fn stay_within_clocks(reversed: u64) -> String {
    let [one, several] = [
        "reversal within clocks stays",
        "reversals within clocks stay",
    ];
    units::counted(reversed as usize, one, several)
}

/// Formats a control factor: `1 - 1.2e-7`, or `0.5` if it is not near 1.
fn control_factor(control: f64) -> String {
    match 1.0 - control {
        0.0 => "1".to_owned(),
        lost if lost >= 0.1 => control.to_string(),
        lost => format!("1 - {lost:.1e}"),
    }
}

impl PreSyncReport {
    /// Adds the results of the correction.
    pub fn complete(&mut self, found: &CorrectionReport) {
        (self.unknown, self.sessions_left_out) = (found.unknown_clocks, found.sessions_left_out);
        self.clock_error_nanos = found.clock_error.map(Duration::as_nanos);
        if self.extrapolated.is_some() && found.clocks_mapped {
            self.method = HULL;
        } else if self.is_default && !found.clocks_mapped {
            // No message contradicts the clocks, or none tells them.
            (self.unknown, self.clock_error_nanos) = (0, None);
            if self.method == HULL {
                self.method = NONE;
            }
        }
    }

    /// Formats the method in a few words.
    pub fn text(&self) -> String {
        match (self.method, self.clock_error_nanos) {
            (HULL, Some(nanos)) => format!(
                "hull, by messages; if clocks drift at constant rates, {} errors are at most {}",
                if self.unknown == 0 {
                    "their"
                } else {
                    "the others'"
                },
                Duration::from_nanos(nanos)
            ),
            (HULL, None) if self.unknown > 0 => {
                "hull, by messages, which do not limit the errors".to_owned()
            }
            (HULL, None) => "hull, by messages; no constant drifts fit all of them".to_owned(),
            (NONE, _) => NONE.to_owned(),
            (method, _) => format!("{method}, of {}", output::count(self.sessions, "session")),
        }
    }

    /// Formats what limits the pre-synchronization, each in one line.
    pub fn remarks(&self) -> String {
        let mut text = String::new();
        if let Some([covered, whole]) = self.extrapolated {
            text += &format!(
                "The clock offsets of the archive cover {covered} of {whole}: all others are extrapolated\n"
            );
        }
        if self.unknown > 0 {
            let without = match self.method {
                HULL => "messages in both directions",
                _ => "samples",
            };
            let unknown = self.unknown;
            text += &format!("Clocks without {without}, taken as correct: {unknown}\n");
        }
        if self.sessions_left_out > 0 {
            text += &format!(
                "Sessions left out because they contradict earlier ones: {}\n",
                self.sessions_left_out
            );
        }
        text
    }
}
