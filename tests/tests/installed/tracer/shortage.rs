//! Programs whose tracer lacks memory, a disk, or the process that collects its records:
//! they end as without a tracer, and what was recorded can be read.

use std::fs;
use std::path::Path;
use std::process::Command;

use downbeat_launch::command::{self as shell, FinishedCommand};
use downbeat_launch::environment::is_long;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, all_passed};

use super::programs::Compilers;
use super::recording::{LIMIT, merge, record_rank};
use crate::tree::{InstalledTree, Launcher};

/// Calls of each rank of `flood.c` besides its messages.
pub(crate) const FLOOD_CALLS: u64 = 4;

/// A program, and what it is recorded with.
struct Case {
    name: &'static str,
    /// Size of the shared memory, and of the disk of the recording.
    memory: &'static str,
    disk: &'static str,
    ranks: u32,
    threads: u64,
    /// Number of messages of each thread.
    messages: u64,
    /// How the program ends.
    end: &'static str,
    /// What the tracer says.
    says: &'static str,
    /// True if no call is missing.
    is_complete: bool,
}

const PLAIN: Case = Case {
    name: "plain",
    memory: "2g",
    disk: "1g",
    ranks: 2,
    threads: 0,
    messages: 20_000,
    end: "",
    says: "",
    is_complete: true,
};

const CASES: [Case; 8] = [
    Case {
        name: "a main thread that ends by pthread_exit",
        end: "pthread_exit",
        ..PLAIN
    },
    Case {
        name: "shared memory of a container",
        memory: "64m",
        messages: 250_000,
        says: "MiB of it, and the program may wait",
        ..PLAIN
    },
    Case {
        name: "less shared memory than a block for each rank",
        memory: "16m",
        messages: 40_000,
        says: "records go to files in",
        ..PLAIN
    },
    Case {
        name: "more threads than memory",
        memory: "64m",
        ranks: 1,
        threads: 600,
        messages: 20,
        says: "too little shared memory for this number of threads",
        ..PLAIN
    },
    Case {
        name: "a disk that fills",
        disk: "2m",
        messages: 150_000,
        says: "calls are lost, the others are in",
        is_complete: false,
        ..PLAIN
    },
    Case {
        name: "a disk that fills, and little shared memory",
        memory: "64m",
        disk: "2m",
        messages: 400_000,
        says: "it records no more calls: its recording cannot be written",
        is_complete: false,
        ..PLAIN
    },
    Case {
        name: "a disk that fills, and a first thread with half a block of calls",
        memory: "64m",
        disk: "600k",
        threads: 4,
        messages: 40_000,
        end: "first",
        says: "calls are lost, the others are in",
        is_complete: false,
        ..PLAIN
    },
    Case {
        name: "a parent that is killed",
        end: "orphan",
        is_complete: false,
        ..PLAIN
    },
];

pub(crate) fn shortage(tree: &InstalledTree) -> Outcome {
    let mut wrong = vec![];
    for library in [OPEN_MPI, MPICH] {
        let program = Compilers::new(tree, library, "")?.c("", &["flood.c"], "flood")?;
        // The launchers differ, and all else is the same.
        let is_wanted = |case: &&Case| library == OPEN_MPI || case.end == "orphan" || is_long();
        for case in CASES.iter().filter(is_wanted) {
            if let Err(why) = recorded(tree, library, &program, case) {
                wrong.push(format!("{}, {}: {why}", library.name(), case.name));
            }
        }
    }
    all_passed(wrong)
}

fn recorded(tree: &InstalledTree, library: MpiLibrary, program: &Path, case: &Case) -> Outcome {
    let disk = tree.built.join("disk");
    fs::create_dir_all(&disk).map_err(|why| format!("{}: {why}", disk.display()))?;
    let folder = tree.built.join("kept");
    let _ = fs::remove_dir_all(&folder);
    let job = Launcher::new(library)?.mpirun(case.ranks);
    let mut rank = record_rank(tree, &disk.join("out"));
    rank.arg(program)
        .args([case.messages, case.threads].map(|number| number.to_string()));
    let job = shell::started_by(job, &rank);
    // The mounts end with the shell. What is left behind is collected there, too.
    let script = format!(
        "mount -t tmpfs -o mode=1777,size={} tmpfs /dev/shm && \
         mount -t tmpfs -o size={} tmpfs {disk} || exit 99; \"$@\"; code=$?; {clean}; {clean}; \
         cp -r {disk}/out {kept} && exit $code",
        case.memory,
        case.disk,
        disk = disk.display(),
        clean = format!(
            "{} record --clean >/dev/null; sleep 0.2",
            tree.prefix.join("bin/downbeat").display()
        ),
        kept = folder.display(),
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script, "sh"]);
    let mut unshare = shell::started_by(unshare, &job);
    let ended = shell::finish(LIMIT, unshare.env("FLOOD_END", case.end))?;
    check(tree, &folder, case, &ended).map_err(|why| {
        let FinishedCommand {
            code,
            stdout,
            stderr,
        } = &ended;
        format!("{why}; exit code {code:?}\n{stdout}{stderr}")
    })
}

fn check(tree: &InstalledTree, folder: &Path, case: &Case, ended: &FinishedCommand) -> Outcome {
    let is_orphan = case.end == "orphan";
    if (ended.code == Some(0)) == is_orphan {
        return Err("another exit code is expected".to_owned());
    }
    let exits = ended.stdout.matches("exits").count();
    if !is_orphan && exits != case.ranks as usize {
        return Err(format!(
            "{exits} ranks called what they registered by atexit"
        ));
    }
    let says_what_it_should = match case.says {
        "" => is_orphan || !ended.stderr.contains("downbeat"),
        says => ended.stderr.contains(says),
    };
    if !says_what_it_should {
        return Err(format!("it does not say `{}`", case.says));
    }
    let trace = merge(tree, folder)?;
    let found: Vec<u64> = (0..case.ranks)
        .map(|rank| trace.of(rank).all_calls())
        .collect();
    let made = case.messages * case.threads.max(1) + FLOOD_CALLS;
    let is_right = match case.is_complete {
        // Libraries make a few calls, too.
        true => found.iter().all(|found| (made..=made + 10).contains(found)),
        false => found.iter().all(|found| (1..made).contains(found)),
    };
    // The launcher ends the other rank, too, somewhere.
    let last_of_orphan = made - FLOOD_CALLS;
    let has_last = !is_orphan || found.iter().any(|found| *found >= last_of_orphan);
    match is_right && has_last {
        true => Ok(()),
        false => Err(format!("{found:?} calls of {made}")),
    }
}
