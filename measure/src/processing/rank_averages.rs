//! PS7, Intel's benchmarks and Phloem: the mean of each rank over a series of calls, and how these differ.

use super::{Figure, ProcessingError, osu};
use downbeat_records::Observations;

/// What the ranks measure differs from OSU's, a whole series instead of each call; what is made of it does not.
pub(super) fn figures(observations: &Observations) -> Result<Vec<Figure>, ProcessingError> {
    osu::figures(observations)
}

#[cfg(test)]
mod tests {
    use super::super::hand::expect;
    use downbeat_records::{CallTimes, ObservationState, Observations};

    #[test]
    fn series_that_are_valid_count_alike() {
        let states = vec![
            ObservationState::Valid,
            ObservationState::Long,
            ObservationState::Valid,
        ];
        // Means of the ranks: 2.5 and 4.
        let means = CallTimes::Means(vec![2.0, 3.0, 99.0, 99.0, 3.0, 5.0]);
        let series = Observations::new(2, states, means).unwrap();
        expect(
            "rank-averages",
            &series,
            0,
            &[("mean", 3.25), ("min", 2.5), ("max", 4.0)],
        );
    }
}
