//! First pass over a trace before it is written for Perfetto.

use downbeat_clock_core::Duration;

use super::flows::FlowSurvey;
use crate::formats::Item;
use downbeat_files::FileError;

/// Properties of a whole trace that a [`PerfettoWriter`](super::PerfettoWriter) needs in advance.
/// All items of the trace must pass through it first.
#[derive(Debug, Default)]
pub struct PerfettoSurvey {
    pub(super) flows: FlowSurvey,
    /// First and last time.
    times: Option<[i64; 2]>,
}

impl PerfettoSurvey {
    /// Takes the next item.
    #[inline]
    pub fn add_item(&mut self, item: &Item<'_>) {
        if let Item::Event { time, .. } = item {
            let time = time.as_nanos();
            let [first, last] = self.times.unwrap_or([time; 2]);
            self.times = Some([first.min(time), last.max(time)]);
        }
        self.flows.take(item);
    }

    /// Returns the shift of all times that makes none negative.
    pub(super) fn shift(&self) -> Result<Duration, FileError> {
        let [first, last] = self.times.unwrap_or([0; 2]);
        let shift = first
            .min(0)
            .checked_neg()
            .filter(|shift| last.checked_add(*shift).is_some());
        let too_far =
            "some times are negative, and times are so far apart that Perfetto, which has no negative times, cannot represent them"
                .to_owned();
        shift
            .map(Duration::from_nanos)
            .ok_or(FileError::Unwritable(too_far))
    }
}
