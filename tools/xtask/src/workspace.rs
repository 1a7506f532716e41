//! The workspace: its packages, their features and targets, as cargo reports them.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use downbeat_launch::command as shell;
use serde::Deserialize;

pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    /// Target directory of cargo; relative to the root if it is below that.
    target: PathBuf,
}

/// Answer of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Registries that may get the package; `None` for all.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) categories: Vec<String>,
    /// The oldest compiler, such as `1.88`.
    pub(crate) rust_version: String,
    /// Each feature, with the features and dependencies that it enables.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) targets: Vec<Target>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Target {
    kind: Vec<String>,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) required_features: Vec<String>,
}

/// The feature that needs an MPI library to build.
pub(crate) const MPI: &str = "mpi";

/// The feature for tests that need OTF2's library and programs.
pub(crate) const OTF2: &str = "otf2-tools";

impl Workspace {
    /// Asks cargo, and changes to the root of the workspace, where the printed commands
    /// work.
    pub(crate) fn read() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        env::set_current_dir(&root)
            .map_err(|why| format!("cannot change to {}: {why}", root.display()))?;
        let mut ask = shell::command("cargo metadata --no-deps --format-version 1");
        let answer = ask
            .output()
            .map_err(|why| format!("cargo metadata: {why}"))?;
        shell::succeeded(&answer)
            .map_err(|why| format!("cargo metadata: {why}: {}", shell::text(&answer.stderr)))?;
        let text = shell::text(&answer.stdout);
        let metadata: Metadata =
            serde_json::from_str(&text).map_err(|why| format!("cargo metadata: {why}"))?;
        let target = metadata.target_directory;
        let below_root = target.strip_prefix(metadata.workspace_root);
        Ok(Self {
            packages: metadata.packages,
            target: below_root.map(Path::to_path_buf).unwrap_or(target),
        })
    }

    /// Returns a path below the target directory; also of variants that have a target
    /// directory of their own, so that cargo does not rebuild the usual one.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    /// Returns such a path from the root of all folders.
    pub(crate) fn absolute(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.built(name);
        std::path::absolute(&path).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// The arguments that enable all features of all packages but `mpi`, and `otf2-tools`
    /// if wanted.
    pub(crate) fn features_without_mpi(&self, otf2: bool) -> Vec<String> {
        let arguments = self.packages.iter().flat_map(|package| {
            let features = package.features_without_mpi();
            features.filter(move |feature| otf2 || !feature.ends_with(OTF2))
        });
        arguments.collect()
    }
}

impl Package {
    pub(crate) fn is_published(&self) -> bool {
        self.publish.is_none()
    }

    /// Returns true if it promises to need no std.
    pub(crate) fn is_no_std(&self) -> bool {
        self.categories.iter().any(|category| category == "no-std")
    }

    /// Returns the targets of a kind.
    pub(crate) fn targets_of(&self, kind: &str) -> impl Iterator<Item = &Target> {
        self.targets
            .iter()
            .filter(move |target| target.kind() == kind)
    }

    /// Returns the arguments that enable all features but `mpi` and those that enable it.
    pub(crate) fn features_without_mpi(&self) -> impl Iterator<Item = String> {
        let features = self.features.iter().filter(|(name, enables)| {
            *name != "default" && *name != MPI && !enables.iter().any(|enabled| enabled == MPI)
        });
        features.map(|(name, _)| format!("--features={}/{name}", self.name))
    }

    pub(crate) fn has_mpi(&self) -> bool {
        self.features.contains_key(MPI)
    }
}

impl Target {
    /// Returns `lib`, `bin`, `example`, `test`, `bench`...
    pub(crate) fn kind(&self) -> &str {
        self.kind.first().map_or("", String::as_str)
    }

    pub(crate) fn needs_mpi(&self) -> bool {
        self.required_features.iter().any(|feature| feature == MPI)
    }
}

/// Returns the machine that this runs on, as cargo's option `--target` names it.
pub(crate) fn host() -> Result<String, String> {
    let host = shell::read(&mut shell::command("rustc --print host-tuple"))?;
    Ok(host.trim().to_owned())
}
