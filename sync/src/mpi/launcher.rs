//! Worlds of one rank that a launcher meant to be one world: it is not that of the MPI library that the program is linked with.

use std::env;
use std::os::unix::process::parent_id;
use std::process;

use mpi::environment::library_version;
use mpi::ffi::{self, MPI_Comm};

use super::error::MpiError;

/// Number of ranks that a launcher says to have started together with this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LauncherClaim {
    /// Environment variable that says so.
    variable: &'static str,
    ranks: u32,
}

/// Variables of `mpirun`, which are set in ranks only: that of Open MPI, and that of MPICH and its relatives, which Slurm's PMI-2 sets,
/// too. That of Open MPI comes first, since Slurm passes its own to ranks of Open MPI's `mpirun`.
const MPIRUN: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// Number of tasks of a step of Slurm. `SLURM_NTASKS` is that of the job.
const STEP: &str = "SLURM_STEP_NUM_TASKS";

/// Checks a communicator before it is used: if it is `MPI_COMM_WORLD` and has one rank, the launcher must not have started more. A
/// larger world was made by a launcher that the library understands, whatever the variables of others around it say. Programs that are
/// alone on purpose use `MPI_COMM_SELF`.
pub(super) fn check_world(comm: MPI_Comm, size: i32) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let world = unsafe { ffi::RSMPI_COMM_WORLD };
    if comm != world || size != 1 {
        return Ok(());
    }
    let claim = LauncherClaim::find(|name| env::var(name).ok(), process::id(), parent_id());
    claim
        .filter(|claim| claim.ranks > 1)
        .map_or(Ok(()), |claim| {
            Err(MpiError::Singleton {
                variable: claim.variable,
                ranks: claim.ranks,
                remedy: remedy(&library_version().unwrap_or_default()),
            })
        })
}

impl LauncherClaim {
    /// Finds the claim of the launcher of this process; `None` if there is no launcher, or none that is known.
    fn find(variable: impl Fn(&str) -> Option<String>, this: u32, parent: u32) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let claim = |name| {
            Some(Self {
                variable: name,
                ranks: number(name)?,
            })
        };
        MPIRUN.into_iter().find_map(claim).or_else(|| {
            // Everything that a task starts inherits the variables of the step, which say nothing about it. Only the task itself is a
            // rank, or what a script starts that is the task; but not what is typed into a shell on a terminal.
            let task = number("SLURM_TASK_PID")?;
            let on_terminal = variable("SLURM_PTY_PORT").is_some();
            let is_task = task == this || (task == parent && !on_terminal);
            variable("SLURM_PROCID").filter(|_| is_task)?;
            claim(STEP)
        })
    }
}

/// Returns the launchers that an MPI library understands, by its version text.
fn remedy(library: &str) -> &'static str {
    if library.starts_with("Open MPI") {
        "start it by the mpirun of Open MPI, which it is linked with, or by srun --mpi=pmix"
    } else if library.starts_with("MPICH") {
        "start it by the mpirun of MPICH, which it is linked with, or by srun --mpi=pmi2"
    } else {
        "start it by the mpirun of the MPI library that it is linked with, or by srun --mpi=pmi2 or --mpi=pmix"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIS: u32 = 100;
    const PARENT: u32 = 99;
    const GRANDPARENT: u32 = 98;

    /// Returns the number of ranks that a launcher claims which sets these variables.
    fn claimed(variables: &str) -> Option<u32> {
        let find = |name: &str| {
            let set = |word: &str| {
                let (set, value) = word.split_once('=').unwrap();
                (set == name).then(|| value.to_owned())
            };
            variables.split_whitespace().find_map(set)
        };
        LauncherClaim::find(find, THIS, PARENT).map(|claim| claim.ranks)
    }

    #[test]
    fn claims_of_launchers_that_the_library_understands() {
        for (variables, ranks) in [
            // No launcher, a program in a batch script, one that is typed into the shell of `salloc`.
            ("", None),
            (
                "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_TASK_PID=99",
                None,
            ),
            ("SLURM_NTASKS=2", None),
            // Each `mpirun`, without Slurm.
            ("OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0", Some(2)),
            ("PMI_SIZE=2 PMI_RANK=0 MPI_LOCALNRANKS=2", Some(2)),
            // Each `mpirun` in a batch script: the variables of Slurm are those of its daemons.
            (
                "OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_TASK_PID=99",
                Some(2),
            ),
            (
                "OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURM_TASK_PID=99",
                Some(1),
            ),
            (
                "PMI_SIZE=4 PMI_RANK=0 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_TASK_PID=99",
                Some(4),
            ),
            (
                "PMI_SIZE=1 PMI_RANK=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_TASK_PID=99",
                Some(1),
            ),
            // `srun` with PMI-2 and PMIx, and without either.
            (
                "PMI_SIZE=4 PMI_RANK=0 SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_PROCID=3 SLURM_TASK_PID=100",
                Some(4),
            ),
            (
                "PMIX_RANK=0 SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_PROCID=3 SLURM_TASK_PID=100",
                Some(4),
            ),
            (
                "SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_PROCID=3 SLURM_TASK_PID=100",
                Some(4),
            ),
        ] {
            assert_eq!(claimed(variables), ranks, "{variables}");
        }
    }

    #[test]
    fn only_tasks_and_what_their_scripts_start_are_ranks_of_a_step() {
        for (task, terminal, ranks) in [
            (THIS, "", Some(4)),
            (THIS, "SLURM_PTY_PORT=5", Some(4)),
            (PARENT, "", Some(4)),
            (PARENT, "SLURM_PTY_PORT=5", None),
            (GRANDPARENT, "", None),
        ] {
            let variables = format!(
                "SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_TASK_PID={task} {terminal}"
            );
            assert_eq!(claimed(&variables), ranks, "{variables}");
        }
    }

    #[test]
    fn damaged_variables_claim_nothing() {
        for variables in [
            "PMI_SIZE=x",
            "OMPI_COMM_WORLD_SIZE=-1",
            "SLURM_TASK_PID=x SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4",
        ] {
            assert_eq!(claimed(variables), None, "{variables}");
        }
    }

    #[test]
    fn each_library_has_its_launchers() {
        for (library, launcher) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI", "--mpi=pmix"),
            ("MPICH Version:\t4.0.2", "mpirun of MPICH"),
            ("MVAPICH2 Version", "--mpi=pmi2 or --mpi=pmix"),
        ] {
            assert!(remedy(library).contains(launcher), "{library}");
        }
    }
}
