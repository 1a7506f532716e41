//! Documentation builds, and its links lead somewhere.

use std::process::Command;

use crate::args::Depth;
use crate::mpi_builds::everything;
use crate::steps::Step;
use crate::workspace::Workspace;

/// The documentation of private items and that of users: a link from public to private items is only noticed in the latter.
pub(crate) fn steps<'a>(workspace: &Workspace, depth: Depth) -> [Step<'a>; 2] {
    let whole = || {
        let mut doc = everything(workspace, depth, "cargo doc --no-deps --keep-going");
        doc.env("RUSTDOCFLAGS", "-D warnings");
        doc
    };
    let mut private: Command = whole();
    private.arg("--document-private-items");
    [
        Step::command("documentation of private items", private),
        Step::command("documentation", whole()),
    ]
}
