//! Programs against the installed libdownbeat under valgrind and AddressSanitizer.

mod valgrind;

use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::MpiLibrary;

use crate::args::Depth;

use super::tree::{InstalledTree, Launcher, Linking};
pub(super) use valgrind::{Leaks, Valgrind};

/// Options of compilers; programs end at the first error.
pub(super) const SANITIZED: &str =
    "-g -fsanitize=address,undefined -fno-sanitize-recover=undefined";
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
    let mut valgrind = command("valgrind --quiet --error-exitcode=99");
    shell::run(valgrind.args(Leaks::All.options()).arg(shared))?;
    // It finds leaks, too.
    let sanitized = tree.compile("clock.c", None, Linking::Static, SANITIZED)?;
    shell::run(&mut Command::new(sanitized))
}

/// MPI libraries have errors and leaks of their own: none is of ours.
pub(super) fn parallel(
    tree: &InstalledTree<'_>,
    library: MpiLibrary,
    launcher: &Launcher,
) -> Outcome {
    let valgrind = Valgrind::new(tree, library, "programs", Leaks::All)?;
    let c = ["global.c", "misuse.c"].map(|source| (source, "-g -pthread"));
    let others = OTHERS.into_iter().filter(|_| tree.depth == Depth::Long);
    let checked: Vec<_> = c.into_iter().chain(others).collect();
    for (source, options) in &checked {
        let program = tree.compile(source, Some(library), Linking::Shared, options)?;
        launcher.run(&[RANKS], &valgrind.around(&Command::new(program)))?;
    }
    for (source, options) in c {
        let options = format!("{options} {SANITIZED}");
        let program = tree.compile(source, Some(library), Linking::Static, &options)?;
        launcher.run(&[RANKS], &sanitized(&Command::new(program)))?;
    }
    valgrind.found_nothing_of_ours(checked.len() * RANKS as usize)
}

/// Returns the command of a program that is compiled with sanitizers. MPI libraries leak, and libraries may be preloaded.
pub(super) fn sanitized(program: &Command) -> Command {
    let starter = command("env ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0");
    shell::started_by(starter, program)
}
