//! Batches: calls between two agreements of the ranks.

use downbeat_clock_core::Duration;

/// Number of calls in a batch: few while many are not valid, so that a rank that is
/// behind loses few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchSize(u32);

/// Least and largest number of calls, and the time that they may take: a time slice can
/// end after each batch.
pub(super) const LEAST: u32 = 16;
pub(super) const MOST: u32 = 1024;
const TIME: Duration = Duration::from_millis(10);

impl BatchSize {
    /// Size of the first batch.
    pub(super) const FIRST: Self = Self(LEAST);

    /// Returns the number of calls until the next agreement, if one takes this time.
    pub(super) fn calls(self, call: Duration) -> u32 {
        let fitting = TIME.as_nanos() / call.as_nanos().max(1);
        fitting.clamp(1, self.0.into()) as u32
    }

    /// Makes batches longer, or shorter if too many calls of the last one were not valid.
    pub(super) fn adapt(&mut self, too_many: bool) {
        let next = if too_many { self.0 / 2 } else { self.0 * 2 };
        self.0 = next.clamp(LEAST, MOST);
    }
}
