//! PS8, mpptest: minimum of the root's means over series of calls.

use super::figure::Figure;
use crate::error::MeasureError;
use downbeat_records::stats::Sample;

pub(super) fn figures(of_root: &[f64]) -> Result<Vec<Figure>, MeasureError> {
    let least = Sample::new(&mut of_root.to_vec())?.quantile(0.0);
    Ok(vec![Figure::new("min", least)])
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global};
    use downbeat_records::{CallTimes, ObservationState, Observations};

    #[test]
    fn only_the_root_counts() {
        let states = vec![
            ObservationState::Valid,
            ObservationState::Late,
            ObservationState::Valid,
        ];
        let means = CallTimes::Means(vec![2.5, 1.0, 0.1, 0.1, 2.25, 0.5]);
        expect(
            "root-best",
            &Observations::new(2, states, means).unwrap(),
            0,
            &[("min", 2.25)],
        );
        expect("root-best", &global(&five_calls()), 1, &[("min", 15.0)]);
    }
}
