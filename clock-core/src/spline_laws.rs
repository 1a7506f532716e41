//! Properties of constrained splines, checked against the formulas of the method in exact rational arithmetic.

extern crate std;

use std::string::ToString;
use std::vec::Vec;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::spline::{ConstrainedSpline, SplineKnot};
use crate::{Duration, FitError, Global, Local, Timestamp};

type LocalKnot = SplineKnot<Local, Global>;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const YEAR: i64 = 366 * DAY;

fn knot(at: i64, image: i64) -> LocalKnot {
    SplineKnot {
        at: Timestamp::from_nanos(at),
        image: Timestamp::from_nanos(image),
    }
}

fn time(at: i64) -> Timestamp<Local> {
    Timestamp::from_nanos(at)
}

fn integer(value: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(value.into())
}

fn near(value: &BigRational) -> f64 {
    value.to_f64().unwrap()
}

/// The spline as defined by the method's author: a cubic `a + b x + c x^2 + d x^3` per segment, from the first and second
/// derivatives at its ends.
struct Textbook {
    points: Vec<(BigRational, BigRational)>,
    slopes: Vec<BigRational>,
}

impl Textbook {
    fn new(knots: &[LocalKnot]) -> Self {
        let points: Vec<_> = knots
            .iter()
            .map(|k| (integer(k.at.as_nanos()), integer(k.image.as_nanos())))
            .collect();
        let n = points.len() - 1;
        let run = |i: usize| &points[i].0 - &points[i - 1].0;
        let rise = |i: usize| &points[i].1 - &points[i - 1].1;
        let half = |value: BigRational| value / integer(2);
        let inner = |i: usize| integer(2) / (run(i + 1) / rise(i + 1) + run(i) / rise(i));
        let slopes = match n {
            0 => std::vec![BigRational::one()],
            1 => std::vec![rise(1) / run(1); 2],
            _ => {
                let first = half(integer(3) * rise(1) / run(1)) - half(inner(1));
                let last = half(integer(3) * rise(n) / run(n)) - half(inner(n - 1));
                [first]
                    .into_iter()
                    .chain((1..n).map(inner))
                    .chain([last])
                    .collect()
            }
        };
        Self { points, slopes }
    }

    /// Value and slope at `x`, and the sum of the distances that each of the two end slopes adds to the chord.
    fn at(&self, x: &BigRational) -> (BigRational, BigRational, BigRational) {
        let n = self.points.len() - 1;
        let line = |end: usize, slope: &BigRational| {
            &self.points[end].1 + slope * (x - &self.points[end].0)
        };
        let chord = |i: usize| {
            (&self.points[i].1 - &self.points[i - 1].1)
                / (&self.points[i].0 - &self.points[i - 1].0)
        };
        for (outside, end, next) in [
            (*x < self.points[0].0, 0, 1),
            (*x > self.points[n].0 || n == 0, n, n),
        ] {
            if outside {
                let bend = if n == 0 {
                    integer(0)
                } else {
                    &self.slopes[end] - chord(next)
                };
                let away = (bend * (x - &self.points[end].0)).abs();
                return (line(end, &self.slopes[end]), self.slopes[end].clone(), away);
            }
        }
        let i = (1..=n).find(|i| *x <= self.points[*i].0).unwrap();
        // Relative to the segment's start, otherwise exact fractions grow to thousands of digits.
        let (zero, y0) = &self.points[i - 1];
        let (x, x0, x1) = (&(x - zero), &integer(0), &(&self.points[i].0 - zero));
        let (f0, f1) = (&self.slopes[i - 1], &self.slopes[i]);
        let (run, rise) = (x1 - x0, &self.points[i].1 - y0);
        let [two, three, six] = [2, 3, 6].map(integer);
        let second0 = -&two * (f1 + &two * f0) / &run + &six * &rise / (&run * &run);
        let second1 = &two * (&two * f1 + f0) / &run - &six * &rise / (&run * &run);
        let d = (&second1 - &second0) / (&six * &run);
        let c = (x1 * &second0 - x0 * &second1) / (&two * &run);
        let b = (&rise - &c * (x1 * x1 - x0 * x0) - &d * (x1 * x1 * x1 - x0 * x0 * x0)) / &run;
        let a = y0 - &b * x0 - &c * x0 * x0 - &d * x0 * x0 * x0;
        let value = a + &b * x + &c * x * x + &d * x * x * x;
        let slope = b + two * c * x + three * d * x * x;
        let (p, q) = (x / &run, (&run - x) / &run);
        let away = &run * &p * &q * ((f0 - chord(i)).abs() * &q + (f1 - chord(i)).abs() * &p);
        (value, slope, away)
    }
}

