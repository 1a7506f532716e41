//! A smooth map between two clocks through points where both are known.
//!
//! After a run, the offsets of a clock from the master are known at several sessions. Straight lines between sessions
//! would have a kink at each. A natural cubic spline has none, but it overshoots, and time could run backwards. The
//! *constrained* cubic spline (Kruger) gives up the continuity of the second derivative instead: it never leaves the box
//! between two neighbouring points, so time stays in order.

use crate::{Domain, FitError, Timestamp};

/// A point of a [`ConstrainedSpline`]: the readings of two clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SplineKnot<A: Domain, B: Domain> {
    /// Time on the corrected clock.
    pub at: Timestamp<A>,
    /// Time on the master's clock.
    pub image: Timestamp<B>,
}

/// A smooth monotone map from the clock `A` to the clock `B` through knots in a slice of the caller.
///
/// Between knots it is a cubic with a continuous first derivative, beyond them a straight line. Two knots give a straight
/// line, a single knot a constant offset. Knots are pairs of times, not offsets: with a monotone curve of *offsets* time
/// could still run backwards.
///
/// ```
/// use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
/// use downbeat_clock_core::{Global, Local, Timestamp};
///
/// let knot = |at, image| SplineKnot { at: Timestamp::<Local>::from_nanos(at), image: Timestamp::<Global>::from_nanos(image) };
/// let knots = [knot(0, 500), knot(1_000_000, 1_000_540), knot(2_000_000, 2_000_500)];
/// let spline = ConstrainedSpline::new(&knots)?;
///
/// assert_eq!(spline.apply(Timestamp::from_nanos(1_000_000)), Timestamp::from_nanos(1_000_540));
/// // A straight line would be 510 ns ahead here.
/// assert_eq!(spline.apply(Timestamp::from_nanos(250_000)), Timestamp::from_nanos(250_515));
/// # Ok::<(), downbeat_clock_core::FitError>(())
/// ```
///
/// # Precision
/// The straight part is computed in integers, the deviation from it in `f64` from exact differences of chords. The error
/// before the result is rounded to the nearest nanosecond therefore does not depend on the origins of the clocks: it is
/// about 1e-15 of the change of rate at a knot times the distance from it. For a change of one part per million between
/// knots four hours apart, this is 1e-9 ns.
///
/// # Order
/// The exact curve is strictly increasing. In whole nanoseconds, neighbouring timestamps can share an image wherever the
/// slope is below 1. If the slope of every chord is between 0.99 and 1.01, as those of clocks are, then within a year of
/// a knot no order is reversed, and timestamps at least 2 ns apart have different images.
#[derive(Clone, Copy, Debug)]
pub struct ConstrainedSpline<'a, A: Domain, B: Domain> {
    /// At least one knot, strictly increasing on both clocks.
    knots: &'a [SplineKnot<A, B>],
}

impl<'a, A: Domain, B: Domain> ConstrainedSpline<'a, A, B> {
    /// The spline through these knots.
    ///
    /// # Errors
    /// If there are no knots, or they are not strictly increasing on both clocks.
    pub fn new(knots: &'a [SplineKnot<A, B>]) -> Result<Self, FitError> {
        if knots.is_empty() {
            return Err(FitError::NoKnots);
        }
        for (index, pair) in (1..).zip(knots.windows(2)) {
            if pair[1].at <= pair[0].at {
                return Err(FitError::AtNotIncreasing(index));
            }
            if pair[1].image <= pair[0].image {
                return Err(FitError::ImageNotIncreasing(index));
            }
        }
        Ok(Self { knots })
    }

    /// The time on `B` when `A` shows `at`, to the nearest nanosecond; saturates.
    pub fn apply(&self, at: Timestamp<A>) -> Timestamp<B> {
        self.piece_at(at).apply(at)
    }

    /// The piece of the spline for a time. Finding the piece once is faster if many successive times are on it.
    pub fn piece_at(&self, at: Timestamp<A>) -> SplinePiece<A, B> {
        SplinePiece {
            first: self.knots[0],
            segment: self.segment(at),
        }
    }

    /// Nanoseconds of `B` per nanosecond of `A`, at a time of `A`.
    pub fn slope_at(&self, at: Timestamp<A>) -> f64 {
        let Some(Segment {
            start,
            end,
            chord,
            bends,
        }) = self.segment(at)
        else {
            return 1.0;
        };
        let (p, q) = chord.shares(gap(start.at, at.clamp(start.at, end.at)));
        chord.slope() + bends.0 * q * (q - 2.0 * p) + bends.1 * p * (p - 2.0 * q)
    }

