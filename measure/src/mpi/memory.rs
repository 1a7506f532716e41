//! Memory that the arguments of an operation point to.
#![expect(unsafe_code, reason = "MPI allocates memory")]

use core::ffi::{c_int, c_void};
use core::ptr;

use mpi::ffi::{self, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Request};

use super::calls::{CallArguments, no_request};
use super::computation::Computation;
use super::error::OperationError;
use super::group::MpiGroup;
use super::layout::BufferLayout;
use super::plug_in::{BufferHook, HookedMemory};
use super::settings::OperationSettings;
use crate::aligned::AlignedBytes;
use crate::cache::{BufferWalk, Cache};

/// Memory that the arguments of a call point to. Only MPI uses it during a call.
#[derive(Debug)]
pub(super) struct OperationBuffers {
    pub(super) send: MessageBuffer,
    pub(super) recv: MessageBuffer,
    pub(super) counts: Vec<c_int>,
    pub(super) starts: Vec<c_int>,
    /// Offsets of blocks in bytes, as two functions want them, and their datatypes.
    pub(super) offsets: Vec<c_int>,
    pub(super) byte_offsets: Vec<MPI_Aint>,
    pub(super) datatypes: Vec<MPI_Datatype>,
    pub(super) requests: Vec<MPI_Request>,
    pub(super) cache: Cache,
}

impl OperationBuffers {
    pub(super) fn new(
        layout: &BufferLayout,
        settings: &OperationSettings,
        datatype: MPI_Datatype,
        hook: Option<&BufferHook>,
    ) -> Result<Self, OperationError> {
        let cache = Cache::new(settings.cache, settings.cache_bytes)?;
        let message = |elements: usize| {
            let bytes = layout.placement.extent(elements) * layout.width;
            MessageBuffer::new(bytes, settings, &cache, hook)
        };
        let extent = (layout.placement.places * layout.width) as MPI_Aint;
        // A derived datatype describes a whole block.
        let described = layout.placement.elements as c_int;
        let starts: Vec<c_int> = layout
            .starts
            .iter()
            .map(|start| start / described)
            .collect();
        let offsets = starts.iter().map(|start| *start as MPI_Aint * extent);
        Ok(Self {
            send: message(layout.send)?,
            recv: message(layout.recv)?,
            counts: layout
                .counts
                .iter()
                .map(|count| count / described)
                .collect(),
            offsets: offsets.clone().map(|offset| offset as c_int).collect(),
            byte_offsets: offsets.collect(),
            starts,
            datatypes: vec![datatype; layout.starts.len()],
            requests: vec![no_request(); layout.requests],
            cache,
        })
    }

    /// Returns the arguments of calls that use this memory. Messages and a window come later, and each
    /// call has its own root.
    pub(super) fn call_arguments(
        &mut self,
        comm: MPI_Comm,
        group: &MpiGroup,
        layout: &BufferLayout,
        datatype: MPI_Datatype,
        settings: &OperationSettings,
    ) -> CallArguments {
        CallArguments {
            comm,
            rank: group.rank() as c_int,
            ranks: group.size() as c_int,
            root: 0,
            send: ptr::null(),
            recv: ptr::null_mut(),
            buffer: ptr::null_mut(),
            second: ptr::null(),
            count: layout.count / layout.placement.elements as c_int,
            counts: self.counts.as_ptr(),
            starts: self.starts.as_ptr(),
            offsets: self.offsets.as_ptr(),
            byte_offsets: self.byte_offsets.as_ptr(),
            datatypes: self.datatypes.as_ptr(),
            datatype,
            reduction: settings.reduction.raw(),
            in_flight: settings.in_flight as c_int,
            requests: self.requests.as_mut_ptr(),
            partitions: settings.partitions as c_int,
            computation: Computation::default(),
            // SAFETY: constants.
            window: unsafe { ffi::RSMPI_WIN_NULL },
            // SAFETY: as above.
            partner: unsafe { ffi::RSMPI_GROUP_NULL },
            target: 0,
            place: 0,
            epoch: settings.epoch,
        }
    }
}

