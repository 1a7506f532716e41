//! What cargo says of the workspace: its packages, their features and targets.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use serde_json::Value;

use downbeat_launch::command as shell;

pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds; relative to the root if it is below that.
    target: PathBuf,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) categories: Vec<String>,
    /// Each feature, and what it turns on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) targets: Vec<Target>,
}

pub(crate) struct Target {
    /// `lib`, `bin`, `example`, `test`, `bench`...
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) required_features: Vec<String>,
}

impl Workspace {
    /// Asks cargo, and goes to the root of the workspace: there the printed commands work.
    pub(crate) fn read() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        env::set_current_dir(&root)
            .map_err(|why| format!("cannot go to {}: {why}", root.display()))?;
        let text = shell::read(&mut shell::command(
            "cargo metadata --no-deps --format-version 1",
        ))?;
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

    /// Where something of the usual build is.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    /// Where a variant of the build goes that must not make cargo rebuild the usual one.
    pub(crate) fn variant(&self, name: &str) -> PathBuf {
        self.built(name)
    }
}

impl Package {
    fn from_metadata(package: &Value) -> Self {
        let features = package["features"].as_object().into_iter().flatten();
        Self {
            name: string(&package["name"]),
            categories: strings(&package["categories"]),
            features: features
                .map(|(name, enables)| (name.clone(), strings(enables)))
                .collect(),
            targets: array(&package["targets"])
                .map(Target::from_metadata)
                .collect(),
        }
    }

    /// The targets of a kind.
    pub(crate) fn targets_of(&self, kind: &str) -> impl Iterator<Item = &Target> {
        self.targets
            .iter()
            .filter(move |target| target.kind == kind)
    }

    pub(crate) fn is_no_std(&self) -> bool {
        self.categories.iter().any(|category| category == "no-std")
    }

    pub(crate) fn has_mpi(&self) -> bool {
        self.features.contains_key(MPI)
    }
}

/// The feature that needs an MPI library to build.
pub(crate) const MPI: &str = "mpi";

/// The feature that needs the OTF2 library to build.
pub(crate) const OTF2: &str = "otf2";

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

    /// What cargo wants to hear to build it along with other packages; programs that can have archives have them.
    pub(crate) fn features_of(&self, package: &Package) -> Vec<String> {
        let archives = (self.kind == "bin" && package.features.contains_key(OTF2)).then_some(OTF2);
        let features = self
            .required_features
            .iter()
            .map(String::as_str)
            .chain(archives);
        features
            .map(|feature| format!("--features={}/{feature}", package.name))
            .collect()
    }

    pub(crate) fn needs_mpi(&self) -> bool {
        self.required_features.iter().any(|feature| feature == MPI)
    }
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
