//! Errors of traced programs, as valgrind and sanitizers find them.

use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::mpi::MpiLibrary;

use super::programs::Compilers;
use super::recording::{has_all_counted, have_messages, merge, record_rank};
use crate::memory::{Leaks, SANITIZED, Valgrind, sanitized};
use crate::tree::{InstalledTree, Launcher};

/// Programs that are checked, besides the mini application.
const CHECKED: [&str; 4] = ["messages", "messages_f08", "odd", "threads"];
const RANKS: u32 = 2;
/// Valgrind runs one thread at a time, and translates all instructions.
const LIMIT: Duration = Duration::from_secs(300);

/// Programs under valgrind: the tracer makes no error and no leak.
pub(crate) fn under_valgrind(tree: &InstalledTree, library: MpiLibrary) -> Outcome {
    let valgrind = Valgrind::new(tree, library, "traced", Leaks::Definite)?;
    let wrap = |program: &Command| valgrind.around(program);
    let run = run_all(tree, library, "", &wrap)?;
    valgrind.found_nothing_of_ours(run * RANKS as usize)
}

/// Programs that are compiled with sanitizers, which end them at the first error.
pub(crate) fn with_sanitizers(tree: &InstalledTree, library: MpiLibrary) -> Outcome {
    run_all(tree, library, SANITIZED, &sanitized).map(drop)
}

/// Records programs that are compiled with these options and started by another command,
/// and returns their number. Each recording must hold what the program counted, or
/// messages.
fn run_all(
    tree: &InstalledTree,
    library: MpiLibrary,
    options: &str,
    wrap: &dyn Fn(&Command) -> Command,
) -> Result<usize, String> {
    let launcher = Launcher::new(library)?;
    let compilers = Compilers::new(tree, library, options)?;
    let record = |name: &str, program: &Command| {
        let folder = tree.built.join(format!("tracer/checked-{name}"));
        // What an earlier run left.
        let _ = std::fs::remove_dir_all(&folder);
        let counts = folder.with_extension("counts");
        let job = shell::started_by(record_rank(tree, &folder), &wrap(program));
        let mut mpirun = shell::started_by(launcher.mpirun(RANKS), &job);
        shell::show_and_read(LIMIT, mpirun.env("MESSAGES_OUT", &counts))?;
        Ok::<_, String>((merge(tree, &folder)?, counts))
    };
    let failed = |name: &str, why: String| format!("{name}: {why}");
    let programs = compilers.all()?;
    let checked = programs
        .iter()
        .filter(|program| CHECKED.contains(&program.name));
    let mut run = 0;
    for program in checked {
        record(program.name, &program.command())
            .and_then(|(trace, counts)| has_all_counted(&trace, &counts, RANKS))
            .map_err(|why| failed(program.name, why))?;
        run += 1;
    }
    let name = "poisson.c";
    let mut program = Command::new(compilers.mini_application(name)?);
    let recorded = record(name, program.args(["12", "20"]));
    recorded
        .and_then(|(trace, _)| have_messages(&trace, 0..RANKS))
        .map_err(|why| failed(name, why))?;
    Ok(run + 1)
}
