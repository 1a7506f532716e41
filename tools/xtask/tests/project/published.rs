//! Packages as registries get them: cargo accepts them, and they have what cargo does not
//! look at.

mod foreign_files;
pub(crate) mod front_page;
pub(crate) mod lock_file;
mod rules;

use std::path::PathBuf;
use std::{env, fs};

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::{Outcome, all_passed};

use crate::workspace::{MPI, Package, Workspace};

/// Publishes every package in a dry run that builds it from its archive.
pub(crate) fn verify(workspace: &Workspace) -> Outcome {
    dry_run(workspace, &[])
}

/// Publishes every package in a dry run that builds it with MPI.
pub(crate) fn verify_with_mpi(workspace: &Workspace) -> Outcome {
    let packages = workspace.published().filter(|package| package.has_mpi());
    let features = packages.map(|package| format!("--features={}/{MPI}", package.name));
    dry_run(workspace, &features.collect::<Vec<_>>())
}

fn dry_run(workspace: &Workspace, features: &[String]) -> Outcome {
    forget_unpacked(workspace)?;
    let mut publish = command("cargo publish --dry-run --workspace --allow-dirty --target-dir");
    publish.arg(workspace.built("publish")).args(features);
    shell::run(&mut publish)
}

/// Removes what cargo unpacked and built of our packages in an earlier dry run: it takes
/// that for the archives of this one, as their versions are equal.
fn forget_unpacked(workspace: &Workspace) -> Outcome {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    let registries = sources.and_then(|sources| fs::read_dir(sources).ok());
    // The registry of a dry run has no host before the dash.
    let of_dry_runs = registries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"-"))
        .map(|entry| entry.path());
    let built = workspace.built("publish").join("debug/.fingerprint");
    for folder in of_dry_runs.chain([built]) {
        for found in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = found.file_name();
            let is_ours = |package: &Package| {
                let rest = name
                    .to_str()
                    .and_then(|name| name.strip_prefix(&package.name));
                rest.is_some_and(|rest| rest.starts_with('-'))
            };
            if workspace.published().any(is_ours) {
                fs::remove_dir_all(found.path()).map_err(|why| why.to_string())?;
            }
        }
    }
    Ok(())
}

/// Checks the manifests, archives and front pages of all packages.
pub(crate) fn check_contents(workspace: &Workspace) -> Outcome {
    let mut failures = vec![];
    for package in workspace.published() {
        let name = &package.name;
        let files = contents(package)?;
        let of_package = rules::flaws(package, &files)
            .into_iter()
            .chain(front_page::flaws(package, &read(package, "README.md")?))
            .chain(flaws_of_sources(package, &files)?);
        failures.extend(of_package.map(|flaw| format!("{name}: {flaw}")));
    }
    all_passed(failures)
}

/// Returns the paths of the files in the archive of a package, relative to its root.
fn contents(package: &Package) -> Result<Vec<String>, String> {
    let mut list = command("cargo package --list --allow-dirty -p");
    let text = shell::read(list.arg(&package.name))?;
    // On Windows, cargo prints the separators of that system.
    Ok(text.lines().map(|line| line.replace('\\', "/")).collect())
}

/// Applies the rules about the text of Rust files.
fn flaws_of_sources(package: &Package, files: &[String]) -> Result<Vec<String>, String> {
    let mut flaws = vec![];
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let text = read(package, file)?;
        if file == "src/lib.rs" {
            flaws.extend(rules::flaws_of_library(&text));
        }
        let foreign = foreign_files::named_in(file, &text);
        flaws.extend(
            foreign.map(|path| format!("{file} names {path}, which is outside of the package")),
        );
    }
    Ok(flaws)
}

/// Reads a file of a package; an empty text if there is none, which the rules notice.
fn read(package: &Package, file: &str) -> Result<String, String> {
    let path = package.root.join(file);
    if !path.exists() {
        return Ok(String::new());
    }
    fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))
}
