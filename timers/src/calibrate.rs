//! Calibration of a counter: measurement of its rate.

use core::fmt;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Local, ModelError, TickRate, Ticks, Timestamp,
};

/// A reading of a reference clock between two readings of a counter: the reference showed `reference` at some instant
/// between `before` and `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// Counter before the reference was read.
    pub before: Ticks,
    /// Reference clock, in nanoseconds.
    pub reference: Ticks,
    /// Counter after the reference was read.
    pub after: Ticks,
}

impl Bracket {
    /// The mean of the narrower half of [`BRACKETS`] brackets.
    ///
    /// The wider half was taken with cold caches or interrupted. Of the others none is best: processors count in steps of up
    /// to ten nanoseconds, and the step determines which bracket looks narrowest. Their mean is a valid bracket, because
    /// both clocks run at constant rates meanwhile.
    ///
    /// Returns `None` if the counter ran backwards in all of them.
    pub fn measure(counter: &impl Clock, reference: &impl Clock) -> Option<Self> {
        let mut brackets = [(); BRACKETS].map(|()| Self {
            before: counter.open(),
            reference: reference.ticks(),
            after: counter.close(),
        });
        let backwards = |bracket: &Self| bracket.after < bracket.before;
        brackets.sort_unstable_by_key(|bracket| (backwards(bracket), bracket.width()));
        let sound = brackets.partition_point(|bracket| !backwards(bracket));
        Self::mean(&brackets[..sound.div_ceil(2)])
    }

    /// Returns `None` without brackets.
    fn mean(brackets: &[Self]) -> Option<Self> {
        let count = u128::try_from(brackets.len())
            .ok()
            .filter(|count| *count > 0)?;
        // Rounded outwards, so that the bracket stays valid. A mean is at most the largest value, so the casts are exact.
        let sum = |stamp: fn(&Self) -> Ticks| {
            brackets
                .iter()
                .map(|bracket| u128::from(stamp(bracket).0))
                .sum::<u128>()
        };
        let before = sum(|bracket| bracket.before) / count;
        let reference = (sum(|bracket| bracket.reference) + count / 2) / count;
        let after = sum(|bracket| bracket.after).div_ceil(count);
        Some(Self {
            before: Ticks(before as u64),
            reference: Ticks(reference as u64),
            after: Ticks(after as u64),
        })
    }

    /// Uncertainty of the instant in ticks.
    pub fn width(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }

    /// Middle of the bracket: the best estimate of the counter at the instant when the reference was read.
    pub fn middle(&self) -> Ticks {
        self.before.saturating_add(self.width() / 2)
    }
}

/// The rate of a counter with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    start: Bracket,
    end: Bracket,
    rate: TickRate,
}

/// Reason why a counter could not be calibrated, or a file holds no calibration for this machine.
#[derive(Debug)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The counter ran backwards whenever it was read.
    NoBracket,
    /// The counter did not advance by more than its uncertainty.
    CounterStoodStill,
    /// The reference clock did not advance.
    ReferenceStoodStill,
    /// No counter has the rate found.
    Rate(ModelError),
    /// The file, or the name of this machine, cannot be read.
    #[cfg(feature = "std")]
    Io(std::io::Error),
    /// A line of the file is malformed.
    #[cfg(feature = "std")]
    Line {
        /// Number of the line, counted from 1.
        number: usize,
        /// Description of the fault.
        fault: &'static str,
    },
    /// The line with this key is missing.
    #[cfg(feature = "std")]
    Missing(&'static str),
    /// The calibration was made before the last reboot, or on another machine.
    #[cfg(feature = "std")]
    OtherBoot,
    /// The calibration was made on another processor, of this model.
    #[cfg(feature = "std")]
    OtherCpu(String),
}

impl fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBracket => f.write_str("the counter runs backwards"),
            Self::CounterStoodStill => {
                f.write_str("the counter hardly advanced: calibrate for longer")
            }
            Self::ReferenceStoodStill => {
                f.write_str("the reference clock did not advance: calibrate for longer")
            }
            Self::Rate(why) => write!(f, "the counter has no usable rate: {why}"),
            #[cfg(feature = "std")]
            Self::Io(why) => why.fmt(f),
            #[cfg(feature = "std")]
            Self::Line { number, fault } => write!(f, "line {number}: {fault}"),
            #[cfg(feature = "std")]
            Self::Missing(key) => write!(f, "the line \"{key} = ...\" is missing"),
            #[cfg(feature = "std")]
            Self::OtherBoot => f.write_str(
                "it was made before the last reboot, or on another machine; calibrate again",
            ),
            #[cfg(feature = "std")]
            Self::OtherCpu(cpu) => write!(
                f,
                "it was made on another processor, \"{cpu}\"; calibrate again"
            ),
        }
    }
}

