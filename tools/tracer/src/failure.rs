//! Messages of the tracer.

use std::env;
use std::io::Write as _;
use std::sync::Once;

use downbeat_recording::settings::is_first_rank;

/// Ends the program, with a message by one rank.
#[expect(
    clippy::exit,
    reason = "a program that cannot be recorded as asked must not go on unrecorded"
)]
pub(crate) fn fail(why: &str) -> ! {
    if is_first_rank(|name| env::var(name).ok()) {
        say(why);
    }
    std::process::exit(2)
}

/// Prints a message once.
pub(crate) fn say_once(said: &Once, why: &str) {
    said.call_once(|| say(why));
}

/// Prints a message.
pub(crate) fn say(why: &str) {
    // A program without a standard error has nobody to tell.
    let _ = writeln!(std::io::stderr(), "libdownbeat_trace: {why}");
}
