//! Folders of shared memory for the blocks of ranks.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use downbeat_recording::settings::{OWNER, PARENT};
use downbeat_recording::{Collector, folder_of_files};
use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::process::{getpid, getuid};

use super::say;

/// Folder of shared memory.
const MEMORY: &str = "/dev/shm";

/// First part of the names of folders: process and time of the creation follow.
const PREFIX: &str = "downbeat-trace.";

/// Ending of a folder that is being made.
const UNFINISHED: &str = ".new";

/// Time within which the maker of a folder locks its file there.
const UNLOCKED: Duration = Duration::from_secs(1);

/// File with the folder that recordings go to.
const OUT: &str = "out";

/// Files that the parent of a rank and the rank itself hold locked: other marks of a process, as its number, differ between
/// namespaces, which may share this memory.
const LOCKS: [&str; 2] = [PARENT, OWNER];

/// Least shared memory that is worth using: less is left to the MPI library.
const LEAST_SHARED: u64 = 4 << 20;

/// Folders of one rank, removed on drop.
#[derive(Debug)]
pub(super) struct Spool {
    /// Folder of shared memory.
    pub(super) path: PathBuf,
    /// Folder for blocks in files, which the rank creates if it needs it.
    pub(super) files: PathBuf,
    /// Bytes of shared memory that the rank may take.
    pub(super) shared: u64,
    /// Bytes of shared memory that are free, and the number of ranks that want some.
    found: Option<[u64; 2]>,
    /// Bytes that the user allows.
    most: u64,
    /// File that is locked while this process lives.
    _lock: File,
}

impl Spool {
    /// Creates a folder for this process, whose recording goes to the folder `out`: in shared memory, if there is some.
    /// The rank may take a quarter of its share there, at most `most` bytes.
    pub(super) fn create(out: &Path, most: u64) -> io::Result<Self> {
        let out = fs::canonicalize(out)?;
        let found = free_memory();
        let shared = found.map_or(0, |[free, ranks]| (free / 4 / ranks).min(most));
        let shared = if shared < LEAST_SHARED { 0 } else { shared };
        let (path, lock) = make(Path::new(MEMORY), &out).or_else(|_| make(&out, &out))?;
        Ok(Self {
            files: folder_of_files(&path, &out),
            shared: if path.starts_with(MEMORY) { shared } else { 0 },
            path,
            found,
            most,
            _lock: lock,
        })
    }

    /// Returns what too little shared memory means for a recording that goes to the folder `out`.
    pub(super) fn warning(&self, out: &Path) -> Option<String> {
        const MUCH: u64 = 64 << 20;
        let mib = |bytes: u64| bytes >> 20;
        let what = match self.found {
            Some([free, ranks]) => {
                format!("{MEMORY} has {} MiB free for {ranks} ranks", mib(free))
            }
            None => format!("{MEMORY} cannot be used"),
        };
        let out = out.display();
        match self.shared {
            0 => Some(format!(
                "{what}: records go to files in {out}, which takes more time"
            )),
            1..MUCH if self.shared < self.most => Some(format!(
                "{what}: records of each rank take {} MiB of it, and the program may wait until they are in {out}",
                mib(self.shared)
            )),
            _ => None,
        }
    }
}

/// Returns the bytes of shared memory that are free, and the number of ranks on this node; `None` without shared memory.
fn free_memory() -> Option<[u64; 2]> {
    let found = statvfs(MEMORY).ok()?;
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let ranks = ranks_here(|name| env::var(name).ok()).unwrap_or_else(cores);
    Some([found.f_bavail.saturating_mul(found.f_frsize), ranks])
}

/// Variables by which launchers tell the number of ranks on a node; Slurm's is a list for all
/// nodes, such as `4(x3),2`.
const LOCAL_RANKS: [&str; 3] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_TASKS_PER_NODE",
];

/// Returns the number of ranks on this node, at most, if the launcher tells it.
fn ranks_here(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let numbers = LOCAL_RANKS.into_iter().find_map(variable)?;
    let numbers = numbers
        .split(',')
        .map(|part| part.split('(').next()?.parse().ok());
    numbers.max().flatten().filter(|number| *number > 0)
}

/// Makes a folder for this process in another one, and the file in it that is locked while this process lives.
fn make(folder: &Path, out: &Path) -> io::Result<(PathBuf, File)> {
    let process = getpid().as_raw_nonzero();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since_1970.unwrap_or_default().as_nanos();
    let path = folder.join(format!("{PREFIX}{process}.{nanos}"));
    let unfinished = folder.join(format!("{PREFIX}{process}.{nanos}{UNFINISHED}"));
    DirBuilder::new().mode(0o700).create(&unfinished)?;
    let fill = || {
        let lock = File::create(unfinished.join(PARENT))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::write(unfinished.join(OUT), out.as_os_str().as_bytes())?;
        fs::rename(&unfinished, &path)?;
        Ok(lock)
    };
    let lock = fill();
    if lock.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    lock.map(|lock| (path, lock))
}

