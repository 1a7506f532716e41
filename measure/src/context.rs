//! What a rank measures with.

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Local, Ticks, Timestamp};
use downbeat_sync::{Comm, CommError, collective};

use crate::barrier::Barrier;
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use downbeat_records::ObservationState;

/// What a rank measures with: the others, a clock, and how they come together.
#[derive(Debug)]
pub struct MeasureContext<'a, M, T, K> {
    /// The ranks that take part.
    pub comm: &'a M,
    /// How they come coordinator around what is measured.
    pub coordinator: &'a T,
    /// The clock that this rank reads.
    pub clock: &'a K,
    /// What it shows.
    pub clock_basis: ClockBasis,
}

/// What the clock of a rank shows.
#[derive(Clone, Copy, Debug)]
pub enum ClockBasis {
    /// A time of its own.
    Local(ClockModel<Counter, Local>),
    /// The time of all ranks.
    Global(ClockModel<Counter, Global>),
}

/// When one rank entered an operation and when it left, by its counter: what that means is worked out when nothing is
/// timed any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSpan {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) state: ObservationState,
}

/// Room for so many, so that none has to be made in between: the system gives memory only when it is written to, and a
/// rank that waits for that is late.
pub(crate) fn reserve_spans(spans: u32) -> Vec<CallSpan> {
    // Nobody knows how many will be needed of a great number.
    const MOST: u32 = 1 << 20;
    // Zeros would not be written.
    let written = CallSpan {
        start: Ticks(1),
        end: Ticks(1),
        state: ObservationState::Late,
    };
    let mut room = vec![written; spans.min(MOST) as usize];
    room.clear();
    room
}

impl<M: Comm, T: Coordinator, K: Clock> MeasureContext<'_, M, T, K> {
    pub(crate) async fn wait_for_all(&self, barrier: Barrier) -> Result<(), CommError> {
        barrier.wait(self.comm, self.coordinator).await
    }

    /// Calls the operation once, and looks at the clock before and after.
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

    /// Waits for a time that was agreed on. Says by how much it was past already, if it was.
    ///
    /// Times are compared, not ticks: to work out the ticks of a start takes longer than some ranks have until then.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        model: &ClockModel<Counter, Global>,
        start: Timestamp<Global>,
    ) -> Result<Option<Duration>, MeasureError> {
        const MOST_EQUAL: u32 = 1 << 22;
        /// Until so long before the start, ranks that share a core with this one may run: some may not know of it yet.
        const PATIENCE: Duration = Duration::from_micros(20);
        /// To look at a clock costs less than to ask the system who else would like to run.
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
            // A simulated clock that is read for nothing never moves.
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

    /// By the clock of this rank.
    pub(crate) fn now(&self) -> Timestamp<Local> {
        Timestamp::from_nanos(self.nanos(self.clock.ticks()))
    }

    pub(crate) fn global(&self) -> Result<ClockModel<Counter, Global>, MeasureError> {
        match self.clock_basis {
            ClockBasis::Global(model) => Ok(model),
            ClockBasis::Local(_) => Err(MeasureError::NeedsGlobalClock),
        }
    }

    /// By the clock of this rank, in nanoseconds.
    pub(crate) fn nanos(&self, ticks: Ticks) -> i64 {
        match &self.clock_basis {
            ClockBasis::Local(model) => model.apply(ticks).as_nanos(),
            ClockBasis::Global(model) => model.apply(ticks).as_nanos(),
        }
    }

    /// Goes on if all ranks can.
    pub(crate) async fn agree<V>(&self, mine: Result<V, MeasureError>) -> Result<V, MeasureError> {
        match collective::lowest_rank_where(self.comm, mine.is_err()).await? {
            Some(rank) => Err(mine.err().unwrap_or(MeasureError::OtherRank(rank))),
            None => mine,
        }
    }
}

/// A point of global time as a word of a message, and back.
pub(crate) fn to_word(time: Timestamp<Global>) -> u64 {
    time.as_nanos() as u64
}

pub(crate) fn from_word(word: u64) -> Timestamp<Global> {
    Timestamp::from_nanos(word as i64)
}
