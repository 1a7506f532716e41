//! The normal distribution.

use core::f64::consts::SQRT_2;

/// Share of the standard normal distribution above `z`; accurate also for small shares.
pub(super) fn normal_above(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The `z` that this share of the standard normal distribution is below; the share is in 0..=1.
///
/// Wichura's algorithm AS 241 (1988), accurate to 1e-16.
pub(super) fn normal_quantile(share: f64) -> f64 {
    let from_middle = share - 0.5;
    if from_middle.abs() <= 0.425 {
        let r = 0.180625 - from_middle * from_middle;
        return from_middle * ratio(r, &NEAR);
    }
    let r = (-share.min(1.0 - share).ln()).sqrt();
    let distance = match r {
        f64::INFINITY => f64::INFINITY,
        r if r <= 5.0 => ratio(r - 1.6, &FAR),
        r => ratio(r - 5.0, &FARTHEST),
    };
    distance.copysign(from_middle)
}

/// Coefficients of numerator and denominator, from the constant up.
type Rational = [[f64; 8]; 2];

fn ratio(x: f64, [above, below]: &Rational) -> f64 {
    polynomial(x, above) / polynomial(x, below)
}

/// Evaluates the polynomial with these coefficients, from the constant up.
pub(super) fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

const NEAR: Rational = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];

const FAR: Rational = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

const FARTHEST: Rational = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tails_and_quantiles_are_those_of_r() {
        for [z, share] in golden::NORMAL_TAILS {
            let found = normal_above(*z);
            assert!(
                (found / share - 1.0).abs() < 1e-12,
                "above {z}: {found} is not {share}"
            );
        }
        for [share, z] in golden::NORMAL_QUANTILES {
            let found = normal_quantile(*share);
            assert!(
                (found - z).abs() <= 1e-14 * z.abs(),
                "at {share}: {found} is not {z}"
            );
        }
    }

    #[test]
    fn the_ends_are_infinite() {
        assert_eq!(
            (normal_quantile(0.0), normal_quantile(1.0)),
            (f64::NEG_INFINITY, f64::INFINITY)
        );
        assert_eq!(
            (normal_above(f64::INFINITY), normal_above(f64::NEG_INFINITY)),
            (0.0, 1.0)
        );
    }

    proptest! {
        #[test]
        fn a_quantile_has_its_share_below(share in 1e-12..0.5) {
            let z = normal_quantile(share);
            prop_assert!((normal_above(-z) / share - 1.0).abs() < 1e-12);
            prop_assert!((normal_above(normal_quantile(1.0 - share)) / share - 1.0).abs() < 1e-3);
        }
    }
}
