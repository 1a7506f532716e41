//! Blocking messages over MPI.

use downbeat_sync::payload::Payload;
use downbeat_sync::{Comm, CommError, MpiComm, block_on_ready};

pub(crate) fn send<P: Payload>(comm: &MpiComm, to: u32, payload: P) -> Result<(), CommError> {
    block_on_ready(comm.send(to, payload))
}

pub(crate) fn recv<P: Payload>(comm: &MpiComm, from: u32) -> Result<P, CommError> {
    block_on_ready(comm.recv(from))
}
