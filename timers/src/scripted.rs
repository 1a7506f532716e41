//! Clocks of tests, whose readings are known.

use core::cell::Cell;

use downbeat_clock_core::{Clock, Ticks};

/// A clock that repeats the readings of a list.
pub(crate) struct CyclicClock<'a>(pub(crate) &'a [u64], pub(crate) Cell<usize>);

impl Clock for CyclicClock<'_> {
    fn ticks(&self) -> Ticks {
        let i = self.1.replace(self.1.get() + 1);
        Ticks(self.0[i % self.0.len()])
    }
}

/// A clock that advances by the next step of a list at every read.
pub(crate) struct SteppingClock<'a>(pub(crate) &'a [u64], pub(crate) Cell<(usize, u64)>);

impl Clock for SteppingClock<'_> {
    fn ticks(&self) -> Ticks {
        let (i, now) = self.1.get();
        let next = now + self.0[i % self.0.len()];
        self.1.set((i + 1, next));
        Ticks(next)
    }
}
