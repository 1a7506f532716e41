//! What a rank measures with.

use core::fmt;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Local, Ticks, Timestamp};
use downbeat_sync::{Comm, CommError, collective};

use crate::{Barrier, Operation, State, Together};

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
    /// The operation failed.
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
        matches!(self, Self::Comm(_) | Self::ClockStands)
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
    pub(crate) state: State,
}

/// What one rank saw of several calls.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    pub(crate) all: Vec<Span>,
    /// The first failure of the operation. The calls go on, since the other ranks take part in them.
    pub(crate) failure: Option<CommError>,
}

impl Spans {
    /// With room for so many, so that none has to be made in between.
    pub(crate) fn with_room(calls: u32) -> Self {
        // Nobody knows how many will be needed of a great number.
        const MOST: u32 = 1 << 20;
        Self { all: Vec::with_capacity(calls.min(MOST) as usize), failure: None }
    }

    /// Remembers why a call failed.
    #[inline]
    pub(crate) fn note(&mut self, outcome: Result<(), CommError>) {
        if let Err(why) = outcome {
            self.failure.get_or_insert(why);
        }
    }
}

impl<M: Comm, T: Together, K: Clock> Stage<'_, M, T, K> {
    pub(crate) async fn wait_for_all(&self, barrier: Barrier) -> Result<(), CommError> {
        barrier.wait(self.comm, self.together).await
    }

    /// Calls the operation once, and looks at the clock before and after.
    #[inline]
    pub(crate) async fn timed(&self, operation: &mut impl Operation, number: u32, spans: &mut Spans) -> Span {
        let start = self.clock.open();
        let outcome = operation.call(number).await;
        let end = self.clock.close();
        spans.note(outcome);
        Span { start, end, state: State::Valid }
    }

    /// Waits for a time that was agreed on. Says what the clock showed already, if that was past.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        model: &ClockModel<Counter, Global>,
        start: Timestamp<Global>,
    ) -> Result<Option<Ticks>, MeasureError> {
        const MOST_EQUAL: u32 = 1 << 22;
        /// Until so long before the start, ranks that share a core with this one may run: some may not know of it yet.
        const PATIENCE: Duration = Duration::from_micros(20);
        /// To look at a clock costs less than to ask the system who else would like to run.
        const YIELD_AFTER: u32 = 64;
        let (target, patient_until) = (model.invert(start), model.invert(start - PATIENCE));
        let mut last = self.clock.ticks();
        if last >= target {
            return Ok(Some(last));
        }
        let (mut equal, mut reads) = (0, 0_u32);
        loop {
            let now = self.clock.ticks();
            if now >= target {
                return Ok(None);
            }
            // A simulated clock that is read for nothing never moves.
            equal = if now == last { equal + 1 } else { 0 };
            if equal == MOST_EQUAL {
                return Err(MeasureError::ClockStands);
            }
            last = now;
            reads = reads.wrapping_add(1);
            if now < patient_until && reads.is_multiple_of(YIELD_AFTER) {
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
