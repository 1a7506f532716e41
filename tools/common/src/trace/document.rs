//! Report of a correction, as text and as JSON.

use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_trace::{Correction, Pass};
use serde::Serialize;

use super::archive_report::ArchiveReport;
use super::deviation::DeviationReport;
use super::recording::ArchiveRead;
use super::settings::LatencySetting;
use super::tables::{Contents, LatencyReport, Violations, percent, violations};
use super::truth::TruthStages;
use crate::output;
use crate::text::Text;

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
    /// Number of receives and exits that were moved farther than the events before them.
    pub explicitly_corrected: usize,
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
}

/// JSON output of a correction.
#[derive(Debug, Serialize)]
pub struct Printed<'a> {
    /// Report of the correction.
    #[serde(flatten)]
    pub document: &'a Document,
    /// True if the events were in a temporary file instead of in memory.
    pub in_file: bool,
}

/// Name of the pre-synchronization by messages.
pub(super) const HULL: &str = "hull";

/// Report of the pre-synchronization.
#[derive(Debug, Serialize)]
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

impl From<&Pass> for PassReport {
    fn from(pass: &Pass) -> Self {
        Self {
            control: pass.control.get(),
            largest_displacement_nanos: pass.error.as_nanos(),
        }
    }
}

impl Document {
    /// Creates the report on a correction of locations with these names.
    pub fn new(
        found: &Correction,
        (pre_synchronization, latencies, archive): (
            PreSyncReport,
            LatencySetting,
            Option<ArchiveReport>,
        ),
        (names, read): (&[String], &ArchiveRead),
    ) -> Self {
        let violations = |verdict| Violations::new(verdict, names);
        Self {
            schema: "downbeat.trace_correction",
            version: 1,
            contents: Contents::new(names.len(), &found.totals, read),
            pre_synchronization,
            latencies: LatencyReport::new(latencies, found.levels),
            passes: found.passes.iter().map(Into::into).collect(),
            explicitly_corrected: found.jumps as usize,
            as_measured: violations(&found.as_measured),
            pre_synchronized: violations(&found.pre_synchronized),
            corrected: violations(&found.corrected),
            deviation: (&found.deviation).into(),
            truth: found.truth.map(TruthStages::new),
            archive,
        }
    }

    /// Formats the report as text.
    pub fn text(&self, input: &Path, output: &Path) -> Text {
        let mut text = Text::from(format!("{}: {}", input.display(), self.contents.text()));
        text += self.pre_synchronization.text();
        text += self.latencies.text();
        for PassReport {
            control,
            largest_displacement_nanos,
        } in &self.passes
        {
            let moved = Duration::from_nanos(*largest_displacement_nanos);
            text += format!(
                "Pass with the control factor {}: events moved by up to {moved}\n",
                control_factor(*control)
            );
        }
        text += "\n";
        let stages = [
            ("as measured", &self.as_measured),
            ("pre-synchronized", &self.pre_synchronized),
            ("corrected", &self.corrected),
        ];
        // Without a pass, nothing was to be corrected.
        let is_corrected = !self.passes.is_empty();
        let stages = stages.into_iter().take(if is_corrected { 3 } else { 2 });
        text += violations(stages);
        if !is_corrected {
            text += format!(
                "{}: pre-synchronized only, what is violated above is left\n",
                output.display()
            );
            return text;
        }
        let share =
            percent(self.explicitly_corrected as f64 / self.contents.arrivals.max(1) as f64);
        text += format!(
            "Receives and exits corrected explicitly: {} ({share})\n",
            self.explicitly_corrected
        );
        text += "\nSince pre-synchronization, ";
        text += self.deviation.text();
        if let Some(truth) = &self.truth {
            text += "\n";
            text += truth.table();
        }
        text += "\n";
        if let Some(archive) = &self.archive {
            text += archive.text();
            if self.deviation.displacement.moved == 0 && archive.rewritten.is_empty() {
                text += "Nothing moved: all files are copied as they are\n";
            }
        }
        let examined = match self.contents.not_examined.is_empty() {
            true => "",
            false => " among the relations that were examined",
        };
        text += format!("{}: no violation is left{examined}\n", output.display());
        text
    }
}

/// Formats a control factor: `1 - 1.2e-7`, or `0.5` if it is not near 1.
pub(super) fn control_factor(control: f64) -> String {
    match 1.0 - control {
        0.0 => "1".to_owned(),
        lost if lost >= 0.1 => control.to_string(),
        lost => format!("1 - {lost:.1e}"),
    }
}

impl PreSyncReport {
    /// Adds the results of the correction.
    pub fn complete(&mut self, found: &Correction) {
        (self.unknown, self.sessions_left_out) = (found.unknown_clocks, found.sessions_left_out);
        self.clock_error_nanos = found.clock_error.map(Duration::as_nanos);
        if self.extrapolated.is_some() && found.clocks_mapped {
            self.method = HULL;
        } else if self.is_default && !found.clocks_mapped {
            // No message contradicts the clocks, or none tells them.
            (self.unknown, self.clock_error_nanos) = (0, None);
            if self.method == HULL {
                self.method = "none";
            }
        }
    }

    /// Formats the report in one line, and one more each for missing samples and left-out sessions.
    pub fn text(&self) -> String {
        let mut text = match self.method {
            "none" => "Pre-synchronization: none\n".to_owned(),
            HULL => match self.clock_error_nanos {
                Some(nanos) => format!(
                    "Pre-synchronization: hull, by messages; if clocks drift at constant rates, their errors are at most {}\n",
                    Duration::from_nanos(nanos)
                ),
                None => {
                    "Pre-synchronization: hull, by messages; no constant drifts fit all of them\n"
                        .to_owned()
                }
            },
            method => format!(
                "Pre-synchronization: {method}, of {}\n",
                output::count(self.sessions, "session")
            ),
        };
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
