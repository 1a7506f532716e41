//! MS2 and MS3: several calls are timed together.

use downbeat_clock_core::Clock;
use downbeat_sync::Comm;

use crate::stage::{Span, Spans, Stage};
use crate::{Barrier, MeasureError, Operation, State, Together};

/// Several calls that are timed together, so that an observation is their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// How many calls.
    pub calls: u32,
    /// Which barrier.
    pub barrier: Barrier,
    /// How many of them there are before the first call.
    pub barriers_before: u32,
    /// Whether there is a barrier after every call (MS3), which is timed with it, or none (MS2): then calls overlap, where the
    /// operation lets ranks leave before others came.
    pub barrier_after_each: bool,
}

impl Series {
    pub(super) async fn run<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        observations: u32,
    ) -> Result<Spans, MeasureError> {
        let mut spans = Spans::with_room(observations);
        for number in first..first + observations {
            operation.prepare();
            for _ in 0..self.barriers_before {
                stage.wait_for_all(self.barrier).await?;
            }
            let number = number.wrapping_mul(self.calls);
            let start = stage.clock.open();
            for call in 0..self.calls {
                let outcome = operation.call(number.wrapping_add(call)).await;
                spans.note(outcome);
                if self.barrier_after_each {
                    stage.wait_for_all(self.barrier).await?;
                }
            }
            let end = stage.clock.close();
            spans.all.push(Span { start, end, state: State::Valid });
        }
        Ok(spans)
    }
}
