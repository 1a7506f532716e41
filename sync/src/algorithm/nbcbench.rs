//! Synchronization of NBCBench (Hoefler): offsets along a tree, summed up at its root.

use downbeat_clock_core::Clock;

use super::hca2::Hca2;
use super::local_clock::{LocalClock, RankResult};
use crate::line::LineFit;
use crate::{Comm, CommError, OffsetAlgorithm};

/// HCA2 with offsets instead of lines: drift is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NbcBench {
    /// Algorithm that measures each offset.
    pub offset: OffsetAlgorithm,
}

impl NbcBench {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        Hca2 {
            line: LineFit::offset_only(self.offset),
        }
        .attempt(me, comm)
        .await
    }
}
