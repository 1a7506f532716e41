//! PS5, MPIBench: the times of all calls on all ranks without outliers.

use super::figure::{Figure, mean_and_extremes};
use crate::error::MeasureError;
use downbeat_records::Observations;
use downbeat_records::stats::Sample;

/// Section 2 of Hunold 2016: "they determine the 99th percentile of the sample, denoted as t99, and then define tthresh =
/// t99 * a for some constant a >= 1"; greater times are outliers. The sample consists of all calls on all ranks. The paper
/// does not define the percentile: it is R's type 7, as everywhere in this crate.
pub(super) fn figures(
    observations: &Observations,
    factor: f64,
) -> Result<Vec<Figure>, MeasureError> {
    let ranks = 0..observations.ranks();
    let mut times: Vec<f64> = observations
        .valid()
        .flat_map(|call| ranks.clone().map(move |rank| observations.time(call, rank)))
        .collect();
    let sample = Sample::new(&mut times)?;
    let t99 = sample.quantile(0.99);
    // A clock that ran backwards can make t99 negative: then all times may be above a multiple of it.
    let threshold = t99.max(factor * t99);
    let kept = sample.values().partition_point(|time| *time <= threshold);
    let kept = Sample::new(&mut times[..kept])?;
    Ok(mean_and_extremes(&kept)
        .into_iter()
        .chain([Figure::new("threshold", threshold)])
        .collect())
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
