//! Calls of Windows that read clocks.

use std::time::{SystemTime, UNIX_EPOCH};

use super::id::SystemClockId;

#[link(name = "kernel32", kind = "raw-dylib")]
unsafe extern "system" {
    fn QueryPerformanceCounter(count: *mut i64) -> i32;
    fn QueryPerformanceFrequency(hz: *mut i64) -> i32;
}

/// The call that reads a clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum RawClock {
    /// The performance counter, which advances at this frequency and never steps.
    Counter { hz: i64 },
    /// The time of day.
    Realtime,
}

impl RawClock {
    /// Returns the call for a clock; `None` if the system has no such clock.
    pub(super) fn of(id: SystemClockId) -> Option<Self> {
        match id {
            SystemClockId::Monotonic => {
                let mut hz = 0;
                // SAFETY: the pointer is to an integer of 64 bits, and the call writes to nothing else.
                let known = unsafe { QueryPerformanceFrequency(&raw mut hz) } != 0 && hz > 0;
                known.then_some(Self::Counter { hz })
            }
            SystemClockId::Realtime => Some(Self::Realtime),
            SystemClockId::MonotonicRaw
            | SystemClockId::Boottime
            | SystemClockId::Tai
            | SystemClockId::TimeOfDay => None,
        }
    }

    /// Reads the clock as seconds and nanoseconds, or returns the error number.
    #[inline]
    pub(super) fn read(self) -> Result<(i64, i64), i32> {
        match self {
            Self::Counter { hz } => {
                let mut count = 0;
                // SAFETY: the pointer is to an integer of 64 bits, and the call writes to nothing else.
                if unsafe { QueryPerformanceCounter(&raw mut count) } == 0 {
                    let why = std::io::Error::last_os_error();
                    return Err(why.raw_os_error().unwrap_or_default());
                }
                // The remainder is below the frequency, which is below 9 GHz, so that the product fits.
                Ok((count / hz, count % hz * 1_000_000_000 / hz))
            }
            // A time before 1970 is clamped to zero.
            Self::Realtime => {
                let since = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
                Ok((seconds, i64::from(since.subsec_nanos())))
            }
        }
    }
}
