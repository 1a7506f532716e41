//! PS1, SKaMPI: the middle half of the calls, by the time of each call's slowest rank.

use super::figure::{Figure, ProcessedCalls};
use crate::error::MeasureError;
use downbeat_records::stats::Sample;

pub(super) fn figures(slowest: &[f64]) -> Result<ProcessedCalls, MeasureError> {
    let mut times = slowest.to_vec();
    // A quarter of the sorted times, rounded down, is cut off at either end, so that a single call remains.
    let quarter = times.len() / 4;
    let kept = quarter..times.len() - quarter;
    Sample::new(&mut times)?;
    let middle = Sample::new(&mut times[kept])?;
    let deviation = middle
        .standard_deviation()
        .map(|nanos| Figure::new("stdev", nanos));
    let error = middle
        .standard_error()
        .map(|nanos| Figure::new("stderr", nanos));
    Ok([Figure::new("mean", middle.mean())]
        .into_iter()
        .chain(deviation)
        .chain(error)
        .collect::<Vec<_>>()
        .into())
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    #[test]
    fn the_middle_half_is_that_of_the_slowest_ranks() {
        // The slowest: 45, 30, 40, 35; their middle: 35, 40.
        let by_hand = [("mean", 37.5), ("stdev", 12.5_f64.sqrt()), ("stderr", 2.5)];
        expect("skampi", &global(&five_calls()), 0, &by_hand);
        // Of nine, two are cut off at either end: 3, 4, 5, 6, 7 are left, of variance 2.5.
        let nine: Vec<[i64; 2]> = [9, 1, 8, 2, 7, 3, 6, 4, 5].map(|time| [0, time]).to_vec();
        let nine: Vec<&[i64]> = nine.iter().map(<[i64; 2]>::as_slice).collect();
        let by_hand = [
            ("mean", 5.0),
            ("stdev", 2.5_f64.sqrt()),
            ("stderr", 0.5_f64.sqrt()),
        ];
        expect("skampi", &local(&nine), 0, &by_hand);
    }

    #[test]
    fn fewer_than_four_calls_are_not_cut() {
        expect("skampi", &local(&[&[5, 7]]), 0, &[("mean", 7.0)]);
        let three = local(&[&[1, 3], &[6, 0], &[9, 9]]);
        expect(
            "skampi",
            &three,
            0,
            &[("mean", 6.0), ("stdev", 3.0), ("stderr", 3.0_f64.sqrt())],
        );
    }
}
