//! A file that appears when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{FileError, create_beside};

/// So much is written at once.
pub const CHUNK: usize = 256 << 10;

/// A file that is there when [`finish`](Self::finish) returns; what was there before is so until then.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// Where it is to be.
    path: PathBuf,
    /// Where it is before it is complete.
    beside: PathBuf,
    finished: bool,
}

impl NewFile {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    /// When no file can be made there, or what is there is something else than a file.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let path = place(path)?;
        let create = |beside: &Path| OpenOptions::new().write(true).create_new(true).open(beside);
        let (beside, file) = create_beside(&path, create).map_err(FileError::io(&path))?;
        Ok(Self {
            file,
            path,
            beside,
            finished: false,
        })
    }

    /// Writes what is in the buffer, which is empty afterwards.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Result<(), FileError> {
        self.file
            .write_all(buffer)
            .map_err(FileError::io(&self.path))?;
        buffer.clear();
        Ok(())
    }

    /// Replaces what was at its place.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.beside, &self.path))
            .map_err(FileError::io(&self.path))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.finished {
            // There is nobody to tell.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Where a file is to be: if there is a link, where it leads to.
fn place(path: &Path) -> Result<PathBuf, FileError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(FileError::content(path, "it is not a file")),
        // A folder that must not be written to does not make the file writable.
        Ok(found) if found.permissions().readonly() => {
            Err(FileError::content(path, "it must not be written to"))
        }
        Ok(_) => fs::canonicalize(path).map_err(FileError::io(path)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(why) => Err(FileError::Io {
            path: path.to_owned(),
            why,
        }),
    }
}
