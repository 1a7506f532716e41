//! Files that grow by complete pieces.

use core::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::content::RecordEnd;
use super::{RecordError, csv};

/// A file that grows by complete pieces.
#[derive(Debug)]
pub(super) struct AppendFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// End of the last complete piece. Bytes after it are incomplete.
    pub(super) end: RecordEnd,
}

impl AppendFile {
    /// Opens or creates a file. The caller reads it and sets `end`.
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
            end: RecordEnd::default(),
        })
    }

    /// Locks the file against other processes until it is closed or this process ends.
    ///
    /// The standard library has file locks only since Rust 1.89. A file system without locks, such
    /// as Lustre without its option `flock`, is not an error.
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

    /// Appends one piece, with its checksum. After an error, the incomplete piece is removed now or
    /// before the next one.
    pub(super) fn append(&mut self, mut piece: Vec<u8>) -> Result<(), RecordError> {
        self.cut()?;
        let mut checksum = self.end.checksum.clone();
        checksum.add(&piece);
        let line = csv::CHECKSUM.line_of(checksum.value()) + "\n";
        checksum.add(line.as_bytes());
        piece.extend(line.bytes());
        let written = self.file.write_all(&piece);
        if written.is_err() {
            // If this fails, too, readers ignore the incomplete piece.
            let _ = self.cut();
        }
        written.map_err(RecordError::io(&self.path))?;
        self.end = RecordEnd {
            bytes: self.end.bytes + piece.len() as u64,
            checksum,
        };
        Ok(())
    }

    /// Removes incomplete bytes at the end.
    fn cut(&self) -> Result<(), RecordError> {
        let length = self
            .file
            .metadata()
            .map_err(RecordError::io(&self.path))?
            .len();
        match length.cmp(&self.end.bytes) {
            Ordering::Less => Err(RecordError::content(
                &self.path,
                "another program truncated it",
            )),
            Ordering::Equal => Ok(()),
            Ordering::Greater => self
                .file
                .set_len(self.end.bytes)
                .map_err(RecordError::io(&self.path)),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use downbeat_files::FileError;

    use super::*;
    use downbeat_files::Crc32;
    use downbeat_files::testing::TemporaryFolder;

    /// The error of a full disk or an exceeded quota.
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut full = AppendFile {
            path: PathBuf::from("x/a.csv"),
            file,
            end: RecordEnd::default(),
        };
        let error = full.append(b"x".to_vec()).unwrap_err();
        assert!(
            matches!(&error, RecordError::File(FileError::Io { why, .. }) if why.kind() == std::io::ErrorKind::StorageFull)
        );
        assert!(
            error.to_string().starts_with("x/a.csv: No space left"),
            "{error}"
        );
        assert_eq!(full.end.bytes, 0);
    }

    #[test]
    fn incomplete_pieces_are_removed_by_the_next_append() {
        let (_folder, path) = TemporaryFolder::with_file("a", b"whole\npart");
        let mut checksum = Crc32::default();
        checksum.add(b"whole\n");
        let mut tail = AppendFile {
            end: RecordEnd { bytes: 6, checksum },
            ..AppendFile::open(&path).unwrap()
        };
        tail.append(b"next\n".to_vec()).unwrap();
        let sealed = csv::CHECKSUM.line_of(Crc32::of_bytes(b"whole\nnext\n"));
        let expected = format!("whole\nnext\n{sealed}\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(tail.end.bytes, expected.len() as u64);
        std::fs::write(&path, "whole").unwrap();
        assert!(
            tail.append(b"next\n".to_vec())
                .unwrap_err()
                .to_string()
                .ends_with("a: another program truncated it")
        );
    }
}
