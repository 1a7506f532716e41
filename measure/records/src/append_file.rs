//! A file that grows at its end, a whole piece at a time.

use core::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::RecordError;

/// A file that grows at its end.
#[derive(Debug)]
pub(super) struct AppendFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Where the next piece goes. What stands behind that is not whole.
    pub(super) end: u64,
}

impl AppendFile {
    /// Opens a file, also one that is not there yet; whoever does so looks at once at what it holds.
    pub(super) fn open(path: &Path) -> Result<Self, RecordError> {
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(RecordError::content(path, "it is not a file"));
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path);
        Ok(Self {
            path: path.to_owned(),
            file: file.map_err(RecordError::io(path))?,
            end: 0,
        })
    }

    /// Makes sure that no other process writes this file until it is closed, or this process has ended, in whatever way.
    ///
    /// The standard library can do this, too, but not as long as Rust 1.88 is to do. A file system that knows no locks,
    /// such as Lustre without its option `flock`, is not a reason to measure nothing.
    pub(super) fn lock(&self) -> Result<(), RecordError> {
        #[cfg(unix)]
        {
            use rustix::fs::{FlockOperation, flock};
            if flock(&self.file, FlockOperation::NonBlockingLockExclusive)
                == Err(rustix::io::Errno::WOULDBLOCK)
            {
                return Err(RecordError::InUse(self.path.clone()));
            }
        }
        Ok(())
    }

    /// Adds one piece. If that fails, the file is as it was, or will be before the next one.
    pub(super) fn append(&mut self, piece: &[u8]) -> Result<(), RecordError> {
        self.cut()?;
        let written = self.file.write_all(piece);
        if written.is_err() {
            // A reader would do the same.
            let _ = self.cut();
        }
        written.map_err(RecordError::io(&self.path))?;
        self.end += piece.len() as u64;
        Ok(())
    }

    /// Removes what is not whole.
    fn cut(&self) -> Result<(), RecordError> {
        let length = self
            .file
            .metadata()
            .map_err(RecordError::io(&self.path))?
            .len();
        match length.cmp(&self.end) {
            Ordering::Less => Err(RecordError::content(
                &self.path,
                "somebody else made it shorter",
            )),
            Ordering::Equal => Ok(()),
            Ordering::Greater => self
                .file
                .set_len(self.end)
                .map_err(RecordError::io(&self.path)),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use downbeat_files::FileError;

    use super::*;
    use downbeat_files::testing::Folder;

    /// As when the disk is full, or the quota is used up.
    #[test]
    fn a_piece_that_does_not_fit_is_an_error_that_names_the_file() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut full = AppendFile {
            path: PathBuf::from("x/a.csv"),
            file,
            end: 0,
        };
        let error = full.append(b"x").unwrap_err();
        assert!(
            matches!(&error, RecordError::File(FileError::Io { why, .. }) if why.kind() == std::io::ErrorKind::StorageFull)
        );
        assert!(
            error.to_string().starts_with("x/a.csv: No space left"),
            "{error}"
        );
        assert_eq!(full.end, 0);
    }

    #[test]
    fn what_is_not_whole_goes_away_with_the_next_piece() {
        let (_folder, path) = Folder::with("a", b"whole\npart");
        let mut tail = AppendFile {
            end: 6,
            ..AppendFile::open(&path).unwrap()
        };
        tail.append(b"next\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole\nnext\n");
        assert_eq!(tail.end, 11);
        std::fs::write(&path, "whole").unwrap();
        assert!(
            tail.append(b"next\n")
                .unwrap_err()
                .to_string()
                .ends_with("a: somebody else made it shorter")
        );
    }
}
