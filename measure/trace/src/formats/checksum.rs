//! Checksum of a trace while it is written.

use downbeat_files::Crc32;

/// Checksum of what was written, and of the beginning of a buffer that is not written yet.
#[derive(Debug, Default)]
pub(super) struct RunningChecksum {
    checksum: Crc32,
    /// Number of bytes of the buffer that are included or left out.
    done: usize,
}

impl RunningChecksum {
    /// Returns the checksum of everything up to the end of the buffer.
    pub(super) fn value(&mut self, buffer: &[u8]) -> u32 {
        self.checksum.add(&buffer[self.done..]);
        self.done = buffer.len();
        self.checksum.value()
    }

    /// Appends the checksum to the buffer.
    pub(super) fn put(&mut self, buffer: &mut Vec<u8>) {
        let checksum = self.value(buffer);
        buffer.extend(checksum.to_le_bytes());
        self.leave_out(buffer);
    }

    /// Leaves out the rest of the buffer.
    pub(super) fn leave_out(&mut self, buffer: &[u8]) {
        self.done = buffer.len();
    }

    /// Includes the rest of the buffer, which is then written and cleared.
    pub(super) fn flush(&mut self, buffer: &[u8]) {
        self.value(buffer);
        self.done = 0;
    }
}
