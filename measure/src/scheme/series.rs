//! MS2 and MS3: several calls are timed together.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use downbeat_records::ObservationState;

/// Series of calls that are timed together, so that an observation is their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Number of calls.
    pub calls: u32,
    /// Time limit of a series: if the calls would take longer, their number is reduced, to at least one. Rank 0 determines
    /// the number from the duration of some calls before the first series.
    pub within: Option<Duration>,
    /// Number of untimed calls before the barriers of every series.
    pub untimed: u32,
    /// Barrier before the series and after its calls.
    pub barrier: Barrier,
    /// Number of barriers before the first timed call.
    pub barriers_before: u32,
    /// True if there is a timed barrier after every call (MS3); otherwise (MS2) calls overlap if the operation lets ranks
    /// leave before others enter.
    pub barrier_after_each: bool,
}

/// Number of calls that are tried to determine how many fit into the time limit.
const TRIED: u32 = 5;

impl Series {
    /// Creates a series of a number of calls after a barrier.
    pub const fn new(calls: u32) -> Self {
        Self {
            calls,
            within: None,
            untimed: 0,
            barrier: Barrier::Library,
            barriers_before: 1,
            barrier_after_each: false,
        }
    }

    /// Runs a series of `calls` calls that is discarded; then a short one to determine how many calls fit into the time limit.
    pub(super) async fn warm_up<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        calls: u32,
    ) -> Result<(), MeasureError> {
        let series = u32::from(calls > 0);
        Self {
            calls,
            untimed: 0,
            ..*self
        }
        .run(context, operation, 0, series)
        .await?;
        if let Some(within) = self.within {
            let trial = Self {
                calls: TRIED,
                ..*self
            }
            .run(context, operation, 0, 1)
            .await?;
            let took = trial
                .iter()
                .map(|span| {
                    context
                        .nanos(span.end)
                        .saturating_sub(context.nanos(span.start))
                })
                .sum();
            self.calls =
                collective::broadcast(context.comm, u64::from(self.calls_within(within, took)))
                    .await? as u32;
        }
        Ok(())
    }

    /// Returns the number of calls that fit, if the tried ones took this number of nanoseconds.
    fn calls_within(&self, within: Duration, took: i64) -> u32 {
        let fit = i128::from(within.as_nanos()) * i128::from(TRIED) / i128::from(took.max(1));
        fit.clamp(1, i128::from(self.calls.max(1))) as u32
    }

    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        observations: u32,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let mut spans = reserve_spans(observations);
        for _ in first..first + observations {
            operation.prepare();
            for call in 0..self.untimed {
                operation
                    .call(call)
                    .await
                    .map_err(MeasureError::Operation)?;
            }
            for _ in 0..self.barriers_before {
                context.wait_for_all(self.barrier).await?;
            }
            let start = context.clock.open();
            for call in 0..self.calls {
                operation
                    .call(call)
                    .await
                    .map_err(MeasureError::Operation)?;
                if self.barrier_after_each {
                    context.wait_for_all(self.barrier).await?;
                }
            }
            let end = context.clock.close();
            spans.push(CallSpan {
                start,
                end,
                state: ObservationState::Valid,
            });
        }
        Ok(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_calls_is_limited_by_time_but_at_least_one() {
        let calls_within = |calls, millis, took| {
            Series::new(calls).calls_within(Duration::from_millis(millis), took)
        };
        // 5 calls took 1 ms, so 250 take 50.
        assert_eq!(
            (
                calls_within(1_000, 50, 1_000_000),
                calls_within(100, 50, 1_000_000)
            ),
            (250, 100)
        );
        // Clocks may show the same time as before, or an earlier one.
        assert_eq!(
            (
                calls_within(1_000, 50, 0),
                calls_within(1_000, 50, -7),
                calls_within(1_000, 0, 5)
            ),
            (1_000, 1_000, 1)
        );
        assert_eq!(
            (calls_within(7, 1, i64::MAX), calls_within(0, 1, 1)),
            (1, 1)
        );
    }
}
