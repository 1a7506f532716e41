//! Arrays in memory, or in a temporary file that is mapped: the kernel writes its pages
//! out when it needs the memory for something else.
#![expect(unsafe_code, reason = "allocators are unsafe to implement")]

mod access;
#[cfg(unix)]
mod mapped;

use core::alloc::Layout;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;
use std::path::Path;
#[cfg(unix)]
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec as AllocatedVec;
use downbeat_files::FileError;

pub(crate) use access::Access;

/// Place of the arrays of a trace: memory, or a temporary file.
#[derive(Clone, Debug, Default)]
pub struct ArrayStore {
    #[cfg(unix)]
    file: Option<Arc<mapped::TemporaryFile>>,
    /// Memory for pages of the file.
    memory: usize,
}

/// Error of an array that cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", match is_file {
    true => "there is no room for the events in the temporary file",
    false => Self::IN_MEMORY,
})]
pub struct NoRoom {
    is_file: bool,
}

/// Array of a trace, in memory or in a temporary file.
pub struct Array<T>(AllocatedVec<T, ArrayStore>);

impl ArrayStore {
    /// Puts arrays into memory.
    pub const MEMORY: Self = Self {
        #[cfg(unix)]
        file: None,
        memory: 0,
    };

    /// Puts arrays into a temporary file in this folder. It has no name, and is gone when
    /// the last array is. Short arrays stay in memory.
    ///
    /// # Errors
    /// If the file cannot be created, or this system maps no files.
    #[cfg(unix)]
    pub fn in_folder(folder: &Path) -> Result<Self, FileError> {
        let file = mapped::TemporaryFile::create(folder).map_err(FileError::io(folder))?;
        Ok(Self {
            file: Some(Arc::new(file)),
            memory: 256 << 20,
        })
    }

    /// Puts arrays into a temporary file in this folder.
    ///
    /// # Errors
    /// Always: on this system, files are not mapped.
    #[cfg(not(unix))]
    pub fn in_folder(folder: &Path) -> Result<Self, FileError> {
        let why = "temporary files are mapped on Unix systems only";
        Err(FileError::content(folder, why))
    }

    /// Sets the memory that pages of the file may take, 256 MiB by default.
    #[must_use]
    pub fn with_memory(self, memory: usize) -> Self {
        Self { memory, ..self }
    }

    /// Declares how arrays are read from now on.
    pub(crate) fn expect(&self, access: Access) {
        #[cfg(unix)]
        if let Some(file) = &self.file {
            file.expect(access);
        }
        #[cfg(not(unix))]
        let _ = access;
    }

    /// Does work in which arrays are read in turns, and after which they are read in order.
    pub(crate) fn in_turns<R>(&self, work: impl FnOnce() -> R) -> R {
        self.expect(Access::InTurns);
        let result = work();
        self.expect(Access::InOrder);
        result
    }

    /// Returns the number of values that are read of an array at once while arrays are
    /// read [in turns](Access::InTurns).
    pub(crate) fn window<T>(&self) -> usize {
        #[cfg(unix)]
        if let Some(file) = &self.file {
            return file.window(self.memory) / size_of::<T>();
        }
        usize::MAX
    }

    /// Has the kernel begin to read these values of an array.
    pub(crate) fn read_soon<T>(&self, values: &[T]) {
        #[cfg(unix)]
        if self.file.is_some() {
            mapped::read_soon(values.as_ptr().cast(), size_of_val(values));
        }
        #[cfg(not(unix))]
        let _ = values;
    }

    /// Returns true if arrays are in a temporary file.
    pub fn is_file(&self) -> bool {
        #[cfg(unix)]
        return self.file.is_some();
        #[cfg(not(unix))]
        false
    }

    /// Returns the reason why the temporary file could not grow, if it ever could not.
    pub fn failure(&self) -> Option<FileError> {
        #[cfg(unix)]
        return self.file.as_ref()?.failure();
        #[cfg(not(unix))]
        None
    }

    fn no_room(&self) -> NoRoom {
        // Short arrays are in memory in any case.
        NoRoom {
            is_file: self.failure().is_some(),
        }
    }

