//! PS8, mpptest: minimum of the root's means over series of calls.

use super::figure::{Figure, ProcessedCalls};
use crate::error::MeasureError;
use downbeat_records::stats::Sample;

pub(super) fn figures(of_root: &[f64]) -> Result<ProcessedCalls, MeasureError> {
    let least = Sample::new(&mut of_root.to_vec())?.quantile(0.0);
    Ok(vec![Figure::new("min", least)].into())
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, means};
    use downbeat_records::ObservationState;

    #[test]
    fn only_the_root_counts() {
        let means = means(&[
            (ObservationState::Valid, &[2.5, 1.0]),
            (ObservationState::Late, &[0.1, 0.1]),
            (ObservationState::Valid, &[2.25, 0.5]),
        ]);
        expect("root-best", &means, 0, &[("min", 2.25)]);
        expect("root-best", &global(&five_calls()), 1, &[("min", 15.0)]);
    }
}
