//! Ranks of an MPI job.

use std::env;

use downbeat_common::digest;
use downbeat_common::records::Factors;
use downbeat_jobs::Job;
use downbeat_sync::{CommError, MpiComm};
use downbeat_timers::WtimeClock;

/// All ranks that `mpirun` started.
#[derive(Debug)]
pub(crate) struct MpiJob<'a> {
    pub(crate) wtime: WtimeClock<'a>,
    pub(crate) comm: &'a MpiComm,
}

pub(crate) type JobRanks<'a> = downbeat_jobs::JobRanks<'a, MpiJob<'a>>;
pub(crate) type JobClock<'a> = downbeat_jobs::JobClock<MpiJob<'a>>;
pub(crate) type RankClocks<'a> = downbeat_jobs::RankClocks<MpiJob<'a>>;

/// Prefixes of the environment variables with which users configure MPI libraries and networks. Launchers set others, which
/// differ from job to job.
const USER_VARIABLES: [&str; 15] = [
    "OMPI_MCA_btl",
    "OMPI_MCA_coll",
    "OMPI_MCA_hwloc",
    "OMPI_MCA_mpi",
    "OMPI_MCA_mtl",
    "OMPI_MCA_osc",
    "OMPI_MCA_pml",
    "MPICH_",
    "MPIR_CVAR_",
    "MV2_",
    "I_MPI_",
    "UCX_",
    "FI_",
    "PSM2_",
    "HCOLL_",
];

/// Variable with such a prefix that launchers set: the host of the launcher.
const LAUNCHER_VARIABLE: &str = "MPIR_CVAR_CH3_INTERFACE_HOSTNAME";

impl<'a> Job for MpiJob<'a> {
    type Comm = MpiComm;
    type OwnClock = WtimeClock<'a>;

    const PROGRAM: &'static str = concat!("downbeat-mpi ", env!("CARGO_PKG_VERSION"));

    fn comm(&self) -> &MpiComm {
        self.comm
    }

    fn node(&self) -> Result<u32, CommError> {
        self.comm.node()
    }

    fn own_clock(&self) -> Option<WtimeClock<'a>> {
        Some(self.wtime)
    }

    fn add_library(&self, factors: Factors) -> Factors {
        let library = mpi::environment::library_version().unwrap_or_else(|_| "unknown".to_owned());
        let library = library
            .trim_matches(|c: char| c.is_whitespace() || c == '\0')
            .replace('\n', "; ");
        let compiler = downbeat_measure::mpi::COMPILER.unwrap_or("unknown");
        factors.with("mpi", &library).with("mpicc", &compiler)
    }

    fn add_configuration(&self, factors: Factors) -> Factors {
        let mut factors = factors.with("mpi digest", &digest::of_loaded_mpi());
        let mut variables: Vec<(String, String)> = env::vars_os()
            .filter_map(|(name, value)| {
                Some((
                    name.into_string().ok()?,
                    value.to_string_lossy().into_owned(),
                ))
            })
            .filter(|(name, _)| USER_VARIABLES.iter().any(|prefix| name.starts_with(prefix)))
            .filter(|(name, _)| name != LAUNCHER_VARIABLE)
            .collect();
        variables.sort();
        for (name, value) in variables {
            factors = factors.with(&format!("env {name}"), &value);
        }
        factors
    }
}
