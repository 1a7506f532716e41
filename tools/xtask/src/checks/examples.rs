//! Every example runs to its end; those that need MPI do so in `mpi`.

use std::process::Command;

use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::Workspace;
use downbeat_launch::command as shell;

pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for package in &workspace.packages {
        for example in package
            .targets_of("example")
            .filter(|example| !example.needs_mpi())
        {
            steps.push(Step::new(
                format!("example: {} {}", package.name, example.name),
                || {
                    shell::run(&mut Command::new(
                        Programs::usual()?.executable(&example.name)?,
                    ))
                },
            ));
        }
    }
    steps
}
