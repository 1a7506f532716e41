#![doc = include_str!("../README.md")]
//!
//! # Contents
//! - [`Lines`] reads a file line by line and never holds more than the longest allowed line.
//! - [`number`] parses numbers exactly and quickly.
//! - [`FileError`] names the file, and the line or byte, that is wrong.
//! - [`varint`] writes and reads numbers of variable length.
//! - [`checksum`] notices that a file was damaged.
//! - [`NewFile`] writes beside its target and renames, so that a reader never sees half a file.
//!
//! # Caveats
//! A [`NewFile`] that a killed process leaves behind stays beside its target, with a name that ends in `.part`;
//! [`unfinished`] lists those of this process.
//!
//! # What this crate does not do
//! It knows no file format. The formats are in `downbeat-records`, `downbeat-regions` and `downbeat-trace`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod beside;
pub mod checksum;
mod crc32;
mod error;
mod lines;
mod new_file;
pub mod number;
mod ranges;
#[doc(hidden)]
pub mod testing;
pub mod varint;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

pub use beside::{create_beside, folder_of, unfinished};
pub use checksum::{ChecksumLine, Checksums};
pub use crc32::Crc32;
pub use error::{FileError, Flaw};
pub use lines::{AFTER_END, Lines};
pub use new_file::{CHUNK, NewFile};
pub use ranges::{format_ranges, parse_ranges};

/// Opens a regular file for reading.
///
/// # Errors
/// If it cannot be opened, or is not a regular file: a pipe or a device might never end.
pub fn open(path: &Path) -> Result<File, FileError> {
    if !fs::metadata(path).map_err(FileError::io(path))?.is_file() {
        return Err(FileError::content(path, "it is not a file"));
    }
    File::open(path).map_err(FileError::io(path))
}

/// Reads a whole regular file that is known to be small, such as one of settings.
///
/// # Errors
/// As [`open`], and if it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = vec![];
    open(path)?
        .read_to_end(&mut bytes)
        .map_err(FileError::io(path))?;
    Ok(bytes)
}

/// Reads a whole regular file of text, as [`read`] does.
///
/// # Errors
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    String::from_utf8(read(path)?).map_err(|_| FileError::content(path, "it is not UTF-8"))
}

/// Creates a folder, and those above it, unless it is there.
///
/// # Errors
/// If it cannot be created, or something else has its path.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(|why| match why.kind() {
        // The system would only say that a file exists.
        io::ErrorKind::AlreadyExists => FileError::content(path, "it is not a folder"),
        _ => FileError::io(path)(why),
    })
}

/// Quotes the beginning of foreign text for a message: enough to find it in the file, with control
/// characters escaped.
pub fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(40)];
    let more = if cut.len() < text.len() { "..." } else { "" };
    format!("{}{more}", String::from_utf8_lossy(cut).escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TemporaryFolder;

    #[test]
    fn a_file_in_the_place_of_a_folder_is_named() {
        let (folder, file) = TemporaryFolder::with_file("a", b"");
        let refused = create_folder(&file).unwrap_err().to_string();
        assert_eq!(refused, format!("{}: it is not a folder", file.display()));
        let inner = folder.file("b/c");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        assert!(inner.is_dir());
    }
}
