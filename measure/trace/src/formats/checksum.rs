//! Checksum of a trace while it is written.

use downbeat_files::Crc32;

/// Checksum of what was written, and of the beginning of a buffer that is not written yet.
#[derive(Debug, Default)]
pub(super) struct RunningChecksum {
    checksum: Crc32,
    /// Number of bytes of the buffer that are included.
    done: usize,
}

impl RunningChecksum {
    /// Returns the checksum of everything up to the end of the buffer.
    pub(super) fn value(&mut self, buffer: &[u8]) -> u32 {
        self.checksum.add(&buffer[self.done..]);
        self.done = buffer.len();
        self.checksum.value()
    }

    /// Includes the rest of the buffer, which is then written and cleared.
    pub(super) fn flush(&mut self, buffer: &[u8]) {
        self.value(buffer);
        self.done = 0;
    }
}
