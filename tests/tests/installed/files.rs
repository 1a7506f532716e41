//! Files of an installation.

use std::fs;
use std::process::Command;

use downbeat_launch::command as shell;
use downbeat_launch::{Outcome, all_passed};

use crate::tree::InstalledTree;

/// Files that the programs need, one of each kind for each program.
const INSTALLED: [&str; 16] = [
    "lib/openmpi/libdownbeat_trace.so",
    "lib/mpich/libdownbeat_trace.so",
    "bin/downbeat",
    "bin/downbeat-mpi",
    "bin/downbeat-mpi.openmpi",
    "bin/downbeat-mpi.mpich",
    "share/man/man1/downbeat.1",
    "share/man/man1/downbeat-trace-correct.1",
    "share/man/man1/downbeat-mpi.1",
    "share/man/man1/downbeat-mpi-trace-correct.1",
    "share/bash-completion/completions/downbeat",
    "share/bash-completion/completions/downbeat-mpi",
    "share/zsh/site-functions/_downbeat",
    "share/zsh/site-functions/_downbeat-mpi",
    "share/fish/vendor_completions.d/downbeat.fish",
    "share/fish/vendor_completions.d/downbeat-mpi.fish",
];

/// Checks that no file is missing, and that the program starts.
pub(crate) fn are_complete(tree: &InstalledTree) -> Outcome {
    all_passed(INSTALLED.iter().filter_map(|file| {
        let path = tree.prefix.join(file);
        let is_missing = fs::metadata(&path).map_or(true, |found| found.len() == 0);
        is_missing.then(|| format!("{}: missing or empty", path.display()))
    }))?;
    let downbeat = tree.prefix.join("bin/downbeat");
    shell::run(Command::new(downbeat).arg("--version"))
}
