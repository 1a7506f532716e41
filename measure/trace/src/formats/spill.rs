//! Data that do not fit in memory, in temporary files without a name, which are deleted when they are
//! closed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use downbeat_files::FileError;
use downbeat_files::create_beside;

/// Number of bytes that are written or read at once for each location.
const LOCATION_CHUNK: usize = 8 << 10;

/// Temporary file.
#[derive(Debug)]
struct Spill {
    file: File,
    /// Path of the output that the file is needed for, for error messages.
    path: PathBuf,
    /// Name of the file, if it could not be removed while the file is open.
    named: Option<PathBuf>,
    end: u64,
}

impl Spill {
    /// Creates the file in the folder of `path`.
    fn new(path: &Path) -> Result<Self, FileError> {
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
        })
    }

    /// Adds bytes at the end, and returns their range.
    fn append(&mut self, bytes: &[u8]) -> Result<Piece, FileError> {
        let at = self.end;
        self.seek(at)
            .and_then(|()| self.file.write_all(bytes))
            .map_err(FileError::io(&self.path))?;
        self.end += bytes.len() as u64;
        Ok(Piece {
            at,
            length: bytes.len() as u32,
        })
    }

    fn read(&self, piece: Piece, to: &mut Vec<u8>) -> Result<(), FileError> {
        to.resize(piece.length as usize, 0);
        self.seek(piece.at)
            .and_then(|()| (&self.file).read_exact(to))
            .map_err(FileError::io(&self.path))
    }

    fn seek(&self, at: u64) -> io::Result<()> {
        (&self.file).seek(SeekFrom::Start(at)).map(drop)
    }

    /// Creates the error for content that was not written like this.
    fn damaged(&self) -> FileError {
        FileError::content(&self.path, "a temporary file was modified")
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let Some(name) = &self.named {
            // Errors cannot be reported here.
            let _ = fs::remove_file(name);
        }
    }
}

/// Part of a temporary file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: u64,
    length: u32,
}

/// Lists of encoded values, which are filled and read from their beginnings.
#[derive(Debug)]
pub(super) struct ByteLists {
    spill: Spill,
    lists: Vec<ByteList>,
}

#[derive(Debug, Default)]
struct ByteList {
    pieces: Vec<Piece>,
    /// Values that are not written.
    bytes: Vec<u8>,
}

impl ByteLists {
    /// Creates lists in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
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
        let list = &mut self.lists[list];
        encode(&mut list.bytes);
        if list.bytes.len() >= LOCATION_CHUNK {
            list.pieces.push(self.spill.append(&list.bytes)?);
            list.bytes.clear();
        }
        Ok(())
    }

    /// Ends writing.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        for list in &mut self.lists {
            if !list.bytes.is_empty() {
                list.pieces.push(self.spill.append(&list.bytes)?);
            }
            list.bytes = vec![];
        }
        Ok(())
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
            let Some(piece) = pieces.get(self.next) else {
                *self = Self {
                    next: self.next,
                    ..Self::default()
                };
                return Ok(None);
            };
            lists.spill.read(*piece, &mut self.bytes)?;
            (self.at, self.next) = (0, self.next + 1);
        }
        let mut rest = &self.bytes[self.at..];
        let value = decode(&mut rest);
        self.at = self.bytes.len() - rest.len();
        value.map(Some).ok_or_else(|| lists.spill.damaged())
    }
}
