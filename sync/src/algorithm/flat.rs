//! Selection of an algorithm for all ranks of a communicator.

use downbeat_clock_core::Clock;

use super::local_clock::{LocalClock, RankResult};
use super::{ClockPropSync, Hca, Hca2, Hca3, Hca3Offset, Jk, NbcBench, Skampi};
use crate::{Comm, CommError};

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
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
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
