//! Windows, by which ranks access memory of others.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;
use core::ptr;

use downbeat_sync::{Comm, CommError, MpiError, block_on_ready};
use mpi::ffi::{self, MPI_Aint, MPI_Comm, MPI_Group, MPI_Win};

use super::epoch::{Epoch, WindowMemory};
use super::group::MpiGroup;
use super::memory::MessageBuffer;
use super::settings::OperationSettings;
use super::transfers::PairPart;
use crate::aligned::Alignment;

/// Window on a message of each rank of a group.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) raw: MPI_Win,
    /// Other rank of this pair, if there is one, and its group.
    pub(super) target: c_int,
    pub(super) partner: MPI_Group,
    /// Offset of the other rank's message in its memory.
    pub(super) place: MPI_Aint,
    epoch: Epoch,
}

impl Window {
    /// Makes a window on this message, which moves into memory of the window if the settings say so. All ranks of the group call this.
    pub(super) fn new(
        group: &MpiGroup,
        message: &mut MessageBuffer,
        settings: &OperationSettings,
    ) -> Result<Self, CommError> {
        let comm = group.raw()?;
        let (raw, own_place) = match settings.window_memory {
            WindowMemory::Create => (create_window(message, comm)?, 0),
            WindowMemory::Allocate => allocate_window(message, comm, settings.alignment)?,
        };
        // SAFETY: a constant.
        let errors_return = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: MPI is running, and the window is valid.
        let code = unsafe { ffi::MPI_Win_set_errhandler(raw, errors_return) };
        MpiError::check("MPI_Win_set_errhandler", code)?;
        let part = PairPart::of(group.rank() as c_int, group.size() as c_int);
        let window = Self {
            raw,
            target: part.other().unwrap_or(0),
            partner: partner(group, part)?,
            place: exchange(group, part, own_place as u64)? as MPI_Aint,
            epoch: settings.epoch,
        };
        if window.epoch == Epoch::Flush {
            // SAFETY: as above.
            let code = unsafe { ffi::MPI_Win_lock_all(0, raw) };
            MpiError::check("MPI_Win_lock_all", code)?;
        }
        Ok(window)
    }

    /// Lets this rank use its own memory, until [`end_own_access`](Self::end_own_access): no other rank accesses it now.
    pub(super) fn begin_own_access(&self, group: &MpiGroup) -> Result<(), CommError> {
        group.raw()?;
        let me = group.rank() as c_int;
        let (name, code) = match self.epoch {
            // SAFETY: MPI is running, and the window is valid and locked.
            Epoch::Flush => ("MPI_Win_sync", unsafe { ffi::MPI_Win_sync(self.raw) }),
            // SAFETY: MPI is running, and the window is valid.
            Epoch::Lock => ("MPI_Win_lock", unsafe {
                ffi::MPI_Win_lock(ffi::MPI_LOCK_EXCLUSIVE as c_int, me, 0, self.raw)
            }),
            Epoch::Pscw | Epoch::Fence => return Ok(()),
        };
        Ok(MpiError::check(name, code)?)
    }

    pub(super) fn end_own_access(&self, group: &MpiGroup) -> Result<(), CommError> {
        let me = group.rank() as c_int;
        let (name, code) = match self.epoch {
            // SAFETY: as above.
            Epoch::Flush => ("MPI_Win_sync", unsafe { ffi::MPI_Win_sync(self.raw) }),
            // SAFETY: as above; it is locked.
            Epoch::Lock => ("MPI_Win_unlock", unsafe {
                ffi::MPI_Win_unlock(me, self.raw)
            }),
            Epoch::Pscw | Epoch::Fence => return Ok(()),
        };
        Ok(MpiError::check(name, code)?)
    }

