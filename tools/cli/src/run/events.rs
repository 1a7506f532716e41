//! What a run waits for: the end of a launched program, a signal, or that time passes.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use downbeat_common::Failure;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEvent {
    /// The program that is watched has ended, but is not yet waited for.
    Ended,
    /// The user, or the batch system, wants this program to end.
    Signal(i32),
}

/// Signals, and the ends of programs. Nobody polls for them: a run leaves the machine to what it launched.
#[derive(Debug)]
pub(super) struct RunEvents {
    sender: Sender<RunEvent>,
    receiver: Receiver<RunEvent>,
}

impl RunEvents {
    /// From now on signals do not end this program.
    pub(super) fn listen() -> Result<Self, Failure> {
        let (sender, receiver) = mpsc::channel();
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::run)?;
        let mine = sender.clone();
        // It ends when nobody listens any more, or with this program.
        thread::spawn(move || {
            signals
                .forever()
                .all(|signal| mine.send(RunEvent::Signal(signal)).is_ok())
        });
        Ok(Self { sender, receiver })
    }

    /// Tells of the end of this child. Until it is waited for, its number is nobody else's.
    pub(super) fn watch(&self, child: Pid) {
        let sender = self.sender.clone();
        thread::spawn(move || {
            let ended = || {
                waitid(
                    WaitId::Pid(child),
                    WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
                )
            };
            // Any other error says that there is no such child: it has ended, too.
            while ended().is_err_and(|why| why == Errno::INTR) {}
            // Nobody may listen any more.
            let _ = sender.send(RunEvent::Ended);
        });
    }

    /// The next event, if there is one until then.
    pub(super) fn next(&self, until: Option<Instant>) -> Option<RunEvent> {
        let Some(until) = until else {
            return self.receiver.recv().ok();
        };
        self.receiver
            .recv_timeout(until.saturating_duration_since(Instant::now()))
            .ok()
    }
}
