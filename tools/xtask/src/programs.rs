//! Programs that cargo builds, and their paths.

use std::path::PathBuf;
use std::process::Command;

use downbeat_launch::command::{self as shell, command};
use serde_json::Value;

use crate::workspace::Workspace;

/// The messages of cargo about a build.
pub(crate) struct Programs(String);

impl Programs {
    /// Runs `cargo build` or the like.
    pub(crate) fn build(cargo: &mut Command) -> Result<Self, String> {
        shell::read(cargo.arg("--message-format=json-render-diagnostics")).map(Self)
    }

    /// Builds `downbeat` and the examples that need no MPI, with the features of the tests: dependencies are built once.
    pub(crate) fn without_mpi(workspace: &Workspace, otf2: bool) -> Result<Self, String> {
        let mut build = command("cargo build --workspace --bin downbeat --examples");
        build.args(workspace.features_without_mpi(otf2));
        Self::build(&mut build)
    }

    /// Returns the path of the program of this name.
    pub(crate) fn executable(&self, name: &str) -> Result<PathBuf, String> {
        let messages = self
            .0
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .ok_or(format!("cargo reports no executable of {name}"))
    }
}
