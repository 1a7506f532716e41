//! `MPI_Wtime` as a clock.

use downbeat_clock_core::{Clock, TickRate, Ticks};
use mpi::environment;

use crate::ClockUnavailable;

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
/// let clock = WtimeClock::attach()?;
/// let start = clock.ticks();
/// # Ok::<(), downbeat_timers::ClockUnavailable>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WtimeClock {
    _attached: (),
}

impl WtimeClock {
    /// Length of a tick.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Creates the clock if MPI is initialized. The clock must not be read after `MPI_Finalize`.
    ///
    /// # Errors
    /// If MPI is not initialized, or already finalized.
    pub fn attach() -> Result<Self, ClockUnavailable> {
        if !environment::is_initialized() {
            return Err(ClockUnavailable::MpiNotInitialized);
        }
        if environment::is_finalized() {
            return Err(ClockUnavailable::MpiFinalized);
        }
        Ok(Self { _attached: () })
    }

    /// Resolution stated by the library (`MPI_Wtick`), in nanoseconds.
    pub fn stated_tick_nanos(&self) -> f64 {
        environment::time_resolution() * 1e9
    }
}

impl Clock for WtimeClock {
    #[inline]
    fn ticks(&self) -> Ticks {
        // Adds 0.5 because `f64::round` is a function call on baseline x86-64. The cast saturates.
        Ticks((environment::time() * 1e9 + 0.5) as u64)
    }
}
