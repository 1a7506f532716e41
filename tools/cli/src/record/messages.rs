//! Messages about a recording that goes on.

use std::io::{self, Write as _};

/// Prints a message.
pub(super) fn say(message: &str) {
    // A launcher without a standard error has nobody to tell.
    let _ = writeln!(io::stderr(), "downbeat record: {message}");
}
