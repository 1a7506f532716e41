//! Accuracy check (algorithm 6 of Hunold 2018): measures how far apart global clocks are.

mod tree;

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, FitError, Global, Timestamp};

use crate::collective::agree;
use crate::pair::OffsetClient;
use crate::pair::answer;
use crate::payload::{Payload, Words};
use crate::scramble::{SPLITMIX_STEP, scramble};
use crate::{Comm, LabelError, OffsetAlgorithm, SyncError, block_on_ready};

pub use tree::TreeOffset;

/// Measures the offset of the global clocks of other ranks to that of rank 0, one rank after the
/// other.
///
/// The last of many ranks is measured much later than the first; each result has its time. To
/// observe how the clocks drift apart, repeat the check after a while.
///
/// The result is a measurement: it is limited by the latency of messages, as the synchronization
/// itself is. Where all ranks read one counter, their clocks can be compared exactly instead.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Duration, Global, Timestamp, Clock};
/// use downbeat_sync::check::{AccuracyCheck, RankSample};
/// use downbeat_sync::{Comm, SyncError, ThreadCluster};
/// use downbeat_timers::{SystemClock, SystemClockId};
///
/// let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
/// let global = ClockModel::through(clock.ticks(), Timestamp::<Global>::ORIGIN, SystemClock::RATE)?;
/// let check = AccuracyCheck { offset: "skampi/20".parse()?, ranks: RankSample::ALL };
///
/// let found = ThreadCluster::new(3).run(|comm| check.measure_blocking(&clock, global, comm))?;
/// let found = found.into_iter().next().ok_or("there is a rank 0")??;
/// assert_eq!(found.iter().map(|offset| offset.rank).collect::<Vec<_>>(), [1, 2]);
/// // The ranks share a clock: no offset is further from 0 than its half width.
/// assert!(found.iter().filter_map(|offset| offset.sample).all(|sample| Some(sample.offset.abs()) <= sample.half_width));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccuracyCheck {
    /// Algorithm that measures each offset.
    pub offset: OffsetAlgorithm,
    /// Ranks that are measured.
    pub ranks: RankSample,
}

/// Random sample of ranks. All ranks compute the same sample from equal shares and seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSample {
    share: f64,
    seed: u64,
}

impl RankSample {
    /// Sample of all ranks.
    pub const ALL: Self = Self {
        share: 1.0,
        seed: 0,
    };

    /// Creates a sample of about this share of the ranks, each chosen independently of the others.
    ///
    /// # Errors
    /// If the share is not above 0 and at most 1.
    pub fn new(share: f64, seed: u64) -> Result<Self, LabelError> {
        if share > 0.0 && share <= 1.0 {
            Ok(Self { share, seed })
        } else {
            Err(LabelError::Share(share))
        }
    }

    /// Share of the ranks.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Seed by which the ranks are chosen.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns true if the rank is in the sample.
    pub fn contains(&self, rank: u32) -> bool {
        let mixed = |number: u64| scramble(number.wrapping_add(SPLITMIX_STEP));
        let number = mixed(self.seed ^ mixed(rank.into()));
        // The share of all numbers that are at most this; for 1 the cast saturates, and includes
        // all.
        number <= (self.share * u64::MAX as f64) as u64
    }
}

/// Offset of the global clock of one rank to that of rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankOffset {
    /// Measured rank.
    pub rank: u32,
    /// Time and offset; `None` if the exchanges contradicted each other.
    pub sample: Option<OffsetSample<Global>>,
}

