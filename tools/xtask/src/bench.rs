//! The tables of ratios and other promised figures; every room adds its own.

mod crowded;
mod reproducibility;

use std::process::Command;

use crate::checks::mpi;
use crate::steps::Step;
use crate::workspace::{MPI, OTF2, Workspace};
use downbeat_launch::command::command;

/// Benchmarks that print a table and know `--gate`: package and name.
const RATIOS: [(&str, &str); 9] = [
    ("downbeat-timers", "ratios"),
    ("downbeat-timers", "calibration"),
    ("downbeat-sync", "self_exchange"),
    ("downbeat-sync", "simulator"),
    ("downbeat-trace", "trace"),
    ("downbeat-records", "records"),
    ("downbeat-regions", "regions"),
    ("downbeat-cli", "clocks"),
    ("downbeat-cli", "otf2"),
];

/// The same for programs that run under `mpirun`, and on how many ranks: each has a core, if there are two.
const MPI_RATIOS: [(&str, &str, u32); 3] = [
    ("downbeat-sync", "mpi_exchange", 2),
    ("downbeat-measure", "round_time", 2),
    ("downbeat-regions", "regions_mpi", 16),
];

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
    steps.push(crowded::step(workspace, gate));
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

/// All benchmarks that print no table are criterion's.
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
                .any(|of_mpi| (of_mpi.0, of_mpi.1) == (package, name))
    };
    let others = benches.filter(move |(package, name)| !is_table(package, name));
    others.map(|(package, name)| {
        Step::command(
            format!("criterion: {package} {name}"),
            bench(workspace, package, name),
        )
    })
}

/// A benchmark, with all that its package can do without libraries that may not be there and that it does not need.
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