    /// Returns the file that memory of this layout is in.
    #[cfg(unix)]
    fn file_of(&self, layout: Layout) -> Option<&mapped::TemporaryFile> {
        let file = self.file.as_deref()?;
        (layout.size() >= mapped::LEAST).then_some(file)
    }
}

// SAFETY: memory comes from the global allocator or from mappings, each of which stays
// where it is until it is given back. The size of memory tells which, for all clones.
#[cfg(unix)]
unsafe impl Allocator for ArrayStore {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        match self.file_of(layout) {
            Some(file) => file.map(layout.size()).ok_or(AllocError),
            None => Global.allocate(layout),
        }
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        match self.file_of(layout) {
            // SAFETY: `allocate` has mapped it.
            Some(file) => unsafe { file.unmap(memory, layout.size()) },
            // SAFETY: it is memory of this allocator.
            None => unsafe { Global.deallocate(memory, layout) },
        }
    }

    unsafe fn grow(
        &self,
        memory: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if self.file_of(new).is_none() {
            // SAFETY: it is memory of this allocator, since the old size is less.
            return unsafe { Global.grow(memory, old, new) };
        }
        let grown = self.allocate(new)?;
        let to = grown.cast::<u8>();
        // SAFETY: both have the old size at least, and are apart.
        unsafe { to.copy_from_nonoverlapping(memory, old.size()) };
        // SAFETY: it has this layout, and nobody uses it any more.
        unsafe { self.deallocate(memory, old) };
        Ok(grown)
    }

    unsafe fn shrink(
        &self,
        memory: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let Some(file) = self.file_of(old) else {
            // SAFETY: it is memory of this allocator.
            return unsafe { Global.shrink(memory, old, new) };
        };
        if self.file_of(new).is_some() {
            // SAFETY: it is mapped, and nobody uses what is behind the new size.
            unsafe { file.unmap_behind(memory, old.size(), new.size()) };
            return Ok(NonNull::slice_from_raw_parts(memory, new.size()));
        }
        let shrunk = Global.allocate(new)?;
        let to = shrunk.cast::<u8>();
        // SAFETY: both have the new size at least, and are apart.
        unsafe { to.copy_from_nonoverlapping(memory, new.size()) };
        // SAFETY: it has this layout, and nobody uses it any more.
        unsafe { self.deallocate(memory, old) };
        Ok(shrunk)
    }
}

// SAFETY: all is done by the global allocator.
#[cfg(not(unix))]
unsafe impl Allocator for ArrayStore {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        Global.allocate(layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: it is memory of this allocator.
        unsafe { Global.deallocate(memory, layout) }
    }
}

impl<T> Array<T> {
    /// Returns an empty array.
    pub(crate) const fn new(store: ArrayStore) -> Self {
        Self(AllocatedVec::new_in(store))
    }

    /// Returns an array of these values.
    pub(crate) fn collect(
        store: &ArrayStore,
        values: impl ExactSizeIterator<Item = T>,
    ) -> Result<Self, NoRoom> {
        let mut array = Self::new(store.clone());
        array.reserve_exact(values.len())?;
        array.extend_within(values);
        Ok(array)
    }

    /// Makes room for this number of further values, and no more.
    pub(crate) fn reserve_exact(&mut self, more: usize) -> Result<(), NoRoom> {
        let reserved = self.0.try_reserve_exact(more);
        reserved.map_err(|_| self.0.allocator().no_room())
    }

    /// Adds a value.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), NoRoom> {
        if self.0.len() == self.0.capacity() {
            self.grow(1)?;
        }
        self.0.push(value);
        Ok(())
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<(), NoRoom> {
        let reserved = self.0.try_reserve(more);
        reserved.map_err(|_| self.0.allocator().no_room())
    }

    /// Adds these values, as far as there is room for them.
    #[inline]
    pub(crate) fn extend_within(&mut self, values: impl Iterator<Item = T>) {
        let mut added = self.0.len();
        for (place, value) in self.0.spare_capacity_mut().iter_mut().zip(values) {
            place.write(value);
            added += 1;
        }
        // SAFETY: all values up to here were written.
        unsafe { self.0.set_len(added) };
    }

