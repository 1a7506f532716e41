//! The generic timer of aarch64 processors.

use downbeat_clock_core::{Clock, CounterInstruction, ReadOrdering, TickRate, Ticks};

use crate::ClockUnavailable;
use crate::resolution::grain_of;

/// The virtual count of the generic timer, CNTVCT_EL0: equal on all cores, with a rate stated by the firmware.
///
/// [`ticks`](Clock::ticks) is ordered after preceding instructions (`isb; mrs`). Tested in an emulator, not yet on hardware.
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

#[cfg(test)]
#[cfg(all(feature = "std", target_arch = "aarch64"))]
mod tests {
    use super::*;
    use crate::calibrate::calibrate_during;
    use crate::cores::tests::check_order_between_cores;
    use crate::{SystemClock, SystemClockId};
    use downbeat_clock_core::Duration;

    fn steady() -> SystemClock {
        SystemClock::detect(SystemClockId::MonotonicRaw).unwrap()
    }

    #[test]
    fn the_rate_is_the_stated_one_within_the_bound_of_a_calibration() {
        let clock = CntvctClock::detect().unwrap();
        let found = calibrate_during(&clock, &steady(), Duration::from_millis(100)).unwrap();
        let apart = found.rate().drift_from(clock.stated_rate()).abs();
        // Kernels adjust their clocks by up to 500 parts per million, and firmware states round frequencies.
        assert!(apart <= found.uncertainty() + 600e-6, "{found:?}");
        // In an emulator, too, where the counter may have steps of a microsecond.
        assert!(found.uncertainty() < 100e-6, "{found:?}");
    }

    #[test]
    fn two_calibrations_agree_within_their_bounds() {
        let clock = CntvctClock::detect().unwrap();
        let calibrate = || calibrate_during(&clock, &steady(), Duration::from_millis(50)).unwrap();
        let (first, second) = (calibrate(), calibrate());
        let apart = first.rate().drift_from(second.rate()).abs();
        let bound = first.uncertainty() + second.uncertainty();
        assert!(apart <= bound, "{apart} > {bound}");
    }

    #[test]
    fn readings_of_a_thread_never_run_backwards_and_advance() {
        let clock = CntvctClock::detect().unwrap();
        let first = clock.ticks();
        let mut last = first;
        for _ in 0..20_000 {
            for next in [clock.open(), clock.ticks(), clock.close()] {
                assert!(next >= last, "{next:?} after {last:?}");
                last = next;
            }
        }
        assert!(last > first);
        assert_eq!(clock.ordering(), ReadOrdering::Ordered);
        assert_eq!(clock.instruction(), CounterInstruction::Cntvct);
    }

    #[test]
    fn a_reading_sent_to_another_core_is_not_ahead_of_its_next_reading() {
        let clock = CntvctClock::detect().unwrap();
        check_order_between_cores(clock, 20_000);
    }
}
