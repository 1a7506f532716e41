//! Every check that the project promises, one kind per file.

mod components;
mod core_only;
mod docs;
mod examples;
mod format;
mod lints;
mod loom;
pub(crate) mod mpi;
mod no_std;
mod packages;
mod tests;

use crate::steps::Step;
use crate::workspace::Workspace;

/// In the order in which a person wants to hear of failures: what is cheap and common first.
pub(crate) fn all(workspace: &Workspace, quick: bool) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    if !quick {
        steps.push(packages::step());
    }
    steps.push(components::step());
    steps.extend(format::steps());
    steps.extend(lints::steps(workspace));
    steps.extend(docs::steps());
    steps.extend(tests::steps(workspace));
    steps.extend(examples::steps(workspace));
    steps.extend(no_std::steps(workspace));
    steps.extend(core_only::steps(workspace));
    steps.push(loom::step(workspace));
    if !quick {
        steps.extend(mpi::steps(workspace));
    }
    steps
}
