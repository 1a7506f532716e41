//! PS2, mpicroscope and MPIBlib: mean, minimum and maximum of the times of each call's slowest rank.

use super::figure::{Extremes, ProcessedCalls};
use crate::error::MeasureError;
use downbeat_records::stats::{Confidence, Sample};

/// Computes the figures of the times of the slowest ranks or of the root, which are in the order of the calls.
pub(super) fn figures(
    times: &[f64],
    confidence: Confidence,
) -> Result<ProcessedCalls, MeasureError> {
    let extremes = Extremes::of(&Sample::new(&mut times.to_vec())?);
    let figures = ProcessedCalls::from(extremes.figures().to_vec());
    Ok(figures.with_interval_of_mean(times, confidence))
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    /// Critical value of Student's distribution with 29 degrees of freedom.
    const T_95: f64 = 2.045_229_642_132_703;

    #[test]
    fn the_interval_is_that_of_the_mean() {
        // The slowest: 4 and 8 in turn, of variance 120 / 29.
        let reach = T_95 * (120.0_f64 / 29.0 / 30.0).sqrt();
        let by_hand = [
            ("mean", 6.0),
            ("min", 4.0),
            ("max", 8.0),
            ("mean-low", 6.0 - reach),
            ("mean-high", 6.0 + reach),
        ];
        expect(
            "extremes",
            &local(&[&[1_i64, 4][..], &[8, 8]].repeat(15)),
            0,
            &by_hand,
        );
        expect(
            "extremes",
            &local(&[&[9_i64][..]; 9]),
            0,
            // Too few to see if they depend on each other.
            &[("mean", 9.0), ("min", 9.0), ("max", 9.0)],
        );
    }

    #[test]
    fn the_root_may_stand_for_all() {
        // Rank 1 in the valid calls: 45, 19, 15, 35.
        let by_hand = [("mean", 28.5), ("min", 15.0), ("max", 45.0)];
        expect("extremes/root", &global(&five_calls()), 1, &by_hand);
    }
}
