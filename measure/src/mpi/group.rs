//! Groups of ranks among which operations run.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;
use std::rc::Rc;

use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready};
use mpi::ffi::{self, MPI_Comm, MPI_Datatype};
use mpi::raw::AsRaw;
use mpi::traits::Equivalence;

use crate::operation::Coordinator;

/// Group of ranks among which operations run: all ranks, or the first ones.
///
/// A group has a communicator of its own, which returns errors, and is freed when the last clone and the last operation
/// are dropped.
///
/// As a [`Coordinator`], a group calls the library's own `MPI_Barrier`, `MPI_Bcast` and
/// `MPI_Allreduce`.
#[derive(Clone, Debug)]
pub struct MpiGroup {
    comm: Rc<MpiComm>,
}

impl MpiGroup {
    /// Creates a group of all ranks of `comm`, which all must call this.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn all(comm: &MpiComm) -> Result<Self, CommError> {
        // Every rank is among the first `size` ones, so this cannot fail.
        Self::first(comm, comm.size())?.ok_or(CommError::NoSuchRank {
            rank: comm.rank(),
            size: comm.size(),
        })
    }

    /// Creates a group of the first `ranks` ranks of `comm`, in their order; `None` on the other ranks. All ranks of `comm`
    /// must call this.
    ///
    /// # Errors
    /// If `comm` has fewer ranks, or MPI fails.
    pub fn first(comm: &MpiComm, ranks: u32) -> Result<Option<Self>, CommError> {
        if ranks > comm.size() {
            return Err(CommError::NoSuchRank {
                rank: ranks - 1,
                size: comm.size(),
            });
        }
        let color = (comm.rank() < ranks).then_some(0);
        let part = block_on_ready(comm.split(color, comm.rank()))?;
        Ok(part.map(|comm| Self {
            comm: Rc::new(comm),
        }))
    }

    /// Returns the communicator of the group.
    pub fn comm(&self) -> &MpiComm {
        &self.comm
    }

    /// Returns the number of this rank in the group.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Returns the number of ranks in the group.
    pub fn size(&self) -> u32 {
        self.comm.size()
    }

    /// Returns the handle for calls of MPI; fails if MPI is not running.
    #[inline(always)]
    pub(super) fn raw(&self) -> Result<MPI_Comm, MpiError> {
        self.comm.raw()
    }
}

/// Combined outcome of an action of every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupAgreement {
    /// True if all ranks did the same.
    pub(super) same: bool,
    /// Last rank that failed.
    pub(super) failed: Option<u32>,
}

impl MpiGroup {
    /// Combines the actions of all ranks, each identified by a hash, and their failures.
    pub(super) fn agree(&self, did: u64, failed: bool) -> Result<GroupAgreement, CommError> {
        // Counted from 1, as 0 means no failure.
        let number = if failed {
            u64::from(self.rank()) + 1
        } else {
            0
        };
        let [highest, lowest, last] = self.each_largest([did, !did, number])?;
        Ok(GroupAgreement {
            same: highest == !lowest,
            failed: last.checked_sub(1).map(|rank| rank as u32),
        })
    }

    /// Returns the maximum over all ranks, for each of `N` values.
    #[inline(always)]
    fn each_largest<const N: usize>(&self, own: [u64; N]) -> Result<[u64; N], CommError> {
        let comm = self.raw()?;
        let mut largest = own;
        let (from, to) = (own.as_ptr().cast(), largest.as_mut_ptr().cast());
        // SAFETY: a constant.
        let max = unsafe { ffi::RSMPI_MAX };
        // SAFETY: MPI is running, and the communicator is valid; both buffers have `N` elements, and do not overlap.
        let code = unsafe { ffi::MPI_Allreduce(from, to, N as c_int, word(), max, comm) };
        MpiError::check("MPI_Allreduce", code)?;
        Ok(largest)
    }
}

/// Returns the MPI datatype of `u64`.
fn word() -> MPI_Datatype {
    u64::equivalent_datatype().as_raw()
}

/// Root of broadcasts.
const FIRST: c_int = 0;

impl Coordinator for MpiGroup {
    #[inline]
    async fn barrier(&self) -> Result<(), CommError> {
        let comm = self.raw()?;
        // SAFETY: MPI is running, and the communicator is valid.
        let code = unsafe { ffi::MPI_Barrier(comm) };
        Ok(MpiError::check("MPI_Barrier", code)?)
    }

    #[inline]
    async fn broadcast(&self, mut value: u64) -> Result<u64, CommError> {
        let comm = self.raw()?;
        // SAFETY: as above; the buffer has one writable element.
        let code = unsafe { ffi::MPI_Bcast((&raw mut value).cast(), 1, word(), FIRST, comm) };
        MpiError::check("MPI_Bcast", code)?;
        Ok(value)
    }

    #[inline]
    async fn bitwise_or(&self, own: u64) -> Result<u64, CommError> {
        let comm = self.raw()?;
        let mut union = own;
        // SAFETY: a constant.
        let or = unsafe { ffi::RSMPI_BOR };
        // SAFETY: as above; both buffers have one element, and do not overlap.
        let code = unsafe {
            ffi::MPI_Allreduce(
                (&raw const own).cast(),
                (&raw mut union).cast(),
                1,
                word(),
                or,
                comm,
            )
        };
        MpiError::check("MPI_Allreduce", code)?;
        Ok(union)
    }
}
