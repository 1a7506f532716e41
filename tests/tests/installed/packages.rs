//! Packages of the program work where nothing else is installed.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::tree::temporary;

/// Time for a program that is optimized, with all it depends on.
const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);

/// Builds a package of this kind as a user does, and returns its path, which is printed
/// last.
fn package(kind: &str, ending: &str) -> Result<PathBuf, String> {
    let printed = shell::show_and_read(BUILD_LIMIT, command("cargo xtask package").arg(kind))?;
    let path = printed.lines().rfind(|line| line.ends_with(ending));
    let path = path.ok_or(format!("no path that ends with {ending}"))?;
    Ok(path.trim().into())
}

/// Nothing tells the program about the machine there, not even the kernel.
pub(crate) fn in_an_empty_root() -> Outcome {
    let package = package("static", ".tar.gz")?;
    let [tree, root] = ["static-package", "empty-root"].map(temporary);
    fs::create_dir_all(&tree).map_err(|why| format!("{}: {why}", tree.display()))?;
    let mut unpack = command("tar --strip-components=1 -xzf");
    shell::run(unpack.arg(package).arg("-C").arg(&tree))?;
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
pub(crate) fn in_a_new_system() -> Outcome {
    let package = package("deb", ".deb")?;
    let root = debian()?;
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
pub(crate) fn debian() -> Result<PathBuf, String> {
    let root = temporary("debian-root");
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
