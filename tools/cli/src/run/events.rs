//! Events that a run waits for: the end of a launched program, a signal, or a timeout.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use downbeat_common::{Failure, ending_signals};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use signal_hook::iterator::Signals;

/// An event that a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEvent {
    /// The watched program has ended, and must still be waited for.
    Ended,
    /// The user or the batch system sent a signal to end.
    Signal(i32),
}

/// Receives signals and the ends of programs, without polling, which would disturb the launched program.
#[derive(Debug)]
pub(super) struct RunEvents {
    sender: Sender<RunEvent>,
    receiver: Receiver<RunEvent>,
}

impl RunEvents {
    /// Begins to catch signals, which then no longer end this program.
    pub(super) fn listen() -> Result<Self, Failure> {
        let (sender, receiver) = mpsc::channel();
        let failed = |why| Failure::run(format!("no thread can wait for signals: {why}"));
        let mut signals = Signals::new(ending_signals()).map_err(failed)?;
        let mine = sender.clone();
        // The thread ends when the receiver is gone, or with this program.
        let forward = move || {
            signals
                .forever()
                .all(|signal| mine.send(RunEvent::Signal(signal)).is_ok())
        };
        thread::Builder::new().spawn(forward).map_err(failed)?;
        Ok(Self { sender, receiver })
    }

    /// Sends an event when this child ends. Its process id stays valid until it is waited for.
    ///
    /// # Errors
    /// If there is no thread to wait for it.
    pub(super) fn watch(&self, child: Pid) -> io::Result<()> {
        let sender = self.sender.clone();
        let wait = move || {
            let ended = || {
                waitid(
                    WaitId::Pid(child),
                    WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
                )
            };
            // Any other error means that there is no such child: it has ended, too.
            while ended().is_err_and(|why| why == Errno::INTR) {}
            // The receiver may be gone.
            let _ = sender.send(RunEvent::Ended);
        };
        thread::Builder::new().spawn(wait).map(drop)
    }

    /// Waits for the next event, at most until the given time.
    pub(super) fn next(&self, until: Option<Instant>) -> Option<RunEvent> {
        let Some(until) = until else {
            return self.receiver.recv().ok();
        };
        self.receiver
            .recv_timeout(until.saturating_duration_since(Instant::now()))
            .ok()
    }
}
