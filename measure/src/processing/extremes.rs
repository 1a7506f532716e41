//! PS2, mpicroscope and MPIBlib: mean, minimum and maximum of the times of each call's slowest rank.

use super::figure::{Figure, interval_of_mean, mean_and_extremes, rank_times, slowest_times};
use crate::error::MeasureError;
use downbeat_records::Observations;
use downbeat_records::stats::{Confidence, Sample};

/// Computes the figures of the slowest ranks, or of the root if it is given.
pub(super) fn figures(
    observations: &Observations,
    root: Option<usize>,
    confidence: Confidence,
) -> Result<Vec<Figure>, MeasureError> {
    let mut times = root.map_or_else(
        || slowest_times(observations),
        |root| rank_times(observations, root),
    );
    let sample = Sample::new(&mut times)?;
    Ok(mean_and_extremes(&sample)
        .into_iter()
        .chain(interval_of_mean(&sample, confidence))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    /// Critical value of Student's distribution with two degrees of freedom, from a table.
    const T_95: f64 = 4.302_652_729_749_464;

    #[test]
    fn the_interval_is_that_of_the_mean() {
        // The slowest: 4, 6, 8; standard error 2 / sqrt(3).
        let reach = T_95 * 2.0 / 3.0_f64.sqrt();
        let by_hand = [
            ("mean", 6.0),
            ("min", 4.0),
            ("max", 8.0),
            ("mean-low", 6.0 - reach),
            ("mean-high", 6.0 + reach),
        ];
        expect(
            "extremes",
            &local(&[&[1, 4], &[6, 2], &[8, 8]]),
            0,
            &by_hand,
        );
        expect(
            "extremes",
            &local(&[&[9]]),
            0,
            &[("mean", 9.0), ("min", 9.0), ("max", 9.0)],
        );
    }

    #[test]
    fn the_root_may_stand_for_all() {
        // Rank 1 in the valid calls: 45, 19, 15, 35, of variance 587/3.
        let reach = 3.182_446_305_283_708 * (587.0_f64 / 12.0).sqrt();
        let by_hand = [
            ("mean", 28.5),
            ("min", 15.0),
            ("max", 45.0),
            ("mean-low", 28.5 - reach),
            ("mean-high", 28.5 + reach),
        ];
        expect("extremes/root", &global(&five_calls()), 1, &by_hand);
    }
}
