//! The ranks among which operations run.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;
use std::rc::Rc;

use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready};
use mpi::ffi::{self, MPI_Comm, MPI_Datatype};
use mpi::raw::AsRaw;
use mpi::traits::Equivalence;

use crate::operation::Coordinator;

/// The ranks among which operations run: all of them, or the first ones.
///
/// They have a communicator of their own. It returns its errors, and is freed when the last clone and the last
/// operation is dropped.
///
/// Its ranks come coordinator by the library's own `MPI_Barrier`, `MPI_Bcast` and `MPI_Allreduce`.
#[derive(Clone, Debug)]
pub struct MpiGroup {
    comm: Rc<MpiComm>,
}

impl MpiGroup {
    /// All ranks of `comm`, which all must call this.
    ///
    /// # Errors
    /// When MPI fails.
    pub fn all(comm: &MpiComm) -> Result<Self, CommError> {
        // Every rank has this color, and so is there.
        Self::first(comm, comm.size())?.ok_or(CommError::NoSuchRank {
            rank: comm.rank(),
            size: comm.size(),
        })
    }

    /// The first `ranks` ranks of `comm`, in their order; `None` on the others. All ranks of `comm` must call this.
    ///
    /// # Errors
    /// When there are not so many, or MPI fails.
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

    /// What its ranks send each other messages by.
    pub fn comm(&self) -> &MpiComm {
        &self.comm
    }

    /// The number of this rank in it.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// How many ranks there are in it.
    pub fn size(&self) -> u32 {
        self.comm.size()
    }

    /// For calls of MPI, which runs if there is one.
    #[inline(always)]
    pub(super) fn raw(&self) -> Result<MPI_Comm, MpiError> {
        self.comm.raw()
    }
}

/// What all ranks have to say of something that each of them did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupAgreement {
    /// Whether all did the same.
    pub(super) same: bool,
    /// The last rank that failed.
    pub(super) failed: Option<u32>,
}

impl MpiGroup {
    /// Tells all ranks what this one did, and whether it failed.
    pub(super) fn agree(&self, did: u64, failed: bool) -> Result<GroupAgreement, CommError> {
        // Counted from 1, so that nobody is 0.
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

    /// The largest of all ranks' words, for each of some.
    #[inline(always)]
    fn each_largest<const N: usize>(&self, own: [u64; N]) -> Result<[u64; N], CommError> {
        let comm = self.raw()?;
        let mut largest = own;
        let (from, to) = (own.as_ptr().cast(), largest.as_mut_ptr().cast());
        // SAFETY: a constant.
        let max = unsafe { ffi::RSMPI_MAX };
        // SAFETY: MPI is running, and this is a communicator; there are as many words as it is told, to be read and
        // elsewhere to be written.
        let code = unsafe { ffi::MPI_Allreduce(from, to, N as c_int, word(), max, comm) };
        MpiError::check("MPI_Allreduce", code)?;
        Ok(largest)
    }
}

/// The type of a word.
fn word() -> MPI_Datatype {
    u64::equivalent_datatype().as_raw()
}

/// Whose word a broadcast tells.
const FIRST: c_int = 0;

impl Coordinator for MpiGroup {
    #[inline]
    async fn barrier(&self) -> Result<(), CommError> {
        let comm = self.raw()?;
        // SAFETY: MPI is running, and this is a communicator.
        let code = unsafe { ffi::MPI_Barrier(comm) };
        Ok(MpiError::check("MPI_Barrier", code)?)
    }

    #[inline]
    async fn broadcast(&self, mut word_of_all: u64) -> Result<u64, CommError> {
        let comm = self.raw()?;
        // SAFETY: as above, and there is one word, which can be written to.
        let code = unsafe { ffi::MPI_Bcast((&raw mut word_of_all).cast(), 1, word(), FIRST, comm) };
        MpiError::check("MPI_Bcast", code)?;
        Ok(word_of_all)
    }

    #[inline]
    async fn bitwise_or(&self, own: u64) -> Result<u64, CommError> {
        let comm = self.raw()?;
        let mut union = own;
        // SAFETY: a constant.
        let or = unsafe { ffi::RSMPI_BOR };
        // SAFETY: as above, with one word each to be read and to be written.
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
