//! Documentation builds, and its links lead somewhere.

use std::process::Command;

use crate::args::Depth;
use crate::mpi_builds::everything;
use crate::steps::Step;
use crate::workspace::Workspace;

/// The documentation of users, and that of private items in the long run: a link from
/// public to private items is only noticed in the former.
pub(crate) fn steps<'a>(workspace: &Workspace, depth: Depth) -> Vec<Step<'a>> {
    let whole = || {
        let mut doc = everything(workspace, depth, "cargo doc --no-deps --keep-going");
        doc.env("RUSTDOCFLAGS", "-D warnings");
        doc
    };
    let mut private: Command = whole();
    private.arg("--document-private-items");
    let mut steps = vec![Step::command("documentation", whole())];
    if depth == Depth::Long {
        steps.push(Step::command("documentation of private items", private));
    }
    steps
}
