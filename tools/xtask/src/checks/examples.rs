//! Every example runs to its end; those that need MPI do so in `mpi`.

use crate::shell::command;
use crate::steps::Step;
use crate::workspace::Workspace;

pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for package in &workspace.packages {
        for example in package.targets_of("example").filter(|example| !example.needs_mpi()) {
            let mut run = command(&format!("cargo run --quiet -p {} --example {}", package.name, example.name));
            if !example.required_features.is_empty() {
                run.args(["--features", &example.required_features.join(",")]);
            }
            steps.push(Step::command(format!("example: {} {}", package.name, example.name), run));
        }
    }
    steps
}
