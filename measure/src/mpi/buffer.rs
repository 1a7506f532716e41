//! Memory that begins where it is wanted.

use std::collections::TryReserveError;

/// So many bytes, of which the first has an address that is a multiple of something.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// The memory is written to, so that the first use of it finds its pages. `alignment` is a power of two.
    pub(super) fn new(length: usize, alignment: usize) -> Result<Self, TryReserveError> {
        let room = length.saturating_add(alignment - 1);
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(room)?;
        let address = memory.as_ptr() as usize;
        let start = address.next_multiple_of(alignment) - address;
        memory.resize(start + length, 0);
        Ok(Self { memory, start })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}
