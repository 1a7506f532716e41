//! The chi-squared distribution: that of the variance of a normal sample.

use core::f64::consts::PI;

/// The value that this share of the distribution is below.
pub(super) fn chi_squared_below(share: f64, freedom: u32) -> f64 {
    let log_gamma = log_gamma_of_half(freedom + 2);
    // The mean is the number of degrees of freedom.
    let (mut low, mut high) = (0.0, f64::from(freedom));
    while share_below(high, freedom, log_gamma) < share {
        high *= 2.0;
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if share_below(middle, freedom, log_gamma) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Share of the distribution below `x`: the regularized incomplete gamma function of `freedom / 2` and `x / 2`, by its series,
/// which converges fast up to the mean, and in some dozen terms more in the usual tails. `log_gamma` is that of `freedom / 2 + 1`.
fn share_below(x: f64, freedom: u32, log_gamma: f64) -> f64 {
    let (a, x) = (0.5 * f64::from(freedom), 0.5 * x);
    let (mut term, mut sum, mut next) = (1.0, 1.0, a + 1.0);
    while term > sum * f64::EPSILON {
        term *= x / next;
        sum += term;
        next += 1.0;
    }
    (a * x.ln() - x - log_gamma).exp() * sum
}

/// Logarithm of the gamma function of half of a whole number above 0.
fn log_gamma_of_half(twice: u32) -> f64 {
    let least = if twice.is_multiple_of(2) {
        0.0
    } else {
        0.5 * PI.ln()
    };
    // From gamma(1) = 1 or gamma(1/2) = sqrt(pi) by gamma(a + 1) = a gamma(a).
    let first = if twice.is_multiple_of(2) { 2 } else { 1 };
    (first..twice)
        .step_by(2)
        .map(|twice| (0.5 * f64::from(twice)).ln())
        .sum::<f64>()
        + least
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `qchisq` of R and `chi2.ppf` of SciPy.
    #[test]
    fn quantiles_are_those_of_r() {
        for (freedom, expected) in [
            (
                1,
                [
                    0.0009820691171752555,
                    0.003932140000019522,
                    3.9270422220515944e-05,
                ],
            ),
            (
                2,
                [
                    0.05063561596857975,
                    0.10258658877510106,
                    0.010025083647088564,
                ],
            ),
            (
                4,
                [0.4844185570879299, 0.7107230213973239, 0.206989093496182],
            ),
            (
                5,
                [0.8312116134866625, 1.1454762260617692, 0.41174190383249887],
            ),
            (
                29,
                [16.04707169536489, 17.70836618282458, 13.12114888796041],
            ),
            (
                200,
                [162.72798250184627, 168.27855443662838, 152.24099168737837],
            ),
        ] {
            for (share, expected) in [0.025, 0.05, 0.005].into_iter().zip(expected) {
                let found = chi_squared_below(share, freedom);
                assert!(
                    (found / expected - 1.0).abs() < 1e-10,
                    "{freedom}: {found} is not {expected}"
                );
            }
        }
    }

    /// By `chi2.ppf` of SciPy.
    #[test]
    fn upper_quantiles_are_those_of_scipy() {
        for (share, freedom, expected) in [
            (0.975, 1, 5.023886187314888),
            (0.975, 9, 19.02276779864163),
            (0.995, 29, 52.335617785933614),
            (0.95, 200, 233.99426889232492),
        ] {
            let found = chi_squared_below(share, freedom);
            assert!((found / expected - 1.0).abs() < 1e-10, "{freedom}: {found}");
        }
    }

    #[test]
    fn the_median_of_two_degrees_is_that_of_an_exponential_distribution() {
        assert!((chi_squared_below(0.5, 2) - 2.0 * core::f64::consts::LN_2).abs() < 1e-14);
    }
}
