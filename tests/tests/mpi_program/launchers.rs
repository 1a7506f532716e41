//! Jobs under the launcher of another MPI library, which are as many worlds of one rank.

use downbeat_launch::Outcome;
use downbeat_launch::command::{FinishedCommand, finish};
use downbeat_launch::mpi::{MPICH, OPEN_MPI};

use crate::job::{Failure, Jobs, LIMIT, expect, test};

const COMMANDS: [&str; 5] = [
    "bench --out DIR/records --launch a",
    "sync",
    "imbalance",
    "drift",
    "trace-correct DIR/none -o DIR/corrected",
];

#[test]
fn worlds_of_one_rank_are_refused() -> Result<(), Failure> {
    test("other-launcher", |jobs| {
        COMMANDS
            .into_iter()
            .try_for_each(|command| refused(jobs, &jobs.expand(command)))?;
        if jobs.folder.join("records").exists() {
            return Err("a refused job left a folder".to_owned());
        }
        // The launcher started no other rank.
        let alone = under_other_launcher(jobs, 1, "completions bash")?;
        expect(alone.code == Some(0), &alone, "one rank that is accepted")
    })
}

fn under_other_launcher(
    jobs: &Jobs,
    ranks: u32,
    arguments: &str,
) -> Result<FinishedCommand, String> {
    let other = [OPEN_MPI, MPICH]
        .into_iter()
        .find(|other| *other != jobs.library);
    let mut mpirun = other
        .ok_or("there is no other library")?
        .oversubscribed_mpirun();
    mpirun.envs(jobs.library.environment());
    mpirun.args(["-np", &ranks.to_string()]).arg(jobs.program());
    finish(LIMIT, mpirun.args(arguments.split_whitespace()))
}

/// Checks that each process that reports something before the launcher ends it names the launcher's claim and the remedy.
fn refused(jobs: &Jobs, arguments: &str) -> Outcome {
    let job = under_other_launcher(jobs, 2, arguments)?;
    let (claim, remedy) = if jobs.library == OPEN_MPI {
        ("PMI_SIZE is 2", "--mpi=pmix")
    } else {
        ("OMPI_COMM_WORLD_SIZE is 2", "--mpi=pmi2")
    };
    let mut said = job
        .stderr
        .lines()
        .filter(|line| line.contains("downbeat-mpi: "))
        .peekable();
    let is_named = said.peek().is_some()
        && said.all(|line| {
            [claim, remedy, "MPI_COMM_WORLD has 1 rank"]
                .iter()
                .all(|part| line.contains(part))
        });
    let is_refused = job.code == Some(2) && job.stdout.is_empty() && is_named;
    expect(
        is_refused,
        &job,
        &format!("{claim}, with a remedy, for `{arguments}`"),
    )
}
