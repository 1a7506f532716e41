//! PS6, NBCBench: maximum of a figure over all ranks.

use super::figure::{Figure, PerRank, greatest, least, rank_times};
use crate::error::MeasureError;
use downbeat_records::Observations;
use downbeat_records::stats::Sample;

pub(super) fn figures(
    observations: &Observations,
    per_rank: PerRank,
) -> Result<Vec<Figure>, MeasureError> {
    let figure = |rank| {
        let mut times = rank_times(observations, rank);
        let sample = Sample::new(&mut times)?;
        Ok(match per_rank {
            PerRank::Mean => sample.mean(),
            PerRank::Median => sample.median(),
            PerRank::Min => least(&sample),
            PerRank::Max => greatest(&sample),
        })
    };
    let ranks: Result<Vec<f64>, MeasureError> = (0..observations.ranks()).map(figure).collect();
    Ok(vec![Figure::new(
        "max",
        greatest(&Sample::new(&mut ranks?)?),
    )])
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
