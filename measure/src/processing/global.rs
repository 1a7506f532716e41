//! PS4, MPIBlib: from the root's start to the last rank's end.

use super::figure::{Figure, interval_of_mean};
use crate::error::{MeasureError, MethodError};
use downbeat_records::stats::{Confidence, Sample};
use downbeat_records::{CallTimes, Observations};

pub(super) fn figures(
    observations: &Observations,
    root: usize,
    confidence: Confidence,
) -> Result<Vec<Figure>, MeasureError> {
    let CallTimes::Global(stamps) = observations.call_times() else {
        return Err(MethodError::NeedsGlobalClock.into());
    };
    let call_time = |call: usize| {
        let ranks = &stamps[call * observations.ranks()..(call + 1) * observations.ranks()];
        let last = ranks.iter().map(|rank| rank.end).max()?;
        Some((last - ranks[root].start).as_nanos() as f64)
    };
    let mut times: Vec<f64> = observations.valid().filter_map(call_time).collect();
    let sample = Sample::new(&mut times)?;
    let mean = Figure::new("mean", sample.mean());
    Ok([mean]
        .into_iter()
        .chain(interval_of_mean(&sample, confidence))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global};

    #[test]
    fn the_clock_runs_from_the_roots_start() {
        // From rank 0: 50, 30, 40, 30, of mean 37.5 and variance 275/3.
        let reach = 3.182_446_305_283_708 * (275.0_f64 / 12.0).sqrt();
        let by_hand = [
            ("mean", 37.5),
            ("mean-low", 37.5 - reach),
            ("mean-high", 37.5 + reach),
        ];
        expect("global", &global(&five_calls()), 0, &by_hand);
        // From rank 1.
        let times: [f64; 4] = [45.0, 29.0, 45.0, 35.0];
        let squares: f64 = times.iter().map(|time| (time - 38.5).powi(2)).sum();
        let reach = 5.840_909_309_733_355 * (squares / 12.0).sqrt();
        let by_hand = [
            ("mean", 38.5),
            ("mean-low", 38.5 - reach),
            ("mean-high", 38.5 + reach),
        ];
        expect("global/0.99", &global(&five_calls()), 1, &by_hand);
        expect("global", &global(&five_calls()[..1]), 1, &[("mean", 45.0)]);
    }
}
