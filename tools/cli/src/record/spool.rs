//! Folders of shared memory for the blocks of ranks.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use downbeat_recording::Collector;
use downbeat_recording::settings::OWNER;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{getpid, getuid};

/// Folder of shared memory.
const MEMORY: &str = "/dev/shm";

/// First part of the names of folders: process and time of the creation follow.
const PREFIX: &str = "downbeat-trace.";

/// Ending of a folder that is being made.
const UNFINISHED: &str = ".new";

/// File with the folder that recordings go to.
const OUT: &str = "out";

/// Files that the parent of a rank and the rank itself hold locked: other marks of a process, as its number, differ between
/// namespaces, which may share this memory.
const LOCKS: [&str; 2] = ["parent", OWNER];

/// Folder of one rank, removed on drop.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) path: PathBuf,
    /// File that is locked while this process lives.
    _lock: File,
}

impl Spool {
    /// Creates a folder for this process, whose recording goes to the folder `out`.
    pub(super) fn create(out: &Path) -> io::Result<Self> {
        let process = getpid().as_raw_nonzero();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since_1970.unwrap_or_default().as_nanos();
        let path = Path::new(MEMORY).join(format!("{PREFIX}{process}.{nanos}"));
        let unfinished = Path::new(MEMORY).join(format!("{PREFIX}{process}.{nanos}{UNFINISHED}"));
        DirBuilder::new().mode(0o700).create(&unfinished)?;
        let lock = File::create(unfinished.join(LOCKS[0]))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let out = fs::canonicalize(out)?;
        fs::write(unfinished.join(OUT), out.as_os_str().as_bytes())?;
        fs::rename(&unfinished, &path)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // It is gone if its blocks were collected.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Folder that its parent left behind.
#[derive(Debug)]
struct Left {
    path: PathBuf,
    out: PathBuf,
    /// Locks that keep others from collecting it, too.
    _locks: Vec<File>,
}

/// Collects what killed parents of this user left behind on this node, if its folder is still there, and removes it otherwise. Returns
/// the numbers of recordings that were collected and removed.
pub(super) fn salvage() -> [usize; 2] {
    let mut numbers = [0; 2];
    for Left { path, out, _locks } in left() {
        let is_collected = out.is_dir()
            && Collector::new(&path, &out)
                .finish("its parent was killed")
                .is_ok();
        // What cannot be collected is not worth the memory.
        let is_removed = is_collected || fs::remove_dir_all(&path).is_ok();
        numbers[usize::from(!is_collected)] += usize::from(is_removed);
    }
    numbers
}

/// Waits until all recordings that go to a folder are collected on this node, also by parents that the launcher does not wait for.
pub(super) fn await_all(out: &Path) {
    /// Parents write to a disk.
    const PATIENCE: Duration = Duration::from_secs(30);
    let Ok(out) = fs::canonicalize(out) else {
        return;
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        salvage();
        if !mine().any(|path| destination(&path) == out) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Lists the folders of this user on this node.
fn mine() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(MEMORY).into_iter().flatten().flatten();
    let me = getuid().as_raw();
    entries
        .filter(move |entry| {
            let is_mine = |found: fs::Metadata| found.is_dir() && found.uid() == me;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(PREFIX)
                && !name.ends_with(UNFINISHED)
                && entry.metadata().is_ok_and(is_mine)
        })
        .map(|entry| entry.path())
}

/// Lists the folders whose parent and rank have ended.
fn left() -> impl Iterator<Item = Left> {
    mine().filter_map(|path| {
        Some(Left {
            _locks: locks(&path)?,
            out: destination(&path),
            path,
        })
    })
}

/// Locks a folder; `None` if its parent or its rank lives.
fn locks(path: &Path) -> Option<Vec<File>> {
    let mut locks = vec![];
    for name in LOCKS {
        // There is no rank before MPI is initialized.
        if let Ok(file) = File::open(path.join(name)) {
            flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
            locks.push(file);
        }
    }
    Some(locks)
}

/// Returns the folder that the recording of a folder goes to.
fn destination(path: &Path) -> PathBuf {
    let bytes = fs::read(path.join(OUT)).unwrap_or_default();
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::Folder;

    /// Makes a folder that nobody holds locked.
    fn left_behind(name: &str, out: &Path) -> PathBuf {
        let path = Path::new(MEMORY).join(format!("{PREFIX}{}.{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(LOCKS[0]), b"").unwrap();
        fs::write(path.join(OUT), out.as_os_str().as_bytes()).unwrap();
        path
    }

    #[test]
    fn what_killed_parents_leave_behind_is_collected_or_removed() {
        let (folder, _) = Folder::with("other", b"");
        let out = fs::canonicalize(&folder.0).unwrap();
        let spool = Spool::create(&out).unwrap();
        let left = left_behind("left", &out);
        let mut block = vec![];
        for word in [u64::from_le_bytes(*b"dbblock1"), 7, 0, 0, 0, 1, 0, 0] {
            block.extend(word.to_le_bytes());
        }
        // A text of eight bytes.
        block.extend((13_u64 | 8 << 32).to_le_bytes());
        block.extend(b"call 1 a");
        fs::write(left.join("7.0.0.block"), block).unwrap();
        let gone = left_behind("gone", &out.join("gone"));
        await_all(&out.join("gone"));
        salvage();
        assert!(!left.exists() && !gone.exists() && spool.path.exists());
        assert!(out.join("process-7.dbrank").exists());
        let path = spool.path.clone();
        drop(spool);
        assert!(!path.exists());
    }
}
