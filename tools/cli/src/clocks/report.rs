//! What `downbeat clocks` found: printed as JSON as it stands, and as text by `text.rs`.

use serde::Serialize;

/// The whole report.
#[derive(Debug, Serialize)]
pub(crate) struct ClocksReport {
    pub(crate) schema: &'static str,
    pub(crate) version: u32,
    pub(crate) machine: MachineReport,
    pub(crate) tsc: TscReport,
    pub(crate) sources: Vec<SourceReport>,
    pub(crate) recommended: Recommendation,
}

#[derive(Debug, Serialize)]
pub(crate) struct MachineReport {
    pub(crate) cpu_model: String,
    pub(crate) architecture: &'static str,
    pub(crate) hypervisor: Option<String>,
    pub(crate) cores: Vec<u32>,
    pub(crate) sockets: usize,
}

/// What is known about the time stamp counter besides its readings.
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
    pub(crate) frequency_hz: f64,
    pub(crate) uncertainty_ppm: f64,
    pub(crate) against: &'static str,
    /// The file it was loaded from, if it was not made now.
    pub(crate) loaded_from: Option<String>,
}

/// One way to read the time.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    pub(crate) name: String,
    /// Why it cannot be used; then there is nothing else.
    pub(crate) unavailable: Option<String>,
    pub(crate) found: Option<SourceProperties>,
}

/// What was found out about a source that can be used.
#[derive(Debug, Serialize)]
pub(crate) struct SourceProperties {
    pub(crate) ordering: OrderingReport,
    pub(crate) read_cost_median_ns: f64,
    pub(crate) read_cost_p99_ns: f64,
    /// The smallest step between two readings in a row that differ; `None` if it never moved.
    pub(crate) resolution_ns: Option<f64>,
    /// What all steps are multiples of.
    pub(crate) grain_ns: Option<f64>,
    /// Readings smaller than the one before, on one thread.
    pub(crate) backwards: u64,
    /// Can be set to another time while it is in use.
    pub(crate) can_step: bool,
    /// Its rate is adjusted to keep time with the world.
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

/// Whether a source shows the same on all cores.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub(crate) enum CoreAgreement {
    /// No pair of cores was found to differ; none can differ by more than this.
    Same { within_ns: i64, pairs: usize },
    /// A pair certainly differs.
    Differ {
        core: u32,
        reference: u32,
        offset_ns: i64,
        half_width_ns: i64,
    },
    /// There is but one core.
    OneCore,
    /// The comparison failed.
    Unknown { why: String },
}

/// Which source to use.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Recommendation {
    pub(crate) source: String,
    pub(crate) why: String,
}
