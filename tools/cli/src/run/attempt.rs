//! One attempt at a launch.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::events::{RunEvent, RunEvents};
use super::log::LogFollower;
use super::orphans;

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// The program ended by itself, or by a signal of another process.
    Itself(ExitStatus),
    /// The program took too long.
    Late,
    /// This process received a signal to end.
    Signal(i32),
}

/// A command to launch, with its log and options.
#[derive(Debug)]
pub(super) struct LaunchAttempt<'a> {
    pub(super) words: &'a [String],
    /// Path of the log.
    pub(super) path: &'a Path,
    /// Log file, which becomes the output of the program.
    pub(super) log: File,
    pub(super) timeout: Option<Duration>,
    pub(super) verbose: bool,
}

impl LaunchAttempt<'_> {
    /// Launches the program in a process group of its own, so that all its processes can be ended, and waits for its end.
    /// Calls `show` repeatedly if standard error is a terminal or the output is copied to it.
    pub(super) fn run(self, events: &RunEvents, show: impl Fn(Duration)) -> io::Result<AttemptEnd> {
        let mut follower = if self.verbose {
            Some(LogFollower::new(self.path)?)
        } else {
            None
        };
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .process_group(0)
            .stdin(Stdio::null());
        let mut child = command
            .stdout(self.log.try_clone()?)
            .stderr(self.log)
            .spawn()?;
        // Otherwise this process would keep the log, and the lock on it.
        drop(command);
        let began = Instant::now();
        let group = Pid::from_child(&child);
        if let Err(why) = events.watch(group) {
            // Both fail only if it has ended.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return Err(why);
        }
        let tick = match (self.verbose, io::stderr().is_terminal()) {
            (true, _) => Some(Duration::from_millis(200)),
            (false, true) => Some(Duration::from_secs(1)),
            (false, false) => None,
        };
        let deadline = self.timeout.and_then(|timeout| began.checked_add(timeout));
        let mut ending = Termination {
            group,
            outcome: None,
            kill_at: deadline,
        };
        loop {
            let next_look = tick.map(|tick| Instant::now() + tick);
            match events.next([next_look, ending.kill_at].into_iter().flatten().min()) {
                Some(RunEvent::Ended) => break,
                Some(RunEvent::Signal(signal)) => ending.escalate(AttemptEnd::Signal(signal)),
                None if ending.kill_at.is_some_and(|at| at <= Instant::now()) => {
                    ending.escalate(AttemptEnd::Late);
                }
                None => {}
            }
            show(began.elapsed());
            if let Some(follower) = &mut follower {
                follower.show();
            }
        }
        // Processes that are left would disturb the next launch, and may write to the record.
        ending.signal(Signal::KILL);
        let status = child.wait()?;
        orphans::end();
        if let Some(follower) = &mut follower {
            follower.show();
        }
        Ok(ending.outcome.unwrap_or(AttemptEnd::Itself(status)))
    }
}

/// Ends a program: first by SIGTERM, then by SIGKILL.
struct Termination {
    group: Pid,
    outcome: Option<AttemptEnd>,
    /// Time of the next step.
    kill_at: Option<Instant>,
}

impl Termination {
    /// Time between the signals: an MPI launcher has to end its ranks, some of them on other nodes.
    const GRACE: Duration = Duration::from_secs(10);

    /// Takes the next step: pressing ^C twice kills at once.
    fn escalate(&mut self, outcome: AttemptEnd) {
        let first = self.outcome.is_none();
        // A signal of the user takes precedence over a timeout.
        if first || matches!(outcome, AttemptEnd::Signal(_)) {
            self.outcome = Some(outcome);
        }
        self.signal(if first { Signal::TERM } else { Signal::KILL });
        self.kill_at = first.then(|| Instant::now() + Self::GRACE);
    }

    fn signal(&self, signal: Signal) {
        // This fails if no process is left.
        let _ = kill_process_group(self.group, signal);
    }
}
