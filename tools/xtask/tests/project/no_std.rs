//! The crates that promise it need no std, first proof: a program without std is linked
//! from them.
//!
//! A second panic handler, an allocator or a function of the C library anywhere below
//! them would break the build. A dependency that is declared but not used could hide:
//! hence the second proof, in `core_only`.

use std::fs;
use std::process::{Command, Stdio};

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, LIMIT, command};

use crate::workspace::Workspace;

/// The program, in a workspace of its own.
pub(crate) const PROBE: &str = "tests/no_std/Cargo.toml";
const SOURCE: &str = "tests/no_std/src/main.rs";

/// Links the probe without std.
pub(crate) fn links(workspace: &Workspace) -> Outcome {
    shell::run(&mut link(workspace, &[]))
}

/// Links the probe with a dependency on std, which must fail.
pub(crate) fn fails_with_std(workspace: &Workspace) -> Outcome {
    // Two crates that each define how to panic.
    must_fail(
        &mut link(workspace, &["--features", "with_std"]),
        "found duplicate lang item `panic_impl`",
    )
}

/// Checks that the probe uses every crate that promises to need no std.
pub(crate) fn names_all(workspace: &Workspace) -> Outcome {
    let source = fs::read_to_string(SOURCE).map_err(|why| format!("{SOURCE}: {why}"))?;
    let promising = workspace
        .packages
        .iter()
        .filter(|package| package.is_no_std());
    let forgotten: Vec<&str> = promising
        .map(|package| package.name.as_str())
        .filter(|name| !source.contains(&format!("use {}", name.replace('-', "_"))))
        .collect();
    if forgotten.is_empty() {
        Ok(())
    } else {
        Err(format!("{SOURCE} does not use {}", forgotten.join(", ")))
    }
}

/// Arguments for the linker through `cargo rustc`: `RUSTFLAGS` would reach build scripts
/// too.
fn link(workspace: &Workspace, features: &[&str]) -> Command {
    let mut link = command(&format!(
        "cargo rustc --manifest-path {PROBE} --bin probe --target-dir"
    ));
    link.arg(workspace.built("no_std")).args(features).arg("--");
    for argument in ["-nostartfiles", "-nostdlib", "-static"] {
        link.args(["-C", &format!("link-arg={argument}")]);
    }
    link
}

/// Checks that the command fails for this reason: a proof that cannot fail proves
/// nothing.
pub(crate) fn must_fail(command: &mut Command, reason: &str) -> Outcome {
    let output = shell::output_within(
        LIMIT,
        command.stdout(Stdio::inherit()).stderr(Stdio::piped()),
    )?;
    let text = shell::text(&output.stderr);
    if output.status.success() {
        return Err("it passed: std was not detected".into());
    }
    match text.lines().find(|line| line.contains(reason)) {
        Some(line) => println!("   failed as it should: {line}"),
        None => {
            print!("{text}");
            return Err(format!("it failed, but not with \"{reason}\""));
        }
    }
    Ok(())
}
