//! The checks that the project promises.

mod lints;
mod listed;
mod loom;
pub(crate) mod mpi;
pub(crate) mod setup;
mod tests;

use crate::args::Depth;
use crate::fuzz;
use crate::steps::Step;
use crate::workspace::Workspace;

/// Returns the steps: within a lane, awaited steps come first, then cheap and common
/// failures.
pub(crate) fn all(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let [listed_first, listed] = listed::steps(workspace, depth);
    let mut steps = setup::steps(depth);
    steps.extend(listed_first);
    if depth > Depth::Quick {
        // They need no packages, which are installed meanwhile.
        steps.extend(loom::steps(workspace, depth));
    }
    let first = steps.len();
    steps.extend(tests::steps(workspace, depth));
    if depth > Depth::Quick {
        steps.extend(mpi::steps(workspace, depth));
        steps.push(listed::install_step(workspace, depth));
        steps.extend(tests::example_programs(workspace));
    }
    steps.extend(listed);
    if depth == Depth::Long {
        steps.extend(lints::steps(workspace));
        steps.extend(fuzz::steps(workspace));
    }
    for step in &mut steps[first..] {
        step.place.after.push(setup::PACKAGES.to_owned());
    }
    steps
}
