//! The tables of ratios and other promised figures.

use std::process::Command;
use std::time::Duration;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, environment};

use crate::args::Installation;
use crate::checks::mpi::run_once;
use crate::install::{Builds, Installer, build_with, installed_mpi_program, installed_program};
use crate::mpi_builds::build_for;
use crate::steps::Step;
use crate::workspace::{MPI, OTF2, Workspace};

/// Benchmarks that print a table: package, name, and the number of ranks of those under
/// `mpirun`.
const TABLES: &str = include_str!("bench.txt");

/// The benchmark of installed programs, and its tables: the name of each, what it is of,
/// and the MPI library.
const PROGRAMS: &str = "downbeat-tests programs";
const OF_PROGRAMS: [(&str, &str, MpiLibrary); 5] = [
    (
        "crowded",
        "4 ranks that share cores over Open MPI",
        OPEN_MPI,
    ),
    ("recording", "costs of recording over Open MPI", OPEN_MPI),
    ("recording", "costs of recording over MPICH", MPICH),
    ("large-recording", "stages of a large recording", OPEN_MPI),
    (
        "reproducibility",
        "10 trials of 10 launches over Open MPI",
        OPEN_MPI,
    ),
];

/// Time limit of such a table, whose commands have limits of their own.
const LIMIT: Duration = Duration::from_secs(3 * 60 * 60);

/// The calibration of the measuring instrument, which fails if a limit is exceeded.
const INSTRUMENT: &str =
    "cargo run --profile dist -p downbeat-measure --example instrument -- full";

pub(crate) fn all(workspace: &Workspace, gate: bool, criterion: bool) -> Vec<Step<'_>> {
    let mut steps = vec![];
    for line in TABLES.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        steps.push(match words[..] {
            [package, name, ranks] => {
                let step = format!("table: {package} {name} over {}", OPEN_MPI.name());
                Step::new(step, move || {
                    bench_ranks(workspace, package, name, ranks, gate)
                })
            }
            _ => Step::new(format!("table: {line}"), move || {
                let mut bench = bench(workspace, line)?;
                bench.args(if gate { &["--", "--gate"][..] } else { &[] });
                shell::run(&mut bench)
            }),
        });
    }
    let instrument = command(INSTRUMENT);
    steps.push(Step::command(
        "table: downbeat-measure instrument",
        instrument,
    ));
    for (table, name, library) in OF_PROGRAMS {
        steps.push(Step::new(format!("table: {name}"), move || {
            bench_programs(workspace, table, library, gate)
        }));
    }
    if criterion {
        steps.extend(criterion_steps(workspace));
    }
    steps
}

/// Returns the benchmarks that print no table, which are criterion's.
fn criterion_steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = vec![];
    for package in &workspace.packages {
        for target in package.targets_of("bench") {
            let name = format!("{} {}", package.name, target.name);
            let is_table = TABLES.lines().any(|line| line.starts_with(&name));
            if !is_table && name != PROGRAMS {
                let step = format!("criterion: {name}");
                steps.push(Step::new(step, move || {
                    shell::run(&mut bench(workspace, &name)?)
                }));
            }
        }
    }
    steps
}

/// Returns the command of a benchmark, by its package and name, with all features of the
/// package but those that need libraries it does not use.
fn bench(workspace: &Workspace, bench: &str) -> Result<Command, String> {
    let (package, name) = bench.split_once(' ').unwrap_or_default();
    let package = workspace.packages.iter().find(|one| one.name == package);
    let package = package.ok_or_else(|| format!("there is no benchmark {bench}"))?;
    let mut targets = package.targets_of("bench");
    let target = targets.find(|target| target.name == name);
    let target = target.ok_or_else(|| format!("there is no benchmark {bench}"))?;
    let features = package.features.keys().filter(|feature| {
        ![MPI, OTF2].contains(&feature.as_str()) || target.required_features.contains(feature)
    });
    let mut command = command(&format!("cargo bench -p {} --bench {name}", package.name));
    command.args(features.flat_map(|feature| ["--features", feature]));
    Ok(command)
}

/// Runs a benchmark of ranks: two have a core each, more share cores.
fn bench_ranks(
    workspace: &Workspace,
    package: &str,
    name: &str,
    ranks: &str,
    gate: bool,
) -> Outcome {
    let ranks = ranks.parse().map_err(|why| format!("{ranks}: {why}"))?;
    let words = format!("cargo bench --no-run -p {package} --bench {name}");
    let mut program = Command::new(build_with(OPEN_MPI, workspace, &words)?.executable(name)?);
    program.args(gate.then_some("--gate"));
    let mpirun = match ranks {
        ..=2 => OPEN_MPI.mpirun(),
        _ => OPEN_MPI.oversubscribed_mpirun(),
    };
    run_once(&program, mpirun, ranks)
}

/// Builds programs as users have them, and prints a table of them.
fn bench_programs(workspace: &Workspace, table: &str, library: MpiLibrary, gate: bool) -> Outcome {
    let words = "cargo bench --profile dev -p downbeat-tests --bench programs --features mpi";
    let mut bench = command(words);
    build_for(library, workspace, &mut bench);
    bench.args(["--", table]).args(gate.then_some("--gate"));
    bench.env(environment::LIBRARY, library.suffix());
    if table.ends_with("recording") {
        let prefix = workspace.absolute(&format!("recorder/{}", library.suffix()))?;
        let wanted = Installation {
            mpi: vec![library],
            ..Installation::new(prefix)
        };
        Installer::new(workspace, &wanted, Builds::Installed).install_recorder()?;
        bench.env(environment::INSTALLED, &wanted.prefix);
    } else {
        let program = installed_mpi_program(workspace, library)?;
        bench.env(environment::MPI_PROGRAM, program);
        bench.env(environment::PROGRAM, installed_program(workspace)?);
    }
    shell::run_within(LIMIT, &mut bench)
}
