//! PS3, OSU, and PS7, Intel's benchmarks and Phloem: mean, minimum and maximum of the ranks' means. For PS7 the ranks time
//! a whole series instead of each call; the processing is the same.

use super::figure::{Extremes, ProcessedCalls};

/// The paper divides the sum of the means by the number of calls, but means the number of ranks, as in OSU.
pub(super) fn figures(of_ranks: &Extremes) -> ProcessedCalls {
    of_ranks.figures().to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local, means};
    use downbeat_records::ObservationState;

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

    #[test]
    fn valid_series_count_equally() {
        // Means of the ranks: 2.5 and 4.
        let series = means(&[
            (ObservationState::Valid, &[2.0, 3.0]),
            (ObservationState::Long, &[99.0, 99.0]),
            (ObservationState::Valid, &[3.0, 5.0]),
        ]);
        expect(
            "rank-averages",
            &series,
            0,
            &[("mean", 3.25), ("min", 2.5), ("max", 4.0)],
        );
    }
}
