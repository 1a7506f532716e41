//! End of a process that stands for another one.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use downbeat_common::Failure;

/// Ends this process as the program has ended, so that the launcher learns of it.
#[expect(
    clippy::exit,
    reason = "any exit code of the program can be that of its parent"
)]
pub(crate) fn end_like(status: ExitStatus) -> Result<(), Failure> {
    if let Some(signal) = status.signal() {
        // It ends this process unless the signal is one that does nothing.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => std::process::exit(code),
        None => Err(Failure::run("the program was ended by a signal")),
    }
}
