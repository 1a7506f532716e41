//! MS1: a barrier before each call, which every rank times by its own clock.

use downbeat_clock_core::Clock;
use downbeat_sync::Comm;

use crate::stage::{Span, Stage, room_for};
use crate::{Barrier, MeasureError, Operation, Together};

/// A barrier before each call.
///
/// What the ranks see contains the imbalance of the barrier: who leaves it early waits in the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EachCall {
    /// Which barrier.
    pub barrier: Barrier,
}

impl EachCall {
    pub(super) async fn run<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
    ) -> Result<Vec<Span>, MeasureError> {
        let mut spans = room_for(calls);
        for number in first..first + calls {
            operation.prepare();
            stage.wait_for_all(self.barrier).await?;
            let span = stage.timed(operation, number).await?;
            spans.push(span);
        }
        Ok(spans)
    }
}
