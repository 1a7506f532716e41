//! Measurements behind a barrier, and their names in records.

use downbeat_records::GroupKey;

use super::studied::StudiedBarrier;
use super::timing::TimingMethod;

/// A measurement, and its name in records.
#[derive(Clone, Debug)]
pub(super) struct ImbalanceJob {
    pub(super) key: GroupKey,
    pub(super) barrier: StudiedBarrier,
    /// Method with which the operation behind the barrier is measured; `None` if the imbalance of the barrier is.
    pub(super) timing: Option<TimingMethod>,
}

impl ImbalanceJob {
    /// Returns the name of the operation behind the barrier.
    pub(super) fn operation(&self) -> String {
        self.key
            .operation
            .split('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}
