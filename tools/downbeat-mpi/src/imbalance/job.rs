//! Measurements behind a barrier.

use downbeat_common::bench::BenchGroup;

use super::studied::StudiedBarrier;
use super::timing::TimingMethod;

/// A measurement behind a barrier.
pub(super) type ImbalanceJob = BenchGroup<StudiedSubject>;

/// A barrier that is measured, or an operation behind it.
#[derive(Clone, Debug)]
pub(super) struct StudiedSubject {
    pub(super) barrier: StudiedBarrier,
    /// Method with which the operation behind the barrier is measured; `None` if the imbalance of the barrier is.
    pub(super) timing: Option<TimingMethod>,
}
