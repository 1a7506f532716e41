//! The tables of ratios and other promised figures.

mod crowded;
mod large_recording;
mod recorder;
mod recording;
mod reproducibility;

use std::process::Command;

use crate::checks::mpi;
use crate::mpi_builds::INSTALLED_PROFILE;
use crate::steps::Step;
use crate::workspace::{MPI, OTF2, Workspace};
use downbeat_launch::command::command;
use downbeat_launch::mpi::{MPICH, OPEN_MPI};

/// Benchmarks that print a table and know `--gate`: package and name.
const RATIOS: [(&str, &str); 17] = [
    ("downbeat-timers", "ratios"),
    ("downbeat-timers", "calibration"),
    ("downbeat-sync", "self_exchange"),
    ("downbeat-sync", "simulator"),
    ("downbeat-sync", "stated_bounds"),
    ("downbeat-sync", "cube"),
    ("downbeat-measure", "collection"),
    ("downbeat-trace", "trace"),
    ("downbeat-trace", "ranks"),
    ("downbeat-records", "records"),
    ("downbeat-regions", "regions"),
    ("downbeat-otf2", "archive"),
    ("downbeat", "timesync"),
    ("downbeat-capi", "read"),
    ("downbeat-cli", "clocks"),
    ("downbeat-cli", "keep"),
    ("downbeat-cli", "otf2"),
];

/// Benchmarks under `mpirun` that print a table, with their numbers of ranks: two ranks
/// have a core each.
const MPI_RATIOS: [(&str, &str, u32); 3] = [
    ("downbeat-sync", "mpi_exchange", 2),
    ("downbeat-measure", "round_time", 2),
    ("downbeat-regions", "regions_mpi", 16),
];

/// The calibration of the measuring instrument, which fails if a limit is exceeded.
const INSTRUMENT: &str = "-p downbeat-measure --example instrument -- full";

pub(crate) fn all(workspace: &Workspace, gate: bool, criterion: bool) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = RATIOS
        .iter()
        .map(|(package, name)| ratios(workspace, package, name, gate))
        .collect();
    steps.extend(
        MPI_RATIOS
            .iter()
            .map(|(package, name, ranks)| mpi::bench(workspace, package, name, *ranks, gate)),
    );
    steps.push(Step::command(
        "table: downbeat-measure instrument",
        command(&format!(
            "cargo run --profile {INSTALLED_PROFILE} {INSTRUMENT}"
        )),
    ));
    steps.push(crowded::step(workspace, gate));
    steps.extend([OPEN_MPI, MPICH].map(|library| recording::step(workspace, library, gate)));
    steps.push(large_recording::step(workspace, gate));
    steps.push(reproducibility::step(workspace, gate));
    if criterion {
        steps.extend(others(workspace));
    }
    steps
}

fn ratios<'a>(workspace: &Workspace, package: &str, name: &str, gate: bool) -> Step<'a> {
    let mut bench = bench(workspace, package, name);
    if gate {
        bench.args(["--", "--gate"]);
    }
    Step::command(format!("table: {package} {name}"), bench)
}

/// Returns the benchmarks that print no table, which are criterion's.
fn others(workspace: &Workspace) -> impl Iterator<Item = Step<'_>> {
    let benches = workspace.packages.iter().flat_map(|package| {
        package
            .targets_of("bench")
            .map(|bench| (package.name.as_str(), bench.name.as_str()))
    });
    let is_table = |package: &str, name: &str| {
        RATIOS.contains(&(package, name))
            || MPI_RATIOS
                .iter()
                .any(|mpi_bench| (mpi_bench.0, mpi_bench.1) == (package, name))
    };
    let others = benches.filter(move |(package, name)| !is_table(package, name));
    others.map(|(package, name)| {
        Step::command(
            format!("criterion: {package} {name}"),
            bench(workspace, package, name),
        )
    })
}

/// Returns the command of a benchmark, with all features of its package but those that
/// need libraries it does not use.
fn bench(workspace: &Workspace, package: &str, name: &str) -> Command {
    let packages = || {
        workspace
            .packages
            .iter()
            .filter(|known| known.name == package)
    };
    let benches = packages()
        .flat_map(|known| known.targets_of("bench"))
        .filter(|bench| bench.name == name);
    let needed: Vec<&String> = benches.flat_map(|bench| &bench.required_features).collect();
    let here =
        |feature: &&String| ![MPI, OTF2].contains(&feature.as_str()) || needed.contains(feature);
    let features = packages()
        .flat_map(|known| known.features.keys())
        .filter(here);
    let mut bench = command(&format!("cargo bench -p {package} --bench {name}"));
    bench.args(features.flat_map(|feature| ["--features", feature]));
    bench
}
