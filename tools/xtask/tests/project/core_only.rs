//! The crates that promise it need no std, second proof: they are checked against a
//! sysroot in which there is none.
//!
//! This also finds unused dependencies that need std.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::no_std::{PROBE, must_fail};
use crate::workspace::Workspace;

/// Libraries of every Rust program, each as code and as metadata.
const LIBRARIES: [&str; 2] = ["libcore-", "libcompiler_builtins-"];

/// Checks the crates that promise it.
pub(crate) fn check_crates(workspace: &Workspace) -> Outcome {
    let mut check = check(workspace)?;
    for package in workspace
        .packages
        .iter()
        .filter(|package| package.is_no_std())
    {
        check.args(["-p", &package.name]);
    }
    shell::run(check.arg("--no-default-features"))
}

/// Checks a crate that needs std, which must fail.
pub(crate) fn fails_with_std(workspace: &Workspace) -> Outcome {
    let mut control = check(workspace)?;
    must_fail(
        control.args(["-p", "needs_std", "--manifest-path", PROBE]),
        "can't find crate for `std`",
    )
}

/// Returns a `cargo check` that finds no std; build scripts still do, because there is a
/// `--target`.
fn check(workspace: &Workspace) -> Result<Command, String> {
    let host = shell::read(&mut command("rustc --print host-tuple"))?;
    let host = host.trim();
    let directory = workspace.built("core_only");
    let sysroot = env::current_dir()
        .unwrap_or_default()
        .join(&directory)
        .join("sysroot");
    fill_sysroot(&sysroot.join("lib/rustlib").join(host).join("lib"))?;

    let mut check = command("cargo check --target");
    check.arg(host).arg("--target-dir").arg(directory);
    // Not RUSTFLAGS: this overrides the user's settings, and allows blanks in paths.
    check.env(
        "CARGO_ENCODED_RUSTFLAGS",
        format!("--sysroot={}", sysroot.display()),
    );
    Ok(check)
}

/// Fills the directory with copies of the libraries from the real sysroot.
fn fill_sysroot(copies: &Path) -> Outcome {
    let real = shell::read(&mut command("rustc --print target-libdir"))?;
    let copied = copy_libraries(Path::new(real.trim()), copies)
        .map_err(|why| format!("{}: {why}", copies.display()))?;
    let wanted = 2 * LIBRARIES.len();
    if copied == wanted {
        Ok(())
    } else {
        Err(format!(
            "{copied} instead of {wanted} files of core in {}",
            real.trim()
        ))
    }
}

fn copy_libraries(from: &Path, to: &Path) -> io::Result<usize> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    let mut copied = 0;
    for entry in fs::read_dir(from)? {
        let path: PathBuf = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if LIBRARIES.iter().any(|library| name.starts_with(library)) && !name.ends_with(".so") {
            fs::copy(&path, to.join(name))?;
            copied += 1;
        }
    }
    Ok(copied)
}
