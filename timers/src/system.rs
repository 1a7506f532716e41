//! The clocks that the system keeps: `clock_gettime` and `gettimeofday`.

use core::fmt;
use std::io;

use downbeat_clock_core::{Clock, ReadOrdering, TickRate, Ticks};

/// Which clock of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemClockId {
    /// CLOCK_MONOTONIC: never steps, but its rate is adjusted to keep time with the world.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: never steps and is never adjusted. Linux only.
    MonotonicRaw,
    /// CLOCK_REALTIME: the time of day; steps when it is set.
    Realtime,
    /// CLOCK_BOOTTIME: as CLOCK_MONOTONIC, and goes on while the machine sleeps. Linux only.
    Boottime,
    /// `gettimeofday`: CLOCK_REALTIME cut to microseconds.
    TimeOfDay,
}

impl SystemClockId {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Monotonic,
        Self::MonotonicRaw,
        Self::Realtime,
        Self::Boottime,
        Self::TimeOfDay,
    ];

    /// The name that the system uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Boottime => "CLOCK_BOOTTIME",
            Self::TimeOfDay => "gettimeofday",
        }
    }

    /// Whether somebody can set it to another time while it is in use.
    pub fn can_step(self) -> bool {
        matches!(self, Self::Realtime | Self::TimeOfDay)
    }

    /// Whether its rate is adjusted to keep time with the world.
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

/// A clock of the system; its ticks are nanoseconds since that clock's own beginning.
///
/// ```
/// use downbeat_timers::{Clock, SystemClock, SystemClockId};
///
/// let clock = SystemClock::detect(SystemClockId::Monotonic)?;
/// let earlier = clock.ticks();
/// assert!(clock.ticks() >= earlier);
/// # Ok::<(), downbeat_timers::SystemClockUnavailable>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    id: SystemClockId,
    raw: libc::clockid_t,
}

/// Why a clock of the system cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SystemClockUnavailable {
    /// This system has no such clock.
    NotOnThisSystem(SystemClockId),
    /// The system refuses to read it.
    Refused(SystemClockId, io::Error),
}

impl fmt::Display for SystemClockUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnThisSystem(id) => write!(f, "this system has no {id}"),
            Self::Refused(id, why) => write!(f, "the system refuses to read {id}: {why}"),
        }
    }
}

impl core::error::Error for SystemClockUnavailable {}

impl SystemClock {
    /// How long a tick of every clock of the system lasts.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Finds out whether the clock can be read.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn detect(id: SystemClockId) -> Result<Self, SystemClockUnavailable> {
        let raw = id
            .raw()
            .ok_or(SystemClockUnavailable::NotOnThisSystem(id))?;
        match gettime(raw) {
            Ok(_) => Ok(Self { id, raw }),
            Err(why) => Err(SystemClockUnavailable::Refused(id, why)),
        }
    }

    /// Which clock this is.
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
            // The clock could be read when it was detected, and nothing takes that back.
            gettime(self.raw).unwrap_or_default()
        };
        // Before 1970 the time of day is negative; nothing could be ordered with that, so it stands at zero.
        Ticks(u64::try_from(seconds * 1_000_000_000 + nanos).unwrap_or_default())
    }

    /// Where the kernel lets programs read the clock without a system call, as Linux does on x86 and aarch64, it reads
    /// the hardware counter in order.
    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }
}

/// Seconds and nanoseconds.
#[inline]
fn gettime(id: libc::clockid_t) -> io::Result<(i64, i64)> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the address is that of a timespec, which is all that the call writes to.
    let result = unsafe { libc::clock_gettime(id, &raw mut time) };
    if result == 0 {
        Ok((wide(time.tv_sec), wide(time.tv_nsec)))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Seconds and nanoseconds.
#[inline]
fn gettimeofday() -> (i64, i64) {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    // SAFETY: the first address is that of a timeval, which is all that the call writes to; no time zone is asked for.
    // It cannot fail with a valid address.
    unsafe { libc::gettimeofday(&raw mut time, core::ptr::null_mut()) };
    (wide(time.tv_sec), wide(time.tv_usec) * 1_000)
}

/// The fields of C's time types have 32 bits on some platforms.
fn wide(field: impl Into<i64>) -> i64 {
    field.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_of_linux_is_there_and_counts_nanoseconds() {
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
    fn a_clock_that_the_system_does_not_know_is_refused() {
        assert!(gettime(12_345).is_err());
    }
}
