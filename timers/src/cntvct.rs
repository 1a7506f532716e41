//! The generic timer of aarch64 processors.

use downbeat_clock_core::{Clock, CounterInstruction, ReadOrdering, TickRate, Ticks};

use crate::ClockUnavailable;
use crate::resolution::grain_of;

/// The virtual count of the generic timer, CNTVCT_EL0: equal on all cores, with a rate stated by the firmware.
///
/// [`ticks`](Clock::ticks) is ordered after preceding instructions (`isb; mrs`). Not yet run on hardware.
#[derive(Clone, Copy, Debug)]
pub struct CntvctClock {
    rate: TickRate,
    counter: CntvctAccess,
    grain: u64,
}

impl CntvctClock {
    /// Creates the clock if the timer can be read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn detect() -> Result<Self, ClockUnavailable> {
        let (counter, hz) = detect()?;
        let rate = TickRate::from_hz(hz).map_err(|_| ClockUnavailable::NoFrequency)?;
        let clock = Self {
            rate,
            counter,
            grain: 1,
        };
        Ok(Self {
            grain: grain_of(&clock),
            ..clock
        })
    }

    /// Rate stated by the firmware.
    pub fn stated_rate(&self) -> TickRate {
        self.rate
    }
}

impl Clock for CntvctClock {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        Ticks(self.counter.ordered())
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }

    fn grain(&self) -> u64 {
        self.grain
    }

    fn instruction(&self) -> CounterInstruction {
        CounterInstruction::Cntvct
    }

    #[inline(always)]
    fn open(&self) -> Ticks {
        Ticks(self.counter.fenced())
    }

    #[inline(always)]
    fn close(&self) -> Ticks {
        Ticks(self.counter.fenced())
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use crate::ClockUnavailable;
    use core::arch::asm;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct CntvctAccess(());

    pub(super) fn detect() -> Result<(CntvctAccess, u64), ClockUnavailable> {
        let hz: u64;
        // SAFETY: every aarch64 processor has the register; EL0 may read it if it may read the counter.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
        };
        Ok((CntvctAccess(()), hz))
    }

    impl CntvctAccess {
        #[inline(always)]
        pub(super) fn ordered(self) -> u64 {
            let count: u64;
            // SAFETY: every aarch64 processor has the register; Linux lets EL0 read it, or emulates the read.
            unsafe {
                asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags));
            };
            count
        }

        #[inline(always)]
        pub(super) fn fenced(self) -> u64 {
            let count: u64;
            // SAFETY: as for `ordered`.
            unsafe {
                asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) count, options(nostack, preserves_flags));
            };
            count
        }
    }
}

#[cfg(not(target_arch = "aarch64"))]
mod elsewhere {
    use crate::ClockUnavailable;

    /// Has no values, because the timer does not exist on this architecture.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum CntvctAccess {}

    pub(super) fn detect() -> Result<(CntvctAccess, u64), ClockUnavailable> {
        Err(ClockUnavailable::NotAarch64)
    }

    impl CntvctAccess {
        pub(super) fn ordered(self) -> u64 {
            match self {}
        }
        pub(super) fn fenced(self) -> u64 {
            match self {}
        }
    }
}

#[cfg(target_arch = "aarch64")]
use aarch64::{CntvctAccess, detect};
#[cfg(not(target_arch = "aarch64"))]
use elsewhere::{CntvctAccess, detect};
