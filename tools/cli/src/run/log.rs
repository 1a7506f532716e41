//! What a launched program says, in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::events::{RunEvent, RunEvents};

/// Opens the log of a launch, to add to it, once nobody writes to it any more; or says which signal came meanwhile.
///
/// The log is locked, and the program that is launched holds the lock with it, as does whatever it launches. So a program
/// that outlived the run that launched it is not joined by another one that writes the same record.
pub(super) fn open(path: &Path, events: &RunEvents) -> io::Result<Result<File, i32>> {
    locked(
        OpenOptions::new().create(true).append(true).open(path)?,
        path,
        events,
    )
}

/// Waits until nobody writes to a record any more, who would have locked it: ranks can outlive their launcher, and do not
/// hold its log.
pub(super) fn await_unlocked(record: &Path, events: &RunEvents) -> io::Result<Result<(), i32>> {
    let file = OpenOptions::new().append(true).open(record)?;
    Ok(locked(file, record, events)?.map(drop))
}

fn locked(file: File, path: &Path, events: &RunEvents) -> io::Result<Result<File, i32>> {
    let mut told = false;
    while lock(&file)? == LockState::Taken {
        if !told {
            let path = path.display();
            say(&format!(
                "downbeat: a program that was launched before still writes to {path}: waiting for its end"
            ));
            told = true;
        }
        if let Some(RunEvent::Signal(signal)) = events.next(Some(Instant::now() + PATIENCE)) {
            return Ok(Err(signal));
        }
    }
    Ok(Ok(file))
}

const PATIENCE: Duration = Duration::from_millis(200);

/// What came of locking a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockState {
    /// It is this program's own, or that of what it hands it to.
    Mine,
    /// It is somebody else's.
    Taken,
    /// Some file systems of clusters cannot lock files.
    Unknown,
}

/// Locks a file, without waiting.
pub(super) fn lock(file: &File) -> io::Result<LockState> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(LockState::Mine),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(LockState::Taken),
        Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK) => Ok(LockState::Unknown),
        Err(why) => Err(why.into()),
    }
}

/// The last lines of what was written since it had this length, each after a bar.
pub(super) fn tail(path: &Path, since: u64) -> String {
    const LINES: usize = 20;
    const BYTES: u64 = 8192;
    let read = || {
        let mut file = File::open(path)?;
        let begin = file.metadata()?.len().saturating_sub(BYTES).max(since);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    // What cannot be read now can be read later, by whoever wants to know.
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    // A program that fails does not get to draw on the terminal.
    let plain = |line: &str| {
        line.chars()
            .filter(|c| !c.is_control() || *c == '\t')
            .collect::<String>()
    };
    last.iter()
        .map(|line| format!("  | {}\n", plain(line)))
        .collect()
}

/// What was written to the log, as far as it was not shown yet.
#[derive(Debug)]
pub(super) struct LogFollower {
    file: File,
}

impl LogFollower {
    /// From the end of what is there now.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file })
    }

    /// Shows it on standard error.
    pub(super) fn show(&mut self) {
        // What cannot be shown is still in the log.
        let _ = io::copy(&mut self.file, &mut io::stderr());
    }
}

/// Says a line, or some, on standard error.
pub(super) fn say(lines: &str) {
    if !lines.is_empty() {
        // Nobody can be told that nobody can be told.
        let _ = writeln!(io::stderr(), "{}", lines.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_last_attempt() {
        let path = std::env::temp_dir().join(format!("downbeat-log-{}", std::process::id()));
        let lines = |from: u32, to: u32| {
            (from..=to)
                .map(|i| format!("line {i}\n"))
                .collect::<String>()
        };
        std::fs::write(&path, lines(1, 3) + "\x1b[2Jred\t\u{7}1\n\n").unwrap();
        assert_eq!(
            tail(&path, 0),
            "  | line 1\n  | line 2\n  | line 3\n  | [2Jred\t1\n"
        );
        assert_eq!(tail(&path, 14), "  | line 3\n  | [2Jred\t1\n");
        assert_eq!(tail(&path, 1000), "");
        std::fs::write(&path, lines(1, 100_000)).unwrap();
        assert_eq!(tail(&path, 0).lines().next(), Some("  | line 99981"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tail(&path, 0), "");
    }
}
