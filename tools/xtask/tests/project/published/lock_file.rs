//! The lock file of a user's project: everything in it is downloaded, audited and updated
//! by each user.

use std::fmt::Write as _;
use std::fs;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::workspace::Workspace;

/// Most packages in the lock file of a project that uses `downbeat-timers` alone, itself
/// included.
const MOST: usize = 17;

/// Counts the packages in the lock file of such a project.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let folder = workspace.built("lock-file");
    let failed = |why: std::io::Error| format!("{}: {why}", folder.display());
    let manifest = format!(
        "[workspace]\n\n[package]\nname = \"user\"\nedition = \"2024\"\n\n[dependencies]\ndownbeat-timers = \"0.1\"\n\n{}",
        from_folders(workspace)
    );
    fs::create_dir_all(folder.join("src")).map_err(failed)?;
    fs::write(folder.join("src/lib.rs"), "").map_err(failed)?;
    fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    // Cargo leaves out what the project does not use, and downloads nothing for the rest.
    fs::copy("Cargo.lock", folder.join("Cargo.lock")).map_err(failed)?;

    // Packages for other platforms are in the file, and need not be downloaded.
    let mut resolve = command(
        "cargo metadata --format-version 1 --offline --filter-platform x86_64-unknown-linux-gnu --manifest-path",
    );
    shell::read(resolve.arg(folder.join("Cargo.toml")))?;
    let lock = fs::read_to_string(folder.join("Cargo.lock")).map_err(failed)?;
    within(&names(&lock))
}

fn within(names: &[&str]) -> Outcome {
    println!("   {}: {}", names.len(), names.join(", "));
    if names.len() <= MOST {
        Ok(())
    } else {
        Err(format!(
            "{} packages instead of at most {MOST}",
            names.len()
        ))
    }
}

/// Returns the names of the packages in a lock file that are used; a patch that is not
/// used is no package.
fn names(lock: &str) -> Vec<&str> {
    let used = lock.split("[[patch.unused]]").next().unwrap_or_default();
    let packages = used.split("[[package]]\nname = \"").skip(1);
    packages.filter_map(|rest| rest.split('"').next()).collect()
}

/// Returns the part of a manifest that takes all published libraries from this workspace
/// instead of from a registry.
pub(crate) fn from_folders(workspace: &Workspace) -> String {
    let mut patches = "[patch.crates-io]\n".to_owned();
    for package in workspace.published().filter(|one| one.is_library()) {
        let _ = writeln!(
            patches,
            "{} = {{ path = {:?} }}",
            package.name,
            package.root.display().to_string()
        );
    }
    patches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_patches_are_not_counted() {
        let lock = "version = 4\n\n[[package]]\nname = \"libc\"\nversion = \"0.2.1\"\n\n[[package]]\nname = \"user\"\n\n\
            [[patch.unused]]\nname = \"downbeat\"\n";
        assert_eq!(names(lock), ["libc", "user"]);
    }

    #[test]
    fn too_many_packages_are_a_failure() {
        assert_eq!(within(&["a"; MOST]), Ok(()));
        assert!(within(&["a"; MOST + 1]).is_err());
    }
}