impl core::error::Error for CalibrationError {}

#[cfg(feature = "std")]
impl From<std::io::Error> for CalibrationError {
    fn from(why: std::io::Error) -> Self {
        Self::Io(why)
    }
}

/// Number of brackets at either end of a calibration: enough for half of them to be undisturbed on a busy machine. They
/// take some tens of microseconds.
pub const BRACKETS: usize = 200;

/// Compares a counter with a reference clock that counts nanoseconds, before and after `wait`.
///
/// The longer the wait, the smaller the [uncertainty](Calibration::uncertainty): some parts per million for 10 ms.
///
/// # Errors
/// If either clock did not advance.
pub fn calibrate(
    counter: &impl Clock,
    reference: &impl Clock,
    wait: impl FnOnce(),
) -> Result<Calibration, CalibrationError> {
    let start = Bracket::measure(counter, reference).ok_or(CalibrationError::NoBracket)?;
    wait();
    let end = Bracket::measure(counter, reference).ok_or(CalibrationError::NoBracket)?;
    Calibration::between(start, end)
}

/// The same as [`calibrate`], sleeping for `duration`.
///
/// ```
/// use downbeat_timers::{Duration, SystemClock, SystemClockId, TscClock, calibrate_during};
///
/// if let Ok(tsc) = TscClock::detect() {
///     let raw = SystemClock::detect(SystemClockId::MonotonicRaw)?;
///     let calibration = calibrate_during(&tsc, &raw, Duration::from_millis(10))?;
///     println!("{:.0} Hz, error at most {:.1} ppm", calibration.rate().hz(), calibration.uncertainty() * 1e6);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If either clock did not advance, as with a duration of zero or less.
#[cfg(feature = "std")]
pub fn calibrate_during(
    counter: &impl Clock,
    reference: &crate::SystemClock,
    duration: Duration,
) -> Result<Calibration, CalibrationError> {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or_default();
    calibrate(counter, reference, || {
        std::thread::sleep(core::time::Duration::from_nanos(nanos));
    })
}

impl Calibration {
    /// Computes the rate from two brackets.
    ///
    /// # Errors
    /// If either clock did not advance from one to the other.
    pub fn between(start: Bracket, end: Bracket) -> Result<Self, CalibrationError> {
        let ticks = end
            .middle()
            .checked_since(start.middle())
            .unwrap_or_default();
        if ticks <= start.width().saturating_add(end.width()) {
            return Err(CalibrationError::CounterStoodStill);
        }
        let nanos = end
            .reference
            .checked_since(start.reference)
            .unwrap_or_default();
        if nanos == 0 {
            return Err(CalibrationError::ReferenceStoodStill);
        }
        let rate = TickRate::from_ratio(nanos, ticks).map_err(CalibrationError::Rate)?;
        Ok(Self { start, end, rate })
    }

    /// Rate of the counter by the reference clock.
    pub fn rate(&self) -> TickRate {
        self.rate
    }

    /// Upper limit of the relative error of the rate: `1e-6` is one part per million.
    ///
    /// This is a guarantee, not an estimate: it follows from the widths of the brackets and the rounding of the reference
    /// clock to nanoseconds, and holds as long as the rate of the counter is constant.
    pub fn uncertainty(&self) -> f64 {
        // Half of each bracket, and one tick for the truncated halves.
        let ticks = (self.start.width() + self.end.width()) as f64 / 2.0 + 1.0;
        let counted = self.end.middle().signed_since(self.start.middle()) as f64;
        let nanos = self.end.reference.signed_since(self.start.reference) as f64;
        // (nanos +- 2) / (counted +- ticks) relative to nanos / counted: either end is truncated to a nanosecond by the
        // clock, and rounded to one here.
        (1.0 + 2.0 / nanos) / (1.0 - ticks / counted) - 1.0
    }

