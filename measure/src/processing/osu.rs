//! PS3, OSU: mean, minimum and maximum of the ranks' means.

use super::{Figure, mean_and_extremes, rank_means};
use crate::error::MeasureError;
use downbeat_records::Observations;
use downbeat_records::stats::Sample;

/// The paper divides the sum of the means by the number of calls, but means the number of ranks, as in OSU.
pub(super) fn figures(observations: &Observations) -> Result<Vec<Figure>, MeasureError> {
    Ok(mean_and_extremes(&Sample::new(&mut rank_means(
        observations,
    )?)?))
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    #[test]
    fn means_of_ranks_are_averaged() {
        // Rank 0: 40, 30, 40, 10. Rank 1: 45, 19, 15, 35.
        expect(
            "osu",
            &global(&five_calls()),
            0,
            &[("mean", 29.25), ("min", 28.5), ("max", 30.0)],
        );
        // Means 2, 4, 9.
        let three = local(&[&[1, 4, 8], &[3, 4, 10]]);
        expect(
            "osu",
            &three,
            0,
            &[("mean", 5.0), ("min", 2.0), ("max", 9.0)],
        );
    }
}
