//! Summary of a file written for Perfetto.

use downbeat_clock_core::Duration;

/// Counts of what was written for Perfetto, and of what could not be represented exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfettoSummary {
    /// Number of locations.
    pub locations: u64,
    /// Number of events of the trace.
    pub events: u64,
    /// Number of values of metrics.
    pub values: u64,
    /// Time by which all events are shifted, as Perfetto has no negative times; 0 if there are
    /// none.
    pub shift: Duration,
    /// Messages that lack an end and therefore have no arrow.
    pub unmatched: u64,
    /// Ends without a beginning, which are shown as instants.
    pub not_begun: u64,
    /// Slices that were ended with a surrounding one, before their own end.
    pub cut_short: u64,
    /// Slices that never ended.
    pub not_ended: u64,
    /// Slices that were nested too deeply to be shown.
    pub too_deep: u64,
}
