//! A smooth map between two clocks through points where both are known.
//!
//! After a run, the sessions in which a clock was compared with the master are known from its start to its end, and a
//! line between two sessions would give every clock a kink at each. A natural cubic spline has none, but overshoots,
//! and a time that overshoots runs backwards. The *constrained* cubic spline (Kruger) gives up the second derivative
//! for that: it never leaves the box between two neighbouring points, so time stays in order.

use core::fmt;

use crate::{Domain, Timestamp};

/// A point of a [`ConstrainedSpline`]: what two clocks showed at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Knot<A: Domain, B: Domain> {
    /// What the corrected clock showed.
    pub at: Timestamp<A>,
    /// What the master showed.
    pub image: Timestamp<B>,
}

/// A smooth monotone map from the clock `A` to the clock `B`, through knots in a slice of the caller's.
///
/// Between knots it is a cubic with a continuous first derivative, beyond them a straight line. Through two knots it is
/// straight everywhere; a single knot is a constant offset. Knots are pairs of times, never offsets: a monotone
/// *offset* curve would still let time run backwards.
///
/// ```
/// use downbeat_clock_core::{ConstrainedSpline, Global, Knot, Local, Timestamp};
///
/// let knot = |at, image| Knot { at: Timestamp::<Local>::from_nanos(at), image: Timestamp::<Global>::from_nanos(image) };
/// let knots = [knot(0, 500), knot(1_000_000, 1_000_540), knot(2_000_000, 2_000_500)];
/// let spline = ConstrainedSpline::new(&knots)?;
///
/// assert_eq!(spline.apply(Timestamp::from_nanos(1_000_000)), Timestamp::from_nanos(1_000_540));
/// // A straight line would be 510 ns ahead here.
/// assert_eq!(spline.apply(Timestamp::from_nanos(250_000)), Timestamp::from_nanos(250_515));
/// # Ok::<(), downbeat_clock_core::SplineError>(())
/// ```
///
/// # Precision
/// The straight part is computed in integers and the deviation from it in `f64`, from exact integers: what is lost
/// before the result is rounded to the nearest nanosecond is about 1e-15 of the deviation. For a clock whose rate wanders
/// by one part per million and knots a day apart that is 1e-11 ns, wherever the origins of the clocks are.
///
/// # Order
/// The exact curve is strictly increasing. In whole nanoseconds, neighbouring timestamps can share an image wherever the
/// slope is below 1. If the slope of every chord is between 0.99 and 1.01, as those of clocks are, then within a year of
/// a knot no order is reversed, and timestamps at least 2 ns apart have different images.
#[derive(Clone, Copy, Debug)]
pub struct ConstrainedSpline<'a, A: Domain, B: Domain> {
    /// At least one, strictly increasing in both clocks.
    knots: &'a [Knot<A, B>],
}

/// Why knots have no [`ConstrainedSpline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplineError {
    /// There are none.
    NoKnots,
    /// The knot with this index, counted from 0, is not later than the one before on the clock that is corrected.
    AtNotIncreasing(usize),
    /// The knot with this index, counted from 0, is not later than the one before on the master's clock.
    ImageNotIncreasing(usize),
}

impl fmt::Display for SplineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKnots => f.write_str("a spline needs at least one knot"),
            Self::AtNotIncreasing(index) => write!(f, "knot {index} is not later than the one before"),
            Self::ImageNotIncreasing(index) => write!(f, "the image of knot {index} is not later than the one before"),
        }
    }
}

impl core::error::Error for SplineError {}

impl<'a, A: Domain, B: Domain> ConstrainedSpline<'a, A, B> {
    /// The spline through these knots.
    ///
    /// # Errors
    /// When there are no knots, or they are not strictly increasing on both clocks.
    pub fn new(knots: &'a [Knot<A, B>]) -> Result<Self, SplineError> {
        if knots.is_empty() {
            return Err(SplineError::NoKnots);
        }
        for (index, pair) in (1..).zip(knots.windows(2)) {
            if pair[1].at <= pair[0].at {
                return Err(SplineError::AtNotIncreasing(index));
            }
            if pair[1].image <= pair[0].image {
                return Err(SplineError::ImageNotIncreasing(index));
            }
        }
        Ok(Self { knots })
    }

    /// What `B` shows when `A` shows `at`, to the nearest nanosecond; saturates.
    pub fn apply(&self, at: Timestamp<A>) -> Timestamp<B> {
        let Some(Segment { start, end, chord, bends }) = self.segment(at) else {
            let only = self.knots[0];
            return shifted(only.image, i128::from(at.as_nanos()) - i128::from(only.at.as_nanos()), 0.0);
        };
        if at < start.at {
            let distance = gap(at, start.at);
            let (whole, fraction) = chord.rise(distance);
            return shifted(start.image, -whole, -(fraction + bends.0 * distance as f64));
        }
        if at > end.at {
            let distance = gap(end.at, at);
            let (whole, fraction) = chord.rise(distance);
            return shifted(end.image, whole, fraction + bends.1 * distance as f64);
        }
        let distance = gap(start.at, at);
        let (whole, fraction) = chord.rise(distance);
        let (p, q) = chord.shares(distance);
        // The cubic with the slopes `slope + bend` at the ends, less the chord: 0 at both ends.
        let deviation = distance as f64 * q * (bends.0 * q - bends.1 * p);
        // The exact curve stays in the box. So does the computed one, unless knots are centuries apart.
        shifted(start.image, whole, fraction + deviation).clamp(start.image, end.image)
    }

