//! Programs that cargo builds, and their paths.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use downbeat_launch::command as shell;
use serde_json::Value;

/// The messages of cargo about a build.
pub(crate) struct Programs(String);

/// Builds are made once, nobody debugs them, and there are more crates than cores: data
/// for debuggers and for further builds, and the division of a crate into parts, would
/// only cost time. Build scripts have the same settings, so that what they share with the
/// programs is built once. A user's own settings hold.
pub(crate) const SETTINGS: [(&str, &str); 5] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_DEV_DEBUG", "none"),
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "none"),
];

/// Variable of the folder that the steps of one run share.
pub(crate) const FOLDER_OF_RUN: &str = "DOWNBEAT_FOLDER_OF_RUN";

/// Takes from a command what runs of steps set.
pub(crate) fn restore_environment(command: &mut Command) {
    command.env_remove(FOLDER_OF_RUN);
    for (variable, _) in SETTINGS {
        command.env_remove(variable);
    }
}

impl Programs {
    /// Runs `cargo build` or the like. Steps of one run build the same programs once:
    /// cargo would wait for the lock of the target directory only to find that nothing is
    /// to do.
    pub(crate) fn build(cargo: &mut Command) -> Result<Self, String> {
        let known = env::var_os(FOLDER_OF_RUN).map(|folder| {
            let mut hasher = DefaultHasher::new();
            shell::shown(cargo).hash(&mut hasher);
            Path::new(&folder).join(format!("{:x}.programs", hasher.finish()))
        });
        if let Some(messages) = known
            .as_ref()
            .and_then(|path| fs::read_to_string(path).ok())
        {
            return Ok(Self(messages));
        }
        let messages = shell::read(cargo.arg("--message-format=json-render-diagnostics"))?;
        if let Some(path) = known {
            // As a whole or not at all: other steps may look for it.
            let part = path.with_extension(process::id().to_string());
            fs::write(&part, &messages)
                .and_then(|()| fs::rename(&part, &path))
                .map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(Self(messages))
    }

    /// Returns the path of the program of this name.
    pub(crate) fn executable(&self, name: &str) -> Result<PathBuf, String> {
        self.messages()
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .ok_or(format!("cargo reports no executable of {name}"))
    }

    /// Returns the path of the library of this name with this ending, such as `so`.
    pub(crate) fn library(&self, name: &str, ending: &str) -> Result<PathBuf, String> {
        let of_name = self
            .messages()
            .filter(|message| message["target"]["name"] == name);
        let files = of_name.flat_map(|message| match &message["filenames"] {
            Value::Array(files) => files.clone(),
            _ => vec![],
        });
        let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
        paths
            .find(|path| path.extension().is_some_and(|found| found == ending))
            .ok_or(format!("cargo reports no lib{name}.{ending}"))
    }

    /// Returns the programs with tests: the path of the source of each, and its command
    /// in the folder of its package, where cargo runs it.
    pub(crate) fn tests(&self) -> Vec<(PathBuf, Command)> {
        let program = |message: Value| {
            let is_test = message["profile"]["test"] == true;
            let program = is_test.then(|| message["executable"].as_str())??;
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
            let source = message["target"]["src_path"].as_str()?;
            let mut test = Command::new(program);
            test.current_dir(folder);
            Some((source.into(), test))
        };
        self.messages().filter_map(program).collect()
    }

    fn messages(&self) -> impl Iterator<Item = Value> {
        let lines = self.0.lines();
        lines.filter_map(|line| serde_json::from_str(line).ok())
    }
}
