//! MS1: a barrier at each call, which every rank times by its local clock.

use downbeat_clock_core::Clock;
use downbeat_records::stats::Sample;
use downbeat_sync::{Comm, collective};

use super::time_limit::{TimeLimit, warm_up};
use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use crate::prepared_barrier::PreparedBarrier;

/// A barrier before or after each call, which is not timed.
///
/// The measured times contain the imbalance of the barrier: ranks that leave it early wait in the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EachCall {
    /// Barrier at each call.
    pub barrier: Barrier,
    /// Place of that barrier.
    pub place: BarrierPlace,
    /// Number of the library's barriers before the first call, and again before the first that is not discarded.
    pub barriers_before: u32,
    /// Time limit, which reduces the number of a [count](crate::stopping::Stopping::Count).
    pub limit: Option<TimeLimit>,
}

/// Place of the barrier of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarrierPlace {
    /// Before the call.
    #[default]
    Before,
    /// After the call: the same sequence, except at its ends.
    After,
    /// Nowhere: calls that are barriers themselves need none.
    Absent,
}

impl EachCall {
    /// Creates a scheme with a barrier before each call.
    pub const fn new(barrier: Barrier) -> Self {
        Self {
            barrier,
            place: BarrierPlace::Before,
            barriers_before: 0,
            limit: None,
        }
    }

    /// Determines the number of calls that fit into the time limit, of `most`, and makes `calls` that are discarded.
    pub(super) async fn warm_up<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        barrier: &mut PreparedBarrier,
        operation: &mut impl Operation,
        calls: u32,
        most: u32,
    ) -> Result<u32, MeasureError> {
        warm_up(self.limit, context.comm, calls, most, async |calls| {
            let spans = self.run(context, barrier, operation, 0, calls).await?;
            Ok(spans.iter().map(|span| context.length(span)).sum())
        })
        .await
    }

    /// Makes a number of calls, and returns the quantile of their durations, in nanoseconds: that of the slowest rank.
    pub(super) async fn quantile<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        calls: u32,
        share: f64,
    ) -> Result<u64, MeasureError> {
        let mut barrier = PreparedBarrier::new(self.barrier);
        let tried = self.run(context, &mut barrier, operation, 0, calls).await?;
        let mut lengths: Vec<f64> = tried
            .iter()
            .map(|span| context.length(span) as f64)
            .collect();
        let own = Sample::new(&mut lengths).map_or(0.0, |sample| sample.quantile(share));
        Ok(collective::all_reduce(context.comm, own as u64, u64::max).await?)
    }

    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        barrier: &mut PreparedBarrier,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let mut spans = reserve_spans(calls);
        if first == 0 {
            for _ in 0..self.barriers_before {
                context.wait_for_all(Barrier::Library).await?;
            }
        }
        let mut met = true;
        for number in first..first + calls {
            operation.prepare();
            if self.place == BarrierPlace::Before {
                met = barrier.wait(context).await?;
            }
            let span = context.timed(operation, number).await?;
            spans.push(span.late_unless(met));
            if self.place == BarrierPlace::After {
                met = barrier.wait(context).await?;
            }
        }
        barrier.agree_on_late(context.comm, &mut spans).await?;
        Ok(spans)
    }
}
