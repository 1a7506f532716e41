//! A clock with a known error, for tests.

mod spec;

use core::f64::consts::TAU;
use core::fmt;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, Duration, Local, ModelError, ReadOrdering, TickRate, Ticks,
    Timestamp,
};

pub use spec::SkewSpec;

/// True time: the domain of the clock that a [`SkewedClock`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Truth;

impl Domain for Truth {
    const NAME: &'static str = "truth";
}

/// The error of a clock: the sum of all parts.
///
/// All times are counted from the origin of [`Truth`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skew {
    /// Constant deviation.
    pub offset: Duration,
    /// Constant drift: `1e-6` is one part per million.
    pub drift: f64,
    /// Periodic deviation, like that of a clock whose temperature rises and falls.
    pub swing: Option<SkewSwing>,
    /// Random walk of the drift.
    pub wander: Option<SkewWander>,
    /// A single step.
    pub step: Option<SkewStep>,
}

/// A sinusoidal deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkewSwing {
    /// Largest deviation.
    pub amplitude: Duration,
    /// Length of a period.
    pub period: Duration,
}

/// A random walk of the drift: constant over each interval, then changed by a normally distributed amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkewWander {
    /// Standard deviation of the drift after one second; it grows with the square root of time.
    pub drift_per_sqrt_second: f64,
    /// Time between changes of the drift.
    pub interval: Duration,
    /// Length of the walk; afterwards the drift is constant.
    pub lasting: Duration,
    /// Seed of the random numbers; equal seeds give equal walks.
    pub seed: u64,
}

/// A step of the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkewStep {
    /// True time of the step.
    pub after: Duration,
    /// Size of the step.
    pub by: Duration,
}

/// Reason why a [`Skew`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkewError {
    /// A drift is not a number, or so negative that the clock would run backwards.
    Drift,
    /// The period of a swing is not positive.
    Period,
    /// The clock has no model.
    Model(ModelError),
    /// A wander's interval is not positive, its length is negative, or it has more than 10 million intervals.
    Wander,
}

impl fmt::Display for SkewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drift => "a drift must be a finite number above -1",
            Self::Period => "the period of a swing must be positive",
            Self::Model(why) => return why.fmt(f),
            Self::Wander => "a wander needs a positive interval and at most 10 million of them",
        })
    }
}

impl core::error::Error for SkewError {}

/// A clock with the error of a [`Skew`], to test synchronizations against the known true error.
///
/// [`deviation`](Self::deviation) is the true error. Ticks are nanoseconds and start at [`Self::ZERO`], so that a clock that
/// is behind has no negative ones.
///
/// ```
/// use downbeat_clock_core::{Clock, ClockModel, Duration, TickRate, Timestamp};
/// use downbeat_timers::skew::{Skew, SkewedClock};
/// use downbeat_timers::{SystemClock, SystemClockId};
///
/// let raw = SystemClock::detect(SystemClockId::MonotonicRaw)?;
/// let truth = ClockModel::through(raw.ticks(), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// let skew = Skew { offset: Duration::from_millis(3), drift: 50e-6, ..Skew::default() };
/// let clock = SkewedClock::new(raw, truth, skew)?;
///
/// let after_a_second = Timestamp::from_nanos(1_000_000_000);
/// assert_eq!(clock.deviation(after_a_second), Duration::from_nanos(3_050_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SkewedClock<C> {
    clock: C,
    truth: ClockModel<Counter, Truth>,
    skew: Skew,
    walk: SkewWalk,
}

impl<C: Clock> SkewedClock<C> {
    /// Reading of a clock without skew at the origin of [`Truth`].
    pub const ZERO: Ticks = Ticks(1 << 60);

    /// Length of a tick by this clock.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Adds the error `skew` to `clock`, which shows true time by the model `truth`.
    ///
    /// # Errors
    /// If a parameter of the skew is invalid.
    pub fn new(clock: C, truth: ClockModel<Counter, Truth>, skew: Skew) -> Result<Self, SkewError> {
        if !(skew.drift.is_finite() && skew.drift > -1.0) {
            return Err(SkewError::Drift);
        }
        if skew
            .swing
            .is_some_and(|swing| swing.period <= Duration::ZERO)
        {
            return Err(SkewError::Period);
        }
        let walk = skew
            .wander
            .map_or(Ok(SkewWalk::default()), |wander| SkewWalk::new(&wander))?;
        Ok(Self {
            clock,
            truth,
            skew,
            walk,
        })
    }

    /// The clock underneath.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The model of true time for the clock underneath.
    pub fn truth(&self) -> &ClockModel<Counter, Truth> {
        &self.truth
    }

    /// The error of this clock.
    pub fn skew(&self) -> &Skew {
        &self.skew
    }

