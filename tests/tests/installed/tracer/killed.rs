//! Programs that are killed under the tracer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::command as shell;
use downbeat_launch::environment::is_long;
use downbeat_launch::mpi::{MPICH, OPEN_MPI};
use downbeat_launch::{Outcome, all_passed};

use super::programs::Compilers;
use super::recording::{LIMIT, left_in, merge, record_rank};
use crate::tree::{InstalledTree, Launcher};

/// Ranks that end by SIGKILL, `_exit` and `MPI_Abort`, or whose parents are killed, at
/// any moment: their traces are complete to the last call, and nothing stays in shared
/// memory.
pub(crate) fn killed(tree: &InstalledTree) -> Outcome {
    let times = if is_long() { 20 } else { 2 };
    let mut wrong = vec![];
    let mut seed = u64::from(std::process::id());
    for library in [OPEN_MPI, MPICH] {
        let launcher = Launcher::new(library)?;
        let program = Compilers::new(tree, library, "")?.c("", &["kill.c"], "kill")?;
        for way in ["kill", "exit", "abort", "orphan"] {
            for _ in 0..times {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let moment = 1_000 + (seed >> 33) % 300_000;
                if let Err(why) = killed_at(tree, &launcher, &program, way, moment) {
                    let name = library.name();
                    wrong.push(format!("{name}, {way} after {moment} us: {why}"));
                }
            }
        }
    }
    all_passed(wrong)
}

fn killed_at(
    tree: &InstalledTree,
    launcher: &Launcher,
    program: &Path,
    way: &str,
    moment: u64,
) -> Outcome {
    let folder = tree.built.join("tracer/killed");
    let _ = fs::remove_dir_all(&folder);
    let calls = folder.with_extension("calls");
    let mut job = record_rank(tree, &folder);
    job.arg(program).args([way, &moment.to_string(), "0"]);
    let mut mpirun = shell::started_by(launcher.mpirun(2), &job);
    shell::finish(LIMIT, mpirun.env("KILL_OUT", &calls))?;
    // Launchers may not wait for the parents of ranks, and may kill them, too.
    let mut left = left_of(&folder)?;
    for _ in 0..100 {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        let mut clean = Command::new(tree.prefix.join("bin/downbeat"));
        shell::run(clean.args(["record", "--clean"]))?;
        left = left_of(&folder)?;
    }
    if !left.is_empty() {
        return Err(format!("{} is left", left.join(", ")));
    }
    let trace = merge(tree, &folder)?;
    for rank in 0..2 {
        let path = PathBuf::from(format!("{}.{rank}", calls.display()));
        let bytes = fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let counted = bytes
            .first_chunk()
            .map_or(0, |count| u64::from_le_bytes(*count));
        let found = trace.of(rank).all_calls();
        // The number of the last call may not be written yet, and a call may be under
        // way; MPI_Abort is not counted.
        if !(counted..=counted + 2).contains(&found) {
            return Err(format!(
                "rank {rank}: {counted} calls, and {found} in the trace"
            ));
        }
    }
    Ok(())
}

/// Names of what recordings that go to this folder have in shared memory, where others
/// may run.
fn left_of(folder: &Path) -> Result<Vec<String>, String> {
    let memory = Path::new("/dev/shm");
    let folder = fs::canonicalize(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut names = left_in(memory);
    names.retain(|name| {
        let out = fs::read(memory.join(name).join("out"));
        out.is_ok_and(|out| out == folder.as_os_str().as_encoded_bytes())
    });
    Ok(names)
}
