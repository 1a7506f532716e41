//! Properties of least squares, checked against exact rational arithmetic and other programs.

extern crate std;

use std::string::ToString;
use std::vec::Vec;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::fit::{FittedLine, LeastSquares, OffsetFit, OffsetLine};
use crate::offset::OffsetSample;
use crate::{ClockModel, Duration, FitError, Global, Local, ModelError, TickRate, Timestamp};

mod golden;

/// Half the distance between 1 and the next `f64`: the relative error of one operation.
const ROUNDING: f64 = f64::EPSILON / 2.0;

fn integer(value: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(value.into())
}

fn float(value: f64) -> BigRational {
    BigRational::from_float(value).unwrap()
}

fn near(value: &BigRational) -> f64 {
    value.to_f64().unwrap()
}

/// The textbook fit in exact fractions.
struct ExactFit {
    count: usize,
    first: (BigRational, BigRational),
    mean: (BigRational, BigRational),
    sxx: BigRational,
    sxy: BigRational,
    syy: BigRational,
}

impl ExactFit {
    fn fit(points: &[(BigRational, BigRational)]) -> Self {
        let count = integer(points.len());
        let sum = |part: &dyn Fn(&(BigRational, BigRational)) -> BigRational| {
            points.iter().map(part).sum::<BigRational>()
        };
        let mean = (
            sum(&|p| p.0.clone()) / &count,
            sum(&|p| p.1.clone()) / &count,
        );
        Self {
            sxx: sum(&|(x, _)| (x - &mean.0) * (x - &mean.0)),
            sxy: sum(&|(x, y)| (x - &mean.0) * (y - &mean.1)),
            syy: sum(&|(_, y)| (y - &mean.1) * (y - &mean.1)),
            count: points.len(),
            first: points[0].clone(),
            mean,
        }
    }

    fn slope(&self) -> BigRational {
        &self.sxy / &self.sxx
    }

    fn at(&self, x: &BigRational) -> BigRational {
        &self.mean.1 + self.slope() * (x - &self.mean.0)
    }

    fn residual_squares(&self) -> BigRational {
        &self.syy - &self.sxy * &self.sxy / &self.sxx
    }

    fn residual_variance(&self) -> BigRational {
        self.residual_squares() / integer(self.count - 2)
    }

    fn leverage(&self, x: &BigRational) -> BigRational {
        let distance = x - &self.mean.0;
        BigRational::new(1.into(), self.count.into()) + &distance * &distance / &self.sxx
    }
}

/// Arbitrary points: near the origin or as far from it as the Unix epoch, in a cloud or almost on a line, close together
/// or far apart, and often several with the same x.
fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let decimal =
        |low: i32, high: i32| (low..=high).prop_map(|exponent| libm::pow(10.0, exponent.into()));
    let origin = || prop_oneof![Just(0.0), Just(1.7e18), Just(-1e9), Just(12_345.678)];
    let spots = prop_oneof![
        vec((-1.0..1.0_f64, -1.0..1.0_f64), 2..60),
        vec(((0..4).prop_map(f64::from), -1.0..1.0_f64), 2..60),
        (2..60)
            .prop_flat_map(|n| vec(-1.0..1.0_f64, n as usize))
            .prop_map(|noise| (0..).map(f64::from).zip(noise).collect()),
    ];
    (
        origin(),
        origin(),
        decimal(-3, 12),
        decimal(-9, 3),
        decimal(-16, 1),
        spots,
    )
        .prop_map(|(x0, y0, scale, slope, noise, spots)| {
            let point = |(u, v): (f64, f64)| (x0 + scale * u, y0 + slope * scale * (u + noise * v));
            spots.into_iter().map(point).collect()
        })
}

/// Any number, including infinities and NaN.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        proptest::num::f64::ANY,
        -1e3..1e3_f64,
        Just(0.0),
        -1e-150..1e-150_f64
    ]
}

fn fitted(points: &[(f64, f64)]) -> LeastSquares {
    let mut fit = LeastSquares::new();
    points.iter().for_each(|(x, y)| fit.push(*x, *y).unwrap());
    fit
}

