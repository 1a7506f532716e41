//! Packages as registries get them: cargo accepts them, and they have what cargo does not
//! look at.

mod foreign_files;
mod front_page;
mod lock_file;
mod rules;

use std::path::PathBuf;
use std::{env, fs};

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::args::Depth;
use crate::steps::{Step, all_passed};
use crate::workspace::{MPI, Package, Workspace};

/// The long run builds every package from its archive, and the examples of front pages.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let dry_run = "cargo publish --dry-run --workspace --allow-dirty";
    let mut steps = vec![
        Step::new("published packages: contents", || check(workspace)),
        Step::new("published packages: lock file of a user", || {
            lock_file::check(workspace)
        }),
    ];
    if depth == Depth::Long {
        let mut verified = command(dry_run);
        verified.arg("--target-dir").arg(workspace.built("publish"));
        let mut with_mpi = command(dry_run);
        with_mpi
            .arg("--target-dir")
            .arg(workspace.built("publish"))
            .args(
                workspace
                    .published()
                    .filter(|package| package.has_mpi())
                    .map(|package| format!("--features={}/{MPI}", package.name)),
            );
        steps.extend([
            Step::new("published packages: front pages", || {
                front_page::build(workspace)
            }),
            Step::new("published packages: dry run, verified", move || {
                forget_unpacked(workspace)?;
                shell::run(&mut verified)
            }),
            Step::new(
                "published packages: dry run with MPI, verified",
                move || {
                    forget_unpacked(workspace)?;
                    shell::run(&mut with_mpi)
                },
            ),
        ]);
    }
    steps
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

fn check(workspace: &Workspace) -> Outcome {
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
