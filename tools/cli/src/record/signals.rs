//! Signals that a parent passes on to what it has started.

use std::process::Child;
use std::thread;

use downbeat_common::{Failure, ending_signals};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

/// Signals that no longer end this process, since a program that it starts decides.
#[derive(Debug)]
pub(super) struct CaughtSignals(SignalsInfo<WithRawSiginfo>);

impl CaughtSignals {
    /// Catches the signals that end a program, and those that users define.
    pub(super) fn catch() -> Result<Self, Failure> {
        let signals = ending_signals().into_iter().chain([SIGUSR1, SIGUSR2]);
        SignalsInfo::new(signals).map(Self).map_err(Failure::run)
    }

    /// Passes the signals on to the child, except those that it received itself.
    pub(super) fn pass_on(mut self, child: &Child) {
        let child = Pid::from_child(child);
        let pass = move || {
            for info in self.0.forever() {
                if is_from_terminal(info.si_code) {
                    continue;
                }
                if let Some(signal) = Signal::from_named_raw(info.si_signo) {
                    // It may have ended.
                    let _ = kill_process(child, signal);
                }
            }
        };
        // Without the thread, the child does not learn of these signals.
        let _ = thread::Builder::new().spawn(pass);
    }
}

/// Returns true if the terminal sent a signal, as for ^C: the child received it, too, and
/// a second one makes launchers end by force.
fn is_from_terminal(code: i32) -> bool {
    // Linux gives signals of the system positive codes, and those of processes others.
    cfg!(target_os = "linux") && code > 0
}
