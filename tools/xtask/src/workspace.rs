//! The workspace: its packages, their features and targets, as cargo reports them.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use downbeat_launch::command as shell;
use serde_json::Value;

pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    /// Target directory of cargo; relative to the root if it is below that.
    target: PathBuf,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) published: bool,
    /// True if it promises to need no std.
    pub(crate) is_no_std: bool,
    /// The oldest compiler, such as `1.88`.
    pub(crate) rust_version: String,
    /// Each feature, with the features and dependencies that it enables.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) targets: Vec<Target>,
}

pub(crate) struct Target {
    /// `lib`, `bin`, `example`, `test`, `bench`...
    pub(crate) kind: String,
    pub(crate) name: String,
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
        let metadata: Value =
            serde_json::from_str(&text).map_err(|why| format!("cargo metadata: {why}"))?;

        let target = PathBuf::from(string(&metadata["target_directory"]));
        let below_root = target
            .strip_prefix(string(&metadata["workspace_root"]))
            .map(Path::to_path_buf);
        Ok(Self {
            packages: array(&metadata["packages"])
                .map(Package::from_metadata)
                .collect(),
            target: below_root.unwrap_or(target),
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
    fn from_metadata(package: &Value) -> Self {
        let features = package["features"].as_object().into_iter().flatten();
        Self {
            name: string(&package["name"]),
            published: package["publish"].is_null(),
            is_no_std: array(&package["categories"]).any(|category| category == "no-std"),
            rust_version: string(&package["rust_version"]),
            features: features
                .map(|(name, enables)| (name.clone(), strings(enables)))
                .collect(),
            targets: array(&package["targets"])
                .map(Target::from_metadata)
                .collect(),
        }
    }

    /// Returns the targets of a kind.
    pub(crate) fn targets_of(&self, kind: &str) -> impl Iterator<Item = &Target> {
        self.targets
            .iter()
            .filter(move |target| target.kind == kind)
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
    fn from_metadata(target: &Value) -> Self {
        Self {
            kind: array(&target["kind"])
                .next()
                .map(string)
                .unwrap_or_default(),
            name: string(&target["name"]),
            required_features: strings(&target["required-features"]),
        }
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

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn strings(value: &Value) -> Vec<String> {
    array(value).map(string).collect()
}
