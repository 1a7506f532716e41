//! `MPI_Wtime` as a clock.

use core::marker::PhantomData;

use downbeat_clock_core::{Clock, TickRate, Ticks};
use mpi::environment::{self, Universe};

use crate::resolution::grain_of;

/// The clock `MPI_Wtime`, in nanoseconds.
///
/// The standard defines neither the origin nor that processes agree on it: under Open MPI 4.1 it is each process's first
/// call, under MPICH the hour. MPI returns seconds as a floating-point number, whose resolution depends on the distance
/// from the origin.
///
/// ```no_run
/// use downbeat_timers::{Clock, WtimeClock};
///
/// let universe = mpi::initialize().expect("MPI was not initialized before");
/// let clock = WtimeClock::new(&universe);
/// let start = clock.ticks();
/// ```
///
/// After `MPI_Finalize` some libraries end a process that reads the clock, so that a program which might is not compiled:
///
/// ```compile_fail,E0505
/// # use downbeat_timers::{Clock, WtimeClock};
/// # let universe = mpi::initialize().expect("MPI was not initialized before");
/// let clock = WtimeClock::new(&universe);
/// drop(universe);
/// clock.ticks();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WtimeClock<'mpi> {
    grain: u64,
    running: PhantomData<&'mpi Universe>,
}

impl<'mpi> WtimeClock<'mpi> {
    /// Length of a tick.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Creates the clock, which can be read while MPI runs.
    pub fn new(_running: &'mpi Universe) -> Self {
        let clock = Self {
            grain: 1,
            running: PhantomData,
        };
        Self {
            grain: grain_of(&clock),
            ..clock
        }
    }

    /// Resolution stated by the library (`MPI_Wtick`), in nanoseconds.
    pub fn stated_tick_nanos(&self) -> f64 {
        environment::time_resolution() * 1e9
    }
}

impl Clock for WtimeClock<'_> {
    #[inline]
    fn ticks(&self) -> Ticks {
        // Adds 0.5 because `f64::round` is a function call on baseline x86-64. The cast saturates.
        Ticks((environment::time() * 1e9 + 0.5) as u64)
    }

    fn grain(&self) -> u64 {
        self.grain
    }
}
