//! Documentation builds, and its links lead somewhere.

use std::process::Command;

use downbeat_launch::command::command;
use downbeat_launch::mpi::OPEN_MPI;

use crate::args::Depth;
use crate::mpi_builds::build_for;
use crate::steps::Step;
use crate::workspace::Workspace;

/// The documentation of private items and that of users: a link from public to private items is only noticed in the latter.
///
/// With all features, against Open MPI, where system packages may be used.
pub(crate) fn steps<'a>(workspace: &Workspace, depth: Depth) -> [Step<'a>; 2] {
    let whole = || {
        let mut doc = command("cargo doc --workspace --no-deps --keep-going");
        doc.env("RUSTDOCFLAGS", "-D warnings");
        if depth > Depth::Quick {
            doc.arg("--all-features");
            build_for(OPEN_MPI, workspace, &mut doc);
        }
        doc
    };
    let mut private: Command = whole();
    private.arg("--document-private-items");
    [
        Step::command("documentation of private items", private),
        Step::command("documentation", whole()),
    ]
}