/// Error of each figure, in multiples of the rounding error of one operation times the scale of the figure's bound.
///
/// Every centred sum has `n` terms, each rounded a few times, and a mean that was itself rounded `n` times; so by the
/// inequality of Cauchy and Schwarz the errors of `sxx`, `sxy` and `syy` are about `n` roundings of `sxx`, of
/// `sqrt(sxx * syy)` and of `syy`. Hence the error of the slope is about `n` roundings of `sqrt(syy / sxx)`. The error of
/// a recursive residual is that of the slope times the distance: as a vector, about `n` roundings of `sqrt(syy)`, however
/// small the residuals are. The errors of figures at `x` grow with the distance from the mean, in units of the spread.
fn errors(line: &FittedLine, exact: &ExactFit, x: f64) -> Vec<(&'static str, f64)> {
    let count = exact.count as f64;
    let (spread_x, spread_y) = (libm::sqrt(near(&exact.sxx)), libm::sqrt(near(&exact.syy)));
    let off = |found: f64, exact: f64, scale: f64| {
        if found == exact {
            0.0
        } else {
            (found - exact).abs() / ROUNDING / scale
        }
    };
    let ratio = spread_y / spread_x;
    let mut errors = std::vec![(
        "slope",
        off(line.slope(), near(&exact.slope()), count * ratio)
    )];

    let far = |x: f64| 1.0 + near(&(float(x) - &exact.mean.0)).abs() / spread_x;
    let value = |name, found: f64, x: f64| {
        let truth = exact.at(&float(x));
        // An exact difference: that of two numbers near 1.7e18 can be small.
        let error = near(&(float(found) - &truth)).abs();
        let large = near(&exact.first.1).abs() + near(&truth).abs();
        (
            name,
            error / ROUNDING / (large + count * spread_y * far(x)).max(f64::MIN_POSITIVE),
        )
    };
    errors.push(value("value", line.value_at(x), x));
    errors.push(value("intercept", line.intercept(), 0.0));
    let (mean_x, mean_y) = line.mean();
    let large = near(&exact.mean.0).abs() + near(&exact.first.0).abs() + count * spread_x;
    errors.push((
        "mean x",
        near(&(float(mean_x) - &exact.mean.0)).abs() / ROUNDING / large,
    ));
    let large = near(&exact.mean.1).abs() + near(&exact.first.1).abs() + count * spread_y;
    errors.push((
        "mean y",
        near(&(float(mean_y) - &exact.mean.1)).abs() / ROUNDING / large.max(f64::MIN_POSITIVE),
    ));

    if let Some(found) = line.r_squared() {
        let unexplained = near(&(exact.residual_squares() / &exact.syy));
        let scale = 1.0 + count * libm::sqrt(unexplained) + count * count * ROUNDING;
        errors.push((
            "R squared",
            off(
                found,
                near(&(integer(1) - exact.residual_squares() / &exact.syy)),
                scale,
            ),
        ));
    }
    if exact.count > 2 {
        let variance = exact.residual_variance();
        let root = |square: BigRational| libm::sqrt(near(&square));
        let scale = count * spread_y / libm::sqrt(count - 2.0);
        let line_error = |x: f64| root(&variance * exact.leverage(&float(x)));
        let prediction_error = root(&variance * (integer(1) + exact.leverage(&float(x))));
        errors.extend([
            (
                "deviation",
                off(
                    line.residual_deviation().unwrap(),
                    root(variance.clone()),
                    scale,
                ),
            ),
            (
                "slope error",
                off(
                    line.slope_error().unwrap(),
                    root(&variance / &exact.sxx),
                    scale / spread_x,
                ),
            ),
            (
                "intercept error",
                off(
                    line.intercept_error().unwrap(),
                    line_error(0.0),
                    scale * far(0.0),
                ),
            ),
            (
                "line error",
                off(line.error_at(x).unwrap(), line_error(x), scale * far(x)),
            ),
            (
                "prediction error",
                off(
                    line.prediction_error_at(x).unwrap(),
                    prediction_error,
                    scale * far(x),
                ),
            ),
        ]);
    }
    errors
}

