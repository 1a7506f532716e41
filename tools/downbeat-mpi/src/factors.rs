//! What the results of an MPI job depend on, as rank 0 knows it.

use std::{env, fs};

use downbeat_common::SkewSpec;
use downbeat_common::records::Factors;
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

/// Of the job and where it runs.
pub(crate) fn of_job(ranks: &Ranks<'_>, clock: Kind) -> Factors {
    let library = mpi::environment::library_version().unwrap_or_else(|_| "unknown".to_owned());
    let library = library.trim_matches(|c: char| c.is_whitespace() || c == '\0').replace('\n', "; ");
    let mut hosts = ranks.hosts.clone();
    hosts.dedup();
    Factors::default()
        .with("program", &concat!("downbeat-mpi ", env!("CARGO_PKG_VERSION")))
        .with("ranks", &ranks.all.size())
        .with("nodes", &ranks.nodes())
        .with("hosts", &hosts.join(" "))
        .with("mpi", &library)
        .with("clock", &clock)
}

/// Of the machine of rank 0 and of what was told to MPI, besides: for experiments that others are to repeat.
pub(crate) fn of_machine(ranks: &Ranks<'_>, factors: Factors) -> Factors {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut factors = factors
        .with("build", &build)
        .with("kernel", &line_of("/proc/sys/kernel/osrelease"))
        .with("processor", &processor())
        .with("governor", &line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
        .with("turbo", &turbo())
        .with("cores of ranks", &ranks.cores.join(" "));
    let mut told: Vec<(String, String)> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(|(name, _)| TOLD_BY_USERS.iter().any(|beginning| name.starts_with(beginning)))
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
        let skew = spec.of(if spec.is_per_node() { place.node } else { rank });
        let text = format!("offset {} ns, drift {} ppm", skew.offset.as_nanos(), skew.drift * 1e6);
        factors = factors.with(&format!("skew of rank {rank}"), &text);
    }
    factors
}

/// Of one launch only: not what results depend on, but what is needed to understand them.
pub(crate) fn of_launch(seed: u64, tsc: Option<&Tsc>) -> Factors {
    let facts = Factors::default().with("started", &downbeat_common::now()).with("seed", &seed);
    match tsc {
        Some(tsc) => facts.with("tsc_hz", &tsc.rate.hz()).with("tsc_uncertainty_ppm", &(tsc.uncertainty * 1e6)),
        None => facts,
    }
}

/// What the system says in a file of one line.
fn line_of(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Two kernel drivers tell it in two ways.
fn turbo() -> &'static str {
    let says = |path, yes| fs::read_to_string(path).ok().map(|text| text.trim() == yes);
    let intel = || says("/sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    match says("/sys/devices/system/cpu/cpufreq/boost", "1").or_else(intel) {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}
