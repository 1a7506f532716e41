//! Calibration of a counter: measurement of its rate.

use core::fmt;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Local, ModelError, TickRate, Timestamp,
};

use crate::bracket::Bracket;
use crate::bracket::BracketSeries;

/// The rate of a counter with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "[Bracket; 2]", try_from = "[Bracket; 2]")
)]
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
    /// The brackets of one end contradict each other: the counter or the reference clock stepped, or the reference is too
    /// coarse.
    NoCommonBracket,
    /// The counter did not advance by more than its uncertainty.
    CounterStoodStill,
    /// The reference clock did not advance.
    ReferenceStoodStill,
    /// There is no clock to compare the counter with.
    Reference(crate::ClockUnavailable),
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
            Self::NoCommonBracket => f.write_str(
                "a clock stepped during the calibration, or the reference clock is too coarse: calibrate again",
            ),
            Self::CounterStoodStill => {
                f.write_str("the counter hardly advanced: calibrate for longer")
            }
            Self::ReferenceStoodStill => {
                f.write_str("the reference clock did not advance: calibrate for longer")
            }
            Self::Reference(why) => write!(f, "no reference clock: {why}"),
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

/// Largest distances of brackets in nanoseconds if they are to have a common one. Over these times the error of the rate is at
/// most half a nanosecond: first of that by the means, some parts per million; then of that by the first common brackets.
const NEAR: [u64; 2] = [100_000, 1_000_000];

/// Compares a counter with a reference clock that counts nanoseconds, before and after `wait`.
///
/// The longer the wait, the smaller the [uncertainty](Calibration::uncertainty): a quarter of a part per million for 10 ms.
///
/// # Errors
/// If either clock did not advance.
pub fn calibrate(
    counter: &impl Clock,
    reference: &impl Clock,
    wait: impl FnOnce(),
) -> Result<Calibration, CalibrationError> {
    let start = BracketSeries::measure(counter, reference);
    wait();
    let end = BracketSeries::measure(counter, reference);
    Calibration::between(&start, &end)
}

/// Repetitions of a calibration during which a clock stepped.
#[cfg(feature = "std")]
const RETRIES: u32 = 2;

/// The same as [`calibrate`], sleeping for `duration`; up to twice again if a clock steps
/// meanwhile.
///
/// ```
/// use downbeat_timers::calibration::calibrate_during;
/// use downbeat_timers::{Duration, SystemClock, SystemClockId, TscClock};
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
    let sleep = || std::thread::sleep(core::time::Duration::from_nanos(nanos));
    let mut calibrated = calibrate(counter, reference, sleep);
    for _ in 0..RETRIES {
        match calibrated {
            Err(CalibrationError::NoCommonBracket) => {
                calibrated = calibrate(counter, reference, sleep);
            }
            _ => break,
        }
    }
    calibrated
}

impl Calibration {
    /// Computes the rate from series of brackets at the start and at the end.
    ///
    /// # Errors
    /// If a clock did not advance from one to the other, or stepped.
    pub fn between(start: &BracketSeries, end: &BracketSeries) -> Result<Self, CalibrationError> {
        let mean = |series: &BracketSeries| series.mean().ok_or(CalibrationError::NoBracket);
        let mut found = Self::between_brackets(mean(start)?, mean(end)?)?;
        for near in NEAR {
            let common = |series: &BracketSeries| {
                series
                    .common(found.rate, near)
                    .ok_or(CalibrationError::NoCommonBracket)
            };
            found = Self::between_brackets(common(start)?, common(end)?)?;
        }
        // The uncertainty follows from the difference of the widths: the wider one grows by what steps add to both delays.
        let lag = start.excess_lag(found.rate).max(end.excess_lag(found.rate));
        let (start, end) = if found.start.width() > found.end.width() {
            (found.start.widened(lag), found.end)
        } else {
            (found.start, found.end.widened(lag))
        };
        Self::between_brackets(start, end)
    }