    /// The segment that contains `at`, or the nearest one; `None` for a single knot.
    fn segment(&self, at: Timestamp<A>) -> Option<Segment<A, B>> {
        let last = self.knots.len().checked_sub(2)?;
        let index = self
            .knots
            .partition_point(|knot| knot.at <= at)
            .saturating_sub(1)
            .min(last);
        let chord = |index: usize| {
            Some(Chord::between(
                self.knots.get(index)?,
                self.knots.get(index + 1)?,
            ))
        };
        let (start, end) = (self.knots[index], self.knots[index + 1]);
        let this = Chord::between(&start, &end);
        let before = index
            .checked_sub(1)
            .and_then(chord)
            .map(|neighbour| this.bend_towards(neighbour));
        let after = chord(index + 1).map(|neighbour| this.bend_towards(neighbour));
        // At an end of the spline the slope is 3/2 of the chord's minus 1/2 of that at the next knot.
        let bends = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (Some(before), None) => (before, before / -2.0),
            (None, Some(after)) => (after / -2.0, after),
            (None, None) => (0.0, 0.0),
        };
        Some(Segment {
            start,
            end,
            chord: this,
            bends,
        })
    }
}

/// The part of a [`ConstrainedSpline`] between two knots, extended beyond the outermost knots.
///
/// ```
/// use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
/// use downbeat_clock_core::{Global, Local, Timestamp};
///
/// let knot = |at, image| SplineKnot { at: Timestamp::<Local>::from_nanos(at), image: Timestamp::<Global>::from_nanos(image) };
/// let knots = [knot(0, 500), knot(1_000_000, 1_000_540), knot(2_000_000, 2_000_500)];
/// let spline = ConstrainedSpline::new(&knots)?;
/// let mut piece = spline.piece_at(Timestamp::ORIGIN);
/// for at in (0..2_000_000).step_by(1_000).map(Timestamp::from_nanos) {
///     if !piece.holds(at) {
///         piece = spline.piece_at(at);
///     }
///     assert_eq!(piece.apply(at), spline.apply(at));
/// }
/// # Ok::<(), downbeat_clock_core::FitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SplinePiece<A: Domain, B: Domain> {
    /// The first knot; used only if there is no segment.
    first: SplineKnot<A, B>,
    segment: Option<Segment<A, B>>,
}

impl<A: Domain, B: Domain> SplinePiece<A, B> {
    /// True if the time is between the two knots, so that this piece is the right one. Always false beyond the outermost
    /// knots, unless the spline has a single knot.
    #[inline]
    pub fn holds(&self, at: Timestamp<A>) -> bool {
        self.segment
            .is_none_or(|segment| segment.start.at <= at && at < segment.end.at)
    }

    /// The time on `B` when `A` shows `at`, to the nearest nanosecond; saturates.
    pub fn apply(&self, at: Timestamp<A>) -> Timestamp<B> {
        self.unrounded(at).rounded()
    }

    /// The value that [`apply`](Self::apply) rounds.
    pub(crate) fn unrounded(&self, at: Timestamp<A>) -> UnroundedImage {
        let Some(Segment {
            start,
            end,
            chord,
            bends,
        }) = self.segment
        else {
            let whole = i128::from(at.as_nanos()) - i128::from(self.first.at.as_nanos());
            return UnroundedImage {
                from: self.first.image.as_nanos(),
                whole,
                rest: 0.0,
                low: i64::MIN,
                high: i64::MAX,
            };
        };
        let (low, high) = (start.image.as_nanos(), end.image.as_nanos());
        if at < start.at {
            let distance = gap(at, start.at);
            let (whole, fraction) = chord.rise(distance);
            let rest = -(fraction + bends.0 * distance as f64);
            return UnroundedImage {
                from: low,
                whole: -whole,
                rest,
                low: i64::MIN,
                high: low,
            };
        }
        if at > end.at {
            let distance = gap(end.at, at);
            let (whole, fraction) = chord.rise(distance);
            let rest = fraction + bends.1 * distance as f64;
            return UnroundedImage {
                from: high,
                whole,
                rest,
                low: high,
                high: i64::MAX,
            };
        }
        let distance = gap(start.at, at);
        let (whole, fraction) = chord.rise(distance);
        let (p, q) = chord.shares(distance);
        // The cubic with the slopes `slope + bend` at the ends minus the chord: 0 at both ends.
        let deviation = distance as f64 * q * (bends.0 * q - bends.1 * p);
        UnroundedImage {
            from: low,
            whole,
            rest: fraction + deviation,
            low,
            high,
        }
    }
}

