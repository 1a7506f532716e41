//! A distant counter as a function of the own clock, by readings that each were taken between two times: bounds that hold for
//! certain, and a line within them.

use super::LeastSquares;
use crate::{
    ClockModel, Counter, Domain, Duration, ErrorBound, FitError, ModelError, TickRate, Ticks,
    Timestamp,
};

/// A reading of a distant counter between two times of the clock `D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<D: Domain> {
    /// Time at which the counter certainly did not show more than `ticks`.
    pub before: Timestamp<D>,
    /// The counter.
    pub ticks: Ticks,
    /// Time at which the counter certainly did not show less.
    pub after: Timestamp<D>,
}

/// Declared limits of the rate of a distant counter, relative to the own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimits {
    /// Largest deviation from the nominal rate: `1e-4` is 100 parts per million.
    pub drift: f64,
    /// Largest deviation from the mean rate over the sessions that an [`Envelope`] keeps.
    pub wander: f64,
}

impl Default for RateLimits {
    /// 500 parts per million, more than oscillators deviate, and 1 part per million around the mean.
    fn default() -> Self {
        Self {
            drift: 500e-6,
            wander: 1e-6,
        }
    }
}

/// Number of sessions that an [`Envelope`] keeps.
const KEPT: usize = 32;

/// The lines that sessions of readings leave possible between a distant counter and the own clock.
///
/// A session is a burst of readings. Of each session two are kept, those that limit the counter most from below and from above;
/// together with the declared limits of its rate, the newest 32 sessions bound its time and its rate. Nothing is allocated.
///
/// ```
/// use downbeat_clock_core::fit::{Envelope, RateLimits, Reading};
/// use downbeat_clock_core::{Local, TickRate, Ticks, Timestamp};
///
/// let reading = |before, ticks, after| Reading::<Local> {
///     before: Timestamp::from_nanos(before),
///     ticks: Ticks(ticks),
///     after: Timestamp::from_nanos(after),
/// };
/// // A counter of 1 MHz that runs 10 ppm slow, read in 2 to 8 us.
/// let limits = RateLimits { drift: 1e-4, wander: 1e-9 };
/// let mut envelope = Envelope::new(TickRate::from_hz(1_000_000)?, limits);
/// envelope.push(&[reading(4_997_000, 7_000, 5_005_000), reading(5_999_000, 8_000, 6_001_000)])?;
/// envelope.push(&[reading(1_006_009_000, 1_008_000, 1_006_011_000)])?;
/// let line = envelope.line()?;
/// assert!((line.drift - 10e-6).abs() < 0.1e-6, "{line:?}");
/// assert_eq!(line.bound.at, Timestamp::from_nanos(1_006_010_000));
/// // The last reading alone says 1 us, and the rate is certain to 2 us per second.
/// assert!(line.bound.half_width().as_nanos() <= 1_002, "{line:?}");
/// assert!(line.bound.drift < 2.01e-6, "{line:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Envelope<D: Domain> {
    rate: TickRate,
    limits: RateLimits,
    /// The oldest first.
    sessions: [Session<D>; KEPT],
    kept: usize,
}

/// The two readings of a session that limit the counter most: from below, and from above.
type Session<D> = [(Ticks, Timestamp<D>); 2];

/// The line through an [`Envelope`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnvelopeLine<D: Domain> {
    /// The counter at the end of the newest session.
    pub ticks: Ticks,
    /// Bound of the line's error. Its time `at` is that of the line at `ticks`.
    pub bound: ErrorBound<D>,
    /// Time that passes per time of the counter at its nominal rate, minus 1: positive if the counter is slow.
    pub drift: f64,
    /// Smallest and largest mean drift that the readings leave possible.
    pub drift_limits: [f64; 2],
    /// Nominal rate of the counter.
    pub rate: TickRate,
}

impl<D: Domain> EnvelopeLine<D> {
    /// The model that converts readings of the counter to times of the own clock.
    ///
    /// # Errors
    /// If the counter started more than 146 years before or after the own clock.
    pub fn model(&self) -> Result<ClockModel<Counter, D>, ModelError> {
        ClockModel::through(self.ticks, self.bound.at, self.rate.with_drift(self.drift)?)
    }
}

