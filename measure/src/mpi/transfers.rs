//! Messages between pairs of ranks, several of them in flight at once: bandwidths and message rates as OSU's and Intel's suites measure
//! them.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Request};

use super::calls::{CallArguments, MpiCall, TAG, receive, send};

/// Part of a rank in a pair: rank `i` sends to rank `i + n / 2` of `n`, so that pairs are between the halves of the ranks, which are on
/// different nodes if ranks fill one node after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairPart {
    /// Sends first, to this rank.
    Sender(c_int),
    /// Receives first, from this rank.
    Receiver(c_int),
    /// The last of an odd number of ranks.
    Idle,
}

impl PairPart {
    #[inline(always)]
    pub(super) fn of(rank: c_int, ranks: c_int) -> Self {
        let half = ranks / 2;
        if rank < half {
            Self::Sender(rank + half)
        } else if rank < 2 * half {
            Self::Receiver(rank - half)
        } else {
            Self::Idle
        }
    }

    /// Returns the other rank of the pair.
    #[inline(always)]
    pub(super) fn other(self) -> Option<c_int> {
        match self {
            Self::Sender(other) | Self::Receiver(other) => Some(other),
            Self::Idle => None,
        }
    }
}

/// Returns the rank from which a rank has a message after a call in which both directions are used.
pub(super) fn partner(rank: usize, ranks: usize) -> Option<usize> {
    let other = PairPart::of(rank as c_int, ranks as c_int).other()?;
    Some(other as usize)
}

/// Returns the rank from which a rank has a message after a call that only sends one way.
pub(super) fn source(rank: usize, ranks: usize) -> Option<usize> {
    partner(rank, ranks).filter(|other| *other < rank)
}

/// Returns the rank whose memory a rank accesses in a one-sided operation.
pub(super) fn target(rank: usize, ranks: usize) -> Option<usize> {
    partner(rank, ranks).filter(|other| *other > rank)
}

/// All pairs play ping-pong at once.
pub(super) const PAIR_PING_PONG: MpiCall = {
    unsafe fn ping_pong(with: &CallArguments) -> Result<(), MpiError> {
        match PairPart::of(with.rank, with.ranks) {
            PairPart::Sender(other) => {
                // SAFETY: guaranteed by the caller.
                unsafe { send(with, other) }?;
                // SAFETY: as above.
                unsafe { receive(with, other) }
            }
            PairPart::Receiver(other) => {
                // SAFETY: as above.
                unsafe { receive(with, other) }?;
                // SAFETY: as above.
                unsafe { send(with, other) }
            }
            PairPart::Idle => Ok(()),
        }
    }
    ping_pong
};

/// One of each pair sends all messages at once; when the other has them, it answers.
pub(super) const BANDWIDTH: MpiCall = {
    unsafe fn bandwidth(with: &CallArguments) -> Result<(), MpiError> {
        match PairPart::of(with.rank, with.ranks) {
            PairPart::Sender(other) => {
                // SAFETY: guaranteed by the caller.
                unsafe { begin_sends(with, other, 0) }?;
                // SAFETY: that many requests were made.
                unsafe { wait_for_all(with, with.in_flight) }?;
                // SAFETY: as above.
                unsafe { receive_answer(with, other) }
            }
            PairPart::Receiver(other) => {
                // SAFETY: as above.
                unsafe { begin_receives(with, other) }?;
                // SAFETY: as above.
                unsafe { wait_for_all(with, with.in_flight) }?;
                // SAFETY: as above.
                unsafe { send_answer(with, other) }
            }
            PairPart::Idle => Ok(()),
        }
    }
    bandwidth
};

/// Both of each pair send all messages at once.
pub(super) const BIDIRECTIONAL: MpiCall = {
    unsafe fn bidirectional(with: &CallArguments) -> Result<(), MpiError> {
        let Some(other) = PairPart::of(with.rank, with.ranks).other() else {
            return Ok(());
        };
        // SAFETY: guaranteed by the caller.
        unsafe { begin_receives(with, other) }?;
        // SAFETY: as above.
        unsafe { begin_sends(with, other, with.in_flight) }?;
        // SAFETY: that many requests were made.
        unsafe { wait_for_all(with, 2 * with.in_flight) }
    }
    bidirectional
};

/// Begins to send all messages, all from one buffer. Their requests begin at `first`.
///
/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn begin_sends(with: &CallArguments, to: c_int, first: c_int) -> Result<(), MpiError> {
    for message in first..first + with.in_flight {
        // SAFETY: there is a request for each message of both directions.
        let request: *mut MPI_Request = unsafe { with.requests.add(message as usize) };
        let (count, datatype, comm) = (with.count, with.datatype, with.comm);
        // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
        let code = unsafe { ffi::MPI_Isend(with.send, count, datatype, to, TAG, comm, request) };
        MpiError::check("MPI_Isend", code)?;
    }
    Ok(())
}

/// Begins to receive all messages, all into one buffer, as suites do: they have equal content.
///
/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn begin_receives(with: &CallArguments, from: c_int) -> Result<(), MpiError> {
    for message in 0..with.in_flight {
        // SAFETY: as above.
        let request: *mut MPI_Request = unsafe { with.requests.add(message as usize) };
        let (count, datatype, comm) = (with.count, with.datatype, with.comm);
        // SAFETY: as above.
        let code = unsafe { ffi::MPI_Irecv(with.recv, count, datatype, from, TAG, comm, request) };
        MpiError::check("MPI_Irecv", code)?;
    }
    Ok(())
}

/// # Safety
/// As for [`MpiCall`]; this number of requests was made.
#[inline(always)]
unsafe fn wait_for_all(with: &CallArguments, requests: c_int) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_statuses = unsafe { ffi::RSMPI_STATUSES_IGNORE };
    // SAFETY: guaranteed by the caller.
    let code = unsafe { ffi::MPI_Waitall(requests, with.requests, no_statuses) };
    MpiError::check("MPI_Waitall", code)
}

/// Sends an empty message.
///
/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn send_answer(with: &CallArguments, to: c_int) -> Result<(), MpiError> {
    // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
    let code = unsafe { ffi::MPI_Send(with.send, 0, with.datatype, to, TAG, with.comm) };
    MpiError::check("MPI_Send", code)
}

/// Receives an empty message.
///
/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn receive_answer(with: &CallArguments, from: c_int) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
    let (datatype, comm) = (with.datatype, with.comm);
    // SAFETY: as above.
    let code = unsafe { ffi::MPI_Recv(with.recv, 0, datatype, from, TAG, comm, no_status) };
    MpiError::check("MPI_Recv", code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_paired_with_the_other_half() {
        let parts = |ranks| {
            let parts = (0..ranks).map(|rank| PairPart::of(rank, ranks));
            parts.collect::<Vec<_>>()
        };
        use PairPart::{Idle, Receiver, Sender};
        assert_eq!(parts(1), [Idle]);
        assert_eq!(parts(2), [Sender(1), Receiver(0)]);
        assert_eq!(
            parts(5),
            [Sender(2), Sender(3), Receiver(0), Receiver(1), Idle]
        );
        let sources: Vec<_> = (0..5).map(|rank| source(rank, 5)).collect();
        assert_eq!(sources, [None, None, Some(0), Some(1), None]);
        let targets: Vec<_> = (0..5).map(|rank| target(rank, 5)).collect();
        assert_eq!(targets, [Some(2), Some(3), None, None, None]);
        let partners: Vec<_> = (0..5).map(|rank| partner(rank, 5)).collect();
        assert_eq!(partners, [Some(2), Some(3), Some(0), Some(1), None]);
    }
}
