//! Parts of a temporary file that are mapped.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use downbeat_files::{FileError, create_beside};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::access::Access;

/// Number of bytes from which memory is mapped: less is not worth a mapping, of which a
/// process can have some ten thousand. Tests map all.
pub(super) const LEAST: usize = if cfg!(test) { 1 } else { 256 << 10 };

/// Multiple of the size of a page on any system.
const GRANULE: usize = 64 << 10;

/// Temporary file without a name.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    file: File,
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    end: u64,
    failure: Option<Errno>,
    /// Lengths of mappings by their addresses.
    mappings: BTreeMap<usize, usize>,
    access: Access,
}

impl TemporaryFile {
    /// Creates the file in a folder.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create_new(true);
            options.mode(0o600).open(path)
        };
        let (name, file) = create_beside(&folder.join("trace"), open)?;
        fs::remove_file(name)?;
        Ok(Self {
            file,
            folder: folder.to_owned(),
            state: Mutex::default(),
        })
    }

    /// Adds room at the end of the file, and maps it; `None` if that fails.
    pub(super) fn map(&self, size: usize) -> Option<NonNull<[u8]>> {
        let mut state = self.lock();
        match self.map_at(state.end, size) {
            Ok(mapped) => {
                state.end += rounded(size) as u64;
                state.mappings.insert(mapped as usize, rounded(size));
                // SAFETY: it is mapped.
                unsafe { advise(mapped, rounded(size), state.access) };
                NonNull::new(mapped.cast())
                    .map(|mapped| NonNull::slice_from_raw_parts(mapped, size))
            }
            Err(why) => {
                state.failure = Some(why);
                None
            }
        }
    }

    fn map_at(&self, at: u64, size: usize) -> Result<*mut c_void, Errno> {
        let length = size.checked_next_multiple_of(GRANULE).ok_or(Errno::NOMEM)?;
        self.reserve(at, length as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address. Only processes of this user could open
        // the file, while it had a name.
        unsafe { mmap(null_mut(), length, access, MapFlags::SHARED, &self.file, at) }
    }

    /// Reserves room on the disk: a write to a page without would end the process by a
    /// signal. File systems that copy pages when they are written again, such as btrfs,
    /// may need more than is reserved.
    fn reserve(&self, at: u64, length: u64) -> Result<(), Errno> {
        let reserve = || fallocate(&self.file, FallocateFlags::empty(), at, length);
        match retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                let zeros = [0; GRANULE];
                let mut places = (at..at + length).step_by(GRANULE);
                let written = places.try_for_each(|at| self.file.write_all_at(&zeros, at));
                written.map_err(|why| Errno::from_io_error(&why).unwrap_or(Errno::IO))
            }
            reserved => reserved,
        }
    }

    /// Gives memory back, and its room in the file.
    ///
    /// # Safety
    /// It was mapped with this size, and nobody uses it any more.
    pub(super) unsafe fn unmap(&self, memory: NonNull<u8>, size: usize) {
        let length = rounded(size);
        self.lock().mappings.remove(&(memory.as_ptr() as usize));
        // Where the file system cannot free a part of a file, the room stays taken until
        // the file is closed.
        #[cfg(target_os = "linux")]
        // SAFETY: it is mapped, and its content is not needed.
        let _ = unsafe { madvise(memory.as_ptr().cast(), length, Advice::LinuxRemove) };
        // SAFETY: as above.
        let unmapped = unsafe { munmap(memory.as_ptr().cast(), length) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }

    /// Gives back what is behind the new size.
    ///
    /// # Safety
    /// It was mapped with the old size, and nobody uses what is behind the new one.
    pub(super) unsafe fn unmap_behind(&self, memory: NonNull<u8>, old: usize, new: usize) {
        let (old, new) = (rounded(old), rounded(new));
        if new < old {
            self.lock().mappings.insert(memory.as_ptr() as usize, new);
            // SAFETY: the new size is less than the mapped one.
            let behind = unsafe { memory.add(new) };
            // SAFETY: the caller maps it.
            unsafe { self.unmap(behind, old - new) };
        }
    }

    /// Tells the kernel how all arrays are read from now on.
    pub(super) fn expect(&self, access: Access) {
        let mut state = self.lock();
        if state.access != access {
            state.access = access;
            for (start, length) in &state.mappings {
                // SAFETY: it is mapped.
                unsafe { advise(*start as *mut c_void, *length, access) };
            }
        }
    }

    /// Returns the number of bytes of an array that are read at once while arrays are
    /// read in turns: what is read of all arrays takes half of the memory.
    pub(super) fn window(&self, memory: usize) -> usize {
        let arrays = self.lock().mappings.len().max(1);
        (memory / 2 / arrays).clamp(16 << 10, 1 << 20)
    }

    /// Returns the reason why the file could not grow.
    pub(super) fn failure(&self) -> Option<FileError> {
        let why = self.lock().failure?;
        Some(FileError::io(&self.folder)(why.into()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of the mapping of this number of bytes, which exists.
fn rounded(size: usize) -> usize {
    size.next_multiple_of(GRANULE)
}

/// Tells the kernel how a mapping is read.
///
/// # Safety
/// It is mapped.
unsafe fn advise(start: *mut c_void, length: usize, access: Access) {
    #[cfg(target_os = "linux")]
    {
        let advice = match access {
            Access::InOrder => Advice::Normal,
            Access::InTurns => Advice::Random,
        };
        // SAFETY: the caller maps it, and the advice changes no content.
        let _ = unsafe { madvise(start, length, advice) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, length, access);
}

/// Has the kernel begin to read these bytes of a mapping.
pub(super) fn read_soon(start: *const u8, length: usize) {
    #[cfg(target_os = "linux")]
    {
        /// Number of bytes that the kernel reads for one advice at least.
        const MOST: usize = 128 << 10;
        let before = start as usize % rustix::param::page_size();
        let mut start = start.wrapping_sub(before).cast_mut();
        let mut length = before + length;
        while length > 0 {
            let part = length.min(MOST);
            // SAFETY: the advice changes no content, and is refused where nothing is
            // mapped.
            let _ = unsafe { madvise(start.cast(), part, Advice::WillNeed) };
            start = start.wrapping_add(part);
            length -= part;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, length);
}
