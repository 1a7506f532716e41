//! The clock that a rank of a job reads.

use downbeat_clock_core::{Clock, ReadOrdering, Ticks};
use downbeat_timers::skew::SkewedClock;
use downbeat_timers::{MachineClock, WtimeClock};

/// Clock of a rank: one of its machine, MPI_Wtime, or one of these with an artificial error.
#[derive(Clone, Debug)]
pub(crate) enum JobClock<'mpi> {
    Machine(MachineClock),
    Wtime(WtimeClock<'mpi>),
    Skewed(Box<SkewedClock<Self>>),
}

impl JobClock<'_> {
    /// A reading of a clock that is no clock of the machine.
    #[cold]
    #[inline(never)]
    fn other_ticks(&self) -> Ticks {
        match self {
            Self::Machine(clock) => clock.ticks(),
            Self::Wtime(clock) => clock.ticks(),
            Self::Skewed(clock) => clock.ticks(),
        }
    }
}

impl Clock for JobClock<'_> {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        match self {
            Self::Machine(clock) => clock.ticks(),
            other => other.other_ticks(),
        }
    }

    fn ordering(&self) -> ReadOrdering {
        match self {
            Self::Machine(clock) => clock.ordering(),
            Self::Wtime(clock) => clock.ordering(),
            Self::Skewed(clock) => clock.ordering(),
        }
    }

    fn grain(&self) -> u64 {
        match self {
            Self::Machine(clock) => clock.grain(),
            Self::Wtime(clock) => clock.grain(),
            Self::Skewed(clock) => clock.grain(),
        }
    }

    #[inline(always)]
    fn open(&self) -> Ticks {
        match self {
            Self::Machine(clock) => clock.open(),
            other => other.other_ticks(),
        }
    }

    #[inline(always)]
    fn close(&self) -> Ticks {
        match self {
            Self::Machine(clock) => clock.close(),
            other => other.other_ticks(),
        }
    }
}
