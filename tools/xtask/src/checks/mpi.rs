//! Checks that need MPI, against each MPI library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, environment};

use crate::checks::{docs, lints};
use crate::features::powerset;
use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::{MPI, Package, Target, Workspace};

/// The binary that `mpirun` starts.
const MPI_PROGRAM: &str = "downbeat-mpi";

/// The test target that starts jobs of that program, and the list of its modules.
const MPI_PROGRAM_TESTS: &str = "mpi_program";
const MPI_PROGRAM_MODULES: &str = "tests/tests/mpi_program/main.rs";

/// The module of these tests that MPICH is not asked to pass: its launcher tends to hang over TCP with three ranks and more.
const OPEN_MPI_ONLY: &str = "several_hosts";

/// Even, odd, a power of two and not: algorithms have remainders.
const TEST_RANKS: [u32; 7] = [1, 2, 3, 4, 5, 7, 8];
const EXAMPLE_RANKS: [u32; 2] = [2, 3];

/// A rank that waits for another for ever is what most often goes wrong.
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for package in with_mpi(workspace) {
        let sets = powerset(package)
            .into_iter()
            .filter(|set| set.contains(MPI));
        steps.extend(sets.map(|set| {
            lints::step(package, &set, |clippy| {
                build_for(OPEN_MPI, workspace, clippy);
            })
        }));
    }
    steps.extend(documentation_and_tests(workspace));
    for library in [OPEN_MPI, MPICH] {
        steps.push(Step::new(
            format!("{}: all programs build", library.name()),
            move || programs(library, workspace).map(drop),
        ));
        steps.extend(mpi_tests_and_examples(workspace, library));
    }
    match modules() {
        Ok(modules) => {
            for module in modules {
                let libraries = [OPEN_MPI, MPICH].into_iter();
                let libraries =
                    libraries.filter(|library| *library == OPEN_MPI || module != OPEN_MPI_ONLY);
                steps
                    .extend(libraries.map(|library| mpi_program_step(workspace, library, &module)));
            }
        }
        Err(why) => steps.push(Step::new("MPI program", || Err(why))),
    }
    steps
}

/// The modules of the MPI program's tests.
fn modules() -> Result<Vec<String>, String> {
    let main = fs::read_to_string(MPI_PROGRAM_MODULES)
        .map_err(|why| format!("{MPI_PROGRAM_MODULES}: {why}"))?;
    let modules = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    // What the tests share.
    Ok(modules
        .filter(|module| *module != "job")
        .map(str::to_owned)
        .collect())
}

/// The tests of the MPI program in one module, under one library.
fn mpi_program_step<'a>(workspace: &'a Workspace, library: MpiLibrary, module: &str) -> Step<'a> {
    let name = format!("MPI program: {module} over {}", library.name());
    let filter = format!("{module}::");
    Step::new(name, move || {
        let downbeat = Programs::build(&mut command(
            "cargo build -p downbeat-cli --bin downbeat --features otf2",
        ))?;
        let programs = programs(library, workspace)?;
        let mut tests = Command::new(programs.executable(MPI_PROGRAM_TESTS)?);
        tests
            .arg(filter)
            .env(environment::LIBRARY, library.suffix())
            .env(environment::MPI_PROGRAM, programs.executable(MPI_PROGRAM)?)
            .env(environment::PROGRAM, downbeat.executable("downbeat")?);
        let said = shell::show_and_read(shell::LIMIT, &mut tests)?;
        if said.contains("running 0 tests") {
            return Err("the module has no tests".to_owned());
        }
        Ok(())
    })
}

/// A benchmark that prints a table: on two ranks they have a core each, and more ranks share cores.
pub(crate) fn bench<'a>(
    workspace: &'a Workspace,
    package: &'a str,
    name: &'a str,
    ranks: u32,
    gate: bool,
) -> Step<'a> {
    Step::new(
        format!("table: {package} {name} over {}", OPEN_MPI.name()),
        move || {
            let package = workspace
                .packages
                .iter()
                .find(|found| found.name == package);
            let target = package
                .and_then(|package| package.targets_of("bench").find(|bench| bench.name == name));
            let (package, target) = package
                .zip(target)
                .ok_or(format!("there is no benchmark {name}"))?;
            let mut program = Command::new(build_one(
                "cargo bench --no-run",
                workspace,
                OPEN_MPI,
                package,
                target,
            )?);
            if gate {
                program.arg("--gate");
            }
            let mpirun = if ranks > 2 {
                OPEN_MPI.oversubscribed_mpirun()
            } else {
                OPEN_MPI.mpirun()
            };
            run_once(&program, mpirun, ranks)
        },
    )
}

/// The packages that can use MPI.
fn with_mpi(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace
        .packages
        .iter()
        .filter(|package| package.has_mpi())
}

/// That the documentation of what only exists with MPI builds, and that its examples and unit tests do and pass.
fn documentation_and_tests<'a>(workspace: &Workspace) -> [Step<'a>; 3] {
    let of_all = |words| for_all(OPEN_MPI, workspace, words);
    [
        Step::command(
            "documentation: all features",
            docs::strict(of_all("cargo doc --no-deps --keep-going --all-features")),
        ),
        Step::command(
            "unit tests: all features",
            of_all("cargo test --lib --no-fail-fast --all-features"),
        ),
        Step::command(
            "documentation's examples: all features",
            of_all("cargo test --doc --no-fail-fast --all-features"),
        ),
    ]
}

