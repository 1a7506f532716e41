//! Libraries and programs compile for other systems and processors.

use downbeat_launch::command::command;

use crate::args::Depth;
use crate::steps::Step;
use crate::workspace::{Package, Workspace};

struct Platform {
    target: &'static str,
    has_std: bool,
    /// Least extent of a run that compiles for it: those in which nothing differs from
    /// another one but the machine code wait for long runs.
    from: Depth,
}

const fn platform(target: &'static str, from: Depth) -> Platform {
    Platform {
        target,
        has_std: true,
        from,
    }
}

const PLATFORMS: [Platform; 6] = [
    platform("aarch64-unknown-linux-gnu", Depth::Long),
    platform("aarch64-apple-darwin", Depth::Long),
    platform("x86_64-unknown-linux-musl", Depth::Long),
    platform("riscv64gc-unknown-linux-gnu", Depth::Long),
    platform("x86_64-pc-windows-gnu", Depth::Long),
    // It has no 64-bit atomics either.
    Platform {
        target: "thumbv7em-none-eabihf",
        has_std: false,
        from: Depth::Normal,
    },
];

/// One step for each platform.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> impl Iterator<Item = Step<'_>> {
    PLATFORMS
        .iter()
        .filter(move |platform| platform.from <= depth)
        .map(|platform| check(workspace, platform))
}

fn check<'a>(workspace: &'a Workspace, platform: &Platform) -> Step<'a> {
    let target = platform.target;
    let mut check = command(&format!(
        "cargo check --lib --bins --target {target} --target-dir"
    ));
    check.arg(workspace.built("targets"));
    if !platform.has_std {
        check.arg("--no-default-features");
    }
    // What registries get and needs no MPI library.
    let packages = workspace
        .published()
        .filter(|package| platform.has_std || Package::is_no_std(package));
    for package in packages {
        check.args(["-p", &package.name]);
    }
    // Code that is unused on one platform only is found here.
    check.env("RUSTFLAGS", "-D warnings");
    Step::command(format!("target: {target}"), check)
}
