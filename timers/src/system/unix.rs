//! Calls of POSIX that read clocks.

use super::id::SystemClockId;

/// The call that reads a clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum RawClock {
    /// `clock_gettime` with this number.
    Number(libc::clockid_t),
    /// `gettimeofday`.
    TimeOfDay,
}

impl RawClock {
    /// Returns the call for a clock; `None` if the system has no such clock.
    pub(super) fn of(id: SystemClockId) -> Option<Self> {
        Some(Self::Number(match id {
            SystemClockId::Monotonic => libc::CLOCK_MONOTONIC,
            SystemClockId::Realtime => libc::CLOCK_REALTIME,
            SystemClockId::TimeOfDay => return Some(Self::TimeOfDay),
            #[cfg(target_os = "linux")]
            SystemClockId::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            #[cfg(target_os = "linux")]
            SystemClockId::Boottime => libc::CLOCK_BOOTTIME,
            #[cfg(target_os = "linux")]
            SystemClockId::Tai => libc::CLOCK_TAI,
            #[cfg(not(target_os = "linux"))]
            SystemClockId::MonotonicRaw | SystemClockId::Boottime | SystemClockId::Tai => {
                return None;
            }
        }))
    }

    /// Reads the clock as seconds and nanoseconds, or returns the error number.
    #[inline]
    pub(super) fn read(self) -> Result<(i64, i64), i32> {
        match self {
            Self::Number(number) => gettime(number),
            Self::TimeOfDay => Ok(gettimeofday()),
        }
    }
}

/// Reads a clock as seconds and nanoseconds, or returns the error number.
#[inline]
pub(crate) fn gettime(id: libc::clockid_t) -> Result<(i64, i64), i32> {
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
    fn an_unknown_clock_is_rejected() {
        assert!(gettime(12_345).is_err());
    }
}