    /// Frees the window. All ranks of the group call this.
    pub(super) fn free(mut self, group: &MpiGroup) -> Result<(), CommError> {
        group.raw()?;
        if self.epoch == Epoch::Flush {
            // SAFETY: MPI is running, and the window is valid and locked.
            let code = unsafe { ffi::MPI_Win_unlock_all(self.raw) };
            MpiError::check("MPI_Win_unlock_all", code)?;
        }
        // SAFETY: MPI is running, and the window is valid; no epoch is open.
        let code = unsafe { ffi::MPI_Win_free(&raw mut self.raw) };
        MpiError::check("MPI_Win_free", code)?;
        // SAFETY: a constant.
        if self.partner != unsafe { ffi::RSMPI_GROUP_EMPTY } {
            // SAFETY: MPI is running, and the group is valid.
            let code = unsafe { ffi::MPI_Group_free(&raw mut self.partner) };
            MpiError::check("MPI_Group_free", code)?;
        }
        Ok(())
    }
}

/// Makes a window on the memory of this message.
fn create_window(message: &mut MessageBuffer, comm: MPI_Comm) -> Result<MPI_Win, MpiError> {
    // SAFETY: constants.
    let (mut raw, no_info) = unsafe { (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL) };
    let bytes = message.bytes().len() as MPI_Aint;
    let base = message.address();
    // SAFETY: MPI is running, and the communicator is valid; the message stays where it is until the
    // window is freed.
    let code = unsafe { ffi::MPI_Win_create(base, bytes, 1, no_info, comm, &raw mut raw) };
    MpiError::check("MPI_Win_create", code)?;
    Ok(raw)
}

/// Makes a window with memory of its own, and moves this message there. Also returns the offset of
/// the message in that memory.
fn allocate_window(
    message: &mut MessageBuffer,
    comm: MPI_Comm,
    alignment: Alignment,
) -> Result<(MPI_Win, usize), MpiError> {
    // SAFETY: constants.
    let (mut raw, no_info) = unsafe { (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL) };
    // MPI aligns memory as it likes.
    let alignment = alignment.bytes();
    // MPICH 4.0.2 accesses other memory than that of the target if its size is no multiple of 16.
    let size = (message.bytes().len() + alignment).next_multiple_of(64) as MPI_Aint;
    let mut base = ptr::null_mut::<u8>();
    // SAFETY: MPI is running, and the communicator is valid; both results can be written to.
    let code = unsafe {
        ffi::MPI_Win_allocate(size, 1, no_info, comm, (&raw mut base).cast(), &raw mut raw)
    };
    MpiError::check("MPI_Win_allocate", code)?;
    let begin = base.map_addr(|address| address.next_multiple_of(alignment));
    message.move_to(begin);
    Ok((raw, begin.addr() - base.addr()))
}

/// Returns the group of the other rank of a pair.
fn partner(group: &MpiGroup, part: PairPart) -> Result<MPI_Group, CommError> {
    // SAFETY: a constant.
    let none = unsafe { ffi::RSMPI_GROUP_EMPTY };
    let Some(other) = part.other() else {
        return Ok(none);
    };
    let (mut all, mut only) = (none, none);
    // SAFETY: MPI is running, the communicator is valid, and the result can be written to.
    let code = unsafe { ffi::MPI_Comm_group(group.raw()?, &raw mut all) };
    MpiError::check("MPI_Comm_group", code)?;
    // SAFETY: as above; one rank is read.
    let code = unsafe { ffi::MPI_Group_incl(all, 1, &raw const other, &raw mut only) };
    MpiError::check("MPI_Group_incl", code)?;
    // SAFETY: as above.
    let code = unsafe { ffi::MPI_Group_free(&raw mut all) };
    MpiError::check("MPI_Group_free", code)?;
    Ok(only)
}

/// Returns the number of the other rank of a pair; that of a rank without another is its own.
fn exchange(group: &MpiGroup, part: PairPart, own: u64) -> Result<u64, CommError> {
    let comm = group.comm();
    match part {
        PairPart::Sender(other) => {
            let other = other as u32;
            block_on_ready(async {
                comm.send(other, own).await?;
                comm.recv(other).await
            })
        }
        PairPart::Receiver(other) => {
            let other = other as u32;
            block_on_ready(async {
                let theirs = comm.recv(other).await?;
                comm.send(other, own).await?;
                Ok(theirs)
            })
        }
        PairPart::Idle => Ok(own),
    }
}
