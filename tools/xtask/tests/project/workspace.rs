//! The packages of the workspace, as cargo reports them.

use std::collections::BTreeMap;
use std::env;
use std::fs;
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
    /// Folder of its manifest.
    pub(crate) root: PathBuf,
    pub(crate) published: bool,
    pub(crate) categories: Vec<String>,
    pub(crate) registry: RegistryEntry,
    /// Each feature, with the features and dependencies that it enables.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// True if it has a library.
    pub(crate) has_library: bool,
}

/// The fields of a manifest that registries show; empty where there are none.
#[derive(Clone, Default)]
pub(crate) struct RegistryEntry {
    pub(crate) description: String,
    pub(crate) repository: String,
    pub(crate) documentation: String,
    pub(crate) readme: String,
    pub(crate) license: String,
    pub(crate) keywords: Vec<String>,
    /// The oldest compiler, such as `1.88`.
    pub(crate) rust_version: String,
    /// The features with which docs.rs documents it.
    pub(crate) documented_features: Vec<String>,
}

/// The feature that needs an MPI library to build.
pub(crate) const MPI: &str = "mpi";

/// The feature for tests that need OTF2's library and programs.
const OTF2: &str = "otf2-tools";

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

    /// Returns the packages that registries get.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.published)
    }

    /// Returns a path below the target directory; also of variants that have a target
    /// directory of their own, so that cargo does not rebuild the usual one.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }
}

impl Package {
    fn from_metadata(package: &Value) -> Self {
        let features = package["features"].as_object().into_iter().flatten();
        let manifest = PathBuf::from(string(&package["manifest_path"]));
        Self {
            name: string(&package["name"]),
            root: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
            published: package["publish"].is_null(),
            categories: strings(&package["categories"]),
            registry: RegistryEntry::from_metadata(package),
            features: features
                .map(|(name, enables)| (name.clone(), strings(enables)))
                .collect(),
            has_library: array(&package["targets"]).any(|target| target["kind"][0] == "lib"),
        }
    }

    pub(crate) fn is_no_std(&self) -> bool {
        self.categories.iter().any(|category| category == "no-std")
    }

    /// Tells if it is a library for users.
    pub(crate) fn is_library(&self) -> bool {
        self.published && self.has_library
    }

    /// Returns the features that its users choose: those of its tests need OTF2's
    /// library.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &str> {
        let names = self.features.keys().map(String::as_str);
        names.filter(|&name| name != "default" && name != OTF2)
    }

    pub(crate) fn has_mpi(&self) -> bool {
        self.features.contains_key(MPI)
    }
}

impl RegistryEntry {
    fn from_metadata(package: &Value) -> Self {
        Self {
            description: string(&package["description"]),
            repository: string(&package["repository"]),
            documentation: string(&package["documentation"]),
            readme: string(&package["readme"]),
            license: string(&package["license"]),
            keywords: strings(&package["keywords"]),
            rust_version: string(&package["rust_version"]),
            documented_features: strings(&package["metadata"]["docs"]["rs"]["features"]),
        }
    }
}

/// Returns the Rust files in a folder and its subfolders; none if there is no such
/// folder.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                rust_files(&path)
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                vec![path]
            } else {
                vec![]
            }
        })
        .collect()
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
