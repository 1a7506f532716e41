//! Synchronizing all ranks: one algorithm per file.

mod hca;
mod hca2;
mod hca3;
mod hierarchy;
mod jk;
mod label;
mod nbcbench;
mod prop;
mod skampi;

use core::hash::{Hash, Hasher};

use downbeat_clock_core::{Clock, ClockModel, Counter, Global, Local, Timestamp};

pub use hca::Hca;
pub use hca2::Hca2;
pub use hca3::{Hca3, Hca3Offset};
pub use hierarchy::Hierarchy;
pub use jk::Jk;
pub use nbcbench::NbcBench;
pub use prop::ClockPropSync;
pub use skampi::Skampi;

use crate::collective::{all_equal, lowest_rank_where};
use crate::line::{LearnedModel, Quality};
use crate::{Comm, CommError, SyncError, block_on_ready};

/// What a rank brings along to a synchronization.
#[derive(Clone, Copy, Debug)]
pub struct LocalClock<'a, K> {
    clock: &'a K,
    base: ClockModel<Counter, Local>,
    /// How good the base is, where it is global time already.
    quality: Quality,
    source: u64,
    place: RankPlacement,
}

/// Where a rank is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankPlacement {
    /// Equal on ranks that share a node.
    pub node: u32,
    /// Equal on ranks that share a node and a socket.
    pub socket: u32,
}

/// What a rank has after a synchronization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synchronized {
    /// Global time by this rank's counter: one map, however many were composed.
    pub model: ClockModel<Counter, Global>,
    /// What is known of its error.
    pub quality: Quality,
}

impl<'a, K: Clock> LocalClock<'a, K> {
    /// A rank whose `clock` shows the time `base`, as far as it knows. On rank 0 that becomes global time.
    pub fn new(clock: &'a K, base: ClockModel<Counter, Local>) -> Self {
        Self {
            clock,
            base,
            quality: Quality::default(),
            source: 0,
            place: RankPlacement::default(),
        }
    }

    /// Says which source of time the clock reads, by a number that is equal on ranks that read the same one, as far as
    /// they know: such as a hash of the clock's name, the boot id and the time namespace. [`ClockPropSync`] asks.
    #[must_use]
    pub fn source(self, source: u64) -> Self {
        Self { source, ..self }
    }

    /// Says where the rank is. A [`Hierarchy`] asks.
    #[must_use]
    pub fn placement(self, place: RankPlacement) -> Self {
        Self { place, ..self }
    }

    /// The clock that the rank reads.
    pub fn clock(&self) -> &'a K {
        self.clock
    }

    /// What that clock shows, as far as the rank knows.
    pub fn base(&self) -> ClockModel<Counter, Local> {
        self.base
    }

    /// What time it is, as far as the rank knows.
    pub fn now(&self) -> Timestamp<Local> {
        self.base.apply(self.clock.ticks())
    }

    /// This rank's own time, taken for global time: so on rank 0, and in place of what a rank failed to learn.
    fn own(&self) -> Synchronized {
        Synchronized {
            model: self.base.renamed(),
            quality: self.quality,
        }
    }

    /// Global time, as learned from a reference.
    fn learned(&self, learned: LearnedModel<Local, Global>) -> Attempt {
        Ok(Synchronized {
            model: self.base.then(&learned.model)?,
            quality: learned.quality,
        })
    }
}

/// How a synchronization ended for this rank: not before all its messages were exchanged, also where it failed.
type Attempt = Result<Synchronized, SyncError>;

/// How the clocks of all ranks become one.
///
/// Its label names the algorithm and all its parameters; see the variants.
///
/// ```
/// use downbeat_sync::Algorithm;
///
/// for label in ["hca3/1000/skampi/100", "jk/100/mean-rtt/20", "h2hca(hca3/500/skampi/100/recompute,prop)"] {
///     assert_eq!(label.parse::<Algorithm>()?.to_string(), label);
/// }
/// # Ok::<(), downbeat_sync::LabelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// All ranks at once.
    FlatAlgorithm(FlatAlgorithm),
    /// Nodes first, then the ranks within.
    Hierarchy(Hierarchy),
}

/// An algorithm for all ranks of a communicator at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlatAlgorithm {
    /// `none`: the clocks are one already.
    None,
    /// `skampi/OFFSET`: every rank in turn measures its offset to rank 0.
    Skampi(Skampi),
    /// `nbcbench/OFFSET`: offsets along a tree, summed up.
    NbcBench(NbcBench),
    /// `jk/LINE`: a line per rank, all of them over the same time.
    Jk(Jk),
    /// `hca/LINE`: lines along a tree, composed at its root; then every rank's offset once more.
    Hca(Hca),
    /// `hca2/LINE`: the same without the offsets at the end.
    Hca2(Hca2),
    /// `hca3/LINE`: lines along a tree, each learned from a clock that is global already.
    Hca3(Hca3),
    /// `hca3-offset/OFFSET`: the same with offsets.
    Hca3Offset(Hca3Offset),
    /// `prop`: rank 0 tells its model to ranks that read the same source of time.
    Prop(ClockPropSync),
}

impl FlatAlgorithm {
    /// Each algorithm in a box of its own: a suspended rank takes the memory of what it runs, not that of the largest.
    async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Attempt, CommError> {
        match self {
            Self::None => Ok(Ok(me.own())),
            Self::Skampi(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::NbcBench(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Jk(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca2(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca3(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca3Offset(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Prop(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
        }
    }
}

impl Algorithm {
    /// Synchronizes the clocks of all ranks, which all call this with the same algorithm.
    ///
    /// All ranks succeed, or all fail; nobody is left waiting.
    ///
    /// # Errors
    /// When the ranks ask for different algorithms, when a clock cannot be fitted, or when a rank is gone.
    pub async fn synchronize<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Synchronized, SyncError> {
        // In boxes, because a million suspended ranks must have room.
        if !Box::pin(all_equal(comm, self.fingerprint())).await? {
            return Err(SyncError::DifferentAlgorithms);
        }
        let attempt = match self {
            Self::FlatAlgorithm(algorithm) => algorithm.attempt(me, comm).await?,
            Self::Hierarchy(algorithm) => Box::pin(algorithm.attempt(me, comm)).await?,
        };
        match Box::pin(lowest_rank_where(comm, attempt.is_err())).await? {
            Some(rank) => attempt.and(Err(SyncError::OtherRank(rank))),
            None => attempt,
        }
    }

    /// As [`synchronize`](Self::synchronize), for a communicator that does not suspend.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn synchronize_blocking<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Synchronized, SyncError> {
        block_on_ready(self.synchronize(me, comm))
    }

    /// Equal for equal algorithms, in all processes that run the same program.
    fn fingerprint(&self) -> u64 {
        #[expect(
            deprecated,
            reason = "the one hasher of the standard library that is the same in all processes"
        )]
        let mut hasher = core::hash::SipHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
