//! Selection of an algorithm for all ranks of a communicator.

use downbeat_clock_core::Clock;

use super::local_clock::{Attempt, LocalClock, RankResult};
use super::{Cube, hca, hca2, hca3, jk, prop};
use crate::line::LineFit;
use crate::quality::{ExplainedError, Quality};
use crate::{Comm, CommError, OffsetAlgorithm};

/// Algorithm for all ranks of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlatAlgorithm {
    /// `none`: no synchronization; the local clocks are global already.
    None,
    /// `skampi/OFFSET`, as SKaMPI does: every rank in turn measures its offset to rank 0; drift is ignored.
    Skampi(OffsetAlgorithm),
    /// `nbcbench/OFFSET`, as NBCBench (Hoefler) does: offsets along a tree, summed up at its root; drift is ignored.
    NbcBench(OffsetAlgorithm),
    /// `jk/LINE`: one line per rank, all over the same time.
    Jk(LineFit),
    /// `hca/LINE`: lines along a tree, composed at its root; then another offset of every rank.
    Hca(LineFit),
    /// `hca2/LINE`: as `hca`, without the offsets at the end.
    Hca2(LineFit),
    /// `hca3/LINE`: lines along a tree, each learned from a clock that is global already.
    Hca3(LineFit),
    /// `hca3-offset/OFFSET`: as `hca3`, with offsets instead of lines.
    Hca3Offset(OffsetAlgorithm),
    /// `cube/TURNS/EXCHANGES` or `cube/TIME/EXCHANGES`: all ranks measure at once along the edges of a hypercube; least squares over all edges.
    Cube(Cube),
    /// `prop`: rank 0 sends its model to ranks that read the same time source.
    Prop,
}

impl FlatAlgorithm {
    /// Runs the algorithm in a box of its own: a suspended rank takes the memory of the running
    /// algorithm, not of the largest.
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        let offset_only = |offset: &OffsetAlgorithm| LineFit::offset_only(*offset);
        match self {
            Self::None => Ok(Ok(unsynchronized(me))),
            Self::Skampi(offset) => Box::pin(jk::attempt(offset_only(offset), me, comm)).await,
            Self::NbcBench(offset) => Box::pin(hca2::attempt(offset_only(offset), me, comm)).await,
            Self::Jk(line) => Box::pin(jk::attempt(*line, me, comm)).await,
            Self::Hca(line) => Box::pin(hca::attempt(*line, me, comm)).await,
            Self::Hca2(line) => Box::pin(hca2::attempt(*line, me, comm)).await,
            Self::Hca3(line) => Box::pin(hca3::attempt(*line, me, comm)).await,
            Self::Hca3Offset(offset) => {
                Box::pin(hca3::attempt(offset_only(offset), me, comm)).await
            }
            Self::Cube(cube) => Box::pin(cube.attempt(me, comm)).await,
            Self::Prop => Box::pin(prop::attempt(me, comm)).await,
        }
    }
}

/// Takes the local clock for global, whatever it shows.
fn unsynchronized<K: Clock>(me: &LocalClock<'_, K>) -> Attempt {
    let own = me.own();
    Attempt {
        quality: Quality {
            explained: ExplainedError::ANY,
            stated_error: None,
            ..own.quality
        },
        ..own
    }
}
