//! Every example runs to its end; those that need MPI do so in `mpi`.

use std::process::Command;

use downbeat_launch::command as shell;
use downbeat_launch::mpi::OPEN_MPI;

use crate::mpi_builds::{build_step, programs};
use crate::steps::{Lane, Step};
use crate::workspace::Workspace;

pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = vec![];
    for package in &workspace.packages {
        for example in package
            .targets_of("example")
            .filter(|example| !example.needs_mpi())
        {
            let step = Step::new(
                format!("example: {} {}", package.name, example.name),
                move || {
                    let example = programs(OPEN_MPI, workspace)?.executable(&example.name)?;
                    shell::run(&mut Command::new(example))
                },
            );
            steps.push(step.in_lane(Lane::Compute, &[build_step(OPEN_MPI)]));
        }
    }
    steps
}
