//! Blocks of shared memory, as a rank maps them.

use core::ptr::null_mut;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use downbeat_recording::block::{BlockId, FULL, HEADER_WORDS, ORDER, SEQUENCE, SIZE};

/// A block that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block(*mut u64);

impl Block {
    /// Creates a block of this size with all of its memory, so that writing to it causes no page fault; `None` if there is no memory.
    pub(crate) fn create(folder: &Path, id: BlockId, bytes: usize) -> Option<Self> {
        let path = folder.join(id.file_name());
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the path ends with zero.
        let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        if file < 0 {
            return None;
        }
        let block = Self::map(file, bytes);
        if block.is_none() {
            // SAFETY: as above.
            unsafe { libc::unlink(path.as_ptr()) };
        }
        // SAFETY: the file is open, and is closed once.
        unsafe { libc::close(file) };
        let block = block?;
        for (index, word) in id.header(bytes).into_iter().enumerate() {
            block.word(index).store(word, Ordering::Relaxed);
        }
        Some(block)
    }

    fn map(file: libc::c_int, bytes: usize) -> Option<Self> {
        // Without this, a write would end the program when the file system is full.
        // SAFETY: the file is open.
        let allocate = || unsafe { libc::posix_fallocate(file, 0, bytes as libc::off_t) };
        let mut failed = allocate();
        while failed == libc::EINTR {
            failed = allocate();
        }
        if failed != 0 {
            return None;
        }
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
        );
        // SAFETY: a new mapping of a file of this size.
        let mapped = unsafe { libc::mmap(null_mut(), bytes, access, flags, file, 0) };
        (mapped != libc::MAP_FAILED).then_some(Self(mapped.cast()))
    }

    fn word(self, index: usize) -> &'static AtomicU64 {
        // SAFETY: the index is that of a word of the header, which is mapped while it is written to.
        unsafe { AtomicU64::from_ptr(self.0.wrapping_add(index)) }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.word(SIZE).load(Ordering::Relaxed) as usize
    }

    /// Returns the place of the first record.
    pub(crate) fn first(self) -> *mut u64 {
        self.0.wrapping_add(HEADER_WORDS)
    }

    /// Returns the end of the block.
    pub(crate) fn end(self) -> *mut u64 {
        self.0.wrapping_add(self.bytes() / size_of::<u64>())
    }

    /// Returns the number among the blocks of the thread.
    pub(crate) fn sequence(self) -> u32 {
        self.word(SEQUENCE).load(Ordering::Relaxed) as u32
    }

    /// Marks the block as the next one that its thread writes to.
    pub(crate) fn begin(self, order: u64) {
        self.word(ORDER).store(order, Ordering::Release);
    }

    /// Marks the block as full: nothing more is written to it, and it can be collected.
    pub(crate) fn fill(self) {
        self.word(FULL).store(1, Ordering::Release);
    }

    /// Unmaps a block that nobody writes to any more.
    pub(crate) fn unmap(self) {
        let bytes = self.bytes();
        // SAFETY: it is mapped, and the caller uses it no more.
        unsafe { libc::munmap(self.0.cast(), bytes) };
    }

    /// Returns the address, to keep it in an atomic variable.
    pub(crate) fn address(self) -> *mut u64 {
        self.0
    }

    /// Returns the block at an address that [`address`](Self::address) returned; `None` for null.
    pub(crate) fn at(address: *mut u64) -> Option<Self> {
        (!address.is_null()).then_some(Self(address))
    }
}
