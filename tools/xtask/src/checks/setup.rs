//! What the checks need: Debian packages, and the parts of the Rust toolchain that a
//! minimal installation leaves out.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::process::Stdio;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, LIMIT, command, succeeds_quietly};

use crate::args::Depth;
use crate::steps::{Lane, NOTHING, Step};

/// A line for each Debian package that the checks need, with what needs it; those of long
/// runs follow a line `long`.
const PACKAGE_LIST: &str = include_str!("packages.txt");

/// A Debian package, and what needs it.
type Package = (&'static str, &'static str);

/// Without questions, and without recommended packages, which would be half a desktop.
const INSTALL: &str =
    "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends";

pub(crate) const PACKAGES: &str = "setup: system packages";
pub(crate) const COMPONENTS: &str = "setup: rustfmt and clippy";

/// Returns the steps that install what the others need.
pub(crate) fn steps<'a>(depth: Depth) -> Vec<Step<'a>> {
    let packages = Step::new(PACKAGES, move || install_packages(depth));
    let packages = packages.in_lane(Lane::Wait, NOTHING);
    let packages = (depth > Depth::Quick).then_some(packages);
    let components = Step::new(COMPONENTS, install_components);
    packages.into_iter().chain([components]).collect()
}

fn install_components() -> Outcome {
    let present = || {
        let fmt = shell::run(&mut command("cargo fmt --version"));
        fmt.and_then(|()| shell::run(&mut command("cargo clippy --version")))
    };
    const ADD: &str = "rustup component add rustfmt clippy";
    present()
        .or_else(|_| shell::run(&mut command(ADD)).and_then(|()| present()))
        .map_err(|why| format!("{why}; run: {ADD}"))
}

/// Installs what is missing, if it may; otherwise the error shows the command.
fn install_packages(depth: Depth) -> Outcome {
    let missing = missing_packages(depth)?;
    for (package, reason) in &missing {
        println!("   missing: {package} ({reason})");
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names = names_of(&missing);
    let by_hand = manual_command(&names);
    let prefix = privilege_prefix().ok_or(format!(
        "not root, and no sudo without a password; run: {by_hand}"
    ))?;
    shell::run(&mut command(&format!("{prefix}apt-get update")))
        .and_then(|()| shell::run(&mut command(&format!("{prefix}{INSTALL} {names}"))))
        .map_err(|why| format!("{why}; run: {by_hand}"))
}

fn names_of(packages: &[Package]) -> String {
    let names: Vec<&str> = packages.iter().map(|(package, _)| *package).collect();
    names.join(" ")
}

/// Asks before packages are installed, if somebody can answer; a refusal is an error.
pub(crate) fn confirm_installation(depth: Depth, yes: bool) -> Outcome {
    let ci = env::var_os("CI");
    if !must_confirm(yes, ci.as_deref(), io::stdin().is_terminal()) {
        return Ok(());
    }
    let missing = missing_packages(depth)?;
    // Without the right to install, the step says what to do.
    if missing.is_empty() || privilege_prefix().is_none() {
        return Ok(());
    }
    // Standard output may be a file.
    eprintln!("These Debian packages are missing:");
    for (package, reason) in &missing {
        eprintln!("  {package:22}{reason}");
    }
    eprint!("Install these Debian packages, and what they depend on? [y/N] ");
    let mut answer = String::new();
    io::stderr()
        .flush()
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(|why| why.to_string())?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(format!(
        "nothing was installed; to do it by hand: {}; checks without packages: cargo xtask test --quick",
        manual_command(&names_of(&missing))
    ))
}

/// Tells if somebody has to be asked, by the option `--yes`, the variable `CI`, and
/// whether standard input is a terminal.
fn must_confirm(yes: bool, ci: Option<&OsStr>, is_terminal: bool) -> bool {
    !yes && ci.is_none_or(|value| value != "true") && is_terminal
}

fn missing_packages(depth: Depth) -> Result<Vec<Package>, String> {
    let (usual, _) = PACKAGE_LIST.split_once("\nlong\n").unwrap_or_default();
    let wanted = match depth {
        Depth::Long => PACKAGE_LIST,
        _ => usual,
    };
    let lines = wanted.lines().filter(|line| !line.starts_with('#'));
    let mut packages: Vec<Package> = lines.filter_map(|line| line.split_once(": ")).collect();
    let names: Vec<&str> = packages.iter().map(|(package, _)| *package).collect();
    let mut query = command("dpkg-query -W -f=${Package}=${db:Status-Status};");
    query
        .args(&names)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // It also fails for unknown packages: only its output counts.
    let output = shell::output_within(LIMIT, &mut query).map_err(|why| {
        format!(
            "{why}; without dpkg, install what Debian calls {}",
            names.join(", ")
        )
    })?;
    let text = shell::text(&output.stdout);
    let installed = |package: &str| {
        text.split(';')
            .any(|status| status == format!("{package}=installed"))
    };
    packages.retain(|(package, _)| !installed(package));
    Ok(packages)
}

fn manual_command(names: &str) -> String {
    format!("sudo apt-get update && sudo apt-get install -y --no-install-recommends {names}")
}

/// Returns the words before a command that installs; `None` for a user who may not.
fn privilege_prefix() -> Option<&'static str> {
    if succeeds_quietly("test -w /var/lib/dpkg") {
        Some("")
    } else {
        succeeds_quietly("sudo -n true").then_some("sudo -n ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_somebody_at_a_terminal_is_asked() {
        let ci = |value| Some(OsStr::new(value));
        assert!(must_confirm(false, None, true));
        assert!(must_confirm(false, ci("false"), true));
        assert!(!must_confirm(false, None, false));
        assert!(!must_confirm(true, None, true));
        assert!(!must_confirm(false, ci("true"), true));
    }
}
