//! `MPI_Wtime` of unmodified programs, made global by a preloaded library.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::environment::is_long;
use downbeat_launch::hosts::Hosts;
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::tree::{InstalledTree, Launcher, Linking};

const HOSTS: u32 = 4;
const LIMIT: Duration = Duration::from_secs(120);
/// For the synchronization of a program that sets none, where other steps take the cores.
const LONG_LIMIT: Duration = Duration::from_secs(600);
/// Difference of clocks that is too much, in seconds: the hosts' own are 1,000 s apart, and
/// ranks that wait for a core measure to some milliseconds.
const LARGEST_DIFFERENCE: &str = "1";
/// Fewer exchanges than usual, which take long where ranks share cores.
const SHORT_ALGORITHM: &str = "h2hca(hca3/50/skampi/20,prop)";

/// In C and all bindings of Fortran, and in programs that contain libdownbeat themselves.
pub(crate) fn parallel(tree: &InstalledTree, library: MpiLibrary, launcher: &Launcher) -> Outcome {
    let launcher = launcher.preloading(path(tree, library));
    let run = |ranks: &[u32], source, linking, options| {
        let program = tree.compile(source, Some(library), linking, options)?;
        launcher.run(ranks, &Command::new(program))
    };
    run(&[1, 2, 3, 5], "wtime.c", Linking::Without, "")?;
    for binding in ["-DUSE_F08", "-DUSE_MPI", ""] {
        run(&[2], "wtime.F90", Linking::Without, binding)?;
    }
    for linking in [Linking::Shared, Linking::Static] {
        run(&[1, 2, 3], "preloaded.c", linking, "")?;
    }
    Ok(())
}

/// Ranks on several hosts, which are emulated: their counters are the same, so that the
/// program finds the true differences.
pub(crate) fn over_hosts(tree: &InstalledTree) -> Outcome {
    let program = tree.compile("wtime.c", Some(OPEN_MPI), Linking::Without, "")?;
    let hosts = Hosts::set_up(HOSTS, &tree.built)?;
    let mut job = hosts.mpirun(1);
    job.arg("-x")
        .arg(format!("LD_PRELOAD={}", path(tree, OPEN_MPI).display()));
    let limit = if is_long() {
        LONG_LIMIT
    } else {
        job.arg("-x");
        job.arg(format!("DOWNBEAT_ALGORITHM='{SHORT_ALGORITHM}'"));
        LIMIT
    };
    let output = shell::show_and_read(limit, job.arg(program).arg(LARGEST_DIFFERENCE))?;
    let passed = format!("rank 0 of {HOSTS}: all checks passed");
    output
        .contains(&passed)
        .then_some(())
        .ok_or(format!("no line `{passed}`"))
}

fn path(tree: &InstalledTree, library: MpiLibrary) -> PathBuf {
    let below = format!("lib/{}/libdownbeat_wtime.so", library.suffix());
    tree.prefix.join(below)
}
