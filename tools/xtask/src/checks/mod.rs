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
mod lints;
mod loom;
pub(crate) mod mpi;
mod mpi_program;
mod no_std;
mod oldest_compiler;
mod otf2_python;
mod packaged;
mod packages;
mod published;
mod targets;
mod tests;
mod undefined_behaviour;

use crate::args::Depth;
use crate::fuzz;
use crate::steps::Step;
use crate::workspace::Workspace;

/// Returns the steps that install what the others need.
pub(crate) fn setup<'a>(depth: Depth) -> Vec<Step<'a>> {
    let packages = (depth > Depth::Quick).then(|| packages::step(depth));
    packages.into_iter().chain([components::step()]).collect()
}

/// Returns the steps, cheap and common failures first.
pub(crate) fn all(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let mut steps = setup(depth);
    steps.extend(format::steps());
    steps.push(architecture::step());
    steps.extend(book::steps(depth));
    steps.push(doc_comments::step(workspace));
    steps.push(import_cycles::step(workspace));
    steps.extend(lints::steps(workspace, depth));
    steps.extend(published::steps(workspace, depth));
    steps.extend(oldest_compiler::steps(workspace, depth));
    steps.extend(tests::steps(workspace, depth));
    steps.extend(examples::steps(workspace, depth));
    steps.extend(no_std::steps(workspace));
    steps.extend(core_only::steps(workspace));
    steps.push(loom::step(workspace, depth));
    if depth > Depth::Quick {
        steps.extend(targets::steps(workspace, depth));
        steps.extend(fuzz::steps(workspace, depth));
    }
    steps.extend(docs::steps(workspace, depth));
    if depth > Depth::Quick {
        steps.extend(mpi::steps(workspace, depth));
        steps.extend(mpi_program::steps(workspace, depth));
        steps.extend(installed::steps(workspace, depth));
    }
    if depth == Depth::Long {
        steps.push(dependencies::step());
        steps.extend(emulated::steps(workspace));
        steps.extend(packaged::steps(workspace));
        steps.push(containers::step(workspace));
        steps.push(otf2_python::step(workspace));
        steps.extend(undefined_behaviour::steps(workspace));
    }
    steps
}
