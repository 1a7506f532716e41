//! A clock that is selected when the program runs.

use core::fmt;
use core::str::FromStr;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, CounterInstruction, Duration, Local, ModelError, ReadOrdering,
    TickRate, Ticks, Timestamp,
};

use crate::calibrate::{CalibrationError, calibrate_during};
use crate::tsc::TscFacts;
use crate::{ClockUnavailable, CntvctClock, SystemClock, SystemClockId, TscClock};

/// Name of a clock in options and environment variables; [`Display`](fmt::Display) and [`FromStr`] have the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockName {
    /// `recommended`: the hardware counter if the kernel trusts it, or else
    /// CLOCK_MONOTONIC_RAW.
    #[default]
    Recommended,
    /// `tsc`: the time stamp counter of x86.
    Tsc,
    /// `cntvct`: the generic timer of aarch64.
    Cntvct,
    /// `monotonic`: CLOCK_MONOTONIC.
    Monotonic,
    /// `raw`: CLOCK_MONOTONIC_RAW.
    Raw,
    /// `realtime`: CLOCK_REALTIME, which can be set.
    Realtime,
    /// `tai`: CLOCK_TAI, atomic time, which can be set.
    Tai,
}

impl ClockName {
    /// All names.
    pub const ALL: [Self; 7] = [
        Self::Recommended,
        Self::Tsc,
        Self::Cntvct,
        Self::Monotonic,
        Self::Raw,
        Self::Realtime,
        Self::Tai,
    ];

    /// The name as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recommended => "recommended",
            Self::Tsc => "tsc",
            Self::Cntvct => "cntvct",
            Self::Monotonic => "monotonic",
            Self::Raw => "raw",
            Self::Realtime => "realtime",
            Self::Tai => "tai",
        }
    }

    /// The clock in some words, for help.
    pub fn description(self) -> &'static str {
        match self {
            Self::Recommended => "The counter if it is trusted, or else CLOCK_MONOTONIC_RAW",
            Self::Tsc => "The time stamp counter of x86",
            Self::Cntvct => "The generic timer of aarch64",
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::Raw => "CLOCK_MONOTONIC_RAW",
            Self::Realtime => "CLOCK_REALTIME, which can be set",
            Self::Tai => "CLOCK_TAI, which can be set",
        }
    }
}

impl fmt::Display for ClockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No clock has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownClock(pub String);

impl fmt::Display for UnknownClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ClockName::ALL.map(ClockName::as_str).join(", ");
        write!(
            f,
            "there is no clock \"{}\"; the clocks are {names}",
            self.0
        )
    }
}

impl core::error::Error for UnknownClock {}

impl FromStr for ClockName {
    type Err = UnknownClock;

    fn from_str(text: &str) -> Result<Self, UnknownClock> {
        let named = Self::ALL.into_iter().find(|name| name.as_str() == text);
        named.ok_or_else(|| UnknownClock(text.to_owned()))
    }
}

/// One of the clocks of a machine, for programs that are not generic over their clock. All have ordered readings.
///
/// ```
/// use downbeat_timers::{Clock, ClockName, Duration, MachineClock};
///
/// let clock = MachineClock::detect(ClockName::Recommended)?;
/// let calibrated = clock.calibrate(Duration::from_millis(10))?;
/// println!("{clock}: {} ns per tick", calibrated.rate.nanos_per_tick());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MachineClock {
    /// The time stamp counter.
    Tsc(TscClock),
    /// The generic timer.
    Cntvct(CntvctClock),
    /// A clock of the system.
    System(SystemClock),
}

/// Rate of a clock, and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibratedRate {
    /// Length of a tick.
    pub rate: TickRate,
    /// Upper limit of its relative error, by the reference clock; 0 for a clock of the system.
    pub uncertainty: f64,
}

impl CalibratedRate {
    /// Rate of a clock that counts nanoseconds, as those of the system do.
    pub const NANOSECONDS: Self = Self {
        rate: TickRate::NANOSECOND,
        uncertainty: 0.0,
    };
}

impl MachineClock {
    /// Creates the clock with this name.
    ///
    /// # Errors
    /// If it cannot be used, with the reason. Only [`ClockName::Recommended`] falls back to another clock.
    pub fn detect(name: ClockName) -> Result<Self, ClockUnavailable> {
        let system = |id| SystemClock::detect(id).map(Self::System);
        match name {
            ClockName::Recommended => Self::recommended(),
            ClockName::Tsc => TscClock::detect().map(Self::Tsc),
            ClockName::Cntvct => CntvctClock::detect().map(Self::Cntvct),
            ClockName::Monotonic => system(SystemClockId::Monotonic),
            ClockName::Raw => system(SystemClockId::MonotonicRaw),
            ClockName::Realtime => system(SystemClockId::Realtime),
            ClockName::Tai => system(SystemClockId::Tai),
        }
    }

    /// Creates the clock that is the counter of the processor: the time stamp counter, or the generic timer.
    ///
    /// # Errors
    /// If it cannot be used, with the reason.
    pub fn counter() -> Result<Self, ClockUnavailable> {
        match CntvctClock::detect() {
            Err(ClockUnavailable::NotAarch64) => Self::detect(ClockName::Tsc),
            found => found.map(Self::Cntvct),
        }
    }

