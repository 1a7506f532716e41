//! What the results of an MPI job depend on, as rank 0 knows it.

use std::env;

use downbeat_common::records::Factors;
use downbeat_common::{SkewSpec, machine};
use downbeat_sync::Comm;

use crate::clock::{Kind, Tsc};
use crate::ranks::Ranks;

/// Beginnings of the names of variables by which users tell MPI libraries and networks what to do. Launchers set others,
/// which differ from one job to the next.
const TOLD_BY_USERS: [&str; 15] = [
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

/// One that begins like these, but is a launcher's: where it runs.
const TOLD_BY_LAUNCHERS: &str = "MPIR_CVAR_CH3_INTERFACE_HOSTNAME";

/// Of the job and where it runs.
pub(crate) fn of_job(ranks: &Ranks<'_>, clock: Kind) -> Factors {
    let library = mpi::environment::library_version().unwrap_or_else(|_| "unknown".to_owned());
    let library = library
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .replace('\n', "; ");
    let mut hosts = ranks.hosts.clone();
    hosts.dedup();
    Factors::default()
        .with(
            "program",
            &concat!("downbeat-mpi ", env!("CARGO_PKG_VERSION")),
        )
        .with("ranks", &ranks.all.size())
        .with("nodes", &ranks.nodes())
        .with("hosts", &hosts.join(" "))
        .with("mpi", &library)
        .with("clock", &clock)
}

/// Of the machine of rank 0 and of what was told to MPI, besides: for experiments that others are to repeat.
pub(crate) fn of_machine(ranks: &Ranks<'_>, factors: Factors) -> Factors {
    let mut factors = machine::factors(factors).with("cores of ranks", &ranks.cores.join(" "));
    let mut told: Vec<(String, String)> = env::vars_os()
        .filter_map(|(name, value)| {
            Some((
                name.into_string().ok()?,
                value.to_string_lossy().into_owned(),
            ))
        })
        .filter(|(name, _)| {
            TOLD_BY_USERS
                .iter()
                .any(|beginning| name.starts_with(beginning))
        })
        .filter(|(name, _)| name != TOLD_BY_LAUNCHERS)
        .collect();
    told.sort();
    for (name, value) in told {
        factors = factors.with(&format!("env {name}"), &value);
    }
    factors
}

/// Of clocks that are made wrong on purpose: of each how much.
pub(crate) fn of_skew(ranks: &Ranks<'_>, spec: &SkewSpec, factors: Factors) -> Factors {
    let mut factors = factors.with("skew", spec);
    for (rank, place) in (0..).zip(&ranks.places) {
        let skew = spec.for_clock(if spec.is_per_node() { place.node } else { rank });
        let text = format!(
            "offset {} ns, drift {} ppm",
            skew.offset.as_nanos(),
            skew.drift * 1e6
        );
        factors = factors.with(&format!("skew of rank {rank}"), &text);
    }
    factors
}

/// Of the time stamp counter, if it was calibrated: another each time.
pub(crate) fn of_tsc(tsc: Option<&Tsc>, factors: Factors) -> Factors {
    let Some(tsc) = tsc else { return factors };
    factors
        .with("tsc_hz", &tsc.rate.hz())
        .with("tsc_uncertainty_ppm", &(tsc.uncertainty * 1e6))
}