impl Drop for Spool {
    fn drop(&mut self) {
        // They are gone if the blocks were collected.
        let _ = fs::remove_dir_all(&self.files);
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Fate of the recordings that killed parents left behind.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    pub(super) collected: usize,
    pub(super) removed: usize,
    /// Folders of recordings that cannot be written, each with a message.
    pub(super) kept: Vec<(PathBuf, String)>,
}

/// Collects what killed parents of this user left behind on this node, and in the folder `out` of recordings, if the folder of a
/// recording is still there, and removes it otherwise. What cannot be written stays.
pub(super) fn salvage(out: Option<&Path>) -> Salvaged {
    let mut found = Salvaged::default();
    for path in mine(out) {
        // Locked, so that others do not collect it, too.
        let Some(_locks) = lock(&path) else {
            continue;
        };
        let out = destination(&path);
        if !out.is_dir() {
            found.removed += usize::from(fs::remove_dir_all(&path).is_ok());
            continue;
        }
        let collected = Collector::new(&path, &out).salvage();
        let lost = collected.map_or_else(Some, |collected| Some(collected.lost?.why));
        let Some(why) = lost else {
            found.collected += 1;
            continue;
        };
        let message = match path.exists() {
            true => format!("{why}; its records stay in {}", path.display()),
            false => format!("{why}; some records are missing"),
        };
        found.kept.push((out, message));
    }
    found
}

/// Waits until all recordings that go to a folder are collected on this node, also by
/// parents that the launcher does not wait for; says which of them cannot be.
pub(super) fn await_all(out: &Path) {
    /// Parents write to a disk.
    const PATIENCE: Duration = Duration::from_secs(30);
    let Ok(out) = fs::canonicalize(out) else {
        return;
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let mut kept = salvage(Some(&out)).kept;
        kept.retain(|(of, _)| *of == out);
        if !kept.is_empty() || !mine(Some(&out)).any(|path| destination(&path) == out) {
            kept.iter().for_each(|(_, why)| say(why));
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Lists the folders of this user on this node, and in a folder of recordings, also those that were being made when their parent
/// was killed.
fn mine(out: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let folders = [Path::new(MEMORY)].into_iter().chain(out);
    let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let me = getuid().as_raw();
    let is_mine = move |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let is_old = |found: &fs::Metadata| {
            let age = found.modified().ok().and_then(|time| time.elapsed().ok());
            age.is_some_and(|age| age > UNLOCKED)
        };
        let is_unfinished = name.as_bytes().ends_with(UNFINISHED.as_bytes());
        let is_mine = |found: fs::Metadata| {
            found.is_dir() && found.uid() == me && (!is_unfinished || is_old(&found))
        };
        name.as_bytes().starts_with(PREFIX.as_bytes()) && entry.metadata().is_ok_and(is_mine)
    };
    entries.filter(is_mine).map(|entry| entry.path())
}

/// Locks a folder; `None` if its parent or its rank lives.
fn lock(path: &Path) -> Option<Vec<File>> {
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
    use downbeat_files::testing::TemporaryFolder;

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
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let out = fs::canonicalize(&folder.0).unwrap();
        let spool = Spool::create(&out, 1 << 20).unwrap();
        let left = left_behind("left", &out);
        let mut block = vec![];
        for word in [u64::from_le_bytes(*b"dbblock2"), 7, 0, 0, 0, 1, 0, 0] {
            block.extend(word.to_le_bytes());
        }
        // A text of eight bytes.
        block.extend((13_u64 | 8 << 32).to_le_bytes());
        block.extend(b"call 1 a");
        fs::write(left.join("7.0.0.block"), block).unwrap();
        let gone = left_behind("gone", &out.join("gone"));
        await_all(&out.join("gone"));
        let unfinished = left_behind(&format!("left{UNFINISHED}"), &out);
        salvage(None);
        assert!(unfinished.exists(), "it may still be made");
        thread::sleep(UNLOCKED);
        salvage(None);
        assert!(!unfinished.exists() && !left.exists() && !gone.exists() && spool.path.exists());
        assert!(out.join("process-7.dbrank").exists());
        let path = spool.path.clone();
        drop(spool);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_of_recordings_stands_in_for_shared_memory() {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let out = fs::canonicalize(&folder.0).unwrap();
        let (path, lock) = make(&out, &out).unwrap();
        assert_eq!(
            (path.parent(), destination(&path)),
            (Some(&*out), out.clone())
        );
        assert_eq!(mine(Some(&out)).filter(|found| *found == path).count(), 1);
        salvage(Some(&out));
        assert!(path.exists());
        drop(lock);
        salvage(Some(&out));
        assert!(!path.exists());
        let missing = out.join("missing");
        assert!(make(&missing, &out).is_err() && !missing.exists());
    }

    #[test]
    fn the_launcher_tells_the_ranks_of_a_node() {
        let of = |set: &'static str, value: &'static str| {
            ranks_here(move |name| (name == set).then(|| value.to_owned()))
        };
        assert_eq!(of("OMPI_COMM_WORLD_LOCAL_SIZE", "3"), Some(3));
        assert_eq!(of("MPI_LOCALNRANKS", "12"), Some(12));
        assert_eq!(of("SLURM_TASKS_PER_NODE", "2,4(x3),3"), Some(4));
        assert_eq!([of("MPI_LOCALNRANKS", "0"), of("none", "3")], [None; 2]);
    }

    #[test]
    fn little_shared_memory_is_told() {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let mut spool = Spool::create(&folder.0, 1 << 40).unwrap();
        for (found, shared, what) in [
            (
                Some([5 << 20, 2]),
                0,
                "has 5 MiB free for 2 ranks: records go to files in ",
            ),
            (
                Some([60 << 20, 2]),
                7 << 20,
                "records of each rank take 7 MiB",
            ),
            (None, 0, "cannot be used: records go to files in "),
        ] {
            (spool.found, spool.shared) = (found, shared);
            let said = spool.warning(&folder.0).unwrap();
            assert!(said.contains(what), "{said}");
        }
        for (shared, most) in [(256 << 20, 1 << 40), (8 << 20, 8 << 20)] {
            (spool.shared, spool.most) = (shared, most);
            assert_eq!(spool.warning(&folder.0), None);
        }
    }
}
