//! What has to be known of a whole trace before its first event is written.

use downbeat_clock_core::Duration;
use rustc_hash::FxHashSet;

use super::flows::Flows;
use crate::formats::Item;
use downbeat_files::FileError;

/// What a [`PerfettoWriter`](super::PerfettoWriter) has to know of a trace beforehand: everything that the trace says
/// goes through this first.
#[derive(Debug, Default)]
pub struct PerfettoSurvey {
    flows: Flows,
    /// The first and the last time.
    times: Option<[i64; 2]>,
}

impl PerfettoSurvey {
    /// Takes what the trace says next.
    #[inline]
    pub fn take(&mut self, item: &Item<'_>) {
        if let Item::Event { time, .. } = item {
            let time = time.as_nanos();
            let [first, last] = self.times.unwrap_or([time; 2]);
            self.times = Some([first.min(time), last.max(time)]);
        }
        self.flows.take(item);
    }

    /// By how much all times have to be later, so that none is negative.
    pub(super) fn shift(&self) -> Result<Duration, FileError> {
        let [first, last] = self.times.unwrap_or([0; 2]);
        let shift = first
            .min(0)
            .checked_neg()
            .filter(|shift| last.checked_add(*shift).is_some());
        let too_far =
            "times are negative, and so far apart that Perfetto, where none is, cannot have them"
                .to_owned();
        shift
            .map(Duration::from_nanos)
            .ok_or(FileError::Unwritable(too_far))
    }

    /// The messages of which one end is missing.
    pub(super) fn unmatched(&self) -> FxHashSet<u64> {
        self.flows.unmatched().collect()
    }
}
