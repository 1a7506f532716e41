//! Packages of the program `downbeat` for others: a static one for any Linux of this
//! processor, and one for Debian.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::args::{Installation, PackageKind};
use crate::install::{Builds, Installer};
use crate::steps::Step;
use crate::workspace::Workspace;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Folder of what the Debian package contains, which the manifest of the program names.
const DEBIAN: &str = "target/debian";

/// Builds a package, and prints its path.
pub(crate) fn step(workspace: &Workspace, kind: PackageKind) -> Step<'_> {
    let name = match kind {
        PackageKind::Static => "static package",
        PackageKind::Debian => "Debian package",
    };
    Step::new(name, move || {
        let package = match kind {
            PackageKind::Static => static_archive(workspace)?,
            PackageKind::Debian => debian(workspace)?,
        };
        println!("   {}", package.display());
        Ok(())
    })
}

/// Builds the program without shared libraries, with man pages and completions, and packs
/// all.
fn static_archive(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.built(&format!("package/downbeat-{VERSION}-{ARCH}-linux-static"));
    install_program(workspace, Builds::Static, &folder, "/")?;
    let archive = PathBuf::from(format!("{}.tar.gz", folder.display()));
    let name = folder.file_name().unwrap_or_default();
    let mut pack = command("tar --owner=0 --group=0 -czf");
    pack.arg(&archive).arg("-C");
    pack.arg(folder.parent().unwrap_or(Path::new(".")))
        .arg(name);
    shell::run(&mut pack)?;
    Ok(archive)
}

/// Builds the package with cargo-deb, from the manifest of the program.
fn debian(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = Path::new(DEBIAN);
    install_program(workspace, Builds::Installed, folder, "/usr")?;
    let package = folder.join("downbeat.deb");
    let mut build = command("cargo deb --profile dist -p downbeat-cli --no-build --output");
    shell::run(build.arg(&package))?;
    Ok(package)
}

fn install_program(workspace: &Workspace, builds: Builds, folder: &Path, prefix: &str) -> Outcome {
    let wanted = Installation {
        destdir: Some(folder.to_owned()),
        ..Installation::new(prefix)
    };
    Installer::new(workspace, &wanted, builds).program()
}