    /// Nanoseconds of `B` per nanosecond of `A`, at a time of `A`.
    pub fn slope_at(&self, at: Timestamp<A>) -> f64 {
        let Some(Segment { start, end, chord, bends }) = self.segment(at) else { return 1.0 };
        let (p, q) = chord.shares(gap(start.at, at.clamp(start.at, end.at)));
        chord.slope() + bends.0 * q * (q - 2.0 * p) + bends.1 * p * (p - 2.0 * q)
    }

    /// The segment that holds `at`, or the one next to it; none if there is but one knot.
    fn segment(&self, at: Timestamp<A>) -> Option<Segment<A, B>> {
        let last = self.knots.len().checked_sub(2)?;
        let index = self.knots.partition_point(|knot| knot.at <= at).saturating_sub(1).min(last);
        let chord = |index: usize| Some(Chord::between(self.knots.get(index)?, self.knots.get(index + 1)?));
        let (start, end) = (self.knots[index], self.knots[index + 1]);
        let this = Chord::between(&start, &end);
        let before = index.checked_sub(1).and_then(chord).map(|neighbour| this.bend_towards(neighbour));
        let after = chord(index + 1).map(|neighbour| this.bend_towards(neighbour));
        // At an end of the spline the slope is 3/2 of the chord's less 1/2 of that at the next knot.
        let bends = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (Some(before), None) => (before, before / -2.0),
            (None, Some(after)) => (after / -2.0, after),
            (None, None) => (0.0, 0.0),
        };
        Some(Segment { start, end, chord: this, bends })
    }
}

/// A stretch between two knots.
#[derive(Clone, Copy, Debug)]
struct Segment<A: Domain, B: Domain> {
    start: Knot<A, B>,
    end: Knot<A, B>,
    chord: Chord,
    /// Slope of the spline minus that of the chord, at the start and at the end.
    bends: (f64, f64),
}

/// The straight line between two knots; neither side is 0.
#[derive(Clone, Copy, Debug)]
struct Chord {
    dx: u64,
    dy: u64,
}

impl Chord {
    fn between<A: Domain, B: Domain>(start: &Knot<A, B>, end: &Knot<A, B>) -> Self {
        Self { dx: gap(start.at, end.at), dy: gap(start.image, end.image) }
    }

    fn slope(self) -> f64 {
        self.dy as f64 / self.dx as f64
    }

    /// By how much the chord rises over a distance: whole nanoseconds, exact unless they saturate, and the fraction.
    fn rise(self, distance: u64) -> (i128, f64) {
        let (dx, product) = (u128::from(self.dx), u128::from(self.dy) * u128::from(distance));
        (i128::try_from(product / dx).unwrap_or(i128::MAX), (product % dx) as f64 / dx as f64)
    }

    /// A distance from the start and what is left to the end, as shares of the chord.
    fn shares(self, distance: u64) -> (f64, f64) {
        let dx = self.dx as f64;
        (distance as f64 / dx, (self.dx - distance) as f64 / dx)
    }

    /// Slope of the spline, at the knot shared with a neighbour, minus slope of this chord.
    ///
    /// The spline's slope there is the harmonic mean of the two chords' (the method's other case, 0 where their signs
    /// differ, cannot arise: all knots increase). So the difference is `s * (n - s) / (n + s)`, and `n - s` is taken
    /// from exact products: slopes of clocks agree in their first digits, and those would be lost.
    fn bend_towards(self, neighbour: Self) -> f64 {
        let theirs = u128::from(neighbour.dy) * u128::from(self.dx);
        let ours = u128::from(self.dy) * u128::from(neighbour.dx);
        let difference = if theirs < ours { -((ours - theirs) as f64) } else { (theirs - ours) as f64 };
        self.slope() * difference / (theirs as f64 + ours as f64)
    }
}

/// The distance between two points, `from` being the earlier.
fn gap<D: Domain>(from: Timestamp<D>, to: Timestamp<D>) -> u64 {
    to.as_nanos().abs_diff(from.as_nanos())
}

/// `from` plus whole nanoseconds plus a number of them that is rounded to nearest; saturates.
fn shifted<D: Domain>(from: Timestamp<D>, whole: i128, rest: f64) -> Timestamp<D> {
    let wide = whole.saturating_add(from.as_nanos().into()).saturating_add(libm::round(rest) as i128);
    Timestamp::from_nanos(wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}
