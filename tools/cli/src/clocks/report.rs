//! Report of `downbeat clocks`, printed as JSON, or as text by `text.rs`.

use downbeat_common::health::ClockHealth;
use serde::Serialize;

/// Report on all time sources of a machine.
#[derive(Debug, Serialize)]
pub(crate) struct ClocksReport {
    pub(crate) schema: &'static str,
    pub(crate) version: u32,
    pub(crate) machine: MachineReport,
    pub(crate) tsc: TscReport,
    pub(crate) health: ClockHealth,
    pub(crate) sources: Vec<SourceReport>,
    pub(crate) recommended: Recommendation,
}

#[derive(Debug, Serialize)]
pub(crate) struct MachineReport {
    pub(crate) cpu_model: String,
    pub(crate) architecture: &'static str,
    pub(crate) hypervisor: Option<String>,
    pub(crate) cores: Vec<u32>,
    /// `None` where the system does not tell.
    pub(crate) sockets: Option<usize>,
}

/// Properties of the time stamp counter besides its readings.
#[derive(Debug, Serialize)]
pub(crate) struct TscReport {
    pub(crate) facts: Option<TscFactsReport>,
    pub(crate) doubts: Vec<String>,
    pub(crate) calibration: Option<CalibrationReport>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TscFactsReport {
    pub(crate) invariant: bool,
    pub(crate) rdtscp: bool,
    pub(crate) tsc_adjust: bool,
    pub(crate) stated_hz: Option<u64>,
    pub(crate) kernel: Option<KernelFactsReport>,
}

#[derive(Debug, Serialize)]
pub(crate) struct KernelFactsReport {
    pub(crate) clocksource: String,
    pub(crate) accepts_tsc: bool,
    pub(crate) constant_tsc: bool,
    pub(crate) nonstop_tsc: bool,
    pub(crate) tsc_known_freq: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct CalibrationReport {
    pub(crate) counter: &'static str,
    /// The counter as the beginning of a line.
    #[serde(skip)]
    pub(crate) title: String,
    pub(crate) ticks_per_second: f64,
    pub(crate) steady_ppm: f64,
    pub(crate) certain_ppm: f64,
    pub(crate) against: &'static str,
    /// File that it was loaded from; `None` if it was measured.
    pub(crate) loaded_from: Option<String>,
}

/// A way to read the time.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    pub(crate) name: String,
    /// Reason why the source cannot be used; then `found` is `None`.
    pub(crate) unavailable: Option<String>,
    pub(crate) found: Option<SourceProperties>,
}

/// Measured properties of a usable source.
#[derive(Debug, Serialize)]
pub(crate) struct SourceProperties {
    pub(crate) ordering: OrderingReport,
    pub(crate) read_cost_median_ns: f64,
    pub(crate) read_cost_p99_ns: f64,
    /// Smallest step between consecutive readings that differ; `None` if all are equal.
    pub(crate) resolution_ns: Option<f64>,
    /// Greatest common divisor of all steps.
    pub(crate) grain_ns: Option<f64>,
    /// Number of readings on one thread that are smaller than the one before.
    pub(crate) backwards: u64,
    /// True if the clock can be set while in use.
    pub(crate) can_step: bool,
    /// True if the rate is adjusted by NTP.
    pub(crate) slewed: bool,
    pub(crate) cores: CoreAgreement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OrderingReport {
    Unordered,
    Ordered,
    Fenced,
}

/// Result of the comparison of a source between cores.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub(crate) enum CoreAgreement {
    /// No pair of cores differs significantly; none can differ by more than `within_ns`.
    Same { within_ns: i64, pairs: usize },
    /// A pair certainly differs.
    Differ {
        core: u32,
        reference: u32,
        offset_ns: i64,
        half_width_ns: i64,
    },
    /// There is only one core.
    OneCore,
    /// The comparison failed.
    Unknown { why: String },
}

impl CoreAgreement {
    /// Returns the reason not to use the source on several cores.
    pub(crate) fn objection(&self) -> Option<String> {
        match self {
            Self::Differ {
                core, reference, ..
            } => Some(format!("it differs between cores {reference} and {core}")),
            Self::Unknown { why } => Some(format!("its cores could not be compared ({why})")),
            Self::Same { .. } | Self::OneCore => None,
        }
    }
}

/// Source to use, with the reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Recommendation {
    pub(crate) source: String,
    pub(crate) why: String,
}
