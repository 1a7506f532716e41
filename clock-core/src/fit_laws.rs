//! The laws of least squares, against exact rational arithmetic and against other people's programs.

extern crate std;

use std::string::ToString;
use std::vec::Vec;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{
    ClockModel, Duration, FitError, FittedLine, Global, LeastSquares, Local, ModelError, OffsetFit, OffsetLine,
    OffsetSample, PointError, RateError, TickRate, Timestamp,
};

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

/// A fit as one would do it on paper, with sums of fractions.
struct Exact {
    count: usize,
    first: (BigRational, BigRational),
    mean: (BigRational, BigRational),
    sxx: BigRational,
    sxy: BigRational,
    syy: BigRational,
}

impl Exact {
    fn fit(points: &[(BigRational, BigRational)]) -> Self {
        let count = integer(points.len());
        let sum =
            |part: &dyn Fn(&(BigRational, BigRational)) -> BigRational| points.iter().map(part).sum::<BigRational>();
        let mean = (sum(&|p| p.0.clone()) / &count, sum(&|p| p.1.clone()) / &count);
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

/// Points anywhere: near the origin or as far from it as the Unix epoch is, in a cloud or almost on a line, close
/// together or far apart, and often several at one x.
fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let decimal = |low: i32, high: i32| (low..=high).prop_map(|exponent| libm::pow(10.0, exponent.into()));
    let origin = || prop_oneof![Just(0.0), Just(1.7e18), Just(-1e9), Just(12_345.678)];
    let spots = prop_oneof![
        vec((-1.0..1.0_f64, -1.0..1.0_f64), 2..60),
        vec(((0..4).prop_map(f64::from), -1.0..1.0_f64), 2..60),
        (2..60)
            .prop_flat_map(|n| vec(-1.0..1.0_f64, n as usize))
            .prop_map(|noise| (0..).map(f64::from).zip(noise).collect()),
    ];
    (origin(), origin(), decimal(-3, 12), decimal(-9, 3), decimal(-16, 1), spots).prop_map(
        |(x0, y0, scale, slope, noise, spots)| {
            let point = |(u, v): (f64, f64)| (x0 + scale * u, y0 + slope * scale * (u + noise * v));
            spots.into_iter().map(point).collect()
        },
    )
}

fn fitted(points: &[(f64, f64)]) -> LeastSquares {
    let mut fit = LeastSquares::new();
    points.iter().for_each(|(x, y)| fit.push(*x, *y).unwrap());
    fit
}

/// How wrong each figure is, in multiples of the rounding of one operation and of what the figure's bound scales with.
///
/// Every centred sum has `n` terms, each rounded a few times, and a mean that was itself rounded `n` times; so by the
/// inequality of Cauchy and Schwarz the errors of `sxx`, `sxy` and `syy` are some `n` roundings of `sxx`, of
/// `sqrt(sxx * syy)` and of `syy`. Hence those of the slope are of `sqrt(syy / sxx)`. A recursive residual is off by the
/// error of the slope times the distance: as a vector they are off by some `n` roundings of `sqrt(syy)`, however small
/// they are themselves. The figures at `x` grow with the distance from the mean, in units of the spread.
fn errors(line: &FittedLine, exact: &Exact, x: f64) -> Vec<(&'static str, f64)> {
    let count = exact.count as f64;
    let (spread_x, spread_y) = (libm::sqrt(near(&exact.sxx)), libm::sqrt(near(&exact.syy)));
    let off = |found: f64, exact: f64, scale: f64| {
        if found == exact { 0.0 } else { (found - exact).abs() / ROUNDING / scale }
    };
    let ratio = spread_y / spread_x;
    let mut errors = std::vec![("slope", off(line.slope(), near(&exact.slope()), count * ratio))];

    let far = |x: f64| 1.0 + near(&(float(x) - &exact.mean.0)).abs() / spread_x;
    let value = |name, found: f64, x: f64| {
        let truth = exact.at(&float(x));
        // The difference exactly: of two numbers near 1.7e18 it can be small.
        let missed = near(&(float(found) - &truth)).abs();
        let large = near(&exact.first.1).abs() + near(&truth).abs();
        (name, missed / ROUNDING / (large + count * spread_y * far(x)).max(f64::MIN_POSITIVE))
    };
    errors.push(value("value", line.at(x), x));
    errors.push(value("intercept", line.intercept(), 0.0));
    let (mean_x, mean_y) = line.mean();
    let large = near(&exact.mean.0).abs() + near(&exact.first.0).abs() + count * spread_x;
    errors.push(("mean x", near(&(float(mean_x) - &exact.mean.0)).abs() / ROUNDING / large));
    let large = near(&exact.mean.1).abs() + near(&exact.first.1).abs() + count * spread_y;
    errors.push(("mean y", near(&(float(mean_y) - &exact.mean.1)).abs() / ROUNDING / large.max(f64::MIN_POSITIVE)));

    if let Some(found) = line.r_squared() {
        let unexplained = near(&(exact.residual_squares() / &exact.syy));
        let scale = 1.0 + count * libm::sqrt(unexplained) + count * count * ROUNDING;
        errors.push(("R squared", off(found, near(&(integer(1) - exact.residual_squares() / &exact.syy)), scale)));
    }
    if exact.count > 2 {
        let variance = exact.residual_variance();
        let root = |of: BigRational| libm::sqrt(near(&of));
        let scale = count * spread_y / libm::sqrt(count - 2.0);
        let of_line = |x: f64| root(&variance * exact.leverage(&float(x)));
        let of_new = root(&variance * (integer(1) + exact.leverage(&float(x))));
        errors.extend([
            ("deviation", off(line.residual_deviation().unwrap(), root(variance.clone()), scale)),
            ("slope error", off(line.slope_error().unwrap(), root(&variance / &exact.sxx), scale / spread_x)),
            ("intercept error", off(line.intercept_error().unwrap(), of_line(0.0), scale * far(0.0))),
            ("line error", off(line.error_at(x).unwrap(), of_line(x), scale * far(x))),
            ("prediction error", off(line.prediction_error_at(x).unwrap(), of_new, scale * far(x))),
        ]);
    }
    errors
}

/// The bound of every figure of [`errors`]; random data come to half of it.
const BOUND: f64 = 4.0;

fn exact(points: &[(f64, f64)]) -> Exact {
    Exact::fit(&points.iter().map(|(x, y)| (float(*x), float(*y))).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_figure_is_that_of_exact_fractions(points in points(), share in -3.0..3.0_f64) {
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
}
#[test]
fn measure() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut worst = std::collections::BTreeMap::<&str, f64>::new();
    let mut naive: f64 = 0.0;
    for _ in 0..60_000 {
        let points = points().new_tree(&mut runner).unwrap().current();
        let exact = exact(&points);
        if exact.sxx.is_zero() {
            continue;
        }
        let share = (-3.0..3.0_f64).new_tree(&mut runner).unwrap().current();
        let x = points[0].0 + share * (points[points.len() - 1].0 - points[0].0);
        let line = fitted(&points).line().unwrap();
        for (name, e) in errors(&line, &exact, x) {
            let w = worst.entry(name).or_default();
            *w = w.max(e);
        }
    }
    std::println!("{worst:#?} {naive}");
}
