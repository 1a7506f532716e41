//! Times of all calls on all ranks without outliers, each rank with its own times.

use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use crate::processing::{Extremes, mpi_bench};

/// Returns the threshold above which times are outliers, and the figures of the others. Every rank has a time.
pub(super) async fn without_outliers<M: Comm>(
    comm: &M,
    mut own: Vec<i64>,
    factor: f64,
) -> Result<(f64, Extremes), CommError> {
    own.sort_unstable();
    let pool = Pool { comm, own: &own };
    let t99 = pool.quantile(mpi_bench::PERCENTILE).await?;
    let threshold = mpi_bench::threshold(t99, factor);
    let kept = &own[..own.partition_point(|time| *time as f64 <= threshold)];
    let sum = kept.iter().map(|time| *time as f64).sum::<f64>();
    // A rank may keep none.
    let (min, max) = (
        kept.first().unwrap_or(&i64::MAX),
        kept.last().unwrap_or(&i64::MIN),
    );
    let words = [kept.len() as u64, sum.to_bits(), *min as u64, *max as u64];
    let combine = |a: [u64; 4], b: [u64; 4]| {
        [
            a[0] + b[0],
            (f64::from_bits(a[1]) + f64::from_bits(b[1])).to_bits(),
            (a[2] as i64).min(b[2] as i64) as u64,
            (a[3] as i64).max(b[3] as i64) as u64,
        ]
    };
    let [count, sum, min, max] = all_reduce(comm, words, combine).await?;
    let kept = Extremes {
        mean: f64::from_bits(sum) / count as f64,
        min: min as i64 as f64,
        max: max as i64 as f64,
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
        let [not_above, next] = all_reduce(self.comm, [not_above as u64, next as u64], |a, b| {
            [a[0] + b[0], (a[1] as i64).min(b[1] as i64) as u64]
        })
        .await?;
        let is_next_above = not_above < count && not_above <= place as u64 + 1;
        let above = if is_next_above { next as i64 } else { below };
        Ok(below as f64 + (above - below) as f64 * place.fract())
    }

    /// Returns the time that this number of others are not above, by bisection between the least and the greatest.
    async fn smallest(&self, before: u64) -> Result<i64, CommError> {
        let ends = [self.own.first(), self.own.last()].map(|end| end.copied().unwrap_or(0) as u64);
        let [least, most] = all_reduce(self.comm, ends, |a, b| {
            let [least, most] = [
                (a[0] as i64).min(b[0] as i64),
                (a[1] as i64).max(b[1] as i64),
            ];
            [least as u64, most as u64]
        })
        .await?;
        let (mut least, mut most) = (i128::from(least as i64), i128::from(most as i64));
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