/// Knots from a start and the steps between them.
fn knots_from_steps(
    start: (i64, i64),
    steps: impl IntoIterator<Item = (i64, i64)>,
) -> Vec<LocalKnot> {
    let mut knots = std::vec![knot(start.0, start.1)];
    for (run, rise) in steps {
        let last = knots[knots.len() - 1];
        knots.push(knot(last.at.as_nanos() + run, last.image.as_nanos() + rise));
    }
    knots
}

/// Knots of a clock with a drift of at most `drift`, any origins, and up to `longest` between knots.
fn clock(longest: i64, drift: f64) -> impl Strategy<Value = Vec<LocalKnot>> {
    let starts = prop_oneof![Just(1_700_000_000 * SECOND), -(1_i64 << 61)..1 << 61];
    let run = prop_oneof![1..200_i64, 1_000..SECOND, SECOND..longest];
    let step = (run, -drift..drift)
        .prop_map(|(run, drift)| (run, run + libm::trunc(run as f64 * drift) as i64));
    (starts, -(1_i64 << 61)..1 << 61, vec(step, 1..8))
        .prop_map(|(at, image, steps)| knots_from_steps((at, image), steps))
}

/// Arbitrary knots.
fn any_knots() -> impl Strategy<Value = Vec<LocalKnot>> {
    let times = || vec(prop_oneof![any::<i64>(), -50..50_i64], 1..12);
    (times(), times()).prop_map(|(mut at, mut image)| {
        for times in [&mut at, &mut image] {
            times.sort_unstable();
            times.dedup();
        }
        at.iter()
            .zip(&image)
            .map(|(at, image)| knot(*at, *image))
            .collect()
    })
}

/// A time between the knots, or up to `margin` before or after.
fn time_near_knots(knots: &[LocalKnot], share: f64, margin: i64) -> i64 {
    let (first, last) = (
        knots[0].at.as_nanos() - margin,
        knots[knots.len() - 1].at.as_nanos() + margin,
    );
    first + libm::trunc(share * (last - first) as f64) as i64
}

