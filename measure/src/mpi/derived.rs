//! Derived datatypes.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Aint, MPI_Datatype};

use super::constants::byte;
use super::datatype::Datatype;
use super::message_layout::{Blocks, MessageLayout, Placement};

/// Datatype of a message.
#[derive(Debug)]
pub(super) struct MessageType {
    pub(super) raw: MPI_Datatype,
    is_derived: bool,
}

impl MessageType {
    /// Creates the datatype by which MPI finds the elements at these places. MPI must be running.
    pub(super) fn new(element: Datatype, placement: &Placement) -> Result<Self, MpiError> {
        let Some(blocks) = placement.layout.blocks() else {
            return Ok(Self {
                raw: element.raw(),
                is_derived: false,
            });
        };
        let mut blocks_only = create_blocks(element, placement, blocks)?;
        let mut raw = blocks_only;
        let extent = (placement.places * element.bytes() as usize) as MPI_Aint;
        // SAFETY: MPI is running, the datatype is valid, and the result can be written to. Messages
        // in a row begin at whole strides.
        let code = unsafe { ffi::MPI_Type_create_resized(blocks_only, 0, extent, &raw mut raw) };
        MpiError::check("MPI_Type_create_resized", code)?;
        // SAFETY: as above; the other datatype does not need it.
        let code = unsafe { ffi::MPI_Type_free(&raw mut blocks_only) };
        MpiError::check("MPI_Type_free", code)?;
        // SAFETY: as above.
        let code = unsafe { ffi::MPI_Type_commit(&raw mut raw) };
        MpiError::check("MPI_Type_commit", code)?;
        Ok(Self {
            raw,
            is_derived: true,
        })
    }

    /// Frees the datatype. MPI must be running.
    pub(super) fn free(&mut self) {
        if self.is_derived {
            // SAFETY: MPI is running, and the datatype was created. An error could not be reported.
            unsafe { ffi::MPI_Type_free(&raw mut self.raw) };
            self.is_derived = false;
        }
    }
}

/// Creates the datatype of all blocks, which ends with the last one. MPI must be running.
fn create_blocks(
    element: Datatype,
    placement: &Placement,
    blocks: Blocks,
) -> Result<MPI_Datatype, MpiError> {
    let layout = placement.layout;
    let width = element.bytes() as usize;
    let (block, stride) = (blocks.block() as c_int, blocks.stride() as c_int);
    let blocks = placement.elements / block as usize;
    let count = blocks as c_int;
    let begins = || (0..blocks).map(|block| (layout.begin(block) * width) as MPI_Aint);
    let mut raw = element.raw();
    let (function, code) = match layout {
        MessageLayout::Contiguous | MessageLayout::Vector(_) => {
            // SAFETY: MPI is running, the datatype is valid, and the result can be written to.
            let code =
                unsafe { ffi::MPI_Type_vector(count, block, stride, element.raw(), &raw mut raw) };
            ("MPI_Type_vector", code)
        }
        MessageLayout::Indexed(_) => {
            let begins: Vec<MPI_Aint> = begins().collect();
            // SAFETY: as above; there is a number for each block.
            let code = unsafe {
                ffi::MPI_Type_create_hindexed_block(
                    count,
                    block,
                    begins.as_ptr(),
                    element.raw(),
                    &raw mut raw,
                )
            };
            ("MPI_Type_create_hindexed_block", code)
        }
        MessageLayout::Struct(_) => {
            let begins: Vec<MPI_Aint> = begins().collect();
            let is_bytes = |number: &usize| number % 2 == 1;
            let parts = (0..blocks).map(|number| match is_bytes(&number) {
                true => (block * width as c_int, byte()),
                false => (block, element.raw()),
            });
            let (lengths, types): (Vec<c_int>, Vec<MPI_Datatype>) = parts.unzip();
            // SAFETY: as above.
            let code = unsafe {
                ffi::MPI_Type_create_struct(
                    count,
                    lengths.as_ptr(),
                    begins.as_ptr(),
                    types.as_ptr(),
                    &raw mut raw,
                )
            };
            ("MPI_Type_create_struct", code)
        }
    };
    MpiError::check(function, code)?;
    Ok(raw)
}
