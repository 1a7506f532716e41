//! Detection of `MPI_Finalize`, after which MPI may not be called.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi::attribute::CommAttribute;
use mpi::topology::SimpleCommunicator;
use mpi::traits::AnyCommunicator;

use super::error::MpiError;

/// True after `MPI_Finalize`. Checked before every message, where a call of `MPI_Finalized` would
/// take a hundredth of the round trip.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Checks that MPI still runs. It did when a communicator was created.
#[inline]
pub(super) fn check_running() -> Result<(), MpiError> {
    if ENDED.load(Ordering::Relaxed) {
        Err(MpiError::Finalized)
    } else {
        Ok(())
    }
}

/// Registers a hook for the end of MPI, which must be running.
///
/// `MPI_Finalize` first deletes the attributes of `MPI_COMM_SELF` (MPI 4.0, section 11.2.4).
pub(super) fn notice_finalize() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| SimpleCommunicator::self_comm().set_attr(FinalizeHook));
}

/// Attribute of `MPI_COMM_SELF`. MPI requires `Clone`, but never clones it.
#[derive(Clone)]
struct FinalizeHook;

impl CommAttribute for FinalizeHook {}

impl Drop for FinalizeHook {
    fn drop(&mut self) {
        ENDED.store(true, Ordering::Relaxed);
    }
}
