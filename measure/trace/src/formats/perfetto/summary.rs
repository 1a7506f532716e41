//! Counts of what was written for Perfetto.

use downbeat_clock_core::Duration;

/// What was written for Perfetto, and what had to be bent for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfettoSummary {
    /// How many locations there are.
    pub locations: u64,
    /// How many events there were in the trace.
    pub events: u64,
    /// How much later all times are than in the trace: more than nothing only where some are negative, which Perfetto
    /// does not have.
    pub shift: Duration,
    /// Messages of which one end is missing, and which so have no arrow.
    pub unmatched: u64,
    /// What ended without having begun: an instant.
    pub not_begun: u64,
    /// What ended with what was around it, before its own end.
    pub cut_short: u64,
    /// What never ended.
    pub not_ended: u64,
    /// What was nested too deeply to be shown.
    pub too_deep: u64,
}
