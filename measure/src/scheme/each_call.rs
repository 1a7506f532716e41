//! MS1: a barrier before each call, which every rank times by its local clock.

use downbeat_clock_core::Clock;
use downbeat_sync::Comm;

use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};

/// A barrier before each call.
///
/// The measured times contain the imbalance of the barrier: ranks that leave it early wait in the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EachCall {
    /// Barrier before each call.
    pub barrier: Barrier,
}

impl EachCall {
    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let mut spans = reserve_spans(calls);
        for number in first..first + calls {
            operation.prepare();
            context.wait_for_all(self.barrier).await?;
            let span = context.timed(operation, number).await?;
            spans.push(span);
        }
        Ok(spans)
    }
}
