//! SKaMPI's synchronization: one offset per rank, one rank after the other.

use downbeat_clock_core::Clock;

use super::{Attempt, Jk, LocalClock};
use crate::line::LineFit;
use crate::{Comm, CommError, OffsetAlgorithm};

/// Every rank in turn measures its offset to rank 0; drift is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Skampi {
    /// How an offset is measured.
    pub offset: OffsetAlgorithm,
}

impl Skampi {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Attempt, CommError> {
        Jk {
            line: LineFit::level(self.offset),
        }
        .attempt(me, comm)
        .await
    }
}