    /// Length of the calibration by the reference clock.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end.reference.signed_since(self.start.reference))
    }

    /// Bracket at the start.
    pub fn start(&self) -> Bracket {
        self.start
    }

    /// Bracket at the end.
    pub fn end(&self) -> Bracket {
        self.end
    }

    /// Model of local time: the time of the reference clock, continued by the counter from the end of the calibration.
    ///
    /// # Errors
    /// If the counter's zero is more than 146 years from that of the reference clock.
    pub fn model(&self) -> Result<ClockModel<Counter, Local>, ModelError> {
        let shown = i64::try_from(self.end.reference.0).map_err(|_| ModelError::TooFarApart)?;
        ClockModel::through(self.end.middle(), Timestamp::from_nanos(shown), self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use proptest::prelude::*;

    /// Simulated time, which every read of a clock advances.
    #[derive(Default)]
    struct SimulatedTime {
        nanos: Cell<u64>,
        costs: Vec<u64>,
        reads: Cell<usize>,
    }

    impl SimulatedTime {
        fn pass(&self) -> u64 {
            let cost = self
                .costs
                .get(self.reads.get() % self.costs.len().max(1))
                .copied()
                .unwrap_or(20);
            self.reads.set(self.reads.get() + 1);
            self.nanos.set(self.nanos.get() + cost);
            self.nanos.get()
        }
    }

    /// A counter with a rate of `ticks` per `nanos`.
    struct SimulatedCounter<'a> {
        time: &'a SimulatedTime,
        ticks: u64,
        nanos: u64,
    }

    impl Clock for SimulatedCounter<'_> {
        fn ticks(&self) -> Ticks {
            Ticks(
                (u128::from(self.time.pass()) * u128::from(self.ticks) / u128::from(self.nanos))
                    as u64,
            )
        }
    }

    /// A clock that shows a function of time.
    struct BrokenClock<'a>(&'a SimulatedTime, fn(u64) -> u64);

    impl Clock for BrokenClock<'_> {
        fn ticks(&self) -> Ticks {
            Ticks((self.1)(self.0.pass()))
        }
    }

    proptest! {
        /// The true rate lies within the stated uncertainty for any delays of the reads.
        #[test]
        fn the_true_rate_is_within_the_uncertainty(
            costs in prop::collection::vec(prop_oneof![9 => 5_u64..60, 1 => 1_000_u64..3_000_000], 1..400),
            hz in 1_000_000_u64..10_000_000_000,
            wait in 1_000_000_u64..100_000_000,
        ) {
            let time = SimulatedTime { costs, ..SimulatedTime::default() };
            let counter = SimulatedCounter { time: &time, ticks: hz, nanos: 1_000_000_000 };
            let reference = SimulatedCounter { time: &time, ticks: 1, nanos: 1 };
            let found = calibrate(&counter, &reference, || time.nanos.set(time.nanos.get() + wait));
            let Ok(found) = found else { return Ok(()) };
            let error = found.rate().drift_from(TickRate::from_hz(hz).unwrap()).abs();
            prop_assert!(error <= found.uncertainty(), "{error} > {}", found.uncertainty());
        }
    }

    #[test]
    fn ten_undisturbed_milliseconds_give_a_few_parts_per_million() {
        let time = SimulatedTime::default();
        let counter = SimulatedCounter {
            time: &time,
            ticks: 13,
            nanos: 5,
        };
        let reference = SimulatedCounter {
            time: &time,
            ticks: 1,
            nanos: 1,
        };
        let found = calibrate(&counter, &reference, || {
            time.nanos.set(time.nanos.get() + 10_000_000);
        })
        .unwrap();
        assert!((found.rate().hz() - 2.6e9).abs() / 2.6e9 < found.uncertainty());
        assert!(found.uncertainty() < 5e-6, "{}", found.uncertainty());
        // The duration includes half of the brackets at either end.
        let brackets = BRACKETS as i64 * 3 * 20;
        assert!((10_000_000..10_000_000 + 2 * brackets).contains(&found.duration().as_nanos()));
        let shown = found.model().unwrap().apply(found.end().before).as_nanos();
        assert!(
            (shown - found.end().reference.0 as i64).abs() <= 21,
            "{shown}"
        );
    }

    #[test]
    fn clocks_that_do_not_advance_are_rejected() {
        let time = SimulatedTime::default();
        let sound = SimulatedCounter {
            time: &time,
            ticks: 1,
            nanos: 1,
        };
        let still = BrokenClock(&time, |_| 7);
        let back = BrokenClock(&time, |now| u64::MAX - now);
        let wait = || time.nanos.set(time.nanos.get() + 1_000_000);
        assert!(matches!(
            calibrate(&still, &sound, wait),
            Err(CalibrationError::CounterStoodStill)
        ));
        assert!(matches!(
            calibrate(&sound, &still, wait),
            Err(CalibrationError::ReferenceStoodStill)
        ));
        assert!(matches!(
            calibrate(&back, &sound, wait),
            Err(CalibrationError::NoBracket)
        ));
        // A reference that steps back by the time of the wait.
        assert!(matches!(
            calibrate(&sound, &back, wait),
            Err(CalibrationError::ReferenceStoodStill)
        ));
    }
}
