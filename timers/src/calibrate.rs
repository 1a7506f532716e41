//! Finding out how fast a counter counts.

use core::fmt;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Local, ModelError, TickRate, Ticks, Timestamp,
};

/// A reading of a reference clock between two of a counter: at some instant between `before` and `after` the reference
/// showed `reference`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The counter before the reference was read.
    pub before: Ticks,
    /// The reference clock, in nanoseconds.
    pub reference: Ticks,
    /// The counter after the reference was read.
    pub after: Ticks,
}

impl Bracket {
    /// The mean of the narrower half of [`BRACKETS`] brackets.
    ///
    /// The wider half were taken while caches were cold or something interrupted. Of the others no single one is best:
    /// processors count in steps of up to ten nanoseconds, and on the step it depends which bracket looks narrowest.
    /// Their mean is a bracket as certain as they are, because both clocks run evenly meanwhile.
    ///
    /// `None` when the counter ran backwards in all of them.
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

    /// `None` without brackets.
    fn mean(brackets: &[Self]) -> Option<Self> {
        let count = u128::try_from(brackets.len())
            .ok()
            .filter(|count| *count > 0)?;
        // Rounded outwards, so that the bracket stays certain. A mean is no larger than the largest: the casts are exact.
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

    /// How many ticks the instant is uncertain by.
    pub fn width(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }

    /// The counter half-way: the best guess of what it showed when the reference was read.
    pub fn middle(&self) -> Ticks {
        self.before.saturating_add(self.width() / 2)
    }
}

/// How fast a counter counts, and how far that can be wrong.
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

/// Brackets at either end of a calibration: enough for half of them to be undisturbed on a busy machine. They take some
/// ten microseconds.
pub const BRACKETS: usize = 200;

/// Compares a counter with a reference clock that counts nanoseconds, before and after `wait`.
///
/// The longer the wait, the smaller the [uncertainty](Calibration::uncertainty): 10 ms give some parts per million.
///
/// # Errors
/// When either clock did not advance.
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

/// As [`calibrate`], sleeping for `duration`.
///
/// ```
/// use downbeat_timers::{Duration, SystemClock, SystemClockId, TscClock, calibrate_during};
///
/// if let Ok(tsc) = TscClock::detect() {
///     let raw = SystemClock::detect(SystemClockId::MonotonicRaw)?;
///     let calibration = calibrate_during(&tsc, &raw, Duration::from_millis(10))?;
///     println!("{:.0} Hz, certain to {:.1} ppm", calibration.rate().hz(), calibration.uncertainty() * 1e6);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When either clock did not advance; a duration of zero or less leads there.
#[cfg(feature = "std")]
pub fn calibrate_during(
    counter: &impl Clock,
    reference: &crate::SystemClock,
    duration: Duration,
) -> Result<Calibration, CalibrationError> {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or_default();
    calibrate(counter, reference, || {
        std::thread::sleep(core::time::Duration::from_nanos(nanos))
    })
}

impl Calibration {
    /// The rate between two brackets.
    ///
    /// # Errors
    /// When either clock did not advance from the one to the other.
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

    /// The rate of the counter, by the reference clock.
    pub fn rate(&self) -> TickRate {
        self.rate
    }

    /// The largest error that the rate can have, as a fraction of it: `1e-6` is one part per million.
    ///
    /// This is a bound, not an estimate: it follows from the widths of the brackets and from the nanosecond to which
    /// the reference clock is rounded, and holds as long as the counter runs evenly.
    pub fn uncertainty(&self) -> f64 {
        // Half of each bracket, and one unit for the halves that were cut.
        let ticks = (self.start.width() + self.end.width()) as f64 / 2.0 + 1.0;
        let counted = self.end.middle().signed_since(self.start.middle()) as f64;
        let nanos = self.end.reference.signed_since(self.start.reference) as f64;
        // (nanos +- 2) / (counted +- ticks), compared with nanos / counted: either end is cut to a nanosecond by the
        // clock, and rounded to one here.
        (1.0 + 2.0 / nanos) / (1.0 - ticks / counted) - 1.0
    }

    /// How long the calibration took, by the reference clock.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end.reference.signed_since(self.start.reference))
    }

    /// The bracket that it began with.
    pub fn start(&self) -> Bracket {
        self.start
    }

    /// The bracket that it ended with.
    pub fn end(&self) -> Bracket {
        self.end
    }

    /// Local time as the reference clock shows it, carried on by the counter from the end of the calibration.
    ///
    /// # Errors
    /// When the counter's zero is more than 146 years from that of the reference clock.
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

    /// Time, advanced by whoever reads a clock of it.
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

    /// A counter of `ticks` per `nanos`.
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

    struct BrokenClock<'a>(&'a SimulatedTime, fn(u64) -> u64);

    impl Clock for BrokenClock<'_> {
        fn ticks(&self) -> Ticks {
            Ticks((self.1)(self.0.pass()))
        }
    }

    proptest! {
        /// Whatever delays hit the reads, the true rate lies within the stated uncertainty.
        #[test]
        fn the_truth_is_never_outside_the_stated_uncertainty(
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
    fn undisturbed_ten_milliseconds_give_some_parts_per_million() {
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
            time.nanos.set(time.nanos.get() + 10_000_000)
        })
        .unwrap();
        assert!((found.rate().hz() - 2.6e9).abs() / 2.6e9 < found.uncertainty());
        assert!(found.uncertainty() < 5e-6, "{}", found.uncertainty());
        // Half of the brackets at either end lie in between, too.
        let brackets = BRACKETS as i64 * 3 * 20;
        assert!((10_000_000..10_000_000 + 2 * brackets).contains(&found.duration().as_nanos()));
        let shown = found.model().unwrap().apply(found.end().before).as_nanos();
        assert!(
            (shown - found.end().reference.0 as i64).abs() <= 21,
            "{shown}"
        );
    }

    #[test]
    fn clocks_that_do_not_run_are_refused() {
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
