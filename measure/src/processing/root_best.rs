//! PS8, mpptest: the root's mean of every series of calls, and the least of these.

use super::{Figure, ProcessingError, least, times_of};
use downbeat_records::Observations;
use downbeat_records::stats::Sample;

pub(super) fn figures(
    observations: &Observations,
    root: usize,
) -> Result<Vec<Figure>, ProcessingError> {
    Ok(vec![Figure::new(
        "min",
        least(&Sample::new(&mut times_of(observations, root))?),
    )])
}

#[cfg(test)]
mod tests {
    use super::super::hand::{expect, five_calls, global};
    use downbeat_records::{CallTimes, ObservationState, Observations};

    #[test]
    fn nobody_but_the_root_counts() {
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
