//! Programs that cargo builds, and their paths.

use std::path::{Path, PathBuf};
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

    /// Returns the programs with tests, each as a command in the folder of its package, where cargo runs it.
    pub(crate) fn tests(&self) -> Vec<Command> {
        let program = |message: Value| {
            let is_test = message["profile"]["test"] == true;
            let program = is_test.then(|| message["executable"].as_str())??;
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
            let mut test = Command::new(program);
            test.current_dir(folder);
            Some(test)
        };
        self.messages().filter_map(program).collect()
    }

    fn messages(&self) -> impl Iterator<Item = Value> {
        let lines = self.0.lines();
        lines.filter_map(|line| serde_json::from_str(line).ok())
    }

    fn artifact(
        &self,
        name: &str,
        kind: &str,
        path: impl Fn(&Value) -> &Value,
    ) -> Result<PathBuf, String> {
        self.messages()
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| path(&message).as_str().map(PathBuf::from))
            .ok_or(format!("cargo reports no {kind} of {name}"))
    }
}