/// Memory of a message that is not the program's own.
#[derive(Debug)]
enum ForeignMemory {
    /// That of a plug-in.
    Hooked(HookedMemory),
    /// That of a window.
    Window(*mut u8),
}

/// Buffer of a message, whose offset may change from call to call.
#[derive(Debug)]
pub(super) struct MessageBuffer {
    memory: AlignedBytes,
    /// Memory that MPI gets instead, of which `memory` is a copy.
    foreign: Option<ForeignMemory>,
    walk: BufferWalk,
    begin: usize,
    length: usize,
}

impl MessageBuffer {
    fn new(
        length: usize,
        settings: &OperationSettings,
        cache: &Cache,
        hook: Option<&BufferHook>,
    ) -> Result<Self, OperationError> {
        let mut walk = cache.walk(length, settings.alignment);
        let bytes = walk.buffer_bytes();
        let memory = AlignedBytes::new(bytes, settings.alignment)?;
        let hooked = hook.map(|hook| hook.allocate(bytes, settings.alignment));
        Ok(Self {
            memory,
            foreign: hooked.transpose()?.map(ForeignMemory::Hooked),
            begin: walk.next_offset(),
            length,
            walk,
        })
    }

    /// Returns the memory that MPI gets; `None` if programs on the host may not be able to read it.
    pub(super) fn host_memory(&self) -> Option<&[u8]> {
        match &self.foreign {
            None => Some(&self.memory),
            Some(ForeignMemory::Window(begin)) => {
                // SAFETY: the window has that many bytes from there, and is not freed before this.
                Some(unsafe { core::slice::from_raw_parts(*begin, self.length) })
            }
            Some(ForeignMemory::Hooked(_)) => None,
        }
    }

    /// Moves the message into memory of a window, as long as this message, which is not used after the window is freed.
    pub(super) fn move_to(&mut self, begin: *mut u8) {
        self.foreign = Some(ForeignMemory::Window(begin));
    }

    /// Moves the message to the next offset.
    pub(super) fn step(&mut self) {
        self.begin = self.walk.next_offset();
    }

    /// Returns the address that MPI gets.
    pub(super) fn address(&mut self) -> *mut c_void {
        match &self.foreign {
            Some(ForeignMemory::Hooked(hooked)) => hooked.address(self.begin),
            Some(ForeignMemory::Window(begin)) => begin.cast(),
            None => self.bytes_mut().as_mut_ptr().cast(),
        }
    }

    /// Passes the bytes on to the memory that MPI gets.
    pub(super) fn publish(&mut self) -> Result<(), OperationError> {
        match &mut self.foreign {
            Some(ForeignMemory::Hooked(hooked)) => Ok(hooked.write(&self.memory)?),
            Some(ForeignMemory::Window(begin)) => {
                let bytes = &self.memory[self.begin..][..self.length];
                // SAFETY: the window has that many bytes from there, which no other rank accesses now; it is other memory than this.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), *begin, bytes.len()) };
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Fetches the bytes from the memory that MPI has got.
    pub(super) fn fetch(&mut self) -> Result<(), OperationError> {
        match &self.foreign {
            Some(ForeignMemory::Hooked(hooked)) => Ok(hooked.read(&mut self.memory)?),
            Some(ForeignMemory::Window(begin)) => {
                let bytes = &mut self.memory[self.begin..][..self.length];
                // SAFETY: as in `publish`.
                unsafe { ptr::copy_nonoverlapping(*begin, bytes.as_mut_ptr(), bytes.len()) };
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..][..self.length]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..][..self.length]
    }

    /// Fills the whole buffer with this element, for all offsets of the message.
    pub(super) fn fill(&mut self, element: &[u8]) {
        // Offsets are multiples of an element, unless the alignment is less than an element.
        let (memory, width) = (&mut self.memory, element.len());
        let rest = memory.len() % width;
        memory
            .chunks_exact_mut(width)
            .for_each(|place| place.copy_from_slice(element));
        let end = memory.len() - rest;
        memory[end..].copy_from_slice(&element[..rest]);
    }
}
