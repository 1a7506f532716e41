//! Digest of a trace, by which ranks notice that they read different ones.

use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Read};
use std::path::Path;

use downbeat_sync::StableHasher;

use crate::trace::files;

/// Computes the digest: names and sizes of all files, and the contents of definitions and of text.
/// Each rank reads the rest only in part.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn digest(path: &Path) -> io::Result<u64> {
    let mut hasher = StableHasher::default();
    let mut all = files::all_of(path);
    all.sort();
    for path in all {
        path.file_name().hash(&mut hasher);
        let found = fs::metadata(&path)?;
        found.len().hash(&mut hasher);
        if !found.is_file() || path.extension().is_some_and(|extension| extension == "evt") {
            continue;
        }
        add(&mut hasher, fs::File::open(&path)?)?;
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
