//! Programs that cargo builds, and where they are then.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use downbeat_launch::command::{self as shell, command};

/// What cargo says of a build.
pub(crate) struct Programs(String);

impl Programs {
    /// Has cargo build.
    pub(crate) fn build(cargo: &mut Command) -> Result<Self, String> {
        shell::read(cargo.arg("--message-format=json-render-diagnostics")).map(Self)
    }

    /// `downbeat`, and the examples that need no MPI. Of the whole workspace, as the tests are: what they depend on has the
    /// same features then, and is built once.
    pub(crate) fn usual() -> Result<Self, String> {
        Self::build(&mut command(
            "cargo build --workspace --bin downbeat --examples",
        ))
    }

    /// Where the program of that name is.
    pub(crate) fn executable(&self, name: &str) -> Result<PathBuf, String> {
        let messages = self
            .0
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .ok_or(format!("cargo does not say where it built {name}"))
    }
}