/// Upper limit of every figure of [`errors`]; the largest of 60,000 random fits was 1.6.
const BOUND: f64 = 4.0;

fn exact(points: &[(f64, f64)]) -> ExactFit {
    ExactFit::fit(
        &points
            .iter()
            .map(|(x, y)| (float(*x), float(*y)))
            .collect::<Vec<_>>(),
    )
}

/// A point of weight `k` equals `k` points at the same place, except in the number of points.
#[test]
fn a_weight_equals_repeated_points() {
    let points = [
        (0.0, 5.0, 3),
        (1.0, 2.0, 1),
        (4.0, 9.5, 7),
        (5.0, 9.0, 2),
        (9.0, -3.0, 4),
    ];
    let (mut weighted, mut repeated) = (LeastSquares::new(), LeastSquares::new());
    for (x, y, times) in points {
        weighted.push_weighted(x, y, f64::from(times)).unwrap();
        (0..times).for_each(|_| repeated.push(x, y).unwrap());
    }
    let (weighted, repeated) = (weighted.line().unwrap(), repeated.line().unwrap());
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * b.abs(), "{a}, not {b}");
    close(weighted.slope(), repeated.slope());
    close(weighted.value_at(7.0), repeated.value_at(7.0));
    close(weighted.r_squared().unwrap(), repeated.r_squared().unwrap());
    // The sums of squared residuals are equal; 5 points have 3 degrees of freedom, 17 have 15.
    let squares = |line: FittedLine, weight: f64, freedom: f64| {
        line.residual_deviation().unwrap().powi(2) * weight * freedom
    };
    close(
        squares(weighted, 17.0 / 5.0, 3.0),
        squares(repeated, 1.0, 15.0),
    );
    // Errors scale with the square root of the variance of weight 1.
    let scale = (15.0_f64 / 3.0).sqrt();
    close(
        weighted.slope_error().unwrap(),
        scale * repeated.slope_error().unwrap(),
    );
    close(
        weighted.error_at(20.0).unwrap(),
        scale * repeated.error_at(20.0).unwrap(),
    );
}

#[test]
fn only_ratios_of_weights_matter_and_invalid_weights_are_rejected() {
    let fit = |scale: f64| {
        let mut fit = LeastSquares::new();
        for (x, y, weight) in [
            (0.0, 1.0, 1.0),
            (2.0, 2.0, 0.25),
            (3.0, 7.0, 4.0),
            (7.0, 3.0, 2.0),
        ] {
            fit.push_weighted(x, y, weight * scale).unwrap();
        }
        fit.line().unwrap()
    };
    let (one, other) = (fit(1.0), fit(1e-12));
    let deviations = |line: FittedLine| {
        [
            line.slope(),
            line.residual_deviation().unwrap() / line.slope_error().unwrap(),
        ]
    };
    for (a, b) in deviations(one).into_iter().zip(deviations(other)) {
        assert!((a - b).abs() <= 1e-9 * a.abs(), "{a}, not {b}");
    }
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            LeastSquares::new().push_weighted(1.0, 1.0, weight),
            Err(FitError::InvalidWeight)
        );
    }
}