    /// Error of this clock at a true time: this clock minus a true one.
    pub fn deviation(&self, at: Timestamp<Truth>) -> Duration {
        let elapsed = at.as_nanos() as f64;
        let swing = self.skew.swing.map_or(0.0, |swing| {
            swing.amplitude.as_nanos() as f64
                * (TAU * elapsed / swing.period.as_nanos() as f64).sin()
        });
        let smooth = self.skew.drift * elapsed + swing + self.walk.deviation(elapsed);
        let jump = self
            .skew
            .step
            .filter(|step| at - Timestamp::ORIGIN >= step.after)
            .map_or(Duration::ZERO, |s| s.by);
        // Every parameter is finite, so the sum is a number.
        self.skew.offset + jump + Duration::from_nanos_f64(smooth).unwrap_or_default()
    }

    /// Reading of this clock at a true time.
    pub fn ticks_at(&self, at: Timestamp<Truth>) -> Ticks {
        let shown = (at + self.deviation(at)).as_nanos();
        Ticks(Self::ZERO.0.saturating_add_signed(shown))
    }

    /// The current true time.
    pub fn true_now(&self) -> Timestamp<Truth> {
        self.truth.apply(self.clock.ticks())
    }

    /// The local time of a process that reads this clock and does not know its error.
    ///
    /// # Errors
    /// Never fails: the constants of this type are in range.
    pub fn nominal_model() -> Result<ClockModel<Counter, Local>, ModelError> {
        ClockModel::through(Self::ZERO, Timestamp::ORIGIN, Self::RATE)
    }
}

impl<C: Clock> Clock for SkewedClock<C> {
    #[inline]
    fn ticks(&self) -> Ticks {
        self.ticks_at(self.truth.apply(self.clock.ticks()))
    }

    fn ordering(&self) -> ReadOrdering {
        self.clock.ordering()
    }

    fn grain(&self) -> u64 {
        // The errors change it by less than the nanosecond of the rounding.
        let grain = self.truth.rate().duration(self.clock.grain());
        grain.as_nanos() as u64 + 1
    }

    #[inline]
    fn open(&self) -> Ticks {
        self.ticks_at(self.truth.apply(self.clock.open()))
    }

    #[inline]
    fn close(&self) -> Ticks {
        self.ticks_at(self.truth.apply(self.clock.close()))
    }
}

/// A random walk of the drift, computed in advance so that any time can be looked up.
#[derive(Clone, Debug, Default)]
struct SkewWalk {
    interval: f64,
    steps: Vec<DriftInterval>,
}

/// An interval of constant drift.
#[derive(Clone, Copy, Debug)]
struct DriftInterval {
    /// Deviation at the start, in nanoseconds.
    deviation: f64,
    drift: f64,
}

impl SkewWalk {
    const MAX_INTERVALS: i64 = 10_000_000;

    fn new(wander: &SkewWander) -> Result<Self, SkewError> {
        let (interval, lasting) = (wander.interval.as_nanos(), wander.lasting.as_nanos());
        if interval <= 0 || lasting < 0 || lasting / interval > Self::MAX_INTERVALS {
            return Err(SkewError::Wander);
        }
        if !wander.drift_per_sqrt_second.is_finite() {
            return Err(SkewError::Drift);
        }
        let interval = interval as f64;
        let change = wander.drift_per_sqrt_second * (interval / 1e9).sqrt();
        let mut random = fastrand::Rng::with_seed(wander.seed);
        let mut next = DriftInterval {
            deviation: 0.0,
            drift: 0.0,
        };
        let steps = (0..=lasting / wander.interval.as_nanos())
            .map(|_| {
                next.drift += change * normal(&mut random);
                let step = next;
                next.deviation += step.drift * interval;
                step
            })
            .collect();
        Ok(Self { interval, steps })
    }

    fn deviation(&self, elapsed: f64) -> f64 {
        let last = self.steps.len().saturating_sub(1);
        // The cast saturates: there is no deviation before the start, and after the end the last interval continues.
        let i = ((elapsed / self.interval) as usize).min(last);
        match self.steps.get(i) {
            Some(step) if elapsed > 0.0 => {
                step.deviation + step.drift * (elapsed - i as f64 * self.interval)
            }
            _ => 0.0,
        }
    }
}

