//! The clock of a program that selects it when it runs, also with an artificial error.

use core::convert::Infallible;

use downbeat_clock_core::{Clock, CounterInstruction, ReadOrdering, Ticks};

use crate::MachineClock;
use crate::skew::SkewedClock;

/// A clock of the machine, one that only this program has, or one of these with an artificial error, for tests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyClock<Own = Infallible> {
    /// A clock of the machine.
    Machine(MachineClock),
    /// A clock of the program, such as MPI_Wtime of a program that uses MPI.
    Own(Own),
    /// A clock with an artificial error.
    Skewed(Box<SkewedClock<Self>>),
}

impl<Own: Clock> AnyClock<Own> {
    /// A reading of a clock that is no clock of the machine. Not inline: the registers that it needs would be saved by every
    /// call.
    #[cold]
    #[inline(never)]
    fn other_ticks(&self) -> Ticks {
        match self {
            Self::Machine(clock) => clock.ticks(),
            Self::Own(clock) => clock.ticks(),
            Self::Skewed(clock) => clock.ticks(),
        }
    }
}

impl<Own: Clock> Clock for AnyClock<Own> {
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
            Self::Own(clock) => clock.ordering(),
            Self::Skewed(clock) => clock.ordering(),
        }
    }

    fn grain(&self) -> u64 {
        match self {
            Self::Machine(clock) => clock.grain(),
            Self::Own(clock) => clock.grain(),
            Self::Skewed(clock) => clock.grain(),
        }
    }

    fn instruction(&self) -> CounterInstruction {
        match self {
            Self::Machine(clock) => clock.instruction(),
            _ => CounterInstruction::None,
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
