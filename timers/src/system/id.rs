//! Names and properties of the system clocks.

use core::fmt;

/// A system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemClockId {
    /// CLOCK_MONOTONIC: never steps, but its rate is adjusted by NTP. The performance counter of Windows.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: never steps and is never adjusted. Linux only.
    MonotonicRaw,
    /// CLOCK_REALTIME: the time of day; steps when it is set.
    Realtime,
    /// CLOCK_BOOTTIME: the same as CLOCK_MONOTONIC, but continues while the machine sleeps. Linux only.
    Boottime,
    /// CLOCK_TAI: atomic time, CLOCK_REALTIME without leap seconds. The same as CLOCK_REALTIME until a daemon tells the kernel
    /// [their difference](crate::kernel::Discipline::tai_offset). Linux only.
    Tai,
    /// `gettimeofday`: CLOCK_REALTIME truncated to microseconds. Not on Windows.
    TimeOfDay,
}

impl SystemClockId {
    /// All system clocks.
    pub const ALL: [Self; 6] = [
        Self::Monotonic,
        Self::MonotonicRaw,
        Self::Realtime,
        Self::Boottime,
        Self::Tai,
        Self::TimeOfDay,
    ];

    /// The system's name of the clock.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Boottime => "CLOCK_BOOTTIME",
            Self::Tai => "CLOCK_TAI",
            Self::TimeOfDay => "gettimeofday",
        }
    }

    /// True if the clock can be set while it is in use.
    pub fn can_step(self) -> bool {
        matches!(self, Self::Realtime | Self::Tai | Self::TimeOfDay)
    }

    /// True if the rate of the clock is adjusted by NTP.
    pub fn is_slewed(self) -> bool {
        self != Self::MonotonicRaw
    }
}

impl fmt::Display for SystemClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