impl<D: Domain> Envelope<D> {
    /// Creates an envelope without sessions, of a counter with this nominal rate.
    pub const fn new(rate: TickRate, limits: RateLimits) -> Self {
        Self {
            rate,
            limits,
            sessions: [[(Ticks(0), Timestamp::ORIGIN); 2]; KEPT],
            kept: 0,
        }
    }

    /// Number of sessions that are kept.
    pub fn sessions(&self) -> usize {
        self.kept
    }

    /// Adds a session, which follows all others.
    ///
    /// # Errors
    /// If it has no readings, which changes nothing. If the readings contradict each other or earlier sessions: the counter or
    /// the own clock stepped, or their rates differ by more than was declared. Then the envelope begins again without sessions.
    pub fn push(&mut self, session: &[Reading<D>]) -> Result<(), FitError> {
        let last = session.last().ok_or(FitError::NoExchanges)?;
        let excess = |reading| {
            self.point(reading, (last.ticks, last.after), last.ticks)
                .excess
        };
        let lower = |one: &Reading<D>| (one.ticks, one.before);
        let upper = |one: &Reading<D>| (one.ticks, one.after);
        let mut kept = [lower(last), upper(last)];
        for one in session {
            if excess(lower(one)) > excess(kept[0]) {
                kept[0] = lower(one);
            }
            if excess(upper(one)) < excess(kept[1]) {
                kept[1] = upper(one);
            }
        }
        if self.kept == KEPT {
            self.sessions.rotate_left(1);
            self.kept -= 1;
        }
        self.sessions[self.kept] = kept;
        self.kept += 1;
        let checked = self.seen_from(kept[1].0).map(|_| ());
        if checked.is_err() {
            self.kept = 0;
        }
        checked
    }

    /// Earliest and latest time at which the counter showed `ticks`, rounded outward.
    ///
    /// # Errors
    /// If there are no sessions, or the rate changed by more than was declared.
    pub fn around(&self, ticks: Ticks) -> Result<[Timestamp<D>; 2], FitError> {
        let seen = self.seen_from(ticks)?;
        let [low, high] = seen.values(seen.slopes());
        let nominal = self.nanos(ticks, seen.newest.0);
        Ok([
            seen.newest.1 - outward(-(nominal + low)),
            seen.newest.1 + outward(nominal + high),
        ])
    }

    /// The line through the middles of the sessions by least squares, within what the readings leave possible.
    ///
    /// # Errors
    /// If there are no sessions.
    pub fn line(&self) -> Result<EnvelopeLine<D>, FitError> {
        let newest = self.newest()?;
        let seen = self.seen_from(newest.0)?;
        let drift_limits = seen.slopes();
        let [low, high] = seen.values(drift_limits);
        let mut fit = LeastSquares::new();
        for [lower, upper] in seen.limits() {
            let width = (upper.excess - lower.excess).abs().max(1.0);
            let since = f64::midpoint(lower.since, upper.since);
            let middle = f64::midpoint(lower.excess, upper.excess);
            fit.push_weighted(since, middle, 1.0 / (width * width))?;
        }
        let [least, most] = drift_limits;
        let (value, drift) = match fit.line() {
            Ok(line) => (line.value_at(0.0), line.slope().clamp(least, most)),
            // A single session.
            Err(_) => (f64::midpoint(low, high), f64::midpoint(least, most)),
        };
        let value = libm::round(value.clamp(low, high));
        let steepest = (most - drift).max(drift - least) + self.limits.wander;
        Ok(EnvelopeLine {
            ticks: newest.0,
            bound: ErrorBound {
                at: newest.1 + Duration::from_nanos(value as i64),
                ahead: outward(value - low),
                behind: outward(high - value),
                // The bound counts the time that the line shows, which is itself off by a drift.
                drift: steepest * (1.0 + 2.0 * self.limits.drift),
            },
            drift,
            drift_limits,
            rate: self.rate,
        })
    }

    /// The reading that limits the newest session from above.
    fn newest(&self) -> Result<(Ticks, Timestamp<D>), FitError> {
        let newest = self.sessions[..self.kept].last();
        Ok(newest.ok_or(FitError::NoExchanges)?[1])
    }

