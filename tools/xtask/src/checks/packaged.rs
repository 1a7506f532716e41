//! Packages of the program work where nothing else is installed.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::package;
use crate::steps::Step;
use crate::workspace::Workspace;

pub(crate) const DEBIAN: &str = "package: Debian";

pub(crate) fn steps(workspace: &Workspace) -> [Step<'_>; 2] {
    [
        Step::new("package: static", || in_an_empty_root(workspace)),
        Step::new(DEBIAN, || in_a_new_system(workspace)),
    ]
}

/// Nothing tells the program about the machine there, not even the kernel.
fn in_an_empty_root(workspace: &Workspace) -> Outcome {
    let tree = package::static_tree(workspace)?;
    let root = workspace.built("package/empty-root");
    if let Err(why) = fs::remove_dir_all(&root)
        && why.kind() != ErrorKind::NotFound
    {
        return Err(format!("{}: {why}", root.display()));
    }
    fs::create_dir_all(&root)
        .and_then(|()| fs::copy(tree.join("bin/downbeat"), root.join("downbeat")))
        .map_err(|why| format!("{}: {why}", root.display()))?;
    // As a user who may not change the root folder, who becomes root of a namespace.
    let mut clocks = command("unshare --user --map-root-user chroot");
    let text = shell::read(clocks.arg(&root).args(["/downbeat", "clocks"]))?;
    for expected in ["an unknown processor", "an unknown number of sockets"] {
        if !text.contains(expected) {
            return Err(format!("`clocks` does not say \"{expected}\":\n{text}"));
        }
    }
    Ok(())
}

/// Installs the package in a system of Debian's essential packages, and removes it.
fn in_a_new_system(workspace: &Workspace) -> Outcome {
    let package = package::debian(workspace)?;
    let root = debian(workspace)?;
    let place = root.join("downbeat.deb");
    fs::copy(&package, &place).map_err(|why| format!("{}: {why}", place.display()))?;
    let inside = |words: &str| -> Command {
        let mut chroot = command("chroot");
        chroot.arg(&root).args(words.split_whitespace());
        chroot
    };
    shell::run(&mut inside("dpkg --install /downbeat.deb"))?;
    let listed = shell::read(&mut inside("dpkg --listfiles downbeat"))?;
    for file in [
        "/usr/bin/downbeat",
        "/usr/share/man/man1/downbeat-clocks.1.gz",
        "/usr/share/bash-completion/completions/downbeat",
        "/usr/share/doc/downbeat/changelog.gz",
        "/usr/share/doc/downbeat/copyright",
    ] {
        if !listed.lines().any(|line| line == file) {
            return Err(format!("the package has no {file}:\n{listed}"));
        }
    }
    shell::run(&mut inside("downbeat clocks"))?;
    shell::run(&mut inside("dpkg --purge downbeat"))?;
    match root.join("usr/bin/downbeat").exists() {
        true => Err("the program is still there after its removal".to_owned()),
        false => Ok(()),
    }
}

/// Returns a new system, of the release of this one, whose libraries the program needs;
/// it is made once.
pub(crate) fn debian(workspace: &Workspace) -> Result<PathBuf, String> {
    let root = workspace.built("package/debian-root");
    let done = root.join("made");
    if done.exists() {
        return Ok(root);
    }
    const RELEASE: &str = "/etc/os-release";
    let release = fs::read_to_string(RELEASE).map_err(|why| format!("{RELEASE}: {why}"))?;
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .ok_or(format!("{RELEASE} names no release of Debian"))?;
    let mut make = command("debootstrap --variant=minbase");
    shell::run(make.arg(name).arg(&root))?;
    fs::write(&done, "").map_err(|why| format!("{}: {why}", done.display()))?;
    Ok(root)
}
