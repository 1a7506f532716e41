//! Folders of shared memory for the blocks of ranks.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::{getpid, getuid};

/// Folder of shared memory.
const MEMORY: &str = "/dev/shm";

/// First part of the names of folders: process and the time of its start follow.
const PREFIX: &str = "downbeat-trace.";

/// Folder of one rank, removed on drop.
#[derive(Debug)]
pub(super) struct Spool(pub(super) PathBuf);

impl Spool {
    /// Creates a folder for this process.
    pub(super) fn create() -> io::Result<Self> {
        let process = getpid().as_raw_nonzero().get();
        let began = start_of(process).unwrap_or_default();
        let path = Path::new(MEMORY).join(format!("{PREFIX}{process}.{began}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // It is gone if its blocks were collected.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders that killed processes of this user left behind on this node, and returns their number.
pub(super) fn clean() -> usize {
    let entries = fs::read_dir(MEMORY).into_iter().flatten().flatten();
    let mine = getuid().as_raw();
    let left = entries.filter(|entry| {
        let is_mine = entry
            .metadata()
            .is_ok_and(|found| found.is_dir() && found.uid() == mine);
        let name = entry.file_name();
        is_mine
            && name
                .to_str()
                .and_then(owner)
                .is_some_and(|(process, began)| start_of(process).as_deref() != Some(began))
    });
    left.filter(|entry| fs::remove_dir_all(entry.path()).is_ok())
        .count()
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

    #[test]
    fn folders_of_processes_that_are_gone_are_removed() {
        let spool = Spool::create().unwrap();
        // The highest number of a process that Linux allows is 2^22.
        let left = Path::new(MEMORY).join(format!("{PREFIX}{}.1", 1 << 23));
        fs::create_dir_all(&left).unwrap();
        assert!(clean() >= 1);
        assert!(!left.exists() && spool.0.exists());
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
