//! PS6, NBCBench: maximum of a figure over all ranks.

use super::figure::{Extremes, Figure, ProcessedCalls};

pub(super) fn figures(of_ranks: &Extremes) -> ProcessedCalls {
    vec![Figure::new("max", of_ranks.max)].into()
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global};

    #[test]
    fn the_worst_rank_counts() {
        // Rank 0: 10, 30, 40, 40. Rank 1: 15, 19, 35, 45.
        for (figure, max) in [
            ("mean", 30.0),
            ("median", 35.0),
            ("min", 15.0),
            ("max", 45.0),
        ] {
            expect(
                &format!("nbcbench/{figure}"),
                &global(&five_calls()),
                0,
                &[("max", max)],
            );
        }
    }
}
