//! PS5, MPIBench: the times of all calls on all ranks without outliers.

use super::figure::{Extremes, Figure};

/// Returns the threshold above which a time is an outlier, by the 99th percentile and a factor.
///
/// Section 2 of Hunold 2016: "they determine the 99th percentile of the sample, denoted as t99, and then define tthresh =
/// t99 * a for some constant a >= 1". The sample consists of all calls on all ranks. The paper does not define the
/// percentile: it is R's type 7, as everywhere in this crate.
pub(crate) fn threshold(t99: f64, factor: f64) -> f64 {
    // A clock that ran backwards can make t99 negative: then all times may be above a multiple of it.
    t99.max(factor * t99)
}

/// Share of the times below the percentile.
pub(crate) const PERCENTILE: f64 = 0.99;

pub(super) fn figures(threshold: f64, kept: &Extremes) -> Vec<Figure> {
    let threshold = Figure::new("threshold", threshold);
    kept.figures().into_iter().chain([threshold]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    #[test]
    fn times_above_the_threshold_are_outliers() {
        // 49 times 10, 51 times 20 and a last value: index 99 of 0..=100 is the last 20.
        let process = |label: &str, last: i64, figures: [f64; 4]| {
            let times: Vec<i64> = [vec![10; 49], vec![20; 51], vec![last]].concat();
            let calls: Vec<&[i64]> = times.chunks(1).collect();
            let [mean, min, max, threshold] = figures;
            let figures = [
                ("mean", mean),
                ("min", min),
                ("max", max),
                ("threshold", threshold),
            ];
            expect(label, &local(&calls), 0, &figures);
        };
        process("mpibench", 40, [1_550.0 / 101.0, 10.0, 40.0, 40.0]);
        process("mpibench", 41, [15.1, 10.0, 20.0, 40.0]);
        process("mpibench/1", 40, [15.1, 10.0, 20.0, 20.0]);
        process("mpibench/2.5", 41, [1_551.0 / 101.0, 10.0, 41.0, 50.0]);
    }

    #[test]
    fn all_ranks_count() {
        // 40, 45, 30, 19, 40, 15, 10, 35; index 6.93 is between 40 and 45.
        let by_hand = [
            ("mean", 29.25),
            ("min", 10.0),
            ("max", 45.0),
            ("threshold", 2.0 * 44.65),
        ];
        expect("mpibench", &global(&five_calls()), 0, &by_hand);
    }

    #[test]
    fn times_of_a_clock_that_ran_backwards_are_not_all_outliers() {
        let by_hand = [
            ("mean", -2.0),
            ("min", -2.0),
            ("max", -2.0),
            ("threshold", -2.0),
        ];
        expect("mpibench", &local(&[&[-2]]), 0, &by_hand);
    }
}