    /// Removes all values, and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives back the room for further values.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

impl<T> FromIterator<T> for Array<T> {
    /// Makes an array in memory.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut array = AllocatedVec::new_in(ArrayStore::MEMORY);
        array.extend(values);
        Self(array)
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::new(ArrayStore::MEMORY)
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> AsRef<[T]> for Array<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq, U: AsRef<[T]> + ?Sized> PartialEq<U> for Array<T> {
    fn eq(&self, other: &U) -> bool {
        **self == *other.as_ref()
    }
}

impl<'a, T> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Array<T> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl NoRoom {
    /// Text of the error of an array in memory.
    pub const IN_MEMORY: &str = "there is not enough memory for the events";
}

#[cfg(all(test, unix))]
mod tests {
    use downbeat_files::testing::TemporaryFolder;

    use super::*;

    /// Arrays in a file have the values that arrays in memory have, however they grow and
    /// shrink.
    #[test]
    fn arrays_are_equal_wherever_they_are() {
        let (folder, _) = TemporaryFolder::with_file("input", b"");
        let store = ArrayStore::in_folder(&folder.0).unwrap();
        assert!(store.is_file() && !ArrayStore::MEMORY.is_file());
        let mut rng = fastrand::Rng::with_seed(7);
        let mut expected: Vec<Vec<u64>> = vec![vec![]; 5];
        let stores = expected.iter().map(|_| store.clone());
        let mut found: Vec<Array<u64>> = stores.map(Array::new).collect();
        for _ in 0..200 {
            let of = rng.usize(..expected.len());
            let (expected, found) = (&mut expected[of], &mut found[of]);
            match rng.u32(..10) {
                0 => {
                    expected.clear();
                    found.clear();
                }
                1 => found.shrink_to_fit(),
                2 => found.reserve_exact(rng.usize(..100_000)).unwrap(),
                3 => {
                    let some: Vec<u64> = (0..rng.usize(..100_000)).map(|_| rng.u64(..)).collect();
                    expected.extend(&some);
                    some.iter()
                        .try_for_each(|value| found.push(*value))
                        .unwrap();
                }
                _ => {
                    for _ in 0..rng.usize(..50_000) {
                        let value = rng.u64(..);
                        expected.push(value);
                        found.push(value).unwrap();
                    }
                }
            }
            assert_eq!(found, expected);
        }
        assert!(found.iter().zip(&expected).all(|(found, of)| found == of));
        let copies = found
            .iter()
            .map(|of| Array::collect(&store, of.iter().copied()));
        let copies: Vec<Array<u64>> = copies.collect::<Result<_, _>>().unwrap();
        assert!(copies.iter().zip(&expected).all(|(found, of)| found == of));
        // The temporary file has no name.
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
        assert!(store.failure().is_none());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let (folder, _) = TemporaryFolder::with_file("input", b"");
        let missing = folder.file("missing");
        let why = ArrayStore::in_folder(&missing).unwrap_err().to_string();
        assert!(
            why.starts_with(&format!("{}: ", missing.display())),
            "{why}"
        );
    }

    #[test]
    fn more_than_there_is_room_for_is_an_error() {
        let (folder, _) = TemporaryFolder::with_file("input", b"");
        let store = ArrayStore::in_folder(&folder.0).unwrap();
        let mut array = Array::new(store.clone());
        array.push(1_u64).unwrap();
        let why = array.reserve_exact(1 << 56).unwrap_err();
        assert_eq!(
            why.to_string(),
            "there is no room for the events in the temporary file"
        );
        let why = store.failure().unwrap().to_string();
        assert!(
            why.starts_with(&format!("{}: ", folder.0.display())),
            "{why}"
        );
        assert_eq!(array, [1]);
        let why = Array::<u64>::default().reserve_exact(1 << 56).unwrap_err();
        assert_eq!(why.to_string(), NoRoom::IN_MEMORY);
    }
}
