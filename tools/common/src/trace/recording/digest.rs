//! Digest of a trace, by which ranks notice that they read different ones.

use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;

use downbeat_sync::StableHasher;

use crate::trace::files;

/// Size of the start and of the end of a binary trace that count; its definitions are mostly at its
/// start, and its index, with the offsets of all chunks, is at its end.
const ENDS: u64 = 1 << 20;

/// Computes the digest: names and sizes of all files, the contents of definitions and of text, and
/// both ends of a binary trace. Each rank reads the rest only in part.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn digest(path: &Path, is_binary: bool) -> io::Result<u64> {
    let mut hasher = StableHasher::default();
    let mut all = files::all_of(path);
    all.sort();
    for path in all {
        path.file_name().hash(&mut hasher);
        let found = fs::metadata(&path)?;
        let size = found.len();
        size.hash(&mut hasher);
        if !found.is_file() || path.extension().is_some_and(|extension| extension == "evt") {
            continue;
        }
        let mut file = fs::File::open(&path)?;
        if is_binary && size > 2 * ENDS {
            add(&mut hasher, (&mut file).take(ENDS))?;
            file.seek(SeekFrom::End(-(ENDS as i64)))?;
        }
        add(&mut hasher, file)?;
    }
    Ok(hasher.finish())
}

fn add(hasher: &mut StableHasher, mut from: impl Read) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.write(&buffer[..count]),
        }
    }
}
