//! Whatever needs MPI, against each MPI library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::checks::{
    bench_input, bench_program, bench_records, cluster, docs, lints, rank_program, trace_correct,
};
use crate::features::powerset;
use crate::programs::Programs;
use crate::shell::{self, command};
use crate::steps::{Outcome, Step};
use crate::workspace::{MPI, Package, Target, Workspace};

/// An MPI library as Debian installs it: side by side with others, so that every program's name has a suffix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Library {
    name: &'static str,
    suffix: &'static str,
    /// Shared memory only.
    transport: &'static str,
    /// More ranks than cores, where those that wait let others run.
    crowded: &'static str,
    /// Nobody waits a second for ranks to end that are told to.
    hasty: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

pub(crate) const OPEN_MPI: Library = Library {
    name: "Open MPI",
    suffix: "openmpi",
    transport: "--mca btl self,vader",
    crowded: "--oversubscribe --mca mpi_yield_when_idle 1",
    hasty: "--mca odls_base_sigkill_timeout 0",
    // Wants to hear twice that root is meant.
    environment: &[
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ],
};
pub(crate) const MPICH: Library = Library {
    name: "MPICH",
    suffix: "mpich",
    transport: "",
    crowded: "",
    hasty: "",
    environment: &[],
};

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
        steps.extend(
            sets.map(|set| lints::step(package, &set, |clippy| OPEN_MPI.build(workspace, clippy))),
        );
    }
    steps.extend(documentation_and_tests(workspace));
    for library in [OPEN_MPI, MPICH] {
        let build = move || library.programs(workspace).map(drop);
        steps.push(Step::new(
            format!("{}: all programs build", library.name),
            build,
        ));
        steps.extend(programs(workspace, library));
    }
    steps.extend(rank_program_steps(workspace));
    steps
}

/// Takes the program, and a folder for what it writes.
type Check = fn(&Path, Library, &Path) -> Outcome;

/// The rank program under both libraries, and across several hosts.
fn rank_program_steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let step = |library: Library, what: &str, check: Check| {
        Step::new(format!("{}: {what}", library.name), move || {
            let program = library
                .programs(workspace)?
                .executable(rank_program::NAME)?;
            check(&program, library, &workspace.variant(library.suffix))
        })
    };
    let of_both: [(&str, Check); 7] = [
        ("the rank program", rank_program::check),
        ("bench by every preset", bench_program::by_presets),
        ("bench of every operation", bench_program::of_operations),
        ("bench with bad input", bench_input::check),
        ("bench that is cut short", bench_records::cut_short),
        ("bench records after kill -9", bench_records::killed),
        ("correcting a trace", trace_correct::check),
    ];
    let of_both = of_both
        .into_iter()
        .flat_map(|(what, check)| [OPEN_MPI, MPICH].map(|of| step(of, what, check)));
    of_both
        // The launcher of MPICH tends to hang over TCP with three ranks and more.
        .chain([step(
            OPEN_MPI,
            "several hosts on one machine",
            cluster::check,
        )])
        .collect()
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
        format!("table: {package} {name} over {}", OPEN_MPI.name),
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
                OPEN_MPI.crowded_mpirun()
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
    let of_all = |words| OPEN_MPI.for_all(workspace, words);
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

/// The tests and examples that require MPI.
fn programs(workspace: &Workspace, library: Library) -> Vec<Step<'_>> {
    let of_kind = |kind, ranks: &'static [u32]| {
        let programs = with_mpi(workspace).flat_map(move |package| package.targets_of(kind));
        programs
            .filter(|program| program.needs_mpi())
            .map(move |program| {
                Step::new(
                    format!("{}: {} {}", library.name, kind, program.name),
                    move || {
                        run(
                            &library.programs(workspace)?.executable(&program.name)?,
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

impl Library {
    /// Makes cargo build for this library, apart from what it builds for others.
    fn build(self, workspace: &Workspace, cargo: &mut Command) {
        cargo
            .arg("--target-dir")
            .arg(workspace.variant(self.suffix))
            .env("MPICC", format!("mpicc.{}", self.suffix));
    }

    /// Makes cargo do it for all packages that can use MPI at once: what they depend on has the features that any of them
    /// wants. One by one, each would have its own, and its own build.
    fn for_all(self, workspace: &Workspace, words: &str) -> Command {
        let mut cargo = command(words);
        cargo.args(with_mpi(workspace).flat_map(|package| ["-p", &package.name]));
        self.build(workspace, &mut cargo);
        cargo
    }

    /// Builds the tests, examples and the rank program.
    fn programs(self, workspace: &Workspace) -> Result<Programs, String> {
        let mut build = self.for_all(workspace, "cargo build");
        for package in with_mpi(workspace) {
            let programs = package
                .targets
                .iter()
                .filter(|target| target.needs_mpi() && target.kind != "bench");
            for program in programs {
                build
                    .args([&format!("--{}", program.kind), &program.name])
                    .args(program.features_of(package));
            }
        }
        Programs::build(&mut build)
    }

    /// Its launcher, for ranks on this machine that have a core each,
    pub(crate) fn mpirun(self) -> Command {
        let mut mpirun = command(&format!("mpirun.{} {}", self.suffix, self.transport));
        mpirun.envs(self.environment());
        mpirun
    }

    /// or share cores,
    pub(crate) fn crowded_mpirun(self) -> Command {
        let mut mpirun = self.patient_mpirun();
        mpirun.args(self.hasty.split_whitespace());
        mpirun
    }

    /// and are given time to end.
    pub(crate) fn patient_mpirun(self) -> Command {
        let mut mpirun = self.mpirun();
        mpirun.args(self.crowded.split_whitespace());
        mpirun
    }

    /// As people call it.
    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    /// What its launcher wants to find in the environment.
    pub(crate) fn environment(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.environment.iter().copied()
    }
}

/// The rank program as its users build it.
pub(crate) fn released_rank_program(
    workspace: &Workspace,
    library: Library,
) -> Result<PathBuf, String> {
    let programs = with_mpi(workspace)
        .flat_map(|package| package.targets_of("bin").map(move |bin| (package, bin)));
    let found = programs
        .into_iter()
        .find(|(_, bin)| bin.name == rank_program::NAME);
    let (package, program) = found.ok_or(format!("there is no {}", rank_program::NAME))?;
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
    library: Library,
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
    library.build(workspace, &mut build);
    Programs::build(&mut build)?.executable(&program.name)
}

/// Runs the program under each of these numbers of ranks, also after a failure.
fn run(program: &Path, library: Library, ranks: &[u32]) -> Outcome {
    let run_once = |ranks| run_once(&Command::new(program), library.crowded_mpirun(), ranks);
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
