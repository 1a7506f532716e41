//! The end of MPI, after which none of its functions may be called.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi::attribute::CommAttribute;
use mpi::topology::SimpleCommunicator;
use mpi::traits::AnyCommunicator;

use super::error::MpiError;

/// Asked before every message, where a call of `MPI_Finalized` would cost a hundredth of the round trip.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Whether MPI still runs. It did when a communicator was made.
#[inline]
pub(super) fn check_running() -> Result<(), MpiError> {
    if ENDED.load(Ordering::Relaxed) {
        Err(MpiError::Finalized)
    } else {
        Ok(())
    }
}

/// Has MPI tell its end; it must be running.
///
/// The first thing that `MPI_Finalize` does is to drop what is attached to `MPI_COMM_SELF` (MPI 4.0, section 11.2.4).
pub(super) fn notice_finalize() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| SimpleCommunicator::self_comm().set_attr(FinalizeHook));
}

/// MPI wants to be able to clone it, and never does.
#[derive(Clone)]
struct FinalizeHook;

impl CommAttribute for FinalizeHook {}

impl Drop for FinalizeHook {
    fn drop(&mut self) {
        ENDED.store(true, Ordering::Relaxed);
    }
}
