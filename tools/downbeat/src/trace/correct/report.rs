//! What a correction found and did, as text and as JSON.

use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_common::output;
use downbeat_sync::postmortem::Pass;
use serde::Serialize;

use super::super::tables::{Contents, DeviationReport, LatencyReport, TruthReport, Violations, truth, violations};

/// What is printed as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) schema: &'static str,
    pub(super) version: u32,
    pub(super) contents: Contents,
    pub(super) pre_synchronization: PreSyncReport,
    pub(super) latencies: LatencyReport,
    pub(super) passes: Vec<PassReport>,
    /// Receives and exits that were moved beyond what events before them were.
    pub(super) explicitly_corrected: usize,
    pub(super) as_measured: Violations,
    pub(super) pre_synchronized: Violations,
    pub(super) corrected: Violations,
    pub(super) deviation: DeviationReport,
    pub(super) truth: Option<TruthStages>,
}

#[derive(Debug, Serialize)]
pub(super) struct PreSyncReport {
    pub(super) method: &'static str,
    /// The most sessions that a clock has.
    pub(super) sessions: usize,
    /// Locations whose clock was taken as right, for want of samples.
    pub(super) unknown: usize,
    pub(super) sessions_left_out: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct PassReport {
    pub(super) control: f64,
    pub(super) largest_displacement_nanos: i64,
}

impl From<&Pass> for PassReport {
    fn from(pass: &Pass) -> Self {
        Self { control: pass.control.get(), largest_displacement_nanos: pass.error.as_nanos() }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct TruthStages {
    pub(super) pre_synchronized: TruthReport,
    pub(super) corrected: TruthReport,
}

impl Document {
    pub(super) fn text(&self, input: &Path, output: &Path) -> String {
        let mut text = format!("{}: {}", input.display(), self.contents.text());
        text += &self.pre_synchronization.text();
        text += &self.latencies.text();
        for PassReport { control, largest_displacement_nanos } in &self.passes {
            let moved = Duration::from_nanos(*largest_displacement_nanos);
            text += &format!("Pass with {control:.6} of the clocks' speed: events moved by up to {moved}\n");
        }
        let stages = [
            ("as measured", &self.as_measured),
            ("pre-synchronized", &self.pre_synchronized),
            ("corrected", &self.corrected),
        ];
        text += &format!("\n{}", violations(stages));
        text += &format!("Receives and exits corrected explicitly: {}\n", self.explicitly_corrected);
        text += &format!("\nSince pre-synchronization, {}", self.deviation.text());
        if let Some(TruthStages { pre_synchronized, corrected }) = &self.truth {
            text += &format!("\n{}", truth([("pre-synchronized", pre_synchronized), ("corrected", corrected)]));
        }
        text + &format!("\n{}: no violation is left\n", output.display())
    }
}

impl PreSyncReport {
    fn text(&self) -> String {
        let mut text = match self.method {
            "none" => "Pre-synchronization: none\n".to_owned(),
            method => format!("Pre-synchronization: {method}, of {}\n", output::count(self.sessions, "session")),
        };
        if self.unknown > 0 {
            text += &format!("Clocks taken as right, for want of samples: {}\n", self.unknown);
        }
        if self.sessions_left_out > 0 {
            text += &format!("Sessions left out, as they contradict those before: {}\n", self.sessions_left_out);
        }
        text
    }
}
