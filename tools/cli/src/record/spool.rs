//! Folders of shared memory for the blocks of ranks.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use downbeat_recording::Collector;
use rustix::process::{getpid, getuid};

/// Folder of shared memory.
const MEMORY: &str = "/dev/shm";

/// First part of the names of folders: process and the time of its start follow.
const PREFIX: &str = "downbeat-trace.";

/// File with the folder that recordings go to.
const OUT: &str = "out";

/// File with the number of the process that records, which the tracer writes.
const OWNER: &str = "owner";

/// Folder of one rank, removed on drop.
#[derive(Debug)]
pub(super) struct Spool(pub(super) PathBuf);

impl Spool {
    /// Creates a folder for this process, whose recording goes to the folder `out`.
    pub(super) fn create(out: &Path) -> io::Result<Self> {
        let process = getpid().as_raw_nonzero().get();
        let began = start_of(process).unwrap_or_default();
        let path = Path::new(MEMORY).join(format!("{PREFIX}{process}.{began}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        let spool = Self(path);
        let out = fs::canonicalize(out)?;
        fs::write(spool.0.join(OUT), out.as_os_str().as_bytes())?;
        Ok(spool)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // It is gone if its blocks were collected.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Folder that its parent left behind.
#[derive(Debug)]
struct Left {
    path: PathBuf,
    out: PathBuf,
}

/// Collects what killed parents of this user left behind on this node, if its folder is still there, and removes it otherwise. Returns
/// the numbers of recordings that were collected and removed.
pub(super) fn salvage() -> [usize; 2] {
    let mut numbers = [0; 2];
    for Left { path, out } in left() {
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
            name.to_str().and_then(owner).is_some() && entry.metadata().is_ok_and(is_mine)
        })
        .map(|entry| entry.path())
}

/// Lists the folders whose parent and rank have ended.
fn left() -> Vec<Left> {
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let parent = owner(&name);
        let has_parent =
            parent.is_some_and(|(process, began)| start_of(process).as_deref() == Some(began));
        let rank = fs::read_to_string(path.join(OWNER)).ok();
        let rank = rank.and_then(|process| process.parse().ok());
        !has_parent && rank.and_then(start_of).is_none()
    };
    let left = mine().filter(is_left).map(|path| Left {
        out: destination(&path),
        path,
    });
    left.collect()
}

/// Returns the folder that the recording of a folder goes to.
fn destination(path: &Path) -> PathBuf {
    let bytes = fs::read(path.join(OUT)).unwrap_or_default();
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns the process that a folder belongs to, and the time of its start.
fn owner(name: &str) -> Option<(i32, &str)> {
    let (process, began) = name.strip_prefix(PREFIX)?.split_once('.')?;
    Some((process.parse().ok()?, began))
}

/// Returns the time at which a process was started, in ticks since the start of the system; `None` if there is none.
fn start_of(process: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::Folder;

    /// Makes the folder of a process that cannot exist: the highest number that Linux allows is 2^22.
    fn left_behind(number: i32, out: &Path) -> PathBuf {
        let path = Path::new(MEMORY).join(format!("{PREFIX}{}.1", (1 << 23) + number));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(OUT), out.as_os_str().as_bytes()).unwrap();
        path
    }

    #[test]
    fn what_killed_parents_leave_behind_is_collected_or_removed() {
        let (folder, _) = Folder::with("other", b"");
        let out = fs::canonicalize(&folder.0).unwrap();
        let spool = Spool::create(&out).unwrap();
        let this = std::process::id() as i32;
        let left = left_behind(this, &out);
        let mut block = vec![];
        for word in [u64::from_le_bytes(*b"dbblock1"), 7, 0, 0, 0, 1, 0, 0] {
            block.extend(word.to_le_bytes());
        }
        // A text of eight bytes.
        block.extend((13_u64 | 8 << 32).to_le_bytes());
        block.extend(b"call 1 a");
        fs::write(left.join("7.0.0.block"), block).unwrap();
        let gone = left_behind(this + (1 << 22), &out.join("gone"));
        await_all(&out.join("gone"));
        salvage();
        assert!(!left.exists() && !gone.exists() && spool.0.exists());
        assert!(out.join("process-7.dbrank").exists());
        let path = spool.0.clone();
        drop(spool);
        assert!(!path.exists());
    }

    #[test]
    fn names_of_other_files_are_none_of_folders() {
        assert_eq!(owner("downbeat-trace.12.345"), Some((12, "345")));
        for name in [
            "downbeat-trace.",
            "downbeat-trace.a.1",
            "downbeat-trace.12",
            "psm.12.3",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
