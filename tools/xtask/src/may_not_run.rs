//! The steps that may be reported as "not run". Any other step that cannot run fails.

use std::process::Stdio;

use downbeat_launch::command::command;

/// A step that some machines cannot run.
pub(crate) struct MayNotRun {
    /// Name of the step.
    pub(crate) step: &'static str,
    pub(crate) reason: &'static str,
    /// Command that fails on those machines.
    probe: &'static str,
}

/// Installs what Miri and the sanitizers need, if it is not there.
const NIGHTLY: &str =
    "rustup toolchain install nightly --no-self-update --profile minimal --component miri,rust-src";
const NO_NIGHTLY: &str = "needs the nightly compiler with Miri and the source of the standard library, which rustup cannot install here";

const fn nightly(step: &'static str) -> MayNotRun {
    MayNotRun {
        step,
        reason: NO_NIGHTLY,
        probe: NIGHTLY,
    }
}

/// A step that needs an older compiler.
const fn compiler(step: &'static str, probe: &'static str) -> MayNotRun {
    MayNotRun {
        step,
        reason: "needs the oldest compiler that a package supports, which rustup cannot install here",
        probe,
    }
}

/// A step that compiles for another target.
const fn target(step: &'static str, probe: &'static str) -> MayNotRun {
    MayNotRun {
        step,
        reason: "needs the standard library of this target, which rustup cannot install here",
        probe,
    }
}

/// A step with hosts that are emulated.
const fn several_hosts(step: &'static str) -> MayNotRun {
    MayNotRun {
        step,
        reason: "needs root, and a kernel with namespaces for networks, mounts and time",
        probe: "unshare --net --uts --mount --time true",
    }
}

/// A step with jobs of Slurm on emulated hosts.
const fn under_slurm(step: &'static str) -> MayNotRun {
    MayNotRun {
        step,
        reason: "needs root, a kernel with namespaces for networks, mounts and time, and control groups, without which slurmd does not start",
        probe: "unshare --net --uts --mount --time mountpoint -q /sys/fs/cgroup",
    }
}

pub(crate) const MAY_NOT_RUN: [MayNotRun; 26] = [
    MayNotRun {
        step: "libdownbeat: traced without memory or a disk",
        reason: "needs root, and a kernel with namespaces for mounts",
        probe: "unshare --mount true",
    },
    several_hosts("MPI program: several_hosts"),
    several_hosts("libdownbeat: MPI_Wtime of several hosts"),
    several_hosts("libdownbeat: traced over several hosts"),
    several_hosts("libdownbeat: pictures of a traced program"),
    under_slurm("MPI program: batch_jobs"),
    under_slurm("libdownbeat: traced under Slurm"),
    under_slurm("package: container"),
    MayNotRun {
        step: "book",
        reason: "needs mdbook, which takes minutes to install; the links of its pages are checked in any case",
        probe: "mdbook --version",
    },
    MayNotRun {
        step: "licences and sources of dependencies",
        reason: "needs cargo-deny, which takes minutes to install",
        probe: "cargo deny --version",
    },
    MayNotRun {
        step: "OTF2's Python module",
        reason: "needs PyPI, and its packages of otf2 for this Python",
        probe: "python3 -m pip download --quiet --no-deps --only-binary=:all: --dest target/otf2-packages otf2==3.2",
    },
    compiler(
        "oldest compiler: 1.85",
        "rustup run --install 1.85 rustc --version",
    ),
    compiler(
        "oldest compiler: 1.88",
        "rustup run --install 1.88 rustc --version",
    ),
    target(
        "target: aarch64-unknown-linux-gnu",
        "rustup target add aarch64-unknown-linux-gnu",
    ),
    target(
        "target: aarch64-apple-darwin",
        "rustup target add aarch64-apple-darwin",
    ),
    target(
        "target: x86_64-unknown-linux-musl",
        "rustup target add x86_64-unknown-linux-musl",
    ),
    target(
        "target: riscv64gc-unknown-linux-gnu",
        "rustup target add riscv64gc-unknown-linux-gnu",
    ),
    target(
        "target: x86_64-pc-windows-gnu",
        "rustup target add x86_64-pc-windows-gnu",
    ),
    target(
        "target: thumbv7em-none-eabihf",
        "rustup target add thumbv7em-none-eabihf",
    ),
    target(
        "aarch64: unit tests under qemu",
        "rustup target add aarch64-unknown-linux-gnu",
    ),
    target(
        "aarch64: the counter is calibrated under qemu",
        "rustup target add aarch64-unknown-linux-gnu",
    ),
    target(
        "package: static",
        "rustup target add x86_64-unknown-linux-musl",
    ),
    MayNotRun {
        step: "package: Debian",
        reason: "needs root, cargo-deb, and debootstrap",
        probe: "unshare --mount which cargo-deb debootstrap",
    },
    nightly("Miri"),
    nightly("AddressSanitizer"),
    nightly("ThreadSanitizer"),
];

/// Returns the reason if this machine cannot run the step and the step is listed.
pub(crate) fn reason_not_to_run(step: &str) -> Option<&'static str> {
    let listed = MAY_NOT_RUN.iter().find(|listed| listed.step == step)?;
    let succeeds = command(listed.probe)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    (!succeeds).then_some(listed.reason)
}
