//! Programs that cargo builds, and their paths.

use std::path::PathBuf;
use std::process::Command;

use downbeat_launch::command as shell;
use serde_json::Value;

/// The messages of cargo about a build.
pub(crate) struct Programs(String);

impl Programs {
    /// Runs `cargo build` or the like.
    pub(crate) fn build(cargo: &mut Command) -> Result<Self, String> {
        shell::read(cargo.arg("--message-format=json-render-diagnostics")).map(Self)
    }

    /// Returns the path of the program of this name.
    pub(crate) fn executable(&self, name: &str) -> Result<PathBuf, String> {
        self.artifact(name, "executable", |message| &message["executable"])
    }

    /// Returns the path of the shared library of this name.
    pub(crate) fn shared_library(&self, name: &str) -> Result<PathBuf, String> {
        self.artifact(name, "library", |message| &message["filenames"][0])
    }

    fn artifact(
        &self,
        name: &str,
        kind: &str,
        path: impl Fn(&Value) -> &Value,
    ) -> Result<PathBuf, String> {
        let messages = self
            .0
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| path(&message).as_str().map(PathBuf::from))
            .ok_or(format!("cargo reports no {kind} of {name}"))
    }
}