/// The tests that run under `mpirun`, and the examples that require MPI.
fn mpi_tests_and_examples(workspace: &Workspace, library: MpiLibrary) -> Vec<Step<'_>> {
    let of_kind = |kind, ranks: &'static [u32]| {
        let targets = with_mpi(workspace).flat_map(move |package| package.targets_of(kind));
        targets
            .filter(|target| target.needs_mpi() && target.name != MPI_PROGRAM_TESTS)
            .map(move |target| {
                Step::new(
                    format!("{}: {} {}", library.name(), kind, target.name),
                    move || {
                        run(
                            &programs(library, workspace)?.executable(&target.name)?,
                            library,
                            ranks,
                        )
                    },
                )
            })
    };
    of_kind("test", &TEST_RANKS)
        .chain(of_kind("example", &EXAMPLE_RANKS))
        .collect()
}

/// Makes cargo build for this library, apart from builds for others.
fn build_for(library: MpiLibrary, workspace: &Workspace, cargo: &mut Command) {
    cargo
        .arg("--target-dir")
        .arg(workspace.variant(library.suffix()))
        .env("MPICC", format!("mpicc.{}", library.suffix()));
}

/// Makes cargo work on all packages that can use MPI at once, so that their common dependencies have one set of features and
/// are built once.
fn for_all(library: MpiLibrary, workspace: &Workspace, words: &str) -> Command {
    let mut cargo = command(words);
    cargo.args(with_mpi(workspace).flat_map(|package| ["-p", &package.name]));
    build_for(library, workspace, &mut cargo);
    cargo
}

/// Builds the tests, the examples and the MPI program.
fn programs(library: MpiLibrary, workspace: &Workspace) -> Result<Programs, String> {
    let mut build = for_all(library, workspace, "cargo build");
    for package in with_mpi(workspace) {
        let targets = package
            .targets
            .iter()
            .filter(|target| target.needs_mpi() && target.kind != "bench");
        for target in targets {
            build
                .args([&format!("--{}", target.kind), &target.name])
                .args(target.features_of(package));
        }
    }
    Programs::build(&mut build)
}

/// The MPI program as its users build it.
pub(crate) fn released_mpi_program(
    workspace: &Workspace,
    library: MpiLibrary,
) -> Result<PathBuf, String> {
    let programs = with_mpi(workspace)
        .flat_map(|package| package.targets_of("bin").map(move |bin| (package, bin)));
    let found = programs
        .into_iter()
        .find(|(_, bin)| bin.name == MPI_PROGRAM);
    let (package, program) = found.ok_or(format!("there is no {MPI_PROGRAM}"))?;
    build_one(
        "cargo build --release",
        workspace,
        library,
        package,
        program,
    )
}

fn build_one(
    words: &str,
    workspace: &Workspace,
    library: MpiLibrary,
    package: &Package,
    program: &Target,
) -> Result<PathBuf, String> {
    let mut build = command(words);
    build
        .args([
            "-p",
            &package.name,
            &format!("--{}", program.kind),
            &program.name,
        ])
        .args(program.features_of(package));
    build_for(library, workspace, &mut build);
    Programs::build(&mut build)?.executable(&program.name)
}

/// Runs the program under each of these numbers of ranks, also after a failure.
fn run(program: &Path, library: MpiLibrary, ranks: &[u32]) -> Outcome {
    let run_once = |ranks| {
        run_once(
            &Command::new(program),
            library.oversubscribed_mpirun(),
            ranks,
        )
    };
    let failures: Vec<String> = ranks
        .iter()
        .filter_map(|&ranks| {
            run_once(ranks)
                .err()
                .map(|why| format!("{ranks} ranks: {why}"))
        })
        .collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("; "))
    }
}

fn run_once(program: &Command, mut mpirun: Command, ranks: u32) -> Outcome {
    mpirun
        .args(["-np", &ranks.to_string()])
        .arg(program.get_program())
        .args(program.get_args());
    saw_its_ranks(&shell::show_and_read(RUN_LIMIT, &mut mpirun)?, ranks)
}

/// Wants `rank 0 of N` once: a program that was linked to another library runs as N jobs of one rank each, and passes
/// every test of its own.
fn saw_its_ranks(said: &str, ranks: u32) -> Outcome {
    let jobs: Vec<&str> = said
        .split("rank 0 of ")
        .skip(1)
        .map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap_or_default()
        })
        .collect();
    match jobs.as_slice() {
        [size] if *size == ranks.to_string() => Ok(()),
        [] => Err(format!("nobody said `rank 0 of {ranks}`")),
        sizes => Err(format!(
            "wanted one job of {ranks} ranks, found jobs of {}",
            sizes.join(" + ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_noticed() {
        assert_eq!(
            saw_its_ranks("rank 1 of 3\nrank 0 of 3: fine\nrank 2 of 3\n", 3),
            Ok(())
        );
        assert!(saw_its_ranks("rank 0 of 13\n", 3).is_err());
        assert!(saw_its_ranks("fine\n", 3).is_err());
        let singletons = saw_its_ranks("rank 0 of 1\nrank 0 of 1\n", 2);
        assert_eq!(
            singletons,
            Err("wanted one job of 2 ranks, found jobs of 1 + 1".into())
        );
    }
}
