//! Programs against the installed libdownbeat under valgrind and AddressSanitizer.

use std::fs;
use std::path::Path;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::args::Depth;

use super::tree::{InstalledTree, Launcher, Linking};

const VALGRIND: &str =
    "valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite,possible";
/// The faults of Open MPI, which it ships.
const OF_OPEN_MPI: &str = "/usr/share/openmpi/openmpi-valgrind.supp";
const SANITIZED: &str = "-g -fsanitize=address,undefined";
/// Programs in C++ and in Fortran, by each of its bindings, for the long run.
const OTHERS: [(&str, &str); 4] = [
    ("global.cpp", "-g"),
    ("global.F90", "-g -DUSE_F08"),
    ("global.F90", "-g -DUSE_MPI"),
    ("global.F90", "-g"),
];
const RANKS: u32 = 2;

/// Programs without MPI have no error and no leak at all.
pub(super) fn local(tree: &InstalledTree<'_>) -> Outcome {
    let shared = tree.compile("clock.c", None, Linking::Shared, "")?;
    shell::run(command(VALGRIND).arg("--error-exitcode=99").arg(shared))?;
    // It finds leaks, too.
    let sanitized = tree.compile("clock.c", None, Linking::Static, SANITIZED)?;
    shell::run(&mut Command::new(sanitized))
}

/// MPI libraries have errors and leaks of their own: none has a function of ours on its stack.
pub(super) fn parallel(
    tree: &InstalledTree<'_>,
    library: MpiLibrary,
    launcher: &Launcher,
) -> Outcome {
    let logs = tree.built.join(format!("valgrind-{}", library.suffix()));
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir_all(&logs).map_err(|why| format!("{}: {why}", logs.display()))?;
    let mut valgrind = command(VALGRIND);
    valgrind.arg(format!("--log-file={}/%p", logs.display()));
    if library == OPEN_MPI {
        valgrind.arg(format!("--suppressions={OF_OPEN_MPI}"));
    }
    let c = ["global.c", "misuse.c"].map(|source| (source, "-g -pthread"));
    let others = OTHERS.into_iter().filter(|_| tree.depth == Depth::Long);
    let checked: Vec<_> = c.into_iter().chain(others).collect();
    for (source, options) in &checked {
        let program = tree.compile(source, Some(library), Linking::Shared, options)?;
        let program = Command::new(program);
        launcher.run(&[RANKS], &shell::started_by(copy(&valgrind), &program))?;
    }
    for (source, options) in c {
        let options = format!("{options} {SANITIZED}");
        let sanitized = tree.compile(source, Some(library), Linking::Static, &options)?;
        let mut program = command("env ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0");
        launcher.run(&[RANKS], program.arg(sanitized))?;
    }
    nothing_of_ours(&logs, checked.len() * RANKS as usize)
}

/// A second command with the same words.
fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    copy
}

/// Checks the logs of this number of ranks.
fn nothing_of_ours(logs: &Path, expected: usize) -> Outcome {
    let failed = |why| format!("{}: {why}", logs.display());
    let mut read = 0_usize;
    for log in fs::read_dir(logs).map_err(failed)? {
        let path = log.map_err(failed)?.path();
        let text = fs::read_to_string(&path).map_err(failed)?;
        if let Some(found) = record_of_ours(&text) {
            return Err(format!("{}: valgrind found\n{found}", path.display()));
        }
        read += 1;
    }
    if read == expected {
        Ok(())
    } else {
        Err(format!(
            "{}: {read} logs of valgrind, not {expected}",
            logs.display()
        ))
    }
}

/// Returns the first record of valgrind that names a function of ours.
fn record_of_ours(log: &str) -> Option<String> {
    // Lines begin with `==PID==`, and a line without more ends a record.
    let text = |line: &str| {
        line.rsplit_once("== ")
            .map_or("", |(_, text)| text)
            .to_owned()
    };
    let lines: Vec<String> = log.lines().map(text).collect();
    let mut records = lines.split(String::is_empty);
    let ours = records.find(|record| record.iter().any(|line| line.contains("libdownbeat")));
    ours.map(|record| record.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::record_of_ours;

    #[test]
    fn records_with_a_function_of_ours_are_found() {
        let log = "==7== 64 bytes in 1 blocks are definitely lost\n==7==    at 0x1: malloc (in /usr/lib/vg.so)\n\
                   ==7==    by 0x2: PMPI_Init (in /usr/lib/libmpi.so)\n==7== \n\
                   ==7== Invalid read of size 8\n==7==    at 0x3: downbeat_wtime (in /opt/lib/libdownbeat_mpi.so.0)\n==7== \n";
        let found = record_of_ours(log).unwrap_or_default();
        assert!(
            found.starts_with("Invalid read") && !found.contains("PMPI"),
            "{found}"
        );
        assert_eq!(
            record_of_ours(&log.replace("libdownbeat", "libother")),
            None
        );
    }
}
