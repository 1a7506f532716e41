//! Tree check: every rank compares its global clock with that of its parent in a binomial tree, so that all ranks are
//! compared in logarithmic time.
//!
//! [`AccuracyCheck`](crate::check::AccuracyCheck) measures one rank after the other, directly to rank 0; this check is short enough
//! to be repeated during a measurement.

use core::num::NonZeroU32;

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::tree::{BinomialTree, PairRole};
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global};

use crate::pair::OffsetClient;
use crate::pair::answer;
use crate::payload::payload_of_fields;
use crate::session::resolution;
use crate::{Comm, CommError, OffsetAlgorithm};

/// Exchanges of one offset: enough that one of them is quick.
const OFFSET: OffsetAlgorithm = OffsetAlgorithm::skampi(NonZeroU32::new(10).unwrap());

/// Number of offsets that every rank measures to its parent.
const OFFSETS: usize = 5;

/// Number of the most certain offsets that must agree: others may have met the scheduler.
const CERTAIN: usize = 3;

/// Offset of the global clock of a rank to that of rank 0, as a sum over its path in the tree.
///
/// ```
/// use downbeat_clock_core::{Clock, ClockModel, Duration, Global, Timestamp};
/// use downbeat_sync::check::TreeOffset;
/// use downbeat_sync::{CommError, ThreadCluster, block_on_ready};
/// use downbeat_timers::{SystemClock, SystemClockId};
///
/// let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
/// let global = ClockModel::through(clock.ticks(), Timestamp::<Global>::ORIGIN, SystemClock::RATE)?;
/// let found = ThreadCluster::new(3).run(|comm| block_on_ready(TreeOffset::measure(&clock, &global, comm)))?;
/// for offset in found.into_iter().collect::<Result<Vec<_>, CommError>>()? {
///     // The ranks share a clock.
///     assert!(offset.offset.abs() <= offset.half_width);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOffset {
    /// Estimated offset: the clock shows more than that of rank 0 by this.
    pub offset: Duration,
    /// Range of the most certain of several estimates: their random error.
    pub noise: Duration,
    /// Largest error of the estimate, the unknown difference of both directions of messages included. It is
    /// [`Duration::MAX`] if no exchanges agreed.
    pub half_width: Duration,
}

impl TreeOffset {
    /// Offset of rank 0.
    const NONE: Self = Self {
        offset: Duration::ZERO,
        noise: Duration::ZERO,
        half_width: Duration::ZERO,
    };

    /// Offset that nothing is known of.
    const UNKNOWN: Self = Self {
        offset: Duration::ZERO,
        noise: Duration::MAX,
        half_width: Duration::MAX,
    };

    /// Measures the offset of this rank. All ranks call this.
    ///
    /// # Errors
    /// If a rank is gone. Exchanges that contradict each other make the offset unknown.
    pub async fn measure<K: Clock, M: Comm>(
        clock: &K,
        global: &ClockModel<Counter, Global>,
        comm: &M,
    ) -> Result<Self, CommError> {
        let mut own = Self::NONE;
        let tree = BinomialTree::new(comm.size());
        for role in tree.roles_from_root(comm.rank()) {
            match role {
                PairRole::ReferenceOf(client) => {
                    comm.send(client, own).await?;
                    for _ in 0..OFFSETS {
                        answer(clock, global, comm, client).await?;
                    }
                }
                PairRole::ClientOf(reference) => {
                    let of_parent: Self = comm.recv(reference).await?;
                    let (mut client, _) =
                        OffsetClient::<Global, Global>::new_or_single(OFFSET, reference);
                    let mut samples = [None; OFFSETS];
                    for sample in &mut samples {
                        *sample = client.attempt(clock, global, comm).await?.ok();
                    }
                    own = Self::of_samples(samples, resolution(clock, global)).after(of_parent);
                }
            }
        }
        Ok(own)
    }

    /// Combines offsets to the same clock. The estimate is the most certain one; a clock of coarse steps makes estimates equal
    /// that are not, so that the noise is at least its step.
    fn of_samples(samples: [Option<OffsetSample<Global>>; OFFSETS], step: Duration) -> Self {
        let half_width = |sample: &OffsetSample<Global>| sample.half_width.unwrap_or(Duration::MAX);
        let mut samples: Vec<_> = samples.into_iter().flatten().collect();
        samples.sort_by_key(half_width);
        let Some(certain) = samples.get(..CERTAIN) else {
            return Self::UNKNOWN;
        };
        let offsets = || certain.iter().map(|sample| sample.offset);
        let range = offsets()
            .max()
            .zip(offsets().min())
            .map_or(Duration::ZERO, |(most, least)| most - least);
        Self {
            offset: certain[0].offset,
            noise: range.max(step),
            half_width: half_width(&certain[0]),
        }
    }

    /// Offset to rank 0 of a clock that has this offset to its parent.
    fn after(self, of_parent: Self) -> Self {
        Self {
            offset: self.offset + of_parent.offset,
            noise: self.noise + of_parent.noise,
            half_width: self.half_width + of_parent.half_width,
        }
    }

    /// Largest offset that is possible.
    pub fn most(&self) -> Duration {
        self.offset.abs() + self.half_width
    }
}

payload_of_fields!([] TreeOffset { offset, noise, half_width });

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::Timestamp;

    fn sample(offset: i64, half_width: i64) -> Option<OffsetSample<Global>> {
        Some(OffsetSample {
            at: Timestamp::ORIGIN,
            offset: Duration::from_nanos(offset),
            half_width: Some(Duration::from_nanos(half_width)),
        })
    }

    #[test]
    fn the_most_certain_offsets_count() {
        let step = Duration::from_nanos(2);
        let found = TreeOffset::of_samples(
            [
                sample(-90, 500),
                sample(7, 20),
                sample(4, 30),
                None,
                sample(12, 25),
            ],
            step,
        );
        let nanos = |found: TreeOffset| {
            [found.offset, found.noise, found.half_width].map(Duration::as_nanos)
        };
        assert_eq!(nanos(found), [7, 8, 20]);
        assert_eq!(nanos(found.after(found)), [14, 16, 40]);
        assert_eq!(found.after(found).most().as_nanos(), 54);
        let equal = TreeOffset::of_samples([sample(5, 9); OFFSETS], step);
        assert_eq!(nanos(equal), [5, 2, 9]);
    }

    #[test]
    fn too_few_offsets_are_unknown() {
        let found = TreeOffset::of_samples(
            [sample(7, 20), None, sample(4, 30), None, None],
            Duration::ZERO,
        );
        assert_eq!(found, TreeOffset::UNKNOWN);
        assert_eq!(found.most(), Duration::MAX);
    }
}
