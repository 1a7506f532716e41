//! NBCBench's synchronization (Hoefler): offsets along a tree, summed up at its root.

use downbeat_clock_core::Clock;

use super::{Attempt, Hca2, LocalClock};
use crate::line::LineFit;
use crate::{Comm, CommError, OffsetAlgorithm};

/// HCA2 with offsets instead of lines: drift is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NbcBench {
    /// How an offset is measured.
    pub offset: OffsetAlgorithm,
}

impl NbcBench {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Attempt, CommError> {
        Hca2 {
            line: LineFit::level(self.offset),
        }
        .attempt(me, comm)
        .await
    }
}