    fn recommended() -> Result<Self, ClockUnavailable> {
        let trusted = TscFacts::gather().is_ok_and(|facts| facts.grave_doubt().is_none());
        if let Some(Ok(tsc)) = trusted.then(TscClock::detect) {
            return Ok(Self::Tsc(tsc));
        }
        CntvctClock::detect()
            .map(Self::Cntvct)
            .or_else(|_| steady().map(Self::System))
    }

    /// Name of the clock.
    pub fn name(&self) -> ClockName {
        match self {
            Self::Tsc(_) => ClockName::Tsc,
            Self::Cntvct(_) => ClockName::Cntvct,
            Self::System(clock) => match clock.id() {
                SystemClockId::MonotonicRaw => ClockName::Raw,
                SystemClockId::Realtime | SystemClockId::TimeOfDay => ClockName::Realtime,
                SystemClockId::Tai => ClockName::Tai,
                SystemClockId::Monotonic | SystemClockId::Boottime => ClockName::Monotonic,
            },
        }
    }

    /// Measures the rate of a counter for this time; that of a system clock is known.
    ///
    /// # Errors
    /// If the counter, or the system clock with which it is compared, stepped or did not advance.
    pub fn calibrate(&self, during: Duration) -> Result<CalibratedRate, CalibrationError> {
        let measured = |counter: &dyn Fn(&SystemClock) -> _| {
            let reference = steady().map_err(CalibrationError::Reference)?;
            let calibration: crate::calibrate::Calibration = counter(&reference)?;
            Ok(CalibratedRate {
                rate: calibration.rate(),
                uncertainty: calibration.uncertainty(),
            })
        };
        match self {
            Self::Tsc(clock) => measured(&|reference| calibrate_during(clock, reference, during)),
            Self::Cntvct(clock) => {
                measured(&|reference| calibrate_during(clock, reference, during))
            }
            Self::System(_) => Ok(CalibratedRate::NANOSECONDS),
        }
    }

    /// Model of a local time that begins now.
    ///
    /// # Errors
    /// If the counter was started more than 146 years ago.
    pub fn since_now(&self, rate: TickRate) -> Result<ClockModel<Counter, Local>, ModelError> {
        ClockModel::through(self.ticks(), Timestamp::ORIGIN, rate)
    }

    /// A reading with fences, if the clock has any.
    #[cold]
    #[inline(never)]
    fn other_fenced(&self) -> Ticks {
        match self {
            Self::Cntvct(clock) => clock.open(),
            other => other.other_ticks(),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_ticks(&self) -> Ticks {
        match self {
            Self::Tsc(clock) => clock.ticks(),
            Self::Cntvct(clock) => clock.ticks(),
            Self::System(clock) => clock.ticks(),
        }
    }
}

/// The monotonic clock of the system, without adjustments if there is one.
pub(crate) fn steady() -> Result<SystemClock, ClockUnavailable> {
    let detect = SystemClock::detect;
    detect(SystemClockId::MonotonicRaw).or_else(|_| detect(SystemClockId::Monotonic))
}

impl fmt::Display for MachineClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tsc(_) => f.write_str("time stamp counter"),
            Self::Cntvct(_) => f.write_str("generic timer"),
            Self::System(clock) => clock.id().fmt(f),
        }
    }
}

impl Clock for MachineClock {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        // Not a `match`, which would be compiled to a jump table.
        if let Self::Tsc(clock) = self {
            return clock.ticks();
        }
        self.other_ticks()
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }

    fn grain(&self) -> u64 {
        match self {
            Self::Tsc(clock) => clock.grain(),
            Self::Cntvct(clock) => clock.grain(),
            Self::System(clock) => clock.grain(),
        }
    }

    fn instruction(&self) -> CounterInstruction {
        match self {
            Self::Tsc(clock) => clock.instruction(),
            Self::Cntvct(clock) => clock.instruction(),
            Self::System(clock) => clock.instruction(),
        }
    }

    #[inline(always)]
    fn open(&self) -> Ticks {
        match self {
            Self::Tsc(clock) => clock.open(),
            other => other.other_fenced(),
        }
    }

    #[inline(always)]
    fn close(&self) -> Ticks {
        match self {
            Self::Tsc(clock) => clock.close(),
            other => other.other_fenced(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_and_others_are_refused() {
        for name in ClockName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        let refused = "TSC".parse::<ClockName>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there is no clock \"TSC\"; the clocks are recommended, tsc, cntvct, monotonic, raw, realtime, tai"
        );
    }

    #[test]
    fn every_clock_that_exists_can_be_calibrated() {
        for name in ClockName::ALL {
            let Ok(clock) = MachineClock::detect(name) else {
                assert!(!matches!(
                    name,
                    ClockName::Recommended | ClockName::Monotonic
                ));
                continue;
            };
            assert!(name == ClockName::Recommended || clock.name() == name);
            let found = clock.calibrate(Duration::from_millis(2)).unwrap();
            assert!(found.uncertainty < 1e-3, "{clock}: {found:?}");
            let model = clock.since_now(found.rate).unwrap();
            let (opened, read, closed) = (clock.open(), clock.ticks(), clock.close());
            assert!(opened <= read && read <= closed);
            assert!(model.apply(opened) >= Timestamp::ORIGIN);
            assert!(clock.grain() > 0 && clock.ordering() == ReadOrdering::Ordered);
        }
    }
}
