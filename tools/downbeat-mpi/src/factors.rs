//! Factors on which the results of an MPI job depend, as rank 0 knows them.

use downbeat_timers::skew::SkewSpec;
use std::env;

use downbeat_common::records::Factors;
use downbeat_common::{digest, machine};
use downbeat_records::{HOSTS, NODES};
use downbeat_sync::Comm;

use crate::clock::{CalibratedCounter, JobClockName};
use crate::ranks::JobRanks;

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

/// Returns the factors of every job: the program, the ranks and their binding, the MPI
/// library and the clock.
pub(crate) fn for_job(ranks: &JobRanks<'_>, clock: JobClockName) -> Factors {
    let library = mpi::environment::library_version().unwrap_or_else(|_| "unknown".to_owned());
    let library = library
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .replace('\n', "; ");
    Factors::default()
        .with(
            "program",
            &concat!("downbeat-mpi ", env!("CARGO_PKG_VERSION")),
        )
        .with("ranks", &ranks.all.size())
        .with("nodes", &ranks.nodes())
        .with("binding", &ranks.binding())
        .with("mpi", &library)
        .with(
            "mpicc",
            &downbeat_measure::mpi::COMPILER.unwrap_or("unknown"),
        )
        .with("clock", &clock)
}

/// Adds where the job runs to the facts: a batch system may continue it elsewhere.
pub(crate) fn add_place(ranks: &JobRanks<'_>, facts: Factors) -> Factors {
    let mut hosts = ranks.hosts.clone();
    hosts.dedup();
    facts
        .with(HOSTS, &hosts.join(" "))
        .with("cores of ranks", &ranks.cores.join(" "))
        .with("frequencies", &ranks.frequencies.join(" "))
        .with(NODES, &ranks.kinds_of_nodes())
}

/// Returns the factors of every job, with the machine of rank 0 and the configuration of
/// MPI, for experiments that others can repeat.
pub(crate) fn for_experiment(ranks: &JobRanks<'_>, clock: JobClockName) -> Factors {
    let factors = machine::factors(for_job(ranks, clock), &ranks.governors());
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

/// Adds the artificial errors of the clocks, if there are any, with those of each rank.
pub(crate) fn add_skew(ranks: &JobRanks<'_>, spec: Option<&SkewSpec>, factors: Factors) -> Factors {
    let Some(spec) = spec else { return factors };
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

/// Adds the rate of the counter, if it was calibrated; it differs with each calibration.
pub(crate) fn add_counter(counter: Option<&CalibratedCounter>, factors: Factors) -> Factors {
    let Some(counter) = counter else {
        return factors;
    };
    let name = counter.time.clock.name();
    let uncertainty_ppm = counter.time.rate_error * 1e6;
    let factors = factors
        .with(&format!("{name}_hz"), &counter.rate().hz())
        .with(&format!("{name}_uncertainty_ppm"), &uncertainty_ppm);
    let counters = counter.agreement.unwrap_or_default();
    let within = counters
        .within
        .map(|within| ("counters_within_ns", within.as_nanos() as f64));
    let swapped = counters.swapped.map(|swapped| {
        [
            ("swapped_counters_ns", swapped.counters),
            ("swapped_method_ns", swapped.method),
            ("swapped_standard_error_ns", swapped.error),
        ]
    });
    let figures = within.into_iter().chain(swapped.into_iter().flatten());
    figures.fold(factors, |factors, (name, value)| factors.with(name, &value))
}
