//! What a correction found and did, as text and as JSON.

use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_trace::Pass;
use serde::Serialize;

use super::deviation::DeviationReport;
use super::movement::Movement;
use super::recording::ArchiveReport;
use super::tables::{Contents, LatencyReport, Violations, percent, violations};
use super::truth::TruthStages;
use crate::output;

/// What a correction found and did.
#[derive(Debug, Serialize)]
pub struct Document {
    /// What this is.
    pub schema: &'static str,
    /// Of which version.
    pub version: u32,
    /// What the trace consists of.
    pub contents: Contents,
    /// How clocks were made one before.
    pub pre_synchronization: PreSyncReport,
    /// How long messages take at least.
    pub latencies: LatencyReport,
    /// In their order; the last one counts.
    pub passes: Vec<PassReport>,
    /// Receives and exits that were moved beyond what events before them were.
    pub explicitly_corrected: usize,
    /// What is wrong with times in the file.
    pub as_measured: Violations,
    /// What is wrong with them on one clock.
    pub pre_synchronized: Violations,
    /// What is wrong with them in the end.
    pub corrected: Violations,
    /// What became of times on one clock.
    pub deviation: DeviationReport,
    /// Where and when they are moved.
    pub movement: Movement,
    /// How far they are from the truth, if that is known.
    pub truth: Option<TruthStages>,
    /// How an archive says its times.
    pub archive: Option<ArchiveReport>,
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
pub struct Printed<'a> {
    /// What was found and done.
    #[serde(flatten)]
    pub document: &'a Document,
    /// Whether all events were read again and again, and never all held in memory.
    pub streamed: bool,
}

/// How clocks were made one.
#[derive(Debug, Serialize)]
pub struct PreSyncReport {
    /// As the option calls it.
    pub method: &'static str,
    /// The most sessions that a clock has.
    pub sessions: usize,
    /// Locations whose clock was taken as right, for want of samples.
    pub unknown: usize,
    /// Sessions that contradict those before.
    pub sessions_left_out: usize,
}

/// One pass over the trace.
#[derive(Debug, Serialize)]
pub struct PassReport {
    /// With what share of the clocks' speed.
    pub control: f64,
    /// How far an event was moved.
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
    /// For people.
    pub fn text(&self, input: &Path, output: &Path) -> String {
        let mut text = format!("{}: {}", input.display(), self.contents.text());
        text += &self.pre_synchronization.text();
        text += &self.latencies.text();
        for PassReport {
            control,
            largest_displacement_nanos,
        } in &self.passes
        {
            let moved = Duration::from_nanos(*largest_displacement_nanos);
            text += &format!(
                "Pass with {control:.6} of the clocks' speed: events moved by up to {moved}\n"
            );
        }
        let stages = [
            ("as measured", &self.as_measured),
            ("pre-synchronized", &self.pre_synchronized),
            ("corrected", &self.corrected),
        ];
        text += &format!("\n{}", violations(stages));
        let share =
            percent(self.explicitly_corrected as f64 / self.contents.arrivals.max(1) as f64);
        text += &format!(
            "Receives and exits corrected explicitly: {} ({share})\n",
            self.explicitly_corrected
        );
        text += &format!("\nSince pre-synchronization, {}", self.deviation.text());
        if let Some(truth) = &self.truth {
            text += &format!("\n{}", truth.text());
        }
        text.push('\n');
        if let Some(archive) = &self.archive {
            text += &archive.text();
        }
        text + &format!("{}: no violation is left\n", output.display())
    }
}

impl PreSyncReport {
    /// One line, or more where something is wrong.
    pub fn text(&self) -> String {
        let mut text = match self.method {
            "none" => "Pre-synchronization: none\n".to_owned(),
            method => format!(
                "Pre-synchronization: {method}, of {}\n",
                output::count(self.sessions, "session")
            ),
        };
        if self.unknown > 0 {
            text += &format!(
                "Clocks taken as right, for want of samples: {}\n",
                self.unknown
            );
        }
        if self.sessions_left_out > 0 {
            text += &format!(
                "Sessions left out, as they contradict those before: {}\n",
                self.sessions_left_out
            );
        }
        text
    }
}
