//! `downbeat record`: runs an MPI program under the tracer, and makes one corrected trace of it. `downbeat record-rank` does the part
//! of one rank.

mod libraries;
mod rank;
mod signals;
mod spool;
mod whole;

use std::io::{self, Write as _};

pub(crate) use rank::{RankOptions, run as run_rank};
pub(crate) use whole::{RecordOptions, run};

/// Prints a message about a recording that goes on.
fn say(message: &str) {
    // A launcher without a standard error has nobody to tell.
    let _ = writeln!(io::stderr(), "downbeat record: {message}");
}
