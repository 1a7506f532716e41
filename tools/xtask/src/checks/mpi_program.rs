//! The tests of the MPI program, which `downbeat-tests` holds, under MPI libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::command as shell;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, environment};

use crate::args::Depth;
use crate::mpi_builds::{MPI_PROGRAM, programs, yielding};
use crate::steps::side_by_side;
use crate::workspace::Workspace;

/// The test target that starts jobs of the MPI program.
pub(crate) const MPI_PROGRAM_TESTS: &str = "mpi_program";

/// Module that runs the programs of both libraries on the same emulated hosts.
pub(crate) const BATCH_JOBS: &str = "batch_jobs";

/// Runs a module of the tests under these libraries side by side: the jobs wait for their
/// launchers most of the time.
pub(crate) fn test_module(
    workspace: &Workspace,
    depth: Depth,
    module: &str,
    libraries: &[MpiLibrary],
) -> Outcome {
    side_by_side(libraries, |library| {
        let mut tests = tests_of(workspace, depth, module, *library)?;
        let report = shell::show_and_read(shell::LIMIT, &mut tests)
            .map_err(|why| format!("{}: {why}", library.name()))?;
        if report.contains("running 0 tests") {
            return Err(format!("the module {module} has no tests"));
        }
        Ok(())
    })
}

fn tests_of(
    workspace: &Workspace,
    depth: Depth,
    module: &str,
    library: MpiLibrary,
) -> Result<Command, String> {
    let downbeat = programs(OPEN_MPI, workspace)?.executable("downbeat")?;
    let of_library = programs(library, workspace)?;
    let program = link_for(module, &of_library.executable(MPI_PROGRAM)?)?;
    let mut tests = Command::new(of_library.executable(MPI_PROGRAM_TESTS)?);
    tests
        .arg(format!("{module}::"))
        .env(environment::LIBRARY, library.suffix())
        .env(environment::MPI_PROGRAM, program)
        .env(environment::PROGRAM, downbeat);
    if module == BATCH_JOBS {
        let mpich = programs(MPICH, workspace)?;
        tests.env(environment::MPICH_PROGRAM, mpich.executable(MPI_PROGRAM)?);
    }
    if let Some(library) = yielding(library, &of_library)? {
        tests.env(environment::YIELD, library);
    }
    if depth == Depth::Long {
        tests.env(environment::LONG, "1");
    }
    Ok(tests)
}

/// Gives a program a path of its own for each module: the tests look for the ranks that
/// they started by it, and two modules may run at once.
fn link_for(module: &str, program: &Path) -> Result<PathBuf, String> {
    let folder = program.with_file_name("of-tests").join(module);
    let link = folder.join(MPI_PROGRAM);
    let _ = fs::remove_file(&link);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::hard_link(program, &link))
        .map_err(|why| format!("{}: {why}", link.display()))?;
    Ok(link)
}