    /// Time between two readings at the nominal rate.
    fn nanos(&self, ticks: Ticks, since: Ticks) -> f64 {
        ticks.signed_since(since) as f64 * self.rate.nanos_per_tick()
    }

    fn point(
        &self,
        (ticks, time): (Ticks, Timestamp<D>),
        newest: (Ticks, Timestamp<D>),
        seen_from: Ticks,
    ) -> Point {
        Point {
            since: self.nanos(ticks, seen_from),
            excess: (time - newest.1).as_nanos() as f64 - self.nanos(ticks, newest.0),
        }
    }

    /// The limits of all sessions, as wide as the wander makes them when the counter shows `ticks`.
    fn seen_from(&self, ticks: Ticks) -> Result<Seen<D>, FitError> {
        let newest = self.newest()?;
        let limit = |reading, side: f64| {
            let Point { since, excess } = self.point(reading, newest, ticks);
            let room = self.limits.wander * since.abs() + ROUNDING;
            Point {
                since,
                excess: excess + side * room,
            }
        };
        let mut seen = Seen {
            newest,
            all: [[Point::default(); 2]; KEPT],
            kept: self.kept,
            steepest: self.limits.drift,
        };
        for (seen, [lower, upper]) in seen.all.iter_mut().zip(self.sessions) {
            *seen = [limit(lower, -1.0), limit(upper, 1.0)];
        }
        let room = seen.room();
        if room < 0.0 {
            return Err(FitError::Stepped {
                by: outward(-room),
                between: None,
            });
        }
        Ok(seen)
    }
}

/// Nanoseconds that the rounding of large numbers can cost.
const ROUNDING: f64 = 1.0;

/// A limit of the line, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// Time of the counter since the one from which the limits are seen.
    since: f64,
    /// Time that passed since the newest reading, minus that of the counter.
    excess: f64,
}

/// Limits from below and above for lines `value + slope * since`.
struct Seen<D: Domain> {
    newest: (Ticks, Timestamp<D>),
    all: [[Point; 2]; KEPT],
    kept: usize,
    /// Largest slope, of either sign.
    steepest: f64,
}

impl<D: Domain> Seen<D> {
    fn limits(&self) -> &[[Point; 2]] {
        &self.all[..self.kept]
    }

    /// The largest value of lines with this slope, and how it changes with the slope.
    fn highest(&self, slope: f64) -> (f64, f64) {
        let values = self.limits().iter();
        let values = values.map(|[_, upper]| (upper.excess - slope * upper.since, -upper.since));
        values
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or_default()
    }

    /// The smallest value of lines with this slope, and how it changes with the slope.
    fn lowest(&self, slope: f64) -> (f64, f64) {
        let values = self.limits().iter();
        let values = values.map(|[lower, _]| (lower.excess - slope * lower.since, -lower.since));
        values
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or_default()
    }

    /// The most that a line keeps from all limits; negative if there is none between them.
    fn room(&self) -> f64 {
        let room = |slope| {
            let ((highest, rising), (lowest, falling)) = (self.highest(slope), self.lowest(slope));
            (highest - lowest, rising - falling)
        };
        largest(room, [-self.steepest, self.steepest])
    }

    /// The smallest and the largest slope of a line.
    fn slopes(&self) -> [f64; 2] {
        let [mut least, mut most] = [-self.steepest, self.steepest];
        for [lower, _] in self.limits() {
            for [_, upper] in self.limits() {
                let apart = upper.since - lower.since;
                let slope = (upper.excess - lower.excess) / apart;
                if apart > 0.0 {
                    most = most.min(slope);
                } else if apart < 0.0 {
                    least = least.max(slope);
                }
            }
        }
        // Where one slope is left, rounding can exchange the two.
        [least.min(most), most.max(least)]
    }

    /// The smallest and the largest value of a line with a slope between these.
    fn values(&self, slopes: [f64; 2]) -> [f64; 2] {
        let negated = |slope| {
            let (value, change) = self.lowest(slope);
            (-value, -change)
        };
        let [low, high] = [
            -largest(negated, slopes),
            largest(|slope| self.highest(slope), slopes),
        ];
        [low.min(high), high.max(low)]
    }
}

/// Steps of [`largest`]; each excludes a piece of the function, of which there are at most twice as many as sessions.
const STEPS: usize = 4 * KEPT;

