//! Signals that a parent passes on to what it has started.

use std::process::Child;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::iterator::Signals;

/// Passes those signals on that `is_passed` selects; none ends this process any more.
pub(super) fn pass_on(
    mut signals: Signals,
    is_passed: impl Fn(i32) -> bool + Send + 'static,
    child: &Child,
) {
    let child = Pid::from_child(child);
    let pass = move || {
        for signal in signals.forever().filter(|signal| is_passed(*signal)) {
            if let Some(signal) = Signal::from_named_raw(signal) {
                // It may have ended.
                let _ = kill_process(child, signal);
            }
        }
    };
    // Without the thread, a launcher ends everything by its second signal.
    let _ = thread::Builder::new().spawn(pass);
}