/// Error of the computed image before rounding, in nanoseconds.
fn unrounded_error(
    spline: &ConstrainedSpline<'_, Local, Global>,
    at: i64,
    truth: &BigRational,
) -> f64 {
    let image = spline.piece_at(time(at)).unrounded(time(at));
    near(
        &(integer(image.from)
            + integer(image.whole)
            + BigRational::from_float(image.rest).unwrap()
            - truth),
    )
    .abs()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_spline_is_that_of_the_textbook(knots in clock(2 * DAY, 500e-6), share in 0.0..1.0_f64, pick in any::<prop::sample::Index>()) {
        let (spline, textbook) = (ConstrainedSpline::new(&knots).unwrap(), Textbook::new(&knots));
        // From a day before to a day after the knots, and near a knot, where neighbouring cubics meet.
        let near_knot = knots[pick.index(knots.len())].at.as_nanos();
        for at in [time_near_knots(&knots, share, DAY), near_knot - 1, near_knot, near_knot + 1] {
            let (value, slope, away) = textbook.at(&integer(at));
            let error = unrounded_error(&spline, at, &value);
            prop_assert!(error <= PRECISION * near(&away) + FRACTION, "{error} ns for {away}");
            let error = near(&(integer(spline.apply(time(at)).as_nanos()) - value)).abs();
            prop_assert!(error <= 0.5 + 1e-6, "{error} ns");
            let error = (spline.slope_at(time(at)) - near(&slope)).abs();
            prop_assert!(error <= 4.0 * f64::EPSILON, "slope wrong by {error}");
        }
    }

    /// With arbitrary knots the precision is the same, and the result saturates at the range of a timestamp.
    #[test]
    fn arbitrary_knots_are_precise_and_saturate(knots in any_knots(), random: i64, share in 0.0..1.0_f64) {
        let (spline, textbook) = (ConstrainedSpline::new(&knots).unwrap(), Textbook::new(&knots));
        // Slopes scale with the steepest chord; that of a single knot is 1.
        let chord = |pair: &[LocalKnot]| pair[1].image.as_nanos().abs_diff(pair[0].image.as_nanos()) as f64
            / pair[1].at.as_nanos().abs_diff(pair[0].at.as_nanos()) as f64;
        let steepest = knots.windows(2).map(chord).fold(0.0, f64::max);
        let (first, last) = (knots[0].at.as_nanos(), knots[knots.len() - 1].at.as_nanos());
        let inside = first.saturating_add(libm::trunc(share * (last as f64 - first as f64)) as i64);
        for at in [random, inside, i64::MIN, i64::MAX] {
            let (value, slope, away) = textbook.at(&integer(at));
            let cut = value.clamp(integer(i64::MIN), integer(i64::MAX));
            let error = near(&(integer(spline.apply(time(at)).as_nanos()) - cut)).abs();
            let bound = PRECISION * near(&away) + FRACTION;
            prop_assert!(error <= 0.5 + bound, "{error} ns, {bound} for {away}");
            let error = (spline.slope_at(time(at)) - near(&slope)).abs();
            prop_assert!(error <= 4.0 * f64::EPSILON * steepest, "slope wrong by {error}");
        }
    }

    #[test]
    fn the_spline_passes_through_every_knot(knots in any_knots()) {
        let spline = ConstrainedSpline::new(&knots).unwrap();
        for knot in &knots {
            prop_assert_eq!(spline.apply(knot.at), knot.image);
        }
    }

    /// The spline never overshoots: between two knots it stays between their images, beyond the ends beyond theirs.
    #[test]
    fn the_spline_stays_in_the_box_of_its_knots(knots in any_knots(), at: i64) {
        let spline = ConstrainedSpline::new(&knots).unwrap();
        for at in knots.iter().map(|knot| knot.at.as_nanos().saturating_add(1)).chain([at]) {
            let image = spline.apply(time(at));
            let next = knots.partition_point(|knot| knot.at < time(at));
            prop_assert!(next == 0 || image >= knots[next - 1].image);
            prop_assert!(next == knots.len() || image <= knots[next].image);
        }
    }

    /// Under the documented condition: chords between 0.99 and 1.01, within a year of a knot.
    #[test]
    fn timestamps_two_nanoseconds_apart_have_different_images(
        knots in clock(YEAR, 0.01), share in 0.0..1.0_f64, pick in any::<prop::sample::Index>(), around in -5_i64..5,
    ) {
        let spline = ConstrainedSpline::new(&knots).unwrap();
        let near_knot = knots[pick.index(knots.len())].at.as_nanos() + around;
        for at in [time_near_knots(&knots, share, YEAR), near_knot] {
            let images = [0, 1, 2, 3].map(|later| spline.apply(time(at + later)));
            prop_assert!(images.is_sorted(), "{images:?}");
            prop_assert!(images[0] < images[2] && images[1] < images[3], "{images:?}");
        }
    }

    /// Clocks that run up to a thousand times too fast or too slow still run forwards.
    #[test]
    fn the_spline_is_monotone(
        start in -SECOND..SECOND, steps in vec((1..SECOND, 1..SECOND), 1..8), share in 0.0..1.0_f64, step in 1..SECOND,
    ) {
        prop_assume!(steps.iter().all(|(run, rise)| run / rise < 1_000 && rise / run < 1_000));
        let knots = knots_from_steps((start, -start), steps);
        let spline = ConstrainedSpline::new(&knots).unwrap();
        let at = time_near_knots(&knots, share, SECOND);
        prop_assert!(spline.slope_at(time(at)) > 0.0);
        for later in [1, step] {
            prop_assert!(spline.apply(time(at)) <= spline.apply(time(at + later)));
        }
    }

    /// Knots on a line give that line, without error before rounding.
    #[test]
    fn knots_on_a_line_give_the_line(
        start in -(1_i64 << 60)..1 << 60, image in -(1_i64 << 60)..1 << 60, run in 1..SECOND, rise in 1..SECOND,
        steps in vec(1..1_000_000_i64, 1..8), share in 0.0..1.0_f64,
    ) {
        let knots = knots_from_steps((start, image), steps.into_iter().map(|times| (times * run, times * rise)));
        let spline = ConstrainedSpline::new(&knots).unwrap();
        let at = time_near_knots(&knots, share, 1_000);
        let slope = BigRational::new(rise.into(), run.into());
        let value = integer(image) + &slope * integer(at - start);
        prop_assert!(unrounded_error(&spline, at, &value) <= f64::EPSILON);
        prop_assert_eq!(spline.slope_at(time(at)), near(&slope));
    }

    #[test]
    fn one_knot_is_an_offset(at: i64, image: i64, wanted: i64) {
        let knots = [knot(at, image)];
        let spline = ConstrainedSpline::new(&knots).unwrap();
        let exact = i128::from(image) + i128::from(wanted) - i128::from(at);
        let cut = exact.clamp(i64::MIN.into(), i64::MAX.into());
        prop_assert_eq!(i128::from(spline.apply(time(wanted)).as_nanos()), cut);
        prop_assert_eq!(spline.slope_at(time(wanted)), 1.0);
    }

    #[test]
    fn the_first_knot_out_of_order_is_named(
        mut knots in clock(DAY, 500e-6), pick in any::<prop::sample::Index>(), back in prop_oneof![Just(0_i64), 1..1_000_i64], same: bool,
    ) {
        let index = 1 + pick.index(knots.len() - 1);
        let back = Duration::from_nanos(back);
        let good = knots[index];
        knots[index].at = knots[index - 1].at - back;
        let error = ConstrainedSpline::new(&knots).unwrap_err();
        prop_assert_eq!(error, FitError::AtNotIncreasing(index));
        knots[index] = SplineKnot { image: knots[index - 1].image - back, ..if same { knots[index] } else { good } };
        let expected =
            if same { FitError::AtNotIncreasing(index) } else { FitError::ImageNotIncreasing(index) };
        prop_assert_eq!(ConstrainedSpline::new(&knots).unwrap_err(), expected);
    }
}

