//! PS4, MPIBlib: from the root's start to the last rank's end.

use super::figure::{Figure, ProcessedCalls};
use crate::error::MeasureError;
use downbeat_records::stats::{Confidence, Sample};

/// Computes the figures of the times of all calls, in their order.
pub(super) fn figures(
    times: &[f64],
    confidence: Confidence,
) -> Result<ProcessedCalls, MeasureError> {
    let mean = Figure::new("mean", Sample::new(&mut times.to_vec())?.mean());
    Ok(ProcessedCalls::from(vec![mean]).with_interval_of_mean(times, confidence))
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global};

    #[test]
    fn the_clock_runs_from_the_roots_start() {
        // From rank 0: 50, 30, 40, 30, of mean 37.5, eight times; Student's distribution has 31 degrees of freedom.
        let reach = 2.039_513_446_396_408 * (8.0 * 275.0_f64 / 31.0 / 32.0).sqrt();
        let by_hand = [
            ("mean", 37.5),
            ("mean-low", 37.5 - reach),
            ("mean-high", 37.5 + reach),
        ];
        let calls = global(&five_calls().repeat(8));
        expect("global", &calls, 0, &by_hand);
        // From rank 1.
        let times: [f64; 4] = [45.0, 29.0, 45.0, 35.0];
        let squares: f64 = times.iter().map(|time| (time - 38.5).powi(2)).sum();
        let reach = 2.744_041_919_294_269 * (8.0 * squares / 31.0 / 32.0).sqrt();
        let by_hand = [
            ("mean", 38.5),
            ("mean-low", 38.5 - reach),
            ("mean-high", 38.5 + reach),
        ];
        expect("global/0.99", &calls, 1, &by_hand);
        expect("global", &global(&five_calls()[..1]), 1, &[("mean", 45.0)]);
    }
}
