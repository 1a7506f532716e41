//! Files that appear only when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{FileError, create_beside};

/// Recommended size of one read or write.
pub const CHUNK: usize = 256 << 10;

/// A file that appears when [`finish`](Self::finish) returns; until then, its path keeps the old
/// content.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// Path of the finished file.
    path: PathBuf,
    /// Path of the temporary file.
    beside: PathBuf,
    finished: bool,
}

impl NewFile {
    /// Creates a temporary file beside `path`.
    ///
    /// # Errors
    /// If it cannot be created, or something else than a writable file is at `path`.
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

    /// Replaces the content of the file at `path` when all is written; otherwise, the old file is
    /// still there.
    ///
    /// # Errors
    /// If the file cannot be written, or is something else than a writable file.
    pub fn replace(path: &Path, mut content: Vec<u8>) -> Result<(), FileError> {
        let mut file = Self::create(path)?;
        file.write(&mut content)?;
        file.finish()
    }

    /// Writes the buffer and clears it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Result<(), FileError> {
        self.file
            .write_all(buffer)
            .map_err(FileError::io(&self.path))?;
        buffer.clear();
        Ok(())
    }

    /// Renames the temporary file to its path, where it replaces the old file.
    ///
    /// # Errors
    /// If the file cannot be written or renamed.
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
            // Errors cannot be reported here.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Follows a link at `path` and checks that its target can be replaced.
fn place(path: &Path) -> Result<PathBuf, FileError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(FileError::content(path, "it is not a file")),
        // A read-only file must not be replaced, even if its folder is writable.
        Ok(found) if found.permissions().readonly() => {
            Err(FileError::content(path, "it is read-only"))
        }
        Ok(_) => fs::canonicalize(path).map_err(FileError::io(path)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(why) => Err(FileError::Io {
            path: path.to_owned(),
            why,
        }),
    }
}
