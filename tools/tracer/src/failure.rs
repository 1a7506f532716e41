//! Messages of the tracer.

use std::env;
use std::io::Write as _;

/// Ends the program, with a message by one rank.
#[expect(
    clippy::exit,
    reason = "a program that cannot be recorded as asked must not go on unrecorded"
)]
pub(crate) fn fail(why: &str) -> ! {
    let names = [
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
        "SLURM_PROCID",
    ];
    let rank = names.iter().find_map(|name| env::var(name).ok());
    if rank.is_none_or(|rank| rank == "0") {
        say(why);
    }
    std::process::exit(2)
}

/// Prints a message.
pub(crate) fn say(why: &str) {
    // A program without a standard error has nobody to tell.
    let _ = writeln!(std::io::stderr(), "libdownbeat_trace: {why}");
}
