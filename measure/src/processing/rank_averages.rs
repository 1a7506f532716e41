//! PS7, Intel's benchmarks and Phloem: mean, minimum and maximum of the ranks' means over a series of calls.

use super::{Figure, osu};
use crate::error::MeasureError;
use downbeat_records::Observations;

/// The ranks time a whole series instead of each call as in OSU; the processing is the same.
pub(super) fn figures(observations: &Observations) -> Result<Vec<Figure>, MeasureError> {
    osu::figures(observations)
}

#[cfg(test)]
mod tests {
    use super::super::test_data::expect;
    use downbeat_records::{CallTimes, ObservationState, Observations};

    #[test]
    fn valid_series_count_equally() {
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
