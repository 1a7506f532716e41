//! The checks that the project promises, one kind per file.

mod architecture;
mod book;
mod components;
mod containers;
mod core_only;
mod dependencies;
mod doc_comments;
mod docs;
mod emulated;
mod examples;
mod format;
mod import_cycles;
mod installed;
pub(crate) mod lints;
mod loom;
pub(crate) mod mpi;
mod mpi_program;
mod no_std;
mod oldest_compiler;
mod otf2_python;
mod packaged;
pub(crate) mod packages;
mod published;
mod targets;
mod tests;
mod undefined_behaviour;

use crate::args::Depth;
use crate::fuzz;
use crate::steps::{Lane, Step};
use crate::workspace::Workspace;

/// Returns the steps that install what the others need.
pub(crate) fn setup<'a>(depth: Depth) -> Vec<Step<'a>> {
    let packages = (depth > Depth::Quick).then(|| packages::step(depth));
    packages.into_iter().chain([components::step()]).collect()
}

/// Returns the steps: within a lane, awaited steps come first, then cheap and common
/// failures.
pub(crate) fn all(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let mut steps = setup(depth);
    let mut of_texts = Vec::from(format::steps());
    of_texts.push(architecture::step());
    of_texts.extend(book::steps(depth));
    of_texts.push(doc_comments::step(workspace));
    of_texts.push(import_cycles::step(workspace));
    let of_texts = of_texts.into_iter();
    steps.extend(of_texts.map(|step| step.in_lane(Lane::Compute, &[components::STEP])));
    if depth > Depth::Quick {
        // They need no packages, which are installed meanwhile.
        steps.extend(loom::steps(workspace, depth));
    }
    let first = steps.len();
    steps.extend(tests::steps(workspace, depth));
    if depth > Depth::Quick {
        steps.extend(mpi::steps(workspace, depth));
        steps.extend(mpi_program::steps(workspace, depth));
        steps.extend(installed::steps(workspace, depth));
        steps.extend(examples::steps(workspace));
    }
    steps.extend(lints::steps(workspace, depth));
    steps.extend(no_std::steps(workspace));
    steps.extend(core_only::steps(workspace));
    if depth > Depth::Quick {
        steps.push(tests::examples(workspace, depth));
        steps.extend(docs::steps(workspace, depth));
        steps.extend(published::steps(workspace, depth));
        steps.extend(targets::steps(workspace, depth));
    }
    if depth == Depth::Long {
        steps.extend(fuzz::steps(workspace));
        steps.extend(oldest_compiler::steps(workspace));
        steps.push(dependencies::step());
        steps.extend(emulated::steps(workspace));
        steps.extend(packaged::steps(workspace));
        steps.push(containers::step(workspace));
        steps.push(otf2_python::step(workspace));
        steps.extend(undefined_behaviour::steps(workspace));
    }
    for step in &mut steps[first..] {
        step.place.after.push(packages::STEP.to_owned());
    }
    steps
}
