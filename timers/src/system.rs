//! The system clocks: `clock_gettime` and `gettimeofday`.

use core::fmt;

use downbeat_clock_core::{Clock, ReadOrdering, TickRate, Ticks};

use crate::ClockUnavailable;
use crate::resolution::grain_of;

/// A system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemClockId {
    /// CLOCK_MONOTONIC: never steps, but its rate is adjusted by NTP.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: never steps and is never adjusted. Linux only.
    MonotonicRaw,
    /// CLOCK_REALTIME: the time of day; steps when it is set.
    Realtime,
    /// CLOCK_BOOTTIME: the same as CLOCK_MONOTONIC, but continues while the machine sleeps. Linux only.
    Boottime,
    /// `gettimeofday`: CLOCK_REALTIME truncated to microseconds.
    TimeOfDay,
}

impl SystemClockId {
    /// All system clocks.
    pub const ALL: [Self; 5] = [
        Self::Monotonic,
        Self::MonotonicRaw,
        Self::Realtime,
        Self::Boottime,
        Self::TimeOfDay,
    ];

    /// The system's name of the clock.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Boottime => "CLOCK_BOOTTIME",
            Self::TimeOfDay => "gettimeofday",
        }
    }

    /// True if the clock can be set while it is in use.
    pub fn can_step(self) -> bool {
        matches!(self, Self::Realtime | Self::TimeOfDay)
    }

    /// True if the rate of the clock is adjusted by NTP.
    pub fn is_slewed(self) -> bool {
        self != Self::MonotonicRaw
    }

    #[cfg(target_os = "linux")]
    fn raw(self) -> Option<libc::clockid_t> {
        Some(match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            Self::Realtime | Self::TimeOfDay => libc::CLOCK_REALTIME,
            Self::Boottime => libc::CLOCK_BOOTTIME,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn raw(self) -> Option<libc::clockid_t> {
        match self {
            Self::Monotonic => Some(libc::CLOCK_MONOTONIC),
            Self::Realtime | Self::TimeOfDay => Some(libc::CLOCK_REALTIME),
            Self::MonotonicRaw | Self::Boottime => None,
        }
    }
}

impl fmt::Display for SystemClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    raw: libc::clockid_t,
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
        let raw = id
            .raw()
            .ok_or(ClockUnavailable::NotOnThisSystem(id.name()))?;
        gettime(raw).map_err(|errno| ClockUnavailable::Refused {
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
        let (seconds, nanos) = if self.id == SystemClockId::TimeOfDay {
            gettimeofday()
        } else {
            // `detect` read the clock, and it cannot become unreadable.
            gettime(self.raw).unwrap_or_default()
        };
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

/// Reads a clock as seconds and nanoseconds, or returns the error number.
#[inline]
fn gettime(id: libc::clockid_t) -> Result<(i64, i64), i32> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec, and the call writes to nothing else.
    let result = unsafe { libc::clock_gettime(id, &raw mut time) };
    if result == 0 {
        Ok((wide(time.tv_sec), wide(time.tv_nsec)))
    } else {
        Err(std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default())
    }
}

/// Reads the time of day as seconds and nanoseconds.
#[inline]
fn gettimeofday() -> (i64, i64) {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    // SAFETY: the first pointer is to a timeval, and the call writes to nothing else; no time zone is requested. It
    // cannot fail with a valid pointer.
    unsafe { libc::gettimeofday(&raw mut time, core::ptr::null_mut()) };
    (wide(time.tv_sec), wide(time.tv_usec) * 1_000)
}

/// Widens a field of C's time types, which have 32 bits on some platforms.
fn wide(field: impl Into<i64>) -> i64 {
    field.into()
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

    #[test]
    fn an_unknown_clock_is_rejected() {
        assert!(gettime(12_345).is_err());
    }
}
