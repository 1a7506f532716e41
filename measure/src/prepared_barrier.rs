//! Barrier of a measurement: one of messages, or meetings by the global clock.

use downbeat_clock_core::{Clock, Duration};
use downbeat_records::ObservationState;
use downbeat_sync::harmonize::{Harmonizer, Meeting};
use downbeat_sync::{Comm, CommError, collective};

use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext};
use crate::error::MeasureError;
use crate::operation::Coordinator;

/// Barrier of a measurement, with what it learns from one call to the next.
#[derive(Clone, Debug)]
pub(crate) struct PreparedBarrier {
    barrier: Barrier,
    meetings: Harmonizer,
}

impl PreparedBarrier {
    pub(crate) const fn new(barrier: Barrier) -> Self {
        Self {
            barrier,
            // The measurement checks the clocks, and synchronizes them.
            meetings: Harmonizer::new(Duration::MAX),
        }
    }

    /// Waits for all ranks. Returns false if this rank missed the common instant.
    #[inline]
    pub(crate) async fn wait<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<bool, CommError> {
        if self.barrier.needs_global_clock()
            && let Ok(model) = context.global()
        {
            let (clock, comm) = (context.clock, context.comm);
            let meeting = self.meetings.meet(clock, &model, Duration::ZERO, comm);
            return Ok(meeting.await? == Some(Meeting::Met));
        }
        self.barrier.wait(context.comm, context.coordinator).await?;
        Ok(true)
    }

    /// Makes the calls late that any rank began too late after a common instant; all ranks call this.
    pub(crate) async fn agree_on_late<M: Comm>(
        &self,
        comm: &M,
        spans: &mut [CallSpan],
    ) -> Result<(), MeasureError> {
        if !self.barrier.needs_global_clock() {
            return Ok(());
        }
        let is_late = |span: &CallSpan| i64::from(span.state == ObservationState::Late);
        let mut late: Vec<i64> = spans.iter().map(is_late).collect();
        collective::greatest_to_first(comm, &mut late).await?;
        let late = late.into_iter().map(|late| u8::from(late > 0)).collect();
        let late = collective::broadcast_bytes(comm, late).await?;
        for (span, _) in spans.iter_mut().zip(late).filter(|(_, late)| *late > 0) {
            span.state = ObservationState::Late;
        }
        Ok(())
    }
}
