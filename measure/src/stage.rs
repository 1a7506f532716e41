//! What a rank measures with.

use core::fmt;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Local, Ticks, Timestamp};
use downbeat_sync::{Comm, CommError, collective};

use crate::{Barrier, Operation, Together};
use downbeat_records::ObservationState;

/// What a rank measures with: the others, a clock, and how they come together.
#[derive(Debug)]
pub struct Stage<'a, M, T, K> {
    /// The ranks that take part.
    pub comm: &'a M,
    /// How they come together around what is measured.
    pub together: &'a T,
    /// The clock that this rank reads.
    pub clock: &'a K,
    /// What it shows.
    pub time: Time,
}

/// What the clock of a rank shows.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// A time of its own.
    Local(ClockModel<Counter, Local>),
    /// The time of all ranks.
    Global(ClockModel<Counter, Global>),
}

/// Why ranks could not measure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MeasureError {
    /// A rank is gone, or could not be reached. This rank is alone with that: others may be waiting for it.
    Comm(CommError),
    /// The operation failed. This rank may be alone with that, too.
    Operation(CommError),
    /// Another rank failed.
    OtherRank(u32),
    /// The clock did not move while it was waited for. This rank is alone with that, too.
    ClockStands,
    /// The scheme or the processing needs one clock for all ranks.
    NeedsGlobalTime,
    /// What was observed cannot be processed as wanted.
    Processing(crate::ProcessingError),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(why) => why.fmt(f),
            Self::Operation(why) => write!(f, "the operation failed: {why}"),
            Self::OtherRank(rank) => write!(f, "rank {rank} failed"),
            Self::ClockStands => f.write_str("the clock stands still"),
            Self::NeedsGlobalTime => f.write_str("this needs one clock for all ranks"),
            Self::Processing(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for MeasureError {}

impl MeasureError {
    /// Whether the other ranks do not know of it, and may be waiting for this one.
    pub fn is_of_one_rank(&self) -> bool {
        matches!(self, Self::Comm(_) | Self::Operation(_) | Self::ClockStands)
    }
}

impl From<CommError> for MeasureError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

/// When one rank entered an operation and when it left, by its counter: what that means is worked out when nothing is
/// timed any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) state: ObservationState,
}

/// Room for so many, so that none has to be made in between: the system gives memory only when it is written to, and a
/// rank that waits for that is late.
pub(crate) fn room_for(spans: u32) -> Vec<Span> {
    // Nobody knows how many will be needed of a great number.
    const MOST: u32 = 1 << 20;
    // Zeros would not be written.
    let written = Span {
        start: Ticks(1),
        end: Ticks(1),
        state: ObservationState::Late,
    };
    let mut room = vec![written; spans.min(MOST) as usize];
    room.clear();
    room
}

impl<M: Comm, T: Together, K: Clock> Stage<'_, M, T, K> {
    pub(crate) async fn wait_for_all(&self, barrier: Barrier) -> Result<(), CommError> {
        barrier.wait(self.comm, self.together).await
    }

    /// Calls the operation once, and looks at the clock before and after.
    #[inline]
    pub(crate) async fn timed(
        &self,
        operation: &mut impl Operation,
        number: u32,
    ) -> Result<Span, MeasureError> {
        let start = self.clock.open();
        let outcome = operation.call(number).await;
        let end = self.clock.close();
        outcome.map_err(MeasureError::Operation)?;
        Ok(Span {
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
                return Err(MeasureError::ClockStands);
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
        match self.time {
            Time::Global(model) => Ok(model),
            Time::Local(_) => Err(MeasureError::NeedsGlobalTime),
        }
    }

    /// By the clock of this rank, in nanoseconds.
    pub(crate) fn nanos(&self, ticks: Ticks) -> i64 {
        match &self.time {
            Time::Local(model) => model.apply(ticks).as_nanos(),
            Time::Global(model) => model.apply(ticks).as_nanos(),
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
