//! Signals that a parent passes on to what it has started.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use downbeat_common::{Failure, ending_signals};
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process};
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use signal_hook::low_level::emulate_default_handler;

/// Signals that no longer end this process, since a program that it starts decides.
#[derive(Debug)]
pub(super) struct CaughtSignals(SignalsInfo<WithRawSiginfo>);

impl CaughtSignals {
    /// Catches the signals that end a program, and those that users define.
    pub(super) fn catch() -> Result<Self, Failure> {
        let signals = ending_signals().into_iter().chain([SIGUSR1, SIGUSR2]);
        SignalsInfo::new(signals).map(Self).map_err(Failure::run)
    }

    /// Passes the signals on to the child, except those that it received itself, until the
    /// returned guard is dropped; then they end this process.
    pub(super) fn pass_on(mut self, child: &Child) -> PassedSignals {
        let child = Pid::from_child(child);
        let guard = PassedSignals(Arc::new(AtomicU8::new(PASS)));
        let treatment = Arc::clone(&guard.0);
        let pass = move || {
            for info in self.0.forever() {
                let has_received =
                    is_from_terminal(info.si_code) && getpgid(Some(child)) == Ok(getpgrp());
                match treatment.load(Ordering::Acquire) {
                    PASS if !has_received => {
                        if let Some(signal) = Signal::from_named_raw(info.si_signo) {
                            // It may have ended.
                            let _ = kill_process(child, signal);
                        }
                    }
                    END => {
                        // An error could not be reported.
                        let _ = emulate_default_handler(info.si_signo);
                    }
                    _ => {}
                }
            }
        };
        // Without the thread, the child does not learn of these signals.
        let _ = thread::Builder::new().spawn(pass);
        guard
    }
}

/// Guard while signals are passed on.
#[derive(Debug)]
pub(super) struct PassedSignals(Arc<AtomicU8>);

// Treatment of signals: passed on, ignored, or the end of this process.
const PASS: u8 = 0;
const IGNORE: u8 = 1;
const END: u8 = 2;

impl PassedSignals {
    /// Ignores signals from now on: the child has ended.
    pub(super) fn ignore(&self) {
        self.0.store(IGNORE, Ordering::Release);
    }
}

impl Drop for PassedSignals {
    fn drop(&mut self) {
        self.0.store(END, Ordering::Release);
    }
}

/// Returns true if the terminal sent a signal, as for ^C: a child in the process group
/// received it, too, and a second one makes launchers end by force.
fn is_from_terminal(code: i32) -> bool {
    // Linux gives signals of the system positive codes, and those of processes others.
    cfg!(target_os = "linux") && code > 0
}