/// The largest value of a concave function of straight pieces between two places, and never less. The function returns its value
/// and its slope.
fn largest(function: impl Fn(f64) -> (f64, f64), [mut left, mut right]: [f64; 2]) -> f64 {
    let (mut at_left, mut at_right) = (function(left), function(right));
    if at_left.1 <= 0.0 || left >= right {
        return at_left.0;
    }
    if at_right.1 >= 0.0 {
        return at_right.0;
    }
    // The function lies below its tangents, which meet at the peak.
    let mut peak = f64::INFINITY;
    for _ in 0..STEPS {
        let drop = at_right.0 - at_left.0 - at_right.1 * (right - left);
        let place = left + drop / (at_left.1 - at_right.1);
        peak = at_left.0 + at_left.1 * (place - left);
        if !(left < place && place < right) {
            break;
        }
        let there = function(place);
        if peak - there.0 <= 1e-3 {
            break;
        }
        if there.1 > 0.0 {
            (left, at_left) = (place, there);
        } else {
            (right, at_right) = (place, there);
        }
    }
    peak
}

/// Rounds up to whole nanoseconds; saturates.
fn outward(nanos: f64) -> Duration {
    Duration::from_nanos(libm::ceil(nanos) as i64)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::Local;

    const WANDER: f64 = 2e-6;
    const DRIFT: f64 = 1e-4;
    const FIRST: u64 = 1 << 40;

    /// A counter of 100 MHz whose rate changes between sessions: own time by counter.
    struct Truth {
        /// Counter at which each piece begins, own time then, own time per tick.
        pieces: Vec<(u64, f64, f64)>,
    }

    impl Truth {
        fn new(mean: f64, wanders: &[f64], every: u64) -> Self {
            let mut pieces = Vec::new();
            let (mut ticks, mut time) = (FIRST, 5e9);
            for wander in wanders {
                let rate = 10.0 * (1.0 + mean + wander);
                pieces.push((ticks, time, rate));
                time += rate * every as f64;
                ticks += every;
            }
            Self { pieces }
        }

        fn time(&self, ticks: u64) -> f64 {
            let after = self.pieces.partition_point(|piece| piece.0 <= ticks);
            let (begin, time, rate) = self.pieces[after.max(1) - 1];
            time + rate * (ticks as f64 - begin as f64)
        }

        fn reading(&self, ticks: u64, [there, back]: [f64; 2]) -> Reading<Local> {
            let time = self.time(ticks);
            let stamp = |nanos: f64| Timestamp::from_nanos(nanos as i64);
            Reading {
                before: stamp((time - there).floor()),
                ticks: Ticks(ticks),
                after: stamp((time + back).ceil()),
            }
        }
    }

    fn envelope() -> Envelope<Local> {
        let limits = RateLimits {
            drift: DRIFT,
            wander: WANDER,
        };
        Envelope::new(TickRate::from_hz(100_000_000).unwrap(), limits)
    }

    fn latency() -> impl Strategy<Value = [f64; 2]> {
        let one = prop_oneof![0.0..100.0, 500.0..5_000.0, 0.0..1e6];
        [one.clone(), one]
    }

    fn wander() -> impl Strategy<Value = f64> {
        prop_oneof![-WANDER..WANDER, Just(WANDER), Just(-WANDER)]
    }

    proptest! {
        #[test]
        fn the_truth_lies_within_all_bounds(
            mean in -0.9 * DRIFT..0.9 * DRIFT,
            wanders in vec(wander(), 45),
            latencies in vec(vec(latency(), 1..6), 45),
            every in 1_000_000_u64..1_000_000_000,
            asked in vec(0.0..1.0, 8),
        ) {
            let truth = Truth::new(mean, &wanders, every);
            let mut envelope = envelope();
            for (piece, session) in latencies.iter().enumerate().take(40) {
                let begin = truth.pieces[piece].0;
                let readings: Vec<_> = session
                    .iter()
                    .zip(0..)
                    .map(|(latency, i)| truth.reading(begin + i * 1_000, *latency))
                    .collect();
                envelope.push(&readings).unwrap();
                let line = envelope.line().unwrap();
                let model = line.model().unwrap();
                // From the first session that is kept to three periods after the last.
                let kept = truth.pieces[piece + 1 - envelope.sessions()].0;
                for ask in &asked {
                    let ticks = kept + (*ask * (begin + 3 * every - kept) as f64) as u64;
                    let time = Timestamp::from_nanos(truth.time(ticks).round() as i64);
                    let [early, late] = envelope.around(Ticks(ticks)).unwrap();
                    prop_assert!(early <= time && time <= late, "{early:?} {time:?} {late:?}");
                    if ticks >= line.ticks.0 {
                        let shown = model.apply(Ticks(ticks));
                        // The truth and the model are each rounded.
                        let [early, late] = line.bound.around(shown);
                        let rounded = Duration::from_nanos(1);
                        prop_assert!(early - rounded <= time && time <= late + rounded, "{line:?}");
                    }
                }
                prop_assert!(line.drift_limits[0] <= mean + 1e-9 && mean - 1e-9 <= line.drift_limits[1]);
            }
        }

        #[test]
        fn bounds_are_those_of_all_lines(
            latencies in vec(latency(), 2..12),
            mean in -DRIFT..DRIFT,
            ask in -2.0..3.0,
        ) {
            let truth = Truth::new(mean, &[0.0], 1);
            let mut envelope = envelope();
            let every = 10_000_000;
            for (latency, i) in latencies.iter().zip(0..) {
                envelope.push(&[truth.reading(FIRST + i * every, *latency)]).unwrap();
            }
            let ticks = FIRST as f64 + ask * every as f64 * latencies.len() as f64;
            let seen = envelope.seen_from(Ticks(ticks as u64)).unwrap();
            // The extremes lie where two limits meet, of readings or of the drift.
            let mut extremes = [f64::INFINITY, f64::NEG_INFINITY];
            let points: Vec<Point> = seen.limits().iter().flatten().copied().collect();
            let mut slopes = std::vec![-DRIFT, DRIFT];
            for (i, a) in points.iter().enumerate() {
                let others = points[..i].iter().filter(|b| a.since != b.since);
                slopes.extend(others.map(|b| (a.excess - b.excess) / (a.since - b.since)));
            }
            for slope in slopes.into_iter().filter(|slope| slope.abs() <= DRIFT) {
                let (low, high) = (seen.lowest(slope).0, seen.highest(slope).0);
                if low <= high + 1e-6 {
                    extremes = [extremes[0].min(low), extremes[1].max(high)];
                }
            }
            let [low, high] = seen.values(seen.slopes());
            prop_assert!((low - extremes[0]).abs() < 0.1, "{low} {extremes:?}");
            prop_assert!((high - extremes[1]).abs() < 0.1, "{high} {extremes:?}");
        }
    }

    #[test]
    fn a_step_is_an_error_after_which_the_envelope_begins_again() {
        let truth = Truth::new(5e-5, &[0.0], 1);
        let mut envelope = envelope();
        assert_eq!(envelope.push(&[]), Err(FitError::NoExchanges));
        assert!(envelope.line().is_err() && envelope.around(Ticks(1)).is_err());
        for second in 0..40 {
            let ticks = FIRST + second * 100_000_000;
            envelope
                .push(&[truth.reading(ticks, [500.0, 700.0])])
                .unwrap();
        }
        assert_eq!(envelope.sessions(), KEPT);
        // The counter jumps by 500 us, more than the wander of 42 s explains.
        let mut stepped = truth.reading(FIRST + 50 * 100_000_000, [500.0, 700.0]);
        stepped.ticks.0 += 50_000;
        let why = envelope.push(&[stepped]).unwrap_err();
        let FitError::Stepped { by, .. } = why else {
            panic!("{why}")
        };
        assert!(
            by > Duration::ZERO && by < Duration::from_micros(500),
            "{by}"
        );
        assert_eq!(envelope.sessions(), 0);
        envelope.push(&[stepped]).unwrap();
        assert_eq!(envelope.line().unwrap().drift, 0.0);
        // A counter that begins again.
        let reset = Reading {
            ticks: Ticks(5),
            ..truth.reading(FIRST + 60 * 100_000_000, [500.0, 700.0])
        };
        assert!(matches!(
            envelope.push(&[reset]),
            Err(FitError::Stepped { .. })
        ));
    }
}
