//! Reading a clock.

use crate::Ticks;

/// Order of a clock read relative to the instructions around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadOrdering {
    /// No order: the processor may take the reading earlier or later than its place in the program. Two readings on
    /// two cores can be in the wrong order.
    Unordered,
    /// Ordered after everything before it: taken when all earlier instructions are complete and all earlier loads have
    /// their value. Later instructions may begin before it.
    Ordered,
    /// Ordered after everything before it and before everything after it.
    Fenced,
}

/// Instruction by which a program in another language reads a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CounterInstruction {
    /// None: the clock is only read by its own library.
    #[default]
    None = 0,
    /// `rdtscp`, of x86.
    Rdtscp = 1,
    /// `isb; mrs cntvct_el0`, of aarch64.
    Cntvct = 2,
}

/// A clock that returns raw ticks.
///
/// A value of a clock type exists only where its counter can be read, so reading it cannot fail. A
/// [`TickRate`](crate::TickRate) or a [`ClockModel`](crate::ClockModel) converts the ticks to time.
pub trait Clock {
    /// Reads the counter.
    fn ticks(&self) -> Ticks;

    /// The ordering of [`ticks`](Self::ticks).
    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Unordered
    }

    /// The step by which the counter advances, in ticks: the most by which a reading can be behind the time, besides the
    /// rounding to whole ticks. Bounds of errors are wider by it.
    fn grain(&self) -> u64 {
        1
    }

    /// The instruction that programs in other languages may use in place of [`ticks`](Self::ticks).
    fn instruction(&self) -> CounterInstruction {
        CounterInstruction::None
    }

    /// Opens an interval. A clock with fences keeps everything that follows behind this reading, and everything before it
    /// before; others read it as ordered as [`ticks`](Self::ticks), so that an [unordered](ReadOrdering::Unordered) one lets
    /// instructions move into and out of the interval.
    #[inline(always)]
    fn open(&self) -> Ticks {
        self.ticks()
    }

    /// Closes an interval, with the same order as [`open`](Self::open).
    #[inline(always)]
    fn close(&self) -> Ticks {
        self.ticks()
    }
}

/// Placeholder for a clock that a program does not have.
impl Clock for core::convert::Infallible {
    fn ticks(&self) -> Ticks {
        match *self {}
    }
}

impl<C: Clock> Clock for &C {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        (**self).ticks()
    }
    fn ordering(&self) -> ReadOrdering {
        (**self).ordering()
    }
    fn grain(&self) -> u64 {
        (**self).grain()
    }
    fn instruction(&self) -> CounterInstruction {
        (**self).instruction()
    }
    #[inline(always)]
    fn open(&self) -> Ticks {
        (**self).open()
    }
    #[inline(always)]
    fn close(&self) -> Ticks {
        (**self).close()
    }
}
