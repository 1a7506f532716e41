//! The steps that may be reported as "not run". Any other step that cannot run fails.

use std::process::Stdio;

use downbeat_launch::command::command;

const MOUNTS: &str = "needs root, and a kernel with namespaces for mounts";
const SEVERAL_HOSTS: &str =
    "needs root, and a kernel with namespaces for networks, mounts and time";
const SLURM: &str = "needs root, a kernel with namespaces for networks, mounts and time, and control groups, without which slurmd does not start";
const NO_NIGHTLY: &str = "needs the nightly compiler with Miri and the source of the standard library, which rustup cannot install here";
const NO_COMPILER: &str =
    "needs the oldest compiler that a package supports, which rustup cannot install here";
const NO_TARGET: &str =
    "needs the standard library of this target, which rustup cannot install here";

/// Installs what Miri and the sanitizers need, if it is not there.
const NIGHTLY: &str =
    "rustup toolchain install nightly --no-self-update --profile minimal --component miri,rust-src";
const AARCH64: &str = "rustup target add aarch64-unknown-linux-gnu";
const HOSTS: &str = "unshare --net --uts --mount --time true";
const HOSTS_OF_SLURM: &str = "unshare --net --uts --mount --time mountpoint -q /sys/fs/cgroup";

/// Why some machines cannot run steps, and the command that fails on those machines, with
/// the steps.
const MAY_NOT_RUN: [(&str, &str, &[&str]); 10] = [
    (
        MOUNTS,
        "unshare --mount true",
        &["libdownbeat: traced without memory or a disk"],
    ),
    (
        SEVERAL_HOSTS,
        HOSTS,
        &[
            "MPI program: several_hosts",
            "libdownbeat: MPI_Wtime of several hosts",
            "libdownbeat: traced over several hosts",
            "libdownbeat: pictures of a traced program",
        ],
    ),
    (
        SLURM,
        HOSTS_OF_SLURM,
        &[
            "MPI program: batch_jobs",
            "libdownbeat: traced under Slurm",
            "package: container",
        ],
    ),
    (
        "needs mdbook, which takes minutes to install; the links of its pages are checked in any case",
        "mdbook --version",
        &["book"],
    ),
    (
        "needs cargo-deny, which takes minutes to install",
        "cargo deny --version",
        &["licences and sources of dependencies"],
    ),
    (
        "needs PyPI, and its packages of otf2 for this Python",
        "python3 -m pip download --quiet --no-deps --only-binary=:all: --dest target/otf2-packages otf2==3.2",
        &["OTF2's Python module"],
    ),
    (
        NO_TARGET,
        AARCH64,
        &[
            "aarch64: unit tests under qemu",
            "aarch64: the counter is calibrated under qemu",
        ],
    ),
    (
        NO_TARGET,
        "rustup target add x86_64-unknown-linux-musl",
        &["package: static"],
    ),
    (
        "needs root, cargo-deb, and debootstrap",
        "unshare --mount which cargo-deb debootstrap",
        &["package: Debian"],
    ),
    (
        NO_NIGHTLY,
        NIGHTLY,
        &["Miri", "AddressSanitizer", "ThreadSanitizer"],
    ),
];

/// Returns why some machines cannot run the step, and the command that fails there.
pub(crate) fn requirement(step: &str) -> Option<(&'static str, String)> {
    if let Some(version) = step.strip_prefix("oldest compiler: ") {
        let probe = format!("rustup run --install {version} rustc --version");
        return Some((NO_COMPILER, probe));
    }
    if let Some(target) = step.strip_prefix("target: ") {
        return Some((NO_TARGET, format!("rustup target add {target}")));
    }
    let mut listed = MAY_NOT_RUN.iter();
    let (reason, probe, _) = listed.find(|(_, _, steps)| steps.contains(&step))?;
    Some((reason, (*probe).to_owned()))
}

/// Returns the reason if this machine cannot run the step and the step is listed.
pub(crate) fn reason_not_to_run(step: &str) -> Option<&'static str> {
    let (reason, probe) = requirement(step)?;
    let succeeds = command(&probe)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    (!succeeds).then_some(reason)
}
