//! MPI libraries and their launchers.

use std::path::PathBuf;
use std::process::Command;

use crate::command::command;

/// An MPI library as Debian installs it: next to others, so that the name of every
/// program has a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiLibrary {
    name: &'static str,
    suffix: &'static str,
    /// Options for shared memory only.
    transport: &'static str,
    /// Options for more ranks than cores.
    oversubscribed: &'static str,
    /// True if ranks that wait can yield their core.
    yields: bool,
    /// Options that end ranks at once, without a second of grace.
    no_grace: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

/// Open MPI.
pub const OPEN_MPI: MpiLibrary = MpiLibrary {
    name: "Open MPI",
    suffix: "openmpi",
    transport: "--mca btl self,vader",
    oversubscribed: "--oversubscribe --mca mpi_yield_when_idle 1",
    yields: true,
    no_grace: "--mca odls_base_sigkill_timeout 0",
    // To run as root takes two confirmations.
    environment: &[
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ],
};

/// MPICH.
pub const MPICH: MpiLibrary = MpiLibrary {
    name: "MPICH",
    suffix: "mpich",
    transport: "",
    oversubscribed: "",
    yields: false,
    no_grace: "",
    environment: &[],
};

impl MpiLibrary {
    /// Finds a library by the suffix of its programs.
    pub fn with_suffix(suffix: &str) -> Option<Self> {
        [OPEN_MPI, MPICH]
            .into_iter()
            .find(|library| library.suffix == suffix)
    }

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the suffix of the names of its programs: `mpicc.SUFFIX`, `mpirun.SUFFIX`.
    pub fn suffix(self) -> &'static str {
        self.suffix
    }

    /// Returns true if ranks that wait can yield their core; others need a library that
    /// does so, see [`preload`](Self::preload).
    pub fn yields(self) -> bool {
        self.yields
    }

    /// Returns the environment that its launcher requires.
    pub fn environment(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.environment.iter().copied()
    }

    /// Returns the launcher for ranks on this machine that have a core each.
    pub fn mpirun(self) -> Command {
        let mut mpirun = command(&format!("mpirun.{} {}", self.suffix, self.transport));
        mpirun.envs(self.environment());
        mpirun
    }

    /// Returns the launcher for ranks that share cores, and that are killed at once when
    /// the job ends.
    pub fn oversubscribed_mpirun(self) -> Command {
        let mut mpirun = self.graceful_mpirun();
        mpirun.args(self.no_grace.split_whitespace());
        mpirun
    }

    /// Returns the launcher for ranks that share cores, and that have time to clean up
    /// when the job ends.
    pub fn graceful_mpirun(self) -> Command {
        let mut mpirun = self.mpirun();
        mpirun.args(self.oversubscribed.split_whitespace());
        mpirun
    }

    /// Lets the ranks preload libraries.
    pub fn preload(self, mpirun: &mut Command, libraries: &[PathBuf]) {
        if libraries.is_empty() {
            return;
        }
        let paths: Vec<String> = libraries
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let paths = paths.join(":");
        if self == OPEN_MPI {
            mpirun.args(["-x", &format!("LD_PRELOAD={paths}")]);
        } else {
            mpirun.args(["-genv", "LD_PRELOAD", &paths]);
        }
    }
}
