//! Synchronization of SKaMPI: one offset per rank, one rank after the other.

use downbeat_clock_core::Clock;

use super::jk::Jk;
use super::local_clock::{LocalClock, RankResult};
use crate::line::LineFit;
use crate::{Comm, CommError, OffsetAlgorithm};

/// Every rank in turn measures its offset to rank 0; drift is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Skampi {
    /// Algorithm that measures each offset.
    pub offset: OffsetAlgorithm,
}

impl Skampi {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        Jk {
            line: LineFit::offset_only(self.offset),
        }
        .attempt(me, comm)
        .await
    }
}