impl AccuracyCheck {
    /// Measures all ranks of the sample once. All ranks call this with the same check; rank 0 gets
    /// the offset of every rank of the sample, all others get an empty list.
    ///
    /// # Errors
    /// If a rank is gone, or if the clock of a measured rank stepped back, which fails on all
    /// ranks.
    pub async fn measure<K: Clock, M: Comm>(
        &self,
        clock: &K,
        global: ClockModel<Counter, Global>,
        comm: &M,
    ) -> Result<Vec<RankOffset>, SyncError> {
        let (mut offsets, mut failure) = (Vec::new(), None);
        if comm.rank() == 0 {
            for rank in (1..comm.size()).filter(|rank| self.ranks.contains(*rank)) {
                answer(clock, &global, comm, rank).await?;
                let CheckedSample(sample) = comm.recv(rank).await?;
                offsets.push(RankOffset { rank, sample });
            }
        } else if self.ranks.contains(comm.rank()) {
            let (mut client, no_memory) =
                OffsetClient::<Global, Global>::new_or_single(self.offset, 0);
            let sample = client.attempt(clock, &global, comm).await?;
            comm.send(0, CheckedSample(sample.ok())).await?;
            // Contradictory exchanges of clocks that drift apart are a result, not a failure.
            failure = no_memory.or(sample
                .err()
                .filter(|why| !matches!(why, SyncError::Fit(FitError::Drifted { .. }))));
        }
        agree(comm, failure.map_or(Ok(offsets), Err)).await
    }

    /// Same as [`measure`](Self::measure), for a communicator that does not suspend.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_blocking<K: Clock, M: Comm>(
        &self,
        clock: &K,
        global: ClockModel<Counter, Global>,
        comm: &M,
    ) -> Result<Vec<RankOffset>, SyncError> {
        block_on_ready(self.measure(clock, global, comm))
    }
}

/// Result that a rank sends to rank 0.
#[derive(Clone, Copy, Debug)]
struct CheckedSample(Option<OffsetSample<Global>>);

/// A missing half width is sent as a negative one.
impl Payload for CheckedSample {
    const WORDS: usize = 4;

    fn put(self, words: &mut Words) {
        if let Some(sample) = self.0 {
            let width = sample.half_width.map_or(-1, Duration::as_nanos);
            words[..4].copy_from_slice(&[
                1,
                sample.at.as_nanos() as u64,
                sample.offset.as_nanos() as u64,
                width as u64,
            ]);
        }
    }

    fn get(words: &Words) -> Option<Self> {
        let [known, at, offset, width, ..] = *words;
        Some(Self((known == 1).then(|| OffsetSample {
            at: Timestamp::from_nanos(at as i64),
            offset: Duration::from_nanos(offset as i64),
            half_width:
                Some(Duration::from_nanos(width as i64)).filter(|width| *width >= Duration::ZERO),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::to_words;

    #[test]
    fn a_sample_has_about_the_requested_share_and_depends_on_the_seed() {
        assert!((0..1_000).all(|rank| RankSample::ALL.contains(rank)));
        for (share, seed) in [(0.1, 0), (0.1, 1), (0.5, 7), (0.9, 7)] {
            let sample = RankSample::new(share, seed).unwrap();
            let chosen = (0..10_000).filter(|rank| sample.contains(*rank)).count() as f64 / 1e4;
            assert!((chosen - share).abs() < 0.02, "{chosen} of {share}");
        }
        let chosen = |seed| {
            (0..100)
                .filter(|rank| RankSample::new(0.1, seed).unwrap().contains(*rank))
                .collect::<Vec<_>>()
        };
        assert_ne!(chosen(0), chosen(1));
    }

    #[test]
    fn invalid_shares_are_refused() {
        for share in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(RankSample::new(share, 0).is_err(), "{share}");
        }
    }

    #[test]
    fn checked_samples_are_transferred() {
        let sample = |half_width| OffsetSample {
            at: Timestamp::from_nanos(-5),
            offset: Duration::from_nanos(-7),
            half_width,
        };
        for report in [None, Some(sample(None)), Some(sample(Some(Duration::ZERO)))] {
            assert_eq!(
                CheckedSample::get(&to_words(CheckedSample(report)))
                    .unwrap()
                    .0,
                report
            );
        }
    }
}
