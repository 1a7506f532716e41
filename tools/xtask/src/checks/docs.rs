//! The documentation builds, its links lead somewhere.

use std::process::Command;

use crate::steps::Step;
use downbeat_launch::command::command;

/// The private items first: what stays in `target/doc` is what users see.
pub(crate) fn steps<'a>() -> [Step<'a>; 2] {
    let whole = || strict(command("cargo doc --workspace --no-deps --keep-going"));
    let mut private = whole();
    private.arg("--document-private-items");
    [
        Step::command("documentation of private items", private),
        Step::command("documentation", whole()),
    ]
}

/// Lets warnings fail.
pub(crate) fn strict(mut doc: Command) -> Command {
    doc.env("RUSTDOCFLAGS", "-D warnings");
    doc
}
