//! The memory that an operation points to.

use core::ffi::c_int;

use super::error::OperationError;
use super::layout::BufferLayout;
use super::settings::OperationSettings;
use crate::aligned::{AlignedBytes, BufferError};
use crate::cache::{BufferWalk, Cache};

/// What the arguments of a call point to. Nobody but MPI uses it while there may be a call.
#[derive(Debug)]
pub(super) struct OperationBuffers {
    pub(super) send: MessageBuffer,
    pub(super) recv: MessageBuffer,
    pub(super) counts: Vec<c_int>,
    pub(super) starts: Vec<c_int>,
    pub(super) cache: Cache,
}

impl OperationBuffers {
    pub(super) fn new(
        layout: &BufferLayout,
        settings: &OperationSettings,
    ) -> Result<Self, OperationError> {
        let cache = Cache::new(settings.cache, settings.cache_bytes)?;
        let message =
            |elements: usize| MessageBuffer::new(elements * layout.width, settings, &cache);
        Ok(Self {
            send: message(layout.send)?,
            recv: message(layout.recv)?,
            counts: layout.counts.clone(),
            starts: layout.starts.clone(),
            cache,
        })
    }
}

/// The place of a message, which may walk through memory.
#[derive(Debug)]
pub(super) struct MessageBuffer {
    memory: AlignedBytes,
    walk: BufferWalk,
    begin: usize,
    length: usize,
}

impl MessageBuffer {
    fn new(
        length: usize,
        settings: &OperationSettings,
        cache: &Cache,
    ) -> Result<Self, BufferError> {
        let mut walk = cache.walk(length, settings.alignment);
        let memory = AlignedBytes::new(walk.buffer_bytes(), settings.alignment)?;
        Ok(Self {
            memory,
            begin: walk.next_offset(),
            length,
            walk,
        })
    }

    /// To the next place.
    pub(super) fn step(&mut self) {
        self.begin = self.walk.next_offset();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..][..self.length]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..][..self.length]
    }

    /// Writes this element everywhere, at whatever place the message will be.
    pub(super) fn fill(&mut self, element: &[u8]) {
        // Places begin where elements can, unless they are aligned to less than an element.
        let (memory, width) = (&mut self.memory, element.len());
        let rest = memory.len() % width;
        memory
            .chunks_exact_mut(width)
            .for_each(|place| place.copy_from_slice(element));
        let end = memory.len() - rest;
        memory[end..].copy_from_slice(&element[..rest]);
    }
}
