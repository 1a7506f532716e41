//! Selection of an algorithm for all ranks of a communicator.

use downbeat_clock_core::Clock;

use super::local_clock::{Attempt, LocalClock, RankResult};
use super::{ClockPropSync, Cube, Hca, Hca2, Hca3, Hca3Offset, Jk, NbcBench, Skampi};
use crate::quality::{ExplainedError, Quality};
use crate::{Comm, CommError};

/// Algorithm for all ranks of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlatAlgorithm {
    /// `none`: no synchronization; the local clocks are global already.
    None,
    /// `skampi/OFFSET`: every rank in turn measures its offset to rank 0.
    Skampi(Skampi),
    /// `nbcbench/OFFSET`: offsets along a tree, summed up.
    NbcBench(NbcBench),
    /// `jk/LINE`: one line per rank, all over the same time.
    Jk(Jk),
    /// `hca/LINE`: lines along a tree, composed at its root; then another offset of every rank.
    Hca(Hca),
    /// `hca2/LINE`: as `hca`, without the offsets at the end.
    Hca2(Hca2),
    /// `hca3/LINE`: lines along a tree, each learned from a clock that is global already.
    Hca3(Hca3),
    /// `hca3-offset/OFFSET`: as `hca3`, with offsets instead of lines.
    Hca3Offset(Hca3Offset),
    /// `cube/TURNS/EXCHANGES` or `cube/TIME/EXCHANGES`: all ranks measure at once along the edges of a hypercube; least squares over all edges.
    Cube(Cube),
    /// `prop`: rank 0 sends its model to ranks that read the same time source.
    Prop(ClockPropSync),
}

impl FlatAlgorithm {
    /// Runs the algorithm in a box of its own: a suspended rank takes the memory of the running
    /// algorithm, not of the largest.
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        match self {
            Self::None => Ok(Ok(unsynchronized(me))),
            Self::Skampi(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::NbcBench(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Jk(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca2(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca3(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Hca3Offset(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Cube(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
            Self::Prop(algorithm) => Box::pin(algorithm.attempt(me, comm)).await,
        }
    }
}

/// Takes the local clock for global, whatever it shows.
fn unsynchronized<K: Clock>(me: &LocalClock<'_, K>) -> Attempt {
    let own = me.own();
    Attempt {
        quality: Quality {
            explained: ExplainedError::ANY,
            standard_error: None,
            ..own.quality
        },
        ..own
    }
}
