//! Logs of launched programs, and locks on files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::events::{RunEvent, RunEvents};

/// Opens the log of a launch for appending, once no other program writes to it; or returns the signal that came meanwhile.
///
/// The log is locked, and the launched program inherits the lock, as do its children. So no second program can write the
/// same record while one that outlived its run still does.
pub(super) fn open(path: &Path, events: &RunEvents) -> io::Result<Result<File, i32>> {
    locked(
        OpenOptions::new().create(true).append(true).open(path)?,
        path,
        events,
    )
}

/// Waits until a record is not locked: its writer locks it, and ranks can outlive their launcher without holding its log.
pub(super) fn await_unlocked(record: &Path, events: &RunEvents) -> io::Result<Result<(), i32>> {
    let file = OpenOptions::new().append(true).open(record)?;
    Ok(locked(file, record, events)?.map(drop))
}

fn locked(file: File, path: &Path, events: &RunEvents) -> io::Result<Result<File, i32>> {
    let mut is_announced = false;
    while lock(&file)? == LockState::Taken {
        if !is_announced {
            let path = path.display();
            say(&format!(
                "downbeat: a program of an earlier launch still writes to {path}: waiting for its end"
            ));
            is_announced = true;
        }
        if let Some(RunEvent::Signal(signal)) = events.next(Some(Instant::now() + LOCK_INTERVAL)) {
            return Ok(Err(signal));
        }
    }
    Ok(Ok(file))
}

/// Interval between attempts to lock a file.
const LOCK_INTERVAL: Duration = Duration::from_millis(200);

/// Result of locking a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockState {
    /// Held by this process, or a child that inherits it.
    Mine,
    /// Held by another process.
    Taken,
    /// The file system cannot lock files.
    Unsupported,
}

/// Locks a file, without waiting.
pub(super) fn lock(file: &File) -> io::Result<LockState> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(LockState::Mine),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(LockState::Taken),
        Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK) => Ok(LockState::Unsupported),
        Err(why) => Err(why.into()),
    }
}

/// Returns the last lines that were written after the first `since` bytes, each after a bar.
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
    // A log that cannot be read now can be read later.
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    // Control characters of a failed program must not reach the terminal.
    let plain = |line: &str| {
        line.chars()
            .filter(|c| !c.is_control() || *c == '\t')
            .collect::<String>()
    };
    last.iter()
        .map(|line| format!("  | {}\n", plain(line)))
        .collect()
}

/// Copies new output of a log to standard error.
#[derive(Debug)]
pub(super) struct LogFollower {
    file: File,
}

impl LogFollower {
    /// Starts at the current end of the log.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file })
    }

    /// Copies the output since the last call.
    pub(super) fn show(&mut self) {
        // On an error, the output is still in the log.
        let _ = io::copy(&mut self.file, &mut io::stderr());
    }
}

/// Prints lines on standard error.
pub(super) fn say(lines: &str) {
    if !lines.is_empty() {
        // If standard error cannot be written, the error cannot be reported either.
        let _ = writeln!(io::stderr(), "{}", lines.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_from_the_last_attempt() {
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
