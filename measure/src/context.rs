//! Context of a measurement on a rank.

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Local, Ticks, Timestamp};
use downbeat_sync::{Comm, CommError};

use crate::barrier::Barrier;
use crate::error::MeasureError;
use crate::global_clock::RenewableClock;
use crate::operation::{Coordinator, Operation};
use downbeat_records::ObservationState;

/// Context of a measurement on a rank: a communicator, a coordinator and a clock.
#[derive(Debug)]
pub struct MeasureContext<'a, M, T, K> {
    /// Communicator of the ranks that take part.
    pub comm: &'a M,
    /// Coordinator of the ranks around the operation.
    pub coordinator: &'a T,
    /// Clock that this rank reads.
    pub clock: &'a K,
    /// Time that the clock shows.
    pub clock_basis: ClockBasis<'a, M, K>,
}

/// Time that the clock of a rank shows.
#[derive(Debug)]
pub enum ClockBasis<'a, M, K> {
    /// Local time of the rank.
    Local(ClockModel<Counter, Local>),
    /// Global time of all ranks, which is checked during measurements, but never synchronized again.
    Global(ClockModel<Counter, Global>),
    /// Global time of all ranks of the communicator, which is synchronized when that is necessary.
    Synchronized(&'a RenewableClock<'a, M, K>),
}

impl<'a, M, K> ClockBasis<'a, M, K> {
    /// Returns global time if there is a clock for it, and local time otherwise.
    pub fn new(
        global: Option<&'a RenewableClock<'a, M, K>>,
        local: ClockModel<Counter, Local>,
    ) -> Self {
        global.map_or(Self::Local(local), Self::Synchronized)
    }
}

// Derived implementations would need copies of the communicator and of the counter.
impl<M, K> Clone for ClockBasis<'_, M, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, K> Copy for ClockBasis<'_, M, K> {}

/// Interval from entering an operation to leaving it on one rank, in ticks of its counter. Ticks are converted after all
/// timed calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSpan {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) state: ObservationState,
}

impl CallSpan {
    /// Returns the span, which is late unless the ranks began the call together.
    pub(crate) fn late_unless(self, together: bool) -> Self {
        let state = match together {
            true => self.state,
            false => ObservationState::Late,
        };
        Self { state, ..self }
    }
}

/// Allocates a vector for a number of spans, and writes to its memory: the system provides memory only at the first write,
/// and a rank that waits for memory between calls would be late.
pub(crate) fn reserve_spans(spans: u32) -> Vec<CallSpan> {
    // A greater number is usually only a limit.
    const MOST: u32 = 1 << 20;
    // Zeros would be allocated without being written.
    let written = CallSpan {
        start: Ticks(1),
        end: Ticks(1),
        state: ObservationState::Late,
    };
    let mut reserved = vec![written; spans.min(MOST) as usize];
    reserved.clear();
    reserved
}

impl<M: Comm, T: Coordinator, K: Clock> MeasureContext<'_, M, T, K> {
    pub(crate) async fn wait_for_all(&self, barrier: Barrier) -> Result<(), CommError> {
        barrier.wait(self.comm, self.coordinator).await
    }

    /// Calls the operation once, and reads the clock before and after.
    #[inline]
    pub(crate) async fn timed(
        &self,
        operation: &mut impl Operation,
        number: u32,
    ) -> Result<CallSpan, MeasureError> {
        let start = self.clock.open();
        let outcome = operation.call(number).await;
        let end = self.clock.close();
        outcome.map_err(MeasureError::Operation)?;
        Ok(CallSpan {
            start,
            end,
            state: ObservationState::Valid,
        })
    }

    /// Waits for an agreed time. Returns how late this rank is, if the time has passed already.
    ///
    /// Compares times instead of ticks: converting the start to ticks takes longer than some ranks have until the start.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        model: &ClockModel<Counter, Global>,
        start: Timestamp<Global>,
    ) -> Result<Option<Duration>, MeasureError> {
        const MOST_EQUAL: u32 = 1 << 22;
        /// Earlier than this before the start, the rank yields to ranks that share its core: they may not have received
        /// the start yet.
        const PATIENCE: Duration = Duration::from_micros(20);
        /// Number of clock reads between two yields: reading a clock costs less than yielding.
        const YIELD_AFTER: u32 = 64;
        let mut last = model.apply(self.clock.ticks());
        if last >= start {
            return Ok(Some(last - start));
        }
        let (mut equal, mut reads) = (0, 0_u32);
        loop {
            let now = model.apply(self.clock.ticks());
            if now >= start {
                return Ok(None);
            }
            // A simulated clock without a read cost never advances here.
            equal = if now == last { equal + 1 } else { 0 };
            if equal == MOST_EQUAL {
                return Err(MeasureError::ClockStopped);
            }
            last = now;
            reads = reads.wrapping_add(1);
            if reads.is_multiple_of(YIELD_AFTER) && start - now > PATIENCE {
                std::thread::yield_now();
            }
        }
    }

    /// Returns the time by the clock of this rank.
    pub(crate) fn now(&self) -> Timestamp<Local> {
        Timestamp::from_nanos(self.nanos(self.clock.ticks()))
    }

    /// Returns true if the clock must be synchronized, and can be.
    pub(crate) fn is_clock_due(&self) -> bool {
        matches!(self.clock_basis, ClockBasis::Synchronized(global) if global.is_due())
    }

    /// Returns the nanoseconds of a span.
    pub(crate) fn length(&self, span: &CallSpan) -> i64 {
        self.nanos(span.end).saturating_sub(self.nanos(span.start))
    }

    pub(crate) fn global(&self) -> Result<ClockModel<Counter, Global>, MeasureError> {
        let model = match self.clock_basis {
            ClockBasis::Global(model) => Some(model),
            ClockBasis::Synchronized(global) => global.model(),
            ClockBasis::Local(_) => None,
        };
        model.ok_or(MeasureError::NeedsGlobalClock)
    }

    /// Converts ticks to nanoseconds by the clock of this rank.
    pub(crate) fn nanos(&self, ticks: Ticks) -> i64 {
        match &self.clock_basis {
            ClockBasis::Local(model) => model.apply(ticks).as_nanos(),
            ClockBasis::Global(model) => model.apply(ticks).as_nanos(),
            ClockBasis::Synchronized(global) => global.nanos(ticks),
        }
    }
}
