//! MS4: calls begin at agreed times by a global clock, one per time window.
//!
//! Calls that exceed their window are not valid, so that mean and upper quantiles of the
//! others are too low.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use super::batch::{self, BatchSize};
use super::each_call::EachCall;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use downbeat_records::ObservationState;

/// One call per time window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Length of a window; determined from some calls if it is not given.
    pub window: Option<Duration>,
}

/// State of the scheme, the same on all ranks.
pub(crate) struct PreparedWindows {
    pub(super) window: Duration,
    /// True if the length was given.
    is_fixed: bool,
    /// Time from announcing a batch to its first window, within which all ranks receive
    /// the announcement.
    notice: Duration,
    batch: BatchSize,
}

/// Limits of the notice. It grows to an eighth of a window where that is longer: a busy
/// machine needs more.
const NOTICE: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// Number of calls that are tried to determine the length of a window.
const TRIES: u32 = 32;

/// Share of invalid windows above which batches become shorter, and share of calls that
/// must begin in time to tell how long windows must be: one in this number.
const SHARE: usize = 4;

/// Length of a window in relation to this quantile of the times of calls.
const QUANTILE: f64 = 0.9;
const LENGTH: u64 = 2;

impl Windows {
    /// Determines the length of the windows: twice the 90th percentile of tried calls,
    /// including the imbalance of a barrier.
    pub(super) async fn prepare<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<PreparedWindows, MeasureError> {
        if let Some(window) = self.window {
            return Ok(PreparedWindows::new(window, true));
        }
        let most = EachCall::default()
            .quantile(context, operation, TRIES, QUANTILE)
            .await?;
        let window = Duration::from_nanos((most.min(1 << 60) * LENGTH).max(1) as i64);
        Ok(PreparedWindows::new(window, false))
    }
}

impl PreparedWindows {
    fn new(window: Duration, is_fixed: bool) -> Self {
        Self {
            window,
            is_fixed,
            notice: NOTICE[1],
            batch: BatchSize::FIRST,
        }
    }

    /// Makes a number of calls, or fewer if the time is over.
    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
        time: Option<Duration>,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let model = context.global()?;
        let until = time.map(|time| model.invert(model.apply(context.clock.ticks()) + time));
        let mut spans = reserve_spans(calls);
        let mut took = Vec::with_capacity(batch::MOST as usize);
        while spans.len() < calls as usize {
            let begin = model.apply(context.clock.ticks()) + self.notice;
            let mut begin = collective::broadcast(context.comm, begin).await?;
            let made = spans.len();
            took.clear();
            let size = self.batch.calls(self.window).min(calls - made as u32);
            for number in 0..size {
                operation.prepare();
                let late = context.wait_until(&model, begin)?;
                let number = first + made as u32 + number;
                let mut span = context.timed(operation, number).await?;
                let end = begin + self.window;
                if late.is_some() {
                    span.state = ObservationState::Late;
                    took.push(i64::MAX);
                } else {
                    if span.end > model.invert(end) {
                        span.state = ObservationState::Long;
                    }
                    took.push((model.apply(span.end) - begin).as_nanos());
                }
                begin = end;
                spans.push(span);
            }
            let is_over = until.is_some_and(|until| context.clock.ticks() >= until);
            let agreed = AgreedWindows::of(context.comm, &took, self.window, is_over).await?;
            self.adapt(&agreed);
            if agreed.is_over {
                break;
            }
        }
        Ok(spans)
    }

    /// Makes windows twice as long as most calls of the last batch took, and the notice
    /// longer if a rank missed the first window.
    fn adapt(&mut self, agreed: &AgreedWindows) {
        self.batch.adapt(agreed.too_many_invalid);
        if !self.is_fixed {
            self.window = agreed.window;
        }
        let notice = if agreed.missed_first {
            self.notice + self.notice
        } else {
            self.notice / 2
        };
        self.notice = notice.max(NOTICE[0]).min(NOTICE[1].max(self.window / 8));
    }
}

/// Result of a batch, on which all ranks agree.
struct AgreedWindows {
    /// Length of the next windows.
    window: Duration,
    too_many_invalid: bool,
    /// True if a rank began the first call late.
    missed_first: bool,
    /// True if the time is over on a rank.
    is_over: bool,
}

impl AgreedWindows {
    /// Compares the times from the begin of each window to the end of its call, which are
    /// the greatest possible where the call began late.
    async fn of<M: Comm>(
        comm: &M,
        took: &[i64],
        window: Duration,
        is_over: bool,
    ) -> Result<Self, MeasureError> {
        let mut longest = [took, &[is_over.into()]].concat();
        collective::greatest_to_first(comm, &mut longest).await?;
        let is_over = longest.pop().unwrap_or(0);
        let missed_first = longest.first() == Some(&i64::MAX);
        let is_invalid = |took: &&i64| **took > window.as_nanos();
        let too_many = longest.iter().filter(is_invalid).count() * SHARE > longest.len();
        let next = next_window(&mut longest, window);
        let summary = (next, missed_first, too_many, is_over > 0);
        let (window, missed_first, too_many_invalid, is_over) =
            collective::broadcast(comm, summary).await?;
        Ok(Self {
            window,
            missed_first,
            too_many_invalid,
            is_over,
        })
    }
}

/// Returns the length of the next windows, by the times that the calls of a batch took on
/// the slowest rank.
fn next_window(took: &mut [i64], window: Duration) -> Duration {
    took.sort_unstable();
    let in_time = took.partition_point(|took| *took < i64::MAX);
    if in_time * SHARE < took.len() {
        // An interruption makes all calls behind it late, and so do windows that are too
        // short.
        return window + window;
    }
    let place = ((in_time.max(1) - 1) as f64 * QUANTILE) as usize;
    let enough = took
        .get(place)
        .map_or(1, |took| took.saturating_mul(LENGTH as i64).max(1));
    // Half of the way: a batch can be unusual.
    (window + Duration::from_nanos(enough)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_grows_to_a_share_of_a_long_window() {
        for (window, longest) in [(100_000, 12_500), (10, 1_000)].map(|(window, longest)| {
            (
                Duration::from_micros(window),
                Duration::from_micros(longest),
            )
        }) {
            let mut windows = PreparedWindows::new(window, true);
            let mut agreed = AgreedWindows {
                window,
                too_many_invalid: true,
                missed_first: true,
                is_over: false,
            };
            for _ in 0..20 {
                windows.adapt(&agreed);
            }
            assert_eq!(windows.notice, longest);
            agreed.missed_first = false;
            for _ in 0..20 {
                windows.adapt(&agreed);
            }
            assert_eq!(windows.notice, NOTICE[0]);
        }
    }

    #[test]
    fn windows_follow_the_times_of_calls() {
        let nanos = Duration::from_nanos;
        let mut window = nanos(1_000_000);
        for _ in 0..40 {
            // Every tenth call takes long.
            let mut took: Vec<i64> = (1..=100)
                .map(|i| if i % 10 == 0 { 9_000 } else { 400 })
                .collect();
            window = next_window(&mut took, window);
        }
        assert!((800..=802).contains(&window.as_nanos()), "{window}");
        // Calls that take longer are seen at once.
        let longer = next_window(&mut [2_000; 16], window);
        assert!((2_400..=2_401).contains(&longer.as_nanos()), "{longer}");
        let mut late = [i64::MAX; 16];
        late[0] = 900;
        assert_eq!(next_window(&mut late, nanos(700)), nanos(1_400));
    }
}