/// Relative error of the floating-point part: a few roundings.
const PRECISION: f64 = 2e-15;
/// Absolute error of the fraction of the integer part.
const FRACTION: f64 = 2.0 * f64::EPSILON;

/// Computed by hand from the definition of the method.
#[test]
fn slopes_and_values_match_a_computation_by_hand() {
    let knots = [knot(0, 0), knot(100, 200), knot(300, 300)];
    let spline = ConstrainedSpline::new(&knots).unwrap();
    // Chords of slope 2 and 1/2. At the knot between them 2 / (1/2 + 2) = 0.8; at the ends 3 - 0.4 and 0.75 - 0.4.
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-15, "{found}");
    close(spline.slope_at(time(100)), 0.8);
    close(spline.slope_at(time(0)), 2.6);
    close(spline.slope_at(time(-7)), 2.6);
    close(spline.slope_at(time(300)), 0.35);
    close(spline.slope_at(time(1_000)), 0.35);
    assert_eq!(spline.apply(time(-10)).as_nanos(), -26);
    assert_eq!(spline.apply(time(400)).as_nanos(), 335);
    // The chord, and run p q (0.6 q + 1.2 p); then run p q (0.3 q + 0.15 p).
    assert_eq!(spline.apply(time(40)).as_nanos(), 80 + 20, "20.16");
    assert_eq!(spline.apply(time(200)).as_nanos(), 250 + 11, "11.25");
}

/// The image exceeds the range of a timestamp by far.
#[test]
fn images_beyond_a_steep_end_saturate() {
    let knots = [
        knot(i64::MIN, i64::MIN),
        knot(i64::MIN + 1_000, i64::MIN + 1),
        knot(i64::MIN + 1_001, 1 << 62),
    ];
    let spline = ConstrainedSpline::new(&knots).unwrap();
    assert_eq!(spline.apply(time(i64::MAX)).as_nanos(), i64::MAX);
    let knots = [
        knot(i64::MAX - 1_001, -1 << 62),
        knot(i64::MAX - 1_000, i64::MAX - 1),
        knot(i64::MAX, i64::MAX),
    ];
    let spline = ConstrainedSpline::new(&knots).unwrap();
    assert_eq!(spline.apply(time(i64::MIN)).as_nanos(), i64::MIN);
}

#[test]
fn neighbouring_timestamps_of_a_slow_clock_can_share_an_image() {
    let knots = [knot(0, 0), knot(1_000, 999)];
    let spline = ConstrainedSpline::new(&knots).unwrap();
    let images: Vec<_> = (0..=1_000)
        .map(|at| spline.apply(time(at)).as_nanos())
        .collect();
    assert_eq!(
        images.windows(2).filter(|pair| pair[0] == pair[1]).count(),
        1
    );
}

#[test]
fn error_messages_name_the_fault() {
    let none: [LocalKnot; 0] = [];
    assert_eq!(
        ConstrainedSpline::new(&none).unwrap_err(),
        FitError::NoKnots
    );
    let message = |error: &dyn core::error::Error| error.to_string();
    assert_eq!(
        message(&FitError::NoKnots),
        "a spline needs at least one knot"
    );
    assert_eq!(
        message(&FitError::AtNotIncreasing(3)),
        "knot 3 is not later than the one before"
    );
    assert_eq!(
        message(&FitError::ImageNotIncreasing(3)),
        "the image of knot 3 is not later than the one before"
    );
}
