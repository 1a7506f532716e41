//! Libraries that are loaded into a recorded program, for its MPI library.

use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_common::Failure;

#[derive(Args, Clone, Debug)]
pub(super) struct LibraryOptions {
    /// MPI library of the program [default: that of the launcher]
    #[arg(long, value_enum, value_name = "LIBRARY")]
    pub(super) mpi: Option<MpiName>,
    /// Folder with openmpi/libdownbeat_trace.so and mpich/libdownbeat_trace.so [default: lib beside the folder of this program]
    #[arg(long, value_name = "DIR")]
    pub(super) libraries: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MpiName {
    /// Open MPI
    Openmpi,
    /// MPICH, and libraries with its binary interface: Intel MPI, MVAPICH, Cray MPICH
    Mpich,
}

/// Paths of the libraries.
#[derive(Debug)]
pub(super) struct Libraries {
    pub(super) tracer: PathBuf,
    /// libdownbeat_mpi, which synchronizes the clocks.
    pub(super) synchronizer: PathBuf,
}

impl MpiName {
    /// Name in the option, and of the folder of its libraries.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Openmpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// Returns the library whose launcher started this process, by what launchers put into the environment.
    fn of_launcher() -> Option<Self> {
        let has = |name: &str| env::var_os(name).is_some();
        if has("OMPI_COMM_WORLD_SIZE") || has("PMIX_RANK") {
            Some(Self::Openmpi)
        } else if has("PMI_RANK") {
            Some(Self::Mpich)
        } else {
            None
        }
    }
}

impl Libraries {
    /// Finds the libraries.
    pub(super) fn find(options: &LibraryOptions) -> Result<Self, Failure> {
        let named = options.mpi.or_else(MpiName::of_launcher);
        let mpi = named.ok_or_else(|| {
            let why = "no launcher of MPI was recognized, so the library is unknown: give --mpi openmpi or --mpi mpich";
            Failure::option("--mpi", why)
        })?;
        let folders = match &options.libraries {
            Some(folder) => vec![folder.clone()],
            None => beside_this_program(),
        };
        let of = |folder: &Path, name: &str| folder.join(mpi.as_str()).join(name);
        let [tracer, synchronizer] = ["libdownbeat_trace.so", "libdownbeat_mpi.so"];
        let found = folders.iter().find(|folder| of(folder, tracer).is_file());
        let folder = found.or(folders.first()).ok_or_else(|| {
            Failure::option("--libraries", "the folder of this program is unknown")
        })?;
        let locate = |name: &str| {
            let path = of(folder, name);
            if !path.is_file() {
                let why = format!("there is no {}", path.display());
                return Err(Failure::option("--libraries", why));
            }
            std::path::absolute(path).map_err(Failure::run)
        };
        Ok(Self {
            tracer: locate(tracer)?,
            synchronizer: locate(synchronizer)?,
        })
    }
}

/// Returns the folders of libraries below the prefix where this program is installed.
fn beside_this_program() -> Vec<PathBuf> {
    let program = env::current_exe().and_then(std::fs::canonicalize);
    let program = program.unwrap_or_default();
    let Some(prefix) = program.ancestors().nth(2) else {
        return vec![];
    };
    let arch = format!("lib/{}-linux-gnu", env::consts::ARCH);
    let folders = ["lib", "lib64", &arch];
    folders.map(|folder| prefix.join(folder)).to_vec()
}
