//! Downbeat's own processing, whose median is robust against disturbed calls.

use super::figure::{Figure, ProcessedCalls};
use crate::error::MeasureError;
use downbeat_records::stats::Sample;

pub(super) fn figures(run_times: &[f64]) -> Result<ProcessedCalls, MeasureError> {
    let mut times = run_times.to_vec();
    let sample = Sample::new(&mut times)?;
    let figures = vec![
        Figure::new("median", sample.median()),
        Figure::new("q1", sample.quantile(0.25)),
        Figure::new("q3", sample.quantile(0.75)),
        Figure::new("mean", sample.mean()),
        Figure::new("min", sample.quantile(0.0)),
        Figure::new("max", sample.quantile(1.0)),
    ];
    Ok(figures.into())
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    #[test]
    fn quartiles_are_those_of_run_times() {
        // 30, 35, 45, 50: the late call does not count.
        let by_hand = [
            ("median", 40.0),
            ("q1", 33.75),
            ("q3", 46.25),
            ("mean", 40.0),
            ("min", 30.0),
            ("max", 50.0),
        ];
        expect("median", &global(&five_calls()), 0, &by_hand);
        let by_hand = [
            ("median", 7.0),
            ("q1", 7.0),
            ("q3", 7.0),
            ("mean", 7.0),
            ("min", 7.0),
            ("max", 7.0),
        ];
        expect("median", &local(&[&[5, 7, 6]]), 2, &by_hand);
    }
}
