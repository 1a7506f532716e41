//! Student's t distribution, for any degrees of freedom from 1 up, also fractional ones.

use core::f64::consts::PI;

use super::normal::{normal_quantile, polynomial};

/// Share of Student's distribution above `t`; accurate also for small shares.
pub(super) fn student_above(t: f64, freedom: f64) -> f64 {
    if t < 0.0 {
        return 1.0 - student_above(-t, freedom);
    }
    let square = t * t / freedom;
    if square == f64::INFINITY {
        return 0.0;
    }
    // Both tails are I_x(freedom/2, 1/2) with x = 1 / (1 + t²/freedom), the incomplete beta
    // function. Its continued fraction converges fast where x is below the mean of the
    // distribution; above it, use symmetry.
    let (a, x, rest) = (0.5 * freedom, 1.0 / (1.0 + square), square / (1.0 + square));
    let both = (-a * square.ln_1p()).exp() * rest.sqrt() * half_step_of_gamma(a) / PI.sqrt();
    if x < (a + 1.0) / (a + 2.5) {
        0.5 * both / beta_fraction(a, 0.5, x, rest)
    } else {
        0.5 - 0.5 * both / beta_fraction(0.5, a, rest, x)
    }
}

/// The `t` that this share of Student's distribution is above; the share is above 0 and below 1.
pub(crate) fn student_beyond(share: f64, freedom: f64) -> f64 {
    if share > 0.5 {
        return -student_beyond(1.0 - share, freedom);
    }
    let scale = half_step_of_gamma(0.5 * freedom) / (PI * freedom).sqrt();
    // The share above is a convex function of a positive t, and t is never less than that of the
    // normal distribution. Therefore Newton's method only increases t until rounding stops it. The
    // heaviest tail, of one degree of freedom, doubles t with every step.
    let mut t = -normal_quantile(share);
    for _ in 0..STEPS {
        let density = scale * (-0.5 * (freedom + 1.0) * (t * t / freedom).ln_1p()).exp();
        let next = t + (student_above(t, freedom) - share) / density;
        if !next.is_finite() || next <= t {
            break;
        }
        t = next;
    }
    t
}

/// More than the number of doublings from 1 to the largest `f64`.
const STEPS: u32 = 1_100;

/// `gamma(a + 1/2) / gamma(a)`, without the loss of digits in a difference of logarithms of a large
/// `a`.
fn half_step_of_gamma(a: f64) -> f64 {
    // Below this, the series is not accurate enough: go down to `a` by `gamma(a + 1) = a gamma(a)`.
    const ENOUGH: f64 = 20.0;
    let (mut from, mut factor) = (a, 1.0);
    while from < ENOUGH {
        factor *= from / (from + 0.5);
        from += 1.0;
    }
    const SERIES: [f64; 9] = [
        1.0,
        -1.0 / 8.0,
        1.0 / 128.0,
        5.0 / 1_024.0,
        -21.0 / 32_768.0,
        -399.0 / 262_144.0,
        869.0 / 4_194_304.0,
        39_325.0 / 33_554_432.0,
        -334_477.0 / 2_147_483_648.0,
    ];
    factor * from.sqrt() * polynomial(1.0 / from, &SERIES)
}

/// Continued fraction of the incomplete beta function by DiDonato and Morris (1992), evaluated by
/// Lentz's method.
///
/// `rest` is `1 - x`, passed separately: close to 1, `x` has lost its digits.
fn beta_fraction(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    let denominator = |m: f64| {
        let straight = (a + m) * (a * rest - b * x + 1.0 + m * (2.0 - x)) / (a + 2.0 * m + 1.0);
        if m > 0.0 {
            m + m * (b - m) * x / (a + 2.0 * m - 1.0) + straight
        } else {
            straight
        }
    };
    // Avoids division by zero.
    const TINY: f64 = 1e-300;
    let kept = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut fraction = kept(denominator(0.0));
    let (mut c, mut d) = (fraction, 0.0);
    // The number of steps is about the square root of the larger of `a` and `b`.
    for step in 1..100_000 {
        let m = f64::from(step);
        let share = x / (a + 2.0 * m - 1.0);
        let numerator = share * share * m * (a + m - 1.0) * (a + b + m - 1.0) * (b - m);
        d = 1.0 / kept(denominator(m) + numerator * d);
        c = kept(denominator(m) + numerator / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tails_and_quantiles_are_those_of_r() {
        for [freedom, t, share] in golden::STUDENT_TAILS {
            let found = student_above(*t, *freedom);
            assert!(
                (found / share - 1.0).abs() < 1e-12,
                "above {t} of {freedom}: {found} is not {share}"
            );
            assert!((student_above(-t, *freedom) + share - 1.0).abs() < 1e-14);
        }
        for [freedom, share, t] in golden::STUDENT_QUANTILES {
            let found = student_beyond(*share, *freedom);
            assert!(
                (found / t - 1.0).abs() < 1e-12,
                "{share} of {freedom}: {found} is not {t}"
            );
        }
    }

    #[test]
    fn one_and_two_degrees_of_freedom_have_a_formula() {
        for t in [0.0, 0.3, 1.0, 2.0, 7.5] {
            assert!(
                (student_above(t, 1.0) - (0.5 - t.atan() / PI)).abs() < 1e-15,
                "{t}"
            );
            assert!(
                (student_above(t, 2.0) - (0.5 - t / (2.0 * (2.0 + t * t).sqrt()))).abs() < 1e-15,
                "{t}"
            );
        }
        assert_eq!(student_above(f64::INFINITY, 3.0), 0.0);
        assert_eq!(student_above(f64::NEG_INFINITY, 3.0), 1.0);
    }

    #[test]
    fn steps_of_gamma_are_exact_at_halves() {
        // gamma(1) / gamma(1/2), gamma(3/2) / gamma(1), and 40 steps of the recurrence from there.
        let root = PI.sqrt();
        assert!(
            (half_step_of_gamma(0.5) * root - 1.0).abs() < 1e-14,
            "{}",
            half_step_of_gamma(0.5) * root - 1.0
        );
        assert!((half_step_of_gamma(1.0) * 2.0 / root - 1.0).abs() < 1e-14);
        let far = (0..40).fold(root / 2.0, |ratio, i| {
            ratio * (f64::from(i) + 1.5) / (f64::from(i) + 1.0)
        });
        assert!((half_step_of_gamma(41.0) / far - 1.0).abs() < 1e-14);
    }

    proptest! {
        #[test]
        fn a_quantile_has_its_share_beyond(share in 1e-9..1.0, freedom in 1.0..1e5) {
            let t = student_beyond(share, freedom);
            prop_assert!((student_above(t, freedom) / share - 1.0).abs() < 1e-10, "{}", t);
        }

        #[test]
        fn tails_fall_with_t_and_thin_with_freedom(t in 0.01..20.0, more in 1.001..2.0, freedom in 1.0..200.0) {
            prop_assert!(student_above(t * more, freedom) < student_above(t, freedom));
            prop_assert!(student_above(t, freedom * more) < student_above(t, freedom));
        }
    }
}
