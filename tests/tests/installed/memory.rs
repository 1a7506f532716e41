//! Programs against the installed libdownbeat under valgrind and AddressSanitizer.

mod valgrind;

use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::MpiLibrary;

use crate::tree::{InstalledTree, Launcher, Linking};
pub(crate) use valgrind::{Leaks, Valgrind};

/// Options of compilers; programs end at the first error.
pub(crate) const SANITIZED: &str =
    "-g -fsanitize=address,undefined -fno-sanitize-recover=undefined";
/// Programs, and options of their compilers: in C, in C++, and in Fortran by each of its
/// bindings.
const CHECKED: [(&str, &str); 6] = [
    ("global.c", C),
    ("misuse.c", C),
    ("global.cpp", "-g"),
    ("global.F90", "-g -DUSE_F08"),
    ("global.F90", "-g -DUSE_MPI"),
    ("global.F90", "-g"),
];
const C: &str = "-g -pthread";
const RANKS: u32 = 2;

/// Programs without MPI have no error and no leak at all.
pub(crate) fn local(tree: &InstalledTree) -> Outcome {
    let shared = tree.compile("clock.c", None, Linking::Shared, "")?;
    let mut valgrind = command("valgrind --quiet --error-exitcode=99");
    shell::run(valgrind.args(Leaks::All.options()).arg(shared))?;
    // It finds leaks, too.
    let sanitized = tree.compile("clock.c", None, Linking::Static, SANITIZED)?;
    shell::run(&mut Command::new(sanitized))
}

/// MPI libraries have errors and leaks of their own: none is of ours.
pub(crate) fn parallel(tree: &InstalledTree, library: MpiLibrary) -> Outcome {
    let launcher = Launcher::new(library)?;
    let valgrind = Valgrind::new(tree, library, "programs", Leaks::All)?;
    for (source, options) in CHECKED {
        let program = tree.compile(source, Some(library), Linking::Shared, options)?;
        launcher.run(&[RANKS], &valgrind.around(&Command::new(program)))?;
    }
    for (source, options) in CHECKED.iter().filter(|(_, options)| *options == C) {
        let options = format!("{options} {SANITIZED}");
        let program = tree.compile(source, Some(library), Linking::Static, &options)?;
        launcher.run(&[RANKS], &sanitized(&Command::new(program)))?;
    }
    valgrind.found_nothing_of_ours(CHECKED.len() * RANKS as usize)
}

/// Returns the command of a program that is compiled with sanitizers. MPI libraries leak,
/// and libraries may be preloaded.
pub(crate) fn sanitized(program: &Command) -> Command {
    let starter = command("env ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0");
    shell::started_by(starter, program)
}
