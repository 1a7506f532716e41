//! The system clocks: `clock_gettime` and `gettimeofday`, or what Windows has in their place.

mod id;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use downbeat_clock_core::{Clock, ReadOrdering, TickRate, Ticks};

use crate::ClockUnavailable;
use crate::resolution::grain_of;
pub use id::SystemClockId;
#[cfg(unix)]
use unix::RawClock;
#[cfg(target_os = "linux")]
pub(crate) use unix::gettime;
#[cfg(windows)]
use windows::RawClock;

/// A system clock; its ticks are nanoseconds since that clock's origin.
///
/// ```
/// use downbeat_timers::{Clock, SystemClock, SystemClockId};
///
/// let clock = SystemClock::detect(SystemClockId::Monotonic)?;
/// let earlier = clock.ticks();
/// assert!(clock.ticks() >= earlier);
/// # Ok::<(), downbeat_timers::ClockUnavailable>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    id: SystemClockId,
    raw: RawClock,
    grain: u64,
}

impl SystemClock {
    /// Length of a tick of every system clock.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Creates the clock if it can be read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn detect(id: SystemClockId) -> Result<Self, ClockUnavailable> {
        let raw = RawClock::of(id).ok_or(ClockUnavailable::NotOnThisSystem(id.name()))?;
        raw.read().map_err(|errno| ClockUnavailable::Refused {
            clock: id.name(),
            errno,
        })?;
        let clock = Self { id, raw, grain: 1 };
        Ok(Self {
            grain: grain_of(&clock),
            ..clock
        })
    }

    /// The clock that is read.
    pub fn id(&self) -> SystemClockId {
        self.id
    }
}

impl Clock for SystemClock {
    #[inline]
    fn ticks(&self) -> Ticks {
        // `detect` read the clock, and it cannot become unreadable.
        let (seconds, nanos) = self.raw.read().unwrap_or_default();
        // Negative times of day, before 1970, are clamped to zero.
        Ticks(u64::try_from(seconds * 1_000_000_000 + nanos).unwrap_or_default())
    }

    /// Clocks that are read without a system call, as under Linux on x86 and aarch64, read the hardware counter in order.
    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }

    fn grain(&self) -> u64 {
        self.grain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_exists_on_linux() {
        for id in SystemClockId::ALL {
            let clock = SystemClock::detect(id).unwrap();
            assert_eq!(clock.id(), id);
            assert!(clock.ticks().0 > 0, "{id}");
        }
    }

    #[test]
    fn the_time_of_day_is_that_of_the_standard_library() {
        let before = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let time_of_day = SystemClock::detect(SystemClockId::TimeOfDay)
            .unwrap()
            .ticks();
        let realtime = SystemClock::detect(SystemClockId::Realtime)
            .unwrap()
            .ticks();
        let after = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        assert!(u128::from(time_of_day.0) >= before.as_micros() * 1_000);
        assert!(time_of_day <= realtime && u128::from(realtime.0) <= after.as_nanos());
        assert_eq!(time_of_day.0 % 1_000, 0);
    }
}
