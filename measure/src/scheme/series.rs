//! MS2 and MS3: several calls are timed together.

use downbeat_clock_core::Clock;
use downbeat_sync::Comm;

use super::time_limit::{TimeLimit, warm_up};
use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use crate::prepared_barrier::PreparedBarrier;
use downbeat_records::ObservationState;

/// Series of calls that are timed together, so that an observation is their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Number of calls.
    pub calls: u32,
    /// Time limit of a series.
    pub limit: Option<TimeLimit>,
    /// Number of untimed calls before the barriers of every series.
    pub untimed: u32,
    /// Barrier before the series and after its calls.
    pub barrier: Barrier,
    /// Number of barriers before the first timed call.
    pub barriers_before: u32,
    /// Number of the library's barriers after the series, which are not timed.
    pub barriers_after: u32,
    /// True if there is a timed barrier after every call (MS3); otherwise (MS2) calls overlap if the operation lets ranks
    /// leave before others enter.
    pub barrier_after_each: bool,
}

impl Series {
    /// Creates a series of a number of calls after a barrier.
    pub const fn new(calls: u32) -> Self {
        Self {
            calls,
            limit: None,
            untimed: 0,
            barrier: Barrier::Library,
            barriers_before: 1,
            barriers_after: 0,
            barrier_after_each: false,
        }
    }

    /// Determines the number of calls that fit into the time limit, and runs a series of `calls` calls that is discarded.
    pub(super) async fn warm_up<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        barrier: &mut PreparedBarrier,
        operation: &mut impl Operation,
        calls: u32,
    ) -> Result<(), MeasureError> {
        let one = Self {
            untimed: 0,
            ..*self
        };
        let found = warm_up(self.limit, context.comm, calls, self.calls, async |calls| {
            let series = Self { calls, ..one };
            let spans = series.run(context, barrier, operation, 0, 1).await?;
            Ok(spans.iter().map(|span| context.length(span)).sum())
        });
        self.calls = found.await?;
        Ok(())
    }

    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        barrier: &mut PreparedBarrier,
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
                operation.prepare_in_series();
            }
            let mut met = true;
            for _ in 0..self.barriers_before {
                met = barrier.wait(context).await?;
            }
            let start = context.clock.open();
            for call in 0..self.calls {
                if call > 0 {
                    operation.prepare_in_series();
                }
                operation
                    .call(call)
                    .await
                    .map_err(MeasureError::Operation)?;
                if self.barrier_after_each {
                    barrier.wait(context).await?;
                }
            }
            let end = context.clock.close();
            for _ in 0..self.barriers_after {
                context.wait_for_all(Barrier::Library).await?;
            }
            let span = CallSpan {
                start,
                end,
                state: ObservationState::Valid,
            };
            spans.push(span.late_unless(met));
        }
        barrier.agree_on_late(context.comm, &mut spans).await?;
        Ok(spans)
    }
}
