//! The checks that the project promises.

mod cargo;
pub(crate) mod lints;
mod loom;
pub(crate) mod mpi;
mod mpi_program;
mod one_test;
pub(crate) mod setup;
mod tests;

use crate::args::Depth;
use crate::fuzz;
use crate::steps::{Lane, Step};
use crate::workspace::Workspace;

/// Returns the steps: within a lane, awaited steps come first, then cheap and common
/// failures.
pub(crate) fn all(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let mut steps = setup::steps(depth);
    let format = cargo::format_steps().into_iter();
    steps.extend(format.map(|step| step.in_lane(Lane::Compute, &[setup::COMPONENTS])));
    steps.extend(one_test::text_steps(depth));
    if depth > Depth::Quick {
        // They need no packages, which are installed meanwhile.
        steps.extend(loom::steps(workspace, depth));
    }
    let first = steps.len();
    steps.extend(tests::steps(workspace, depth));
    if depth > Depth::Quick {
        steps.extend(mpi::steps(workspace, depth));
        steps.extend(mpi_program::steps(workspace, depth));
        steps.extend(one_test::installed_steps(workspace, depth));
        steps.extend(tests::example_programs(workspace));
    }
    steps.extend(lints::steps(workspace, depth));
    steps.extend(one_test::crate_steps(depth));
    if depth > Depth::Quick {
        steps.push(tests::documented_examples(workspace, depth));
        steps.extend(cargo::documentation_steps(workspace, depth));
        steps.extend(cargo::target_steps(workspace, depth));
    }
    if depth == Depth::Long {
        steps.extend(fuzz::steps(workspace));
        steps.extend(cargo::long_steps(workspace));
    }
    for step in &mut steps[first..] {
        step.place.after.push(setup::PACKAGES.to_owned());
    }
    steps
}