/// The part of a spline between two knots.
#[derive(Clone, Copy, Debug)]
struct Segment<A: Domain, B: Domain> {
    start: SplineKnot<A, B>,
    end: SplineKnot<A, B>,
    chord: Chord,
    /// Slope of the spline minus slope of the chord, at the start and at the end.
    bends: (f64, f64),
}

/// The straight line between two knots; neither difference is 0.
#[derive(Clone, Copy, Debug)]
struct Chord {
    dx: u64,
    dy: u64,
}

impl Chord {
    fn between<A: Domain, B: Domain>(start: &SplineKnot<A, B>, end: &SplineKnot<A, B>) -> Self {
        Self {
            dx: gap(start.at, end.at),
            dy: gap(start.image, end.image),
        }
    }

    fn slope(self) -> f64 {
        self.dy as f64 / self.dx as f64
    }

    /// Rise of the chord over a distance: whole nanoseconds, exact unless they saturate, and the fraction.
    fn rise(self, distance: u64) -> (i128, f64) {
        let (dx, product) = (
            u128::from(self.dx),
            u128::from(self.dy) * u128::from(distance),
        );
        (
            i128::try_from(product / dx).unwrap_or(i128::MAX),
            (product % dx) as f64 / dx as f64,
        )
    }

    /// The distances from the start and to the end, as fractions of the chord's length.
    fn shares(self, distance: u64) -> (f64, f64) {
        let dx = self.dx as f64;
        (distance as f64 / dx, (self.dx - distance) as f64 / dx)
    }

    /// Slope of the spline, at the knot shared with a neighbour, minus slope of this chord.
    ///
    /// The spline's slope there is the harmonic mean of the slopes of the two chords (the method's other case, 0 if their
    /// signs differ, cannot occur: all knots increase). The difference is `s * (n - s) / (n + s)`. `n - s` is computed
    /// from exact products, because slopes of clocks agree in their leading digits, which would cancel.
    fn bend_towards(self, neighbour: Self) -> f64 {
        let theirs = u128::from(neighbour.dy) * u128::from(self.dx);
        let ours = u128::from(self.dy) * u128::from(neighbour.dx);
        let difference = if theirs < ours {
            -((ours - theirs) as f64)
        } else {
            (theirs - ours) as f64
        };
        self.slope() * difference / (theirs as f64 + ours as f64)
    }
}

/// Nanoseconds between two times, of which `from` is the earlier.
fn gap<D: Domain>(from: Timestamp<D>, to: Timestamp<D>) -> u64 {
    to.as_nanos().abs_diff(from.as_nanos())
}

/// An image before it is rounded: `from + whole + rest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnroundedImage {
    pub(crate) from: i64,
    pub(crate) whole: i128,
    pub(crate) rest: f64,
    /// Image of the knot before, a lower limit of the exact curve.
    low: i64,
    /// Image of the knot after, an upper limit of the exact curve.
    high: i64,
}

impl UnroundedImage {
    fn rounded<B: Domain>(self) -> Timestamp<B> {
        let wide = self
            .whole
            .saturating_add(self.from.into())
            .saturating_add(libm::round(self.rest) as i128);
        // Between knots that are centuries apart, the error of the rest can exceed a nanosecond.
        Timestamp::from_nanos(wide.clamp(self.low.into(), self.high.into()) as i64)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{Duration, Global, Local};
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slopes_on_both_sides_of_a_knot_are_equal(steps in vec((1_i64..1 << 50, 1_i64..1 << 50), 2..8)) {
            let mut knots = std::vec![SplineKnot::<Local, Global> { at: Timestamp::ORIGIN, image: Timestamp::ORIGIN }];
            for (run, rise) in steps {
                let SplineKnot { at, image } = knots[knots.len() - 1];
                let (run, rise) = (Duration::from_nanos(run), Duration::from_nanos(rise));
                knots.push(SplineKnot { at: at + run, image: image + rise });
            }
            let spline = ConstrainedSpline::new(&knots).unwrap();
            let segment = |at| spline.segment(at).unwrap();
            for SplineKnot { at, .. } in &knots[1..knots.len() - 1] {
                let (left, right) = (segment(*at - Duration::from_nanos(1)), segment(*at));
                prop_assert_eq!(left.end, right.start);
                let slopes = [left.chord.slope() + left.bends.1, right.chord.slope() + right.bends.0];
                // Each is a sum of numbers as large as its chord's slope.
                let chords = left.chord.slope().max(right.chord.slope());
                prop_assert!((slopes[0] - slopes[1]).abs() <= 4.0 * f64::EPSILON * chords, "{slopes:?}");
            }
        }
    }
}
