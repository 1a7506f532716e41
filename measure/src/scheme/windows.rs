//! MS4: calls begin at agreed times by a global clock, one per time window.
//!
//! Calls that exceed their window are not valid, so that mean and upper quantiles of the others are too low.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use super::each_call::EachCall;
use crate::context::{CallSpan, MeasureContext, decode_time, encode_time, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use downbeat_records::{ObservationState, Observations};

/// One call per time window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Length of a window; determined from some calls if it is not given.
    pub window: Option<Duration>,
}

/// State of the scheme: the length of the windows, as rank 0 decides.
pub(crate) struct PreparedWindows {
    pub(super) window: Duration,
    fixed: bool,
}

/// Time from announcing the first window to its begin, within which all ranks receive the announcement.
const NOTICE: Duration = Duration::from_millis(1);

/// Number of calls that are tried to determine the length of a window.
const TRIES: u32 = 32;

/// Number of windows after which the next ones begin at a new time and may be longer, so that a rank that is late loses few.
pub(super) const LONGEST_BATCH: u32 = 8;

/// Share of invalid windows above which windows become longer, as in SKaMPI.
const MAX_INVALID_SHARE: f64 = 0.25;

impl Windows {
    /// Determines the length of the windows: twice the 90th percentile of tried calls, including the imbalance of a barrier.
    pub(super) async fn prepare<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<PreparedWindows, MeasureError> {
        if let Some(window) = self.window {
            return Ok(PreparedWindows {
                window,
                fixed: true,
            });
        }
        let most = EachCall::default()
            .quantile(context, operation, TRIES, 0.9)
            .await?;
        Ok(PreparedWindows {
            window: Duration::from_nanos((most * 2).max(1) as i64),
            fixed: false,
        })
    }
}

impl PreparedWindows {
    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let model = context.global()?;
        let begin = model.apply(context.clock.ticks()) + NOTICE;
        let [begin, window] = collective::broadcast(
            context.comm,
            [encode_time(begin), self.window.as_nanos() as u64],
        )
        .await?;
        let (mut begin, window) = (decode_time(begin), Duration::from_nanos(window as i64));
        let mut spans = reserve_spans(calls);
        for number in first..first + calls {
            operation.prepare();
            let late = context.wait_until(&model, begin)?;
            let mut span = context.timed(operation, number).await?;
            begin = begin + window;
            if late.is_some() {
                span.state = ObservationState::Late;
            } else if span.end > model.invert(begin) {
                span.state = ObservationState::Long;
            }
            spans.push(span);
        }
        Ok(spans)
    }

    /// Doubles the length of the windows if too many of a batch were invalid. Called on rank 0, which announces it with the next batch.
    pub(super) fn adapt(&mut self, batch: &Observations) {
        let spoiled = (batch.len() - batch.count(ObservationState::Valid)) as f64;
        if !self.fixed && spoiled > MAX_INVALID_SHARE * batch.len() as f64 {
            self.window = self.window + self.window;
        }
    }
}
