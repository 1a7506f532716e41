//! One attempt to launch a program: it ends by itself, or is ended.

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

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// By itself, or by somebody else's signal.
    Itself(ExitStatus),
    /// It took too long.
    Late,
    /// This program was told to end.
    Signal(i32),
}

/// What is launched, and how.
#[derive(Debug)]
pub(super) struct LaunchAttempt<'a> {
    pub(super) words: &'a [String],
    /// Where its log is,
    pub(super) path: &'a Path,
    /// and the log itself, which is the program's own.
    pub(super) log: File,
    pub(super) timeout: Option<Duration>,
    pub(super) verbose: bool,
}

impl LaunchAttempt<'_> {
    /// Launches the program in a process group of its own, so that all of it can be ended, and waits for its end.
    /// `show` is called now and then, when there is somebody who can see it.
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
        // Or this process would hold its log, and the lock on it.
        drop(command);
        let began = Instant::now();
        let group = Pid::from_child(&child);
        events.watch(group);
        let tick = match (self.verbose, io::stderr().is_terminal()) {
            (true, _) => Some(Duration::from_millis(200)),
            (false, true) => Some(Duration::from_secs(1)),
            (false, false) => None,
        };
        let deadline = self.timeout.and_then(|timeout| began.checked_add(timeout));
        let mut ending = Termination {
            group,
            why: None,
            kill_at: deadline,
        };
        loop {
            let next_look = tick.map(|tick| Instant::now() + tick);
            match events.next([next_look, ending.kill_at].into_iter().flatten().min()) {
                Some(RunEvent::Ended) => break,
                Some(RunEvent::Signal(signal)) => ending.hurry(AttemptEnd::Signal(signal)),
                None if ending.kill_at.is_some_and(|at| at <= Instant::now()) => {
                    ending.hurry(AttemptEnd::Late)
                }
                None => {}
            }
            show(began.elapsed());
            if let Some(follower) = &mut follower {
                follower.show();
            }
        }
        // What it left behind would disturb the next launch, and may write to its record.
        ending.signal(Signal::KILL);
        let status = child.wait()?;
        orphans::end();
        if let Some(follower) = &mut follower {
            follower.show();
        }
        Ok(ending.why.unwrap_or(AttemptEnd::Itself(status)))
    }
}

/// How a program is ended: first it is asked to, then it is not asked.
struct Termination {
    group: Pid,
    why: Option<AttemptEnd>,
    /// When the next step is due.
    kill_at: Option<Instant>,
}

impl Termination {
    /// A launcher has to end its ranks, of which some are on other nodes.
    const GRACE: Duration = Duration::from_secs(10);

    /// The next step. Who presses ^C twice does not want to wait.
    fn hurry(&mut self, why: AttemptEnd) {
        let first = self.why.is_none();
        // That the user wants to end is more than that it took too long.
        if first || matches!(why, AttemptEnd::Signal(_)) {
            self.why = Some(why);
        }
        self.signal(if first { Signal::TERM } else { Signal::KILL });
        self.kill_at = first.then(|| Instant::now() + Self::GRACE);
    }

    fn signal(&self, signal: Signal) {
        // It fails when nobody is left.
        let _ = kill_process_group(self.group, signal);
    }
}
