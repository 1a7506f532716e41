//! Every example runs to its end; those that need MPI do so in `mpi`.

use std::process::Command;

use downbeat_launch::command as shell;

use crate::args::Depth;
use crate::mpi_builds::everything;
use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::Workspace;

pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for package in &workspace.packages {
        for example in package
            .targets_of("example")
            .filter(|example| !example.needs_mpi())
        {
            steps.push(Step::new(
                format!("example: {} {}", package.name, example.name),
                move || {
                    let mut build = everything(workspace, depth, "cargo build --examples");
                    let example = Programs::build(&mut build)?.executable(&example.name)?;
                    shell::run(&mut Command::new(example))
                },
            ));
        }
    }
    steps
}