#[test]
fn an_uncertain_offset_has_little_weight() {
    let mut fit = OffsetFit::<Local>::new();
    for i in 0..100 {
        // Every tenth was disturbed by the scheduler, with an error close to its half width.
        let (offset, width) = if i % 10 == 9 {
            (90_000, 100_000)
        } else {
            (i, 50)
        };
        let at = Timestamp::from_nanos(i * 1_000_000);
        let half_width = Some(Duration::from_nanos(width));
        fit.push_by_certainty(OffsetSample {
            at,
            offset: Duration::from_nanos(offset),
            half_width,
        });
    }
    let line = fit.line().unwrap();
    assert!((line.drift() - 1e-6).abs() < 1e-8, "{}", line.drift());
    assert!((line.offset_at(Timestamp::ORIGIN)).abs() < Duration::from_nanos(10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_figure_matches_exact_fractions(points in points(), share in -3.0..3.0_f64) {
        let (exact, fit) = (exact(&points), fitted(&points));
        prop_assert_eq!(fit.points(), points.len() as u64);
        if exact.sxx.is_zero() {
            prop_assert_eq!(fit.line(), Err(FitError::OneX));
            return Ok(());
        }
        let line = fit.line().unwrap();
        prop_assert_eq!(line.points(), points.len() as u64);
        prop_assert_eq!(line.r_squared().is_none(), exact.syy.is_zero());
        prop_assert_eq!(line.residual_deviation().is_none(), points.len() < 3);
        let x = points[0].0 + share * (points[points.len() - 1].0 - points[0].0);
        for (name, error) in errors(&line, &exact, x) {
            prop_assert!(error <= BOUND, "{name}: {error} units");
        }
    }

    /// Arbitrary coordinates are rejected or give finite figures.
    #[test]
    fn extreme_points_are_rejected_or_fitted(points in vec((coordinate(), coordinate()), 0..20), x in -1e6..1e6_f64) {
        let mut fit = LeastSquares::new();
        for (x, y) in points {
            let before = fit;
            match fit.push(x, y) {
                Ok(()) => prop_assert_eq!(fit.points(), before.points() + 1),
                Err(why) => {
                    prop_assert_eq!(why == FitError::NotFinite, !(x.is_finite() && y.is_finite()));
                    prop_assert_eq!(fit, before);
                }
            }
        }
        let Ok(line) = fit.line() else { return Ok(()) };
        prop_assert!(line.slope().is_finite());
        prop_assert!(line.r_squared().is_none_or(|share| (0.0..=1.0).contains(&share)));
        let errors = [line.residual_deviation(), line.slope_error(), line.error_at(x), line.prediction_error_at(x)];
        prop_assert!(errors.iter().flatten().all(|error| *error >= 0.0), "{errors:?}");
    }

    #[test]
    fn an_offset_line_is_within_half_a_nanosecond_of_the_exact_one(
        samples in samples(), ahead in -DAY..DAY, extra in (any::<i64>(), -1_000_000_000..1_000_000_000_i64),
    ) {
        let exact = exact_offsets(&samples);
        let line = fit_offsets(&samples).line().unwrap();
        prop_assert!((line.drift() - near(&exact.slope())).abs() <= 1e-15);
        for at in samples.iter().map(|sample| sample.at).chain([samples[0].at + Duration::from_nanos(ahead)]) {
            let truth = exact.at(&integer(at.as_nanos()));
            let error = near(&(integer(line.offset_at(at).as_nanos()) - &truth)).abs();
            prop_assert!(error <= 0.501, "{error} ns");
            // The image at the anchor is also rounded.
            let model = line.model::<Global>().unwrap();
            let error = near(&(integer(model.apply(at).as_nanos()) - integer(at.as_nanos()) + truth)).abs();
            prop_assert!(error <= 1.002, "{error} ns");
        }

        let newer = OffsetSample {
            at: samples[0].at + Duration::from_nanos(ahead), offset: Duration::from_nanos(extra.1), half_width: None,
        };
        let moved = line.through(newer);
        prop_assert_eq!(moved.offset_at(newer.at), newer.offset);
        prop_assert_eq!(moved.model::<Global>().unwrap().apply(newer.at).as_nanos(), (newer.at - newer.offset).as_nanos());
        prop_assert_eq!(moved.drift(), line.drift());
        let at = samples[0].at;
        let truth = integer(extra.1) + exact.slope() * integer(at.as_nanos() - newer.at.as_nanos());
        let error = near(&(integer(moved.offset_at(at).as_nanos()) - truth)).abs();
        prop_assert!(error <= 0.501, "{error} ns");
    }

    /// The statistics of an offset line are those of its samples in nanoseconds, whatever their origin.
    #[test]
    fn an_offset_line_has_the_figures_of_the_exact_one(samples in samples(), ahead in -DAY..DAY) {
        let exact = exact_offsets(&samples);
        let line = fit_offsets(&samples).line().unwrap();
        let at = samples[0].at + Duration::from_nanos(ahead);
        if samples.len() < 3 {
            prop_assert_eq!((line.drift_error(), line.residual_deviation()), (None, None));
            prop_assert_eq!((line.error_at(at), line.prediction_error_at(at)), (None, None));
            return Ok(());
        }
        let variance = exact.residual_variance();
        let leverage = exact.leverage(&integer(at.as_nanos()));
        let share = integer(1) - exact.residual_squares() / &exact.syy;
        let noise = libm::sqrt(near(&exact.syy)) * 1e-14;
        let close = |found: Option<f64>, truth: &BigRational, scale: &BigRational| {
            let truth = libm::sqrt(near(truth));
            (found.unwrap() - truth).abs() <= 1e-12 * truth + noise * libm::sqrt(near(scale))
        };
        let one = integer(1);
        prop_assert!(close(line.residual_deviation(), &variance, &one));
        prop_assert!(close(line.drift_error(), &(&variance / &exact.sxx), &exact.sxx.recip()));
        prop_assert!(close(line.error_at(at), &(&variance * &leverage), &leverage));
        prop_assert!(close(line.prediction_error_at(at), &(&variance * (&one + &leverage)), &(&one + &leverage)));
        prop_assert!((line.r_squared().unwrap() - near(&share)).abs() <= 1e-12);
        let moved = line.through(samples[0]);
        prop_assert_eq!(moved.drift_error(), line.drift_error());
        prop_assert_eq!((moved.error_at(at), moved.prediction_error_at(at)), (None, None));
    }

    /// No samples cause a panic, and two samples are on the line to the precision of `f64`.
    #[test]
    fn extreme_samples_saturate(samples in vec((any::<i64>(), any::<i64>()), 1..8), at: i64) {
        let samples: Vec<_> = samples.into_iter().map(|(at, offset)| sample(at, offset)).collect();
        let Ok(line) = fit_offsets(&samples).line() else { return Ok(()) };
        let found = line.offset_at(Timestamp::from_nanos(at)).as_nanos();
        let _ = line.model::<Global>().map(|model| model.apply(Timestamp::from_nanos(at)));
        if samples.len() == 1 {
            prop_assert_eq!(found, samples[0].offset.as_nanos());
            return Ok(());
        }
        let exact = exact_offsets(&samples);
        let truth = near(&exact.at(&integer(at)));
        let cut = truth.clamp(i64::MIN as f64, i64::MAX as f64);
        prop_assert!((found as f64 - cut).abs() <= 1e-13 * truth.abs().max(i64::MAX as f64), "{found} {truth}");
    }
}

const DAY: i64 = 86_400_000_000_000;

fn sample(at: i64, offset: i64) -> OffsetSample<Local> {
    OffsetSample {
        at: Timestamp::from_nanos(at),
        offset: Duration::from_nanos(offset),
        half_width: None,
    }
}

/// Samples over some seconds of a clock with any offset, at any time, with a drift of up to 500 ppm.
fn samples() -> impl Strategy<Value = Vec<OffsetSample<Local>>> {
    let noise = prop_oneof![Just(0), Just(10), Just(100_000)];
    let starts = prop_oneof![Just(1_700_000_000_000_000_000), -(1_i64 << 61)..1 << 61];
    let pauses = vec((10_000_000..1_000_000_000_i64, any::<i64>()), 2..40);
    (
        starts,
        -(1_i64 << 60)..1 << 60,
        -500e-6..500e-6,
        noise,
        pauses,
    )
        .prop_map(|(start, offset, drift, noise, pauses)| {
            let mut at = start;
            let sample = |(pause, random): (i64, i64)| {
                at += pause;
                sample(
                    at,
                    offset + libm::floor(drift * (at - start) as f64) as i64 + random % (noise + 1),
                )
            };
            pauses.into_iter().map(sample).collect()
        })
}

fn fit_offsets(samples: &[OffsetSample<Local>]) -> OffsetFit<Local> {
    let mut fit = OffsetFit::new();
    samples.iter().for_each(|sample| fit.push(*sample));
    assert_eq!(fit.points(), samples.len() as u64);
    fit
}

fn exact_offsets(samples: &[OffsetSample<Local>]) -> ExactFit {
    let points: Vec<_> = samples
        .iter()
        .map(|s| (integer(s.at.as_nanos()), integer(s.offset.as_nanos())))
        .collect();
    ExactFit::fit(&points)
}

fn relative(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0).abs()
}

#[test]
fn figures_match_statsmodels() {
    for set in golden::SETS {
        let points: Vec<_> = set.x.iter().copied().zip(set.y.iter().copied()).collect();
        let line = fitted(&points).line().unwrap();
        let figures = [
            ("slope", line.slope(), set.slope),
            ("intercept", line.intercept(), set.intercept),
            ("R squared", line.r_squared().unwrap(), set.r_squared),
            (
                "deviation",
                line.residual_deviation().unwrap(),
                set.deviation,
            ),
            ("slope error", line.slope_error().unwrap(), set.slope_error),
            (
                "intercept error",
                line.intercept_error().unwrap(),
                set.intercept_error,
            ),
            ("value", line.value_at(set.new), set.value),
            (
                "value error",
                line.error_at(set.new).unwrap(),
                set.value_error,
            ),
            (
                "prediction error",
                line.prediction_error_at(set.new).unwrap(),
                set.prediction_error,
            ),
        ];
        for (name, found, expected) in figures {
            assert!(
                relative(found, expected) < 1e-12,
                "{}: {name} {found}, not {expected}",
                set.name
            );
        }
    }
}

/// NIST certifies 15 digits.
#[test]
fn figures_match_the_certified_norris_data_set() {
    let points: Vec<_> = golden::NORRIS_X
        .iter()
        .copied()
        .zip(golden::NORRIS_Y.iter().copied())
        .collect();
    let line = fitted(&points).line().unwrap();
    assert!(relative(line.slope(), 1.00211681802045) < 1e-14);
    assert!(relative(line.intercept(), -0.262323073774029) < 1e-12);
    assert!(relative(line.r_squared().unwrap(), 0.999993745883712) < 1e-14);
    assert!(relative(line.residual_deviation().unwrap(), 0.884796396144373) < 1e-12);
    assert!(relative(line.slope_error().unwrap(), 0.429796848199937e-03) < 1e-12);
    assert!(relative(line.intercept_error().unwrap(), 0.232818234301152) < 1e-12);
}

#[test]
fn a_line_needs_two_different_x() {
    const EMPTY: LeastSquares = LeastSquares::new();
    const WITHOUT_SAMPLES: OffsetFit<Local> = OffsetFit::new();
    assert_eq!(LeastSquares::default(), EMPTY);
    assert_eq!(OffsetFit::default(), WITHOUT_SAMPLES);
    assert_eq!(LeastSquares::new().line(), Err(FitError::NoPoints));
    assert_eq!(fitted(&[(1.7e18, 1.0)]).line(), Err(FitError::OneX));
    assert_eq!(
        fitted(&[(0.1, 1.0), (0.1, 2.0), (0.1, 4.0)]).line(),
        Err(FitError::OneX)
    );
    assert_eq!(
        fitted(&[(0.0, 1.0), (1e-155, 2.0)]).line(),
        Err(FitError::OneX),
        "the square of 1e-155 is 0"
    );
}

#[test]
fn two_points_are_on_their_line_and_have_no_errors() {
    let line = fitted(&[(1.0, 10.0), (3.0, 6.0)]).line().unwrap();
    assert_eq!(
        (
            line.slope(),
            line.mean(),
            line.intercept(),
            line.value_at(4.0)
        ),
        (-2.0, (2.0, 8.0), 12.0, 4.0)
    );
    assert_eq!(
        (line.r_squared(), line.residual_deviation()),
        (Some(1.0), None)
    );
    assert_eq!((line.slope_error(), line.intercept_error()), (None, None));
    assert_eq!(
        (line.error_at(2.0), line.prediction_error_at(2.0)),
        (None, None)
    );
}

#[test]
fn equal_y_have_no_r_squared() {
    let line = fitted(&[(1.0, 7.0), (2.0, 7.0), (4.0, 7.0)])
        .line()
        .unwrap();
    assert_eq!(
        (line.slope(), line.value_at(9.0), line.r_squared()),
        (0.0, 7.0, None)
    );
    assert_eq!(
        (line.residual_deviation(), line.slope_error()),
        (Some(0.0), Some(0.0))
    );
}

#[test]
fn a_rejected_point_changes_nothing() {
    let mut fit = fitted(&[(1.0, 10.0), (3.0, 6.0)]);
    for (x, y, why) in [
        (f64::NAN, 0.0, FitError::NotFinite),
        (0.0, f64::INFINITY, FitError::NotFinite),
        (1e200, 0.0, FitError::TooFar),
        (0.0, -1e200, FitError::TooFar),
    ] {
        assert_eq!(fit.push(x, y), Err(why));
    }
    assert_eq!(fit, fitted(&[(1.0, 10.0), (3.0, 6.0)]));
    // Far on one axis only, without residuals.
    assert_eq!(
        fitted(&[(1.0, 7.0), (3.0, 7.0)]).push(1e200, 7.0),
        Err(FitError::TooFar)
    );
    assert_eq!(
        fitted(&[(1.0, 7.0)]).push(1.0, 1e200),
        Err(FitError::TooFar)
    );
}

/// The mean of the times is at half a nanosecond, where the line is 5 ns from both samples.
#[test]
fn the_anchor_of_a_steep_offset_line_is_on_the_line() {
    let line = fit_offsets(&[sample(100, 0), sample(101, 10)])
        .line()
        .unwrap();
    assert_eq!(
        [99, 100, 101, 103].map(|at| line.offset_at(Timestamp::from_nanos(at)).as_nanos()),
        [-10, 0, 10, 30]
    );
    // So steep that the values exceed the range of a timestamp by far.
    let line = fit_offsets(&[sample(i64::MIN, i64::MIN), sample(i64::MIN + 1, i64::MAX)])
        .line()
        .unwrap();
    assert_eq!(
        line.offset_at(Timestamp::from_nanos(i64::MAX)),
        Duration::MAX
    );
}

#[test]
fn one_sample_is_an_offset_without_drift() {
    assert_eq!(
        OffsetFit::<Local>::default().line(),
        Err(FitError::NoPoints)
    );
    let line = fit_offsets(&[sample(5, 70)]).line().unwrap();
    assert_eq!(
        (
            line.drift(),
            line.offset_at(Timestamp::from_nanos(i64::MIN))
        ),
        (0.0, Duration::from_nanos(70))
    );
    let model = ClockModel::<Local, Global>::through(
        Timestamp::from_nanos(5),
        Timestamp::from_nanos(-65),
        TickRate::NANOSECOND,
    );
    assert_eq!(line.model(), model);
    assert_eq!(
        (
            line.r_squared(),
            line.drift_error(),
            line.error_at(Timestamp::ORIGIN)
        ),
        (None, None, None)
    );
    assert_eq!(
        fit_offsets(&[sample(5, 70), sample(5, 71)]).line(),
        Err(FitError::OneX)
    );
}

#[test]
fn impossible_clocks_have_no_model() {
    let model = |line: OffsetLine<Local>| line.model::<Global>().unwrap_err();
    // The reference would stand still.
    let line = fit_offsets(&[sample(0, 0), sample(10, 10)]).line().unwrap();
    assert_eq!(model(line), ModelError::RateNotPositive);
    // 200 years before the origin, and 100 more: out of range, but a saturated image would look valid.
    let century = DAY * 36_525;
    let line = fit_offsets(&[sample(-2 * century, century)])
        .line()
        .unwrap();
    assert_eq!(model(line), ModelError::TooFarApart);
}

#[test]
fn error_messages_name_the_fault() {
    let message = |error: &dyn core::error::Error| error.to_string();
    assert_eq!(
        message(&FitError::NotFinite),
        "a point of a fit must have finite coordinates"
    );
    assert_eq!(
        message(&FitError::TooFar),
        "the point is too far from the others to be fitted"
    );
    assert_eq!(
        message(&FitError::NoPoints),
        "there are no points to fit a line to"
    );
    assert_eq!(
        message(&FitError::OneX),
        "a line needs points at two different x"
    );
}