    pub(crate) fn between_brackets(start: Bracket, end: Bracket) -> Result<Self, CalibrationError> {
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
    /// Each bracket begins the shortest delay before the reference was read, and ends the shortest delay after it. Which part of
    /// its width is which cannot be measured, but does not matter as long as it is the same at both ends. So the limit follows
    /// from the difference of the widths, and from rounding. It holds if the rate of the counter is constant and the two
    /// delays, should they change, both grow or both shrink, as with the frequency of the processor;
    /// [`certain_uncertainty`](Self::certain_uncertainty) holds without that.
    pub fn uncertainty(&self) -> f64 {
        // At most half of the difference is the change of one delay.
        self.within(self.end.width().abs_diff(self.start.width()))
    }

    /// Upper limit of the relative error of the rate, whatever the delays before and after a reading of the reference were: it follows
    /// from the widths of both brackets. It holds if the rates of both clocks are constant.
    pub fn certain_uncertainty(&self) -> f64 {
        // From either middle to either end of its bracket, with the same roundings.
        let widths = self.start.width().saturating_add(self.end.width());
        self.within(widths.div_ceil(2))
    }

    /// Returns the largest relative error of the rate if the ticks that were counted are wrong by at most this, and by rounding.
    fn within(&self, ticks: u64) -> f64 {
        // Each end and middle of a bracket is rounded, and what truncation to ticks and to nanoseconds adds to the delays can differ by
        // one each.
        let ticks = ticks.saturating_add(3) as f64;
        let counted = self.end.middle().signed_since(self.start.middle()) as f64;
        let nanos = self.end.reference.signed_since(self.start.reference) as f64;
        // (nanos +- 1) / (counted +- ticks) relative to nanos / counted.
        (1.0 + 1.0 / nanos) / (1.0 - ticks / counted) - 1.0
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
    pub fn last_bracket(&self) -> Bracket {
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

/// Stored as the brackets, so that loading loses nothing.
#[cfg(feature = "serde")]
impl From<Calibration> for [Bracket; 2] {
    fn from(calibration: Calibration) -> Self {
        [calibration.start, calibration.end]
    }
}

#[cfg(feature = "serde")]
impl TryFrom<[Bracket; 2]> for Calibration {
    type Error = CalibrationError;
    fn try_from([start, end]: [Bracket; 2]) -> Result<Self, CalibrationError> {
        let is_reversed = |bracket: &Bracket| bracket.after < bracket.before;
        if [start, end].iter().any(is_reversed) {
            return Err(CalibrationError::NoBracket);
        }
        Self::between_brackets(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bracket::BRACKETS;
    use core::cell::Cell;
    use downbeat_clock_core::Ticks;
    use proptest::prelude::*;

    /// Simulated time, which every read of a clock advances.
    #[derive(Default)]
    struct SimulatedTime {
        nanos: Cell<u64>,
        costs: Vec<u64>,
        reads: Cell<usize>,
        /// Number of a read that takes half a millisecond longer.
        interrupted_at: usize,
        /// Slowness of the processor: 0 is normal, 1 doubles the costs.
        slowness: Cell<u64>,
    }

    impl SimulatedTime {
        fn pass(&self) -> u64 {
            let cost = self
                .costs
                .get(self.reads.get() % self.costs.len().max(1))
                .copied()
                .unwrap_or(20);
            self.reads.set(self.reads.get() + 1);
            let interruption = u64::from(self.reads.get() == self.interrupted_at) * 500_000;
            let cost = cost * (1 + self.slowness.get()) + interruption;
            self.nanos.set(self.nanos.get() + cost);
            self.nanos.get()
        }

        /// Returns a counter of a number of ticks in a number of nanoseconds.
        fn counter(&self, ticks: u64, nanos: u64) -> SimulatedCounter<'_> {
            SimulatedCounter {
                time: self,
                ticks,
                nanos,
            }
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

    /// A clock of coarse steps.
    struct Coarse<K>(K, u64);

    impl<K: Clock> Clock for Coarse<K> {
        fn ticks(&self) -> Ticks {
            Ticks(self.0.ticks().0 / self.1 * self.1)
        }
        fn grain(&self) -> u64 {
            self.1
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
        /// The true rate lies within the stated uncertainty for any delays of the reads that both ends share, even if they
        /// all grow.
        #[test]
        fn the_true_rate_is_within_the_uncertainty(
            costs in prop::collection::vec(prop_oneof![9 => 5_u64..60, 1 => 60_u64..1_000], 1..400),
            interrupted_at in 0..3 * BRACKETS,
            hz in 1_000_000_u64..10_000_000_000,
            wait in 1_000_000_u64..100_000_000,
            slowness in 0_u64..3,
        ) {
            let time = SimulatedTime { costs, interrupted_at, ..SimulatedTime::default() };
            let counter = time.counter(hz, 1_000_000_000);
            let reference = time.counter(1, 1);
            let found = calibrate(&counter, &reference, || {
                time.nanos.set(time.nanos.get() + wait);
                time.reads.set(0);
                time.slowness.set(slowness);
            });
            let Ok(found) = found else { return Ok(()) };
            let error = found.rate().drift_from(TickRate::from_hz(hz).unwrap()).abs();
            prop_assert!(error <= found.uncertainty(), "{error} > {}", found.uncertainty());
        }
    }

    proptest! {
        /// Delays that change in any way between the ends.
        #[test]
        fn the_true_rate_is_certain_whatever_the_delays_are(
            costs in prop::collection::vec(5_u64..60, 3..4),
            later in prop::collection::vec(5_u64..60, 3..4),
            wait in 1_000_000_u64..100_000_000,
        ) {
            let mut time = SimulatedTime { costs, ..SimulatedTime::default() };
            let take = |time: &SimulatedTime| BracketSeries::measure(&time.counter(13, 5), &time.counter(1, 1));
            let start = take(&time);
            time.nanos.set(time.nanos.get() + wait);
            time.costs = later;
            time.reads.set(0);
            let found = Calibration::between(&start, &take(&time)).unwrap();
            let error = found.rate().drift_from(TickRate::from_ratio(5, 13).unwrap()).abs();
            prop_assert!(error <= found.certain_uncertainty(), "{error} > {}", found.certain_uncertainty());
        }
    }

    proptest! {
        /// As emulators and coarse references have them.
        #[test]
        fn the_bound_covers_steps_of_either_clock(
            costs in prop::collection::vec(5_u64..300, 1..400),
            counter_step in 1_u64..200,
            reference_step in 1_u64..200,
            wait in 1_000_000_u64..100_000_000,
        ) {
            let time = SimulatedTime { costs, ..SimulatedTime::default() };
            let clock = |ticks, nanos, step| Coarse(time.counter(ticks, nanos), step);
            let (counter, reference) = (clock(1, 16, counter_step), clock(1, 1, reference_step));
            let found = calibrate(&counter, &reference, || {
                time.nanos.set(time.nanos.get() + wait);
            });
            let Ok(found) = found else { return Ok(()) };
            let error = found.rate().drift_from(TickRate::from_ratio(16, 1).unwrap()).abs();
            prop_assert!(error <= found.uncertainty(), "{error} > {}", found.uncertainty());
        }
    }

    #[test]
    fn a_counter_with_coarser_steps_than_its_reference_is_calibrated() {
        let time = SimulatedTime::default();
        let counter = time.counter(1, 16);
        let reference = time.counter(1, 1);
        let found = calibrate(&Coarse(counter, 63), &reference, || {
            time.nanos.set(time.nanos.get() + 100_000_000);
        })
        .unwrap();
        assert!((found.rate().hz() - 62.5e6).abs() / 62.5e6 < found.uncertainty());
        assert!(found.uncertainty() < 50e-6, "{}", found.uncertainty());
    }

    #[test]
    fn ten_undisturbed_milliseconds_give_a_third_of_a_part_per_million() {
        let time = SimulatedTime::default();
        let counter = time.counter(13, 5);
        let reference = time.counter(1, 1);
        let found = calibrate(&counter, &reference, || {
            time.nanos.set(time.nanos.get() + 10_000_000);
        })
        .unwrap();
        assert!((found.rate().hz() - 2.6e9).abs() / 2.6e9 < found.uncertainty());
        assert!(found.uncertainty() < 0.4e-6, "{}", found.uncertainty());
        // The duration includes half of the brackets at either end.
        let brackets = BRACKETS as i64 * 3 * 20;
        assert!((10_000_000..10_000_000 + 2 * brackets).contains(&found.duration().as_nanos()));
        let shown = found
            .model()
            .unwrap()
            .apply(found.last_bracket().before)
            .as_nanos();
        assert!(
            (shown - found.last_bracket().reference.0 as i64).abs() <= 21,
            "{shown}"
        );
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_calibration_is_stored_as_its_brackets() {
        let bracket = |before, reference, after| Bracket {
            before: Ticks(before),
            reference: Ticks(reference),
            after: Ticks(after),
        };
        let found = Calibration::between_brackets(
            bracket(1_000, 500, 1_100),
            bracket(26_001_000, 10_000_500, 26_001_080),
        );
        let text = serde_json::to_string(&found.as_ref().unwrap()).unwrap();
        assert!(
            text.starts_with(r#"[{"before":1000,"reference":500,"#),
            "{text}"
        );
        let read: Calibration = serde_json::from_str(&text).unwrap();
        assert_eq!(read, found.unwrap());
        let same_twice = text.replace("26001000", "1000").replace("26001080", "1100");
        assert!(serde_json::from_str::<Calibration>(&same_twice).is_err());
    }

    #[test]
    fn clocks_that_do_not_advance_are_rejected() {
        let time = SimulatedTime::default();
        let sound = time.counter(1, 1);
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
