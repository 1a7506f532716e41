//! PS5, MPIBench: the times of all calls on all ranks without outliers, of which each rank has its own.

use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::figure::{Extremes, Figure, ProcessedCalls};

/// Share of the times below the percentile.
pub(super) const PERCENTILE: f64 = 0.99;

/// Returns the threshold above which a time is an outlier, by the 99th percentile and a factor.
///
/// Section 2 of Hunold 2016: "they determine the 99th percentile of the sample, denoted as t99, and then define tthresh =
/// t99 * a for some constant a >= 1". The sample consists of all calls on all ranks. The paper does not define the
/// percentile: it is R's type 7, as everywhere in this crate.
pub(super) fn threshold(t99: f64, factor: f64) -> f64 {
    // A clock that ran backwards can make t99 negative: then all times may be above a multiple of it.
    t99.max(factor * t99)
}

pub(super) fn figures((threshold, kept): (f64, Extremes)) -> ProcessedCalls {
    let threshold = Figure::new("threshold", threshold);
    let figures = kept.figures().into_iter().chain([threshold]);
    figures.collect::<Vec<_>>().into()
}

/// Returns the threshold above which times are outliers, and the figures of the others. Every rank has a time.
pub(super) async fn without_outliers<M: Comm>(
    comm: &M,
    mut own: Vec<i64>,
    factor: f64,
) -> Result<(f64, Extremes), CommError> {
    own.sort_unstable();
    let pool = Pool { comm, own: &own };
    let t99 = pool.quantile(PERCENTILE).await?;
    let threshold = threshold(t99, factor);
    let kept = &own[..own.partition_point(|time| *time as f64 <= threshold)];
    let sum = kept.iter().map(|time| *time as f64).sum::<f64>();
    // A rank may keep none.
    let min = kept.first().copied().unwrap_or(i64::MAX);
    let max = kept.last().copied().unwrap_or(i64::MIN);
    let own = (kept.len() as u64, sum, min, max);
    type Sums = (u64, f64, i64, i64);
    let combine = |a: Sums, b: Sums| (a.0 + b.0, a.1 + b.1, a.2.min(b.2), a.3.max(b.3));
    let (count, sum, min, max) = all_reduce(comm, own, combine).await?;
    let kept = Extremes {
        mean: sum / count as f64,
        min: min as f64,
        max: max as f64,
    };
    Ok((threshold, kept))
}

/// Sorted times of all ranks.
struct Pool<'a, M> {
    comm: &'a M,
    own: &'a [i64],
}

impl<M: Comm> Pool<'_, M> {
    /// Returns the quantile of type 7, between the two closest times.
    async fn quantile(&self, share: f64) -> Result<f64, CommError> {
        let count = all_reduce(self.comm, self.own.len() as u64, |a, b| a + b).await?;
        let place = share * (count - 1) as f64;
        let below = self.smallest(place as u64).await?;
        let not_above = self.own.partition_point(|time| *time <= below);
        let next = self.own.get(not_above).copied().unwrap_or(i64::MAX);
        let combine = |a: (u64, i64), b: (u64, i64)| (a.0 + b.0, a.1.min(b.1));
        let (not_above, next) = all_reduce(self.comm, (not_above as u64, next), combine).await?;
        let is_next_above = not_above < count && not_above <= place as u64 + 1;
        let above = if is_next_above { next } else { below };
        Ok(below as f64 + (above - below) as f64 * place.fract())
    }

    /// Returns the time that this number of others are not above, by bisection between the least and the greatest.
    async fn smallest(&self, before: u64) -> Result<i64, CommError> {
        let ends = [self.own.first(), self.own.last()].map(|end| end.copied().unwrap_or(0));
        let combine = |a: [i64; 2], b: [i64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        let ends = all_reduce(self.comm, ends, combine).await?;
        let [mut least, mut most] = ends.map(i128::from);
        while least < most {
            let middle = (least + most).div_euclid(2);
            let own = self.own.partition_point(|time| i128::from(*time) <= middle) as u64;
            if all_reduce(self.comm, own, |a, b| a + b).await? > before {
                most = middle;
            } else {
                least = middle + 1;
            }
        }
        Ok(least as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};

    #[test]
    fn times_above_the_threshold_are_outliers() {
        // 49 times 10, 51 times 20 and a last value: index 99 of 0..=100 is the last 20.
        let process = |label: &str, last: i64, figures: [f64; 4]| {
            let times: Vec<i64> = [vec![10; 49], vec![20; 51], vec![last]].concat();
            let calls: Vec<&[i64]> = times.chunks(1).collect();
            let [mean, min, max, threshold] = figures;
            let figures = [
                ("mean", mean),
                ("min", min),
                ("max", max),
                ("threshold", threshold),
            ];
            expect(label, &local(&calls), 0, &figures);
        };
        process("mpibench", 40, [1_550.0 / 101.0, 10.0, 40.0, 40.0]);
        process("mpibench", 41, [15.1, 10.0, 20.0, 40.0]);
        process("mpibench/1", 40, [15.1, 10.0, 20.0, 20.0]);
        process("mpibench/2.5", 41, [1_551.0 / 101.0, 10.0, 41.0, 50.0]);
    }

    #[test]
    fn all_ranks_count() {
        // 40, 45, 30, 19, 40, 15, 10, 35; index 6.93 is between 40 and 45.
        let by_hand = [
            ("mean", 29.25),
            ("min", 10.0),
            ("max", 45.0),
            ("threshold", 2.0 * 44.65),
        ];
        expect("mpibench", &global(&five_calls()), 0, &by_hand);
    }

    #[test]
    fn times_of_a_clock_that_ran_backwards_are_not_all_outliers() {
        let by_hand = [
            ("mean", -2.0),
            ("min", -2.0),
            ("max", -2.0),
            ("threshold", -2.0),
        ];
        expect("mpibench", &local(&[&[-2]]), 0, &by_hand);
    }
}
