//! Commands with a time limit, processes, and MPI launchers: shared by xtask and tests of
//! programs.

#![expect(
    clippy::print_stdout,
    reason = "each command is printed before it runs"
)]

pub mod command;
pub mod hosts;
pub mod mpi;
pub mod process;
pub mod slurm;

/// Result of a check; `Err` says in one line what failed.
pub type Outcome = Result<(), String>;

/// Joins the reasons of failures.
///
/// # Errors
/// If there is any.
pub fn all_passed(failures: impl IntoIterator<Item = String>) -> Outcome {
    let failures: Vec<String> = failures.into_iter().collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("; "))
    }
}

/// Environment variables that tell tests and benchmarks of programs what to run.
pub mod environment {
    /// Folder of an installation of libdownbeat and the programs, as an absolute path.
    pub const INSTALLED: &str = "DOWNBEAT_INSTALLED";
    /// MPI library that the program is linked to: `openmpi` or `mpich`.
    pub const LIBRARY: &str = "DOWNBEAT_MPI_LIBRARY";
    /// Path of `downbeat-mpi`.
    pub const MPI_PROGRAM: &str = "DOWNBEAT_MPI_PROGRAM";
    /// Path of `downbeat-mpi` for MPICH, for tests of both libraries together.
    pub const MPICH_PROGRAM: &str = "DOWNBEAT_MPICH_PROGRAM";
    /// Path of `downbeat`.
    pub const PROGRAM: &str = "DOWNBEAT_PROGRAM";
    /// Path of the library that lets ranks yield their core while they wait, if the MPI
    /// library cannot do so itself.
    pub const YIELD: &str = "DOWNBEAT_YIELD";
    /// Set for all numbers of ranks of every test, and for more random trials.
    pub const LONG: &str = "DOWNBEAT_LONG";

    /// Returns true in a long run.
    pub fn is_long() -> bool {
        std::env::var_os(LONG).is_some()
    }
}
