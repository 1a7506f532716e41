//! Recordings of jobs across hosts, which are emulated: each has its own clock and its
//! own shared memory.

use std::fs;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::hosts::Hosts;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::slurm::Slurm;

use super::programs::Compilers;
use super::recording::{LIMIT, has_all_counted, left_in, merge, record_rank, trace_command};
use crate::tree::InstalledTree;

const HOSTS: u32 = 4;
const NODES: u32 = 2;
const RANKS_PER_NODE: u32 = 2;
/// As long as a job may take under Slurm.
const SLURM_LIMIT: Duration = Duration::from_secs(180);

/// One rank on each host, by the launcher of Open MPI; that of MPICH tends to hang over
/// TCP.
pub(crate) fn over_hosts(tree: &InstalledTree) -> Outcome {
    let hosts = Hosts::set_up(HOSTS, &tree.built)?;
    recorded(tree, OPEN_MPI, &hosts, hosts.mpirun(1), (HOSTS, LIMIT))
}

/// Ranks that Slurm starts, for each library by the interface that it understands.
pub(crate) fn under_slurm(tree: &InstalledTree) -> Outcome {
    let hosts = Hosts::set_up(NODES, &tree.built)?;
    let slurm = Slurm::start(&hosts, RANKS_PER_NODE)?;
    for library in [OPEN_MPI, MPICH] {
        let srun = slurm.srun(library, RANKS_PER_NODE);
        let ranks = NODES * RANKS_PER_NODE;
        recorded(tree, library, &hosts, srun, (ranks, SLURM_LIMIT))
            .map_err(|why| format!("{}: {why}", library.name()))?;
    }
    Ok(())
}

/// Records a program of every kind of message, and checks that nothing stays in memory,
/// that the trace has all the program counted, and that its correction leaves no
/// violation.
fn recorded(
    tree: &InstalledTree,
    library: MpiLibrary,
    hosts: &Hosts,
    launcher: Command,
    (ranks, limit): (u32, Duration),
) -> Outcome {
    let program = Compilers::new(tree, library, "")?.messages()?;
    let folder = tree
        .built
        .join(format!("tracer/hosts-{ranks}-{}", library.suffix()));
    // What an earlier run left.
    let _ = fs::remove_dir_all(&folder);
    let counts = folder.with_extension("counts");
    // Launchers do not pass all variables to other hosts.
    let mut job = launcher;
    job.arg("env")
        .arg(format!("MESSAGES_OUT={}", counts.display()))
        .arg("DOWNBEAT_CLOCK=monotonic")
        // Fewer exchanges than usual, which take long where ranks share cores.
        .arg("DOWNBEAT_ALGORITHM='h2hca(hca3/50/skampi/20,prop)'");
    let record = shell::started_by(record_rank(tree, &folder), &Command::new(program));
    shell::show_and_read(limit, &mut shell::started_by(job, &record))?;
    nothing_left(hosts)?;
    has_all_counted(&merge(tree, &folder)?, &counts, ranks)?;

    let [measured, corrected] =
        ["dbt", "corrected.dbt"].map(|ending| folder.with_extension(ending));
    let mut check = trace_command(tree, "check", &measured);
    let checked = shell::finish(LIMIT, &mut check)?;
    if checked.code != Some(1) {
        return Err("the clocks of the hosts do not differ".to_owned());
    }
    let mut correct = trace_command(tree, "correct", &measured);
    correct.args(["--latencies", "0ns,0ns,0ns", "-o"]);
    shell::run(correct.arg(&corrected))?;
    let mut check = trace_command(tree, "check", &corrected);
    shell::run(check.arg("--against").arg(&measured))
}

/// Checks that recordings left nothing in the shared memory of the hosts.
fn nothing_left(hosts: &Hosts) -> Outcome {
    let names = (0..hosts.count()).flat_map(|host| {
        let names = left_in(&hosts.memory(host)).into_iter();
        names.map(move |name| format!("host {host}: {name}"))
    });
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(format!("{} is left", names.join(", ")))
    }
}
