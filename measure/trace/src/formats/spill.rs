//! Data that do not fit in memory, in temporary files without a name, which are deleted when they are
//! closed.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use downbeat_files::FileError;
use downbeat_files::create_beside;

/// Number of bytes that are written or read at once for each location.
const LOCATION_CHUNK: usize = 8 << 10;

/// Lists of encoded values in a temporary file, which are filled and read from their
/// beginnings.
#[derive(Debug)]
pub(super) struct ByteLists {
    file: File,
    /// Path of the output that the file is needed for, for error messages.
    path: PathBuf,
    /// Name of the file, if it could not be removed while the file is open.
    named: Option<PathBuf>,
    end: u64,
    lists: Vec<ByteList>,
}

#[derive(Debug, Default)]
struct ByteList {
    /// Places in the file, and numbers of bytes.
    pieces: Vec<(u64, usize)>,
    /// Values that are not written.
    bytes: Vec<u8>,
}

impl ByteLists {
    /// Creates lists in a file in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        let open = |beside: &Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(beside)
        };
        let (name, file) = create_beside(path, open).map_err(FileError::io(path))?;
        let named = fs::remove_file(&name).is_err().then_some(name);
        Ok(Self {
            file,
            path: path.to_owned(),
            named,
            end: 0,
            lists: vec![],
        })
    }

    /// Adds a value to a list, which `encode` appends to its bytes.
    #[inline]
    pub(super) fn put(
        &mut self,
        list: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FileError> {
        if self.lists.len() <= list {
            self.lists.resize_with(list + 1, ByteList::default);
        }
        encode(&mut self.lists[list].bytes);
        match self.lists[list].bytes.len() >= LOCATION_CHUNK {
            true => self.write(list),
            false => Ok(()),
        }
    }

    /// Writes the values of a list at the end of the file.
    fn write(&mut self, list: usize) -> Result<(), FileError> {
        let ByteList { pieces, bytes } = &mut self.lists[list];
        let written = self.file.seek(SeekFrom::Start(self.end));
        let written = written.and_then(|_| self.file.write_all(bytes));
        written.map_err(FileError::io(&self.path))?;
        pieces.push((self.end, bytes.len()));
        self.end += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }

    /// Ends writing.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        for list in 0..self.lists.len() {
            if !self.lists[list].bytes.is_empty() {
                self.write(list)?;
            }
            self.lists[list].bytes = vec![];
        }
        Ok(())
    }
}

impl Drop for ByteLists {
    fn drop(&mut self) {
        if let Some(name) = &self.named {
            // Errors cannot be reported here.
            let _ = fs::remove_file(name);
        }
    }
}

/// Position in one of the lists.
#[derive(Debug, Default)]
pub(super) struct ByteCursor {
    bytes: Vec<u8>,
    at: usize,
    next: usize,
}

impl ByteCursor {
    /// Returns the next value of a list, which `decode` takes from the bytes; `None` after the last.
    #[inline]
    pub(super) fn next<'a, T>(
        &'a mut self,
        lists: &ByteLists,
        list: usize,
        decode: impl FnOnce(&mut &'a [u8]) -> Option<T>,
    ) -> Result<Option<T>, FileError> {
        if self.at == self.bytes.len() {
            let pieces = lists.lists.get(list).map_or(&[][..], |list| &list.pieces);
            let Some(&(at, length)) = pieces.get(self.next) else {
                *self = Self {
                    next: self.next,
                    ..Self::default()
                };
                return Ok(None);
            };
            self.bytes.resize(length, 0);
            let read = (&lists.file).seek(SeekFrom::Start(at));
            let read = read.and_then(|_| (&lists.file).read_exact(&mut self.bytes));
            read.map_err(FileError::io(&lists.path))?;
            (self.at, self.next) = (0, self.next + 1);
        }
        let mut rest = &self.bytes[self.at..];
        let value = decode(&mut rest);
        self.at = self.bytes.len() - rest.len();
        let value = value.map(Some);
        value.ok_or_else(|| FileError::content(&lists.path, "a temporary file was modified"))
    }
}