/// A normally distributed number (Box and Muller).
fn normal(random: &mut fastrand::Rng) -> f64 {
    // 1 - u lies in (0, 1]: the logarithm is finite.
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use proptest::prelude::*;

    /// A clock that is set by the test.
    #[derive(Debug)]
    struct SetClock(Cell<u64>);

    impl Clock for SetClock {
        fn ticks(&self) -> Ticks {
            Ticks(self.0.get())
        }
    }

    fn skewed(skew: Skew) -> SkewedClock<SetClock> {
        let truth =
            ClockModel::through(Ticks(500), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
        SkewedClock::new(SetClock(Cell::new(500)), truth, skew).unwrap()
    }

    fn at(nanos: i64) -> Timestamp<Truth> {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn every_part_of_a_skew_has_its_deviation() {
        let second = 1_000_000_000;
        let drift = skewed(Skew {
            offset: Duration::from_nanos(-7),
            drift: 2e-6,
            ..Skew::default()
        });
        assert_eq!(drift.deviation(at(second)), Duration::from_nanos(1_993));

        let swing = SkewSwing {
            amplitude: Duration::from_nanos(100),
            period: Duration::from_secs(4),
        };
        let swing = skewed(Skew {
            swing: Some(swing),
            ..Skew::default()
        });
        assert_eq!(
            [0, 1, 2, 3].map(|s| swing.deviation(at(s * second)).as_nanos()),
            [0, 100, 0, -100]
        );

        let step = SkewStep {
            after: Duration::from_secs(1),
            by: Duration::from_micros(5),
        };
        let step = skewed(Skew {
            step: Some(step),
            ..Skew::default()
        });
        assert_eq!(step.deviation(at(second - 1)), Duration::ZERO);
        assert_eq!(step.deviation(at(second)), Duration::from_micros(5));
    }

    #[test]
    fn a_reading_is_true_time_plus_the_deviation() {
        let clock = skewed(Skew {
            offset: Duration::from_nanos(-600),
            drift: 1e-3,
            ..Skew::default()
        });
        clock.clock.0.set(1_000_500);
        assert_eq!(clock.true_now(), at(1_000_000));
        let shown = SkewedClock::<SetClock>::nominal_model()
            .unwrap()
            .apply(clock.ticks());
        assert_eq!(shown.as_nanos(), 1_000_000 - 600 + 1_000);
        assert_eq!(
            (clock.open(), clock.close()),
            (clock.ticks(), clock.ticks())
        );
    }

    #[test]
    fn a_walk_is_continuous_and_repeatable_with_the_given_deviation() {
        let wander = |seed| SkewWander {
            drift_per_sqrt_second: 1e-6,
            interval: Duration::from_millis(10),
            lasting: Duration::from_secs(1),
            seed,
        };
        let clock = |seed| {
            skewed(Skew {
                wander: Some(wander(seed)),
                ..Skew::default()
            })
        };
        assert_eq!(
            clock(1).deviation(at(700_000_000)),
            clock(1).deviation(at(700_000_000))
        );
        assert_ne!(
            clock(1).deviation(at(700_000_000)),
            clock(2).deviation(at(700_000_000))
        );
        for i in 1..=101 {
            let change = i * 10_000_000;
            let jump = clock(3).deviation(at(change)) - clock(3).deviation(at(change - 1));
            assert!(jump.abs().as_nanos() <= 1, "{jump} at {change}");
        }
        // The drift after a second has the given standard deviation: 1,000 walks estimate it to 7 % (3 sigma).
        let drifts = (0..1_000).map(|seed| SkewWalk::new(&wander(seed)).unwrap().steps[100].drift);
        let deviation = (drifts.map(|drift| drift * drift).sum::<f64>() / 1_000.0).sqrt();
        assert!((deviation / 1e-6 - 1.0).abs() < 0.07, "{deviation}");
    }

    #[test]
    fn invalid_skews_are_rejected() {
        let truth = ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
        let error = |skew| SkewedClock::new(SetClock(Cell::new(0)), truth, skew).unwrap_err();
        assert_eq!(
            error(Skew {
                drift: f64::NAN,
                ..Skew::default()
            }),
            SkewError::Drift
        );
        assert_eq!(
            error(Skew {
                drift: -1.0,
                ..Skew::default()
            }),
            SkewError::Drift
        );
        let swing = SkewSwing {
            amplitude: Duration::MAX,
            period: Duration::ZERO,
        };
        assert_eq!(
            error(Skew {
                swing: Some(swing),
                ..Skew::default()
            }),
            SkewError::Period
        );
        let wander = SkewWander {
            drift_per_sqrt_second: 1e-9,
            interval: Duration::from_nanos(1),
            lasting: Duration::from_secs(1),
            seed: 0,
        };
        assert_eq!(
            error(Skew {
                wander: Some(wander),
                ..Skew::default()
            }),
            SkewError::Wander
        );
    }

    proptest! {
        #[test]
        fn any_time_has_a_reading(nanos: i64, drift in -0.9..1e3, offset: i64) {
            let wander = SkewWander {
                drift_per_sqrt_second: 1e-6,
                interval: Duration::from_millis(1),
                lasting: Duration::from_secs(1),
                seed: 1,
            };
            let offset = Duration::from_nanos(offset);
            let clock = skewed(Skew { offset, drift, wander: Some(wander), ..Skew::default() });
            let _ = clock.ticks_at(at(nanos));
        }
    }
}
