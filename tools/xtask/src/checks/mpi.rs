//! Whatever needs MPI, against each MPI library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::checks::{bench_input, bench_program, bench_records, cluster, docs, lints, rank_program, trace_correct};
use crate::features::powerset;
use crate::shell::{self, command};
use crate::steps::{Outcome, Step};
use crate::workspace::{MPI, Package, Target, Workspace};

/// An MPI library as Debian installs it: side by side with others, so that every program's name has a suffix.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    name: &'static str,
    suffix: &'static str,
    /// Shared memory only.
    transport: &'static str,
    /// More ranks than cores, where those that wait let others run. Nobody waits a second for ranks to end that are told to.
    crowded: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

pub(crate) const OPEN_MPI: Library = Library {
    name: "Open MPI",
    suffix: "openmpi",
    transport: "--mca btl self,vader",
    crowded: "--oversubscribe --mca mpi_yield_when_idle 1 --mca odls_base_sigkill_timeout 0",
    // Wants to hear twice that root is meant.
    environment: &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")],
};
const MPICH: Library = Library { name: "MPICH", suffix: "mpich", transport: "", crowded: "", environment: &[] };

/// Even, odd, a power of two and not: algorithms have remainders.
const TEST_RANKS: [u32; 7] = [1, 2, 3, 4, 5, 7, 8];
const EXAMPLE_RANKS: [u32; 2] = [2, 3];

/// A rank that waits for another for ever is what most often goes wrong.
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let packages = || workspace.packages.iter().filter(|package| package.has_mpi());
    let mut steps = Vec::new();
    for package in packages() {
        let sets = powerset(package).into_iter().filter(|set| set.contains(MPI));
        steps.extend(sets.map(|set| lints::step(package, &set, |clippy| OPEN_MPI.build(workspace, clippy))));
        steps.extend(documentation_and_tests(workspace, package));
    }
    for library in [OPEN_MPI, MPICH] {
        for package in packages() {
            steps.extend(programs(workspace, library, package));
        }
    }
    for package in packages() {
        for program in package.targets_of("bin").filter(|program| program.name == rank_program::NAME) {
            steps.extend(rank_program_steps(workspace, package, program));
        }
    }
    steps
}

/// Takes the program, and a folder for what it writes.
type Check = fn(&Path, Library, &Path) -> Outcome;

/// The rank program under both libraries, and across several hosts.
fn rank_program_steps<'a>(workspace: &'a Workspace, package: &'a Package, program: &'a Target) -> Vec<Step<'a>> {
    let step = |library: Library, what: &str, check: Check| {
        Step::new(format!("{}: {what}", library.name), move || {
            let executable = executable(workspace, library, package, program)?;
            check(&executable, library, &workspace.variant(library.suffix))
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
    let of_both = of_both.into_iter().flat_map(|(what, check)| [OPEN_MPI, MPICH].map(|of| step(of, what, check)));
    of_both
        // The launcher of MPICH tends to hang over TCP with three ranks and more.
        .chain([step(OPEN_MPI, "several hosts on one machine", cluster::check)])
        .collect()
}

/// A benchmark that prints a table: on two ranks they have a core each, and more ranks share cores.
pub(crate) fn bench<'a>(workspace: &'a Workspace, package: &'a str, name: &'a str, ranks: u32, gate: bool) -> Step<'a> {
    Step::new(format!("table: {package} {name} over {}", OPEN_MPI.name), move || {
        let package = workspace.packages.iter().find(|found| found.name == package);
        let target = package.and_then(|package| package.targets_of("bench").find(|bench| bench.name == name));
        let (package, target) = package.zip(target).ok_or(format!("there is no benchmark {name}"))?;
        let mut program = Command::new(executable(workspace, OPEN_MPI, package, target)?);
        if gate {
            program.arg("--gate");
        }
        let mpirun = if ranks > 2 { OPEN_MPI.crowded_mpirun() } else { OPEN_MPI.mpirun() };
        run_once(&program, mpirun, ranks)
    })
}

/// That the documentation of what only exists with MPI builds, and that its examples and unit tests do and pass.
fn documentation_and_tests<'a>(workspace: &Workspace, package: &Package) -> Vec<Step<'a>> {
    let name = &package.name;
    let mut doc = docs::strict(command(&format!("cargo doc --no-deps --all-features -p {name}")));
    OPEN_MPI.build(workspace, &mut doc);
    let mut steps = vec![Step::command(format!("documentation: {name} with all features"), doc)];
    // A program's documentation has no examples that could be run.
    if package.targets_of("lib").next().is_some() {
        let mut tests = command(&format!("cargo test --lib --all-features -p {name}"));
        OPEN_MPI.build(workspace, &mut tests);
        steps.push(Step::command(format!("unit tests: {name} with all features"), tests));
        let mut examples = command(&format!("cargo test --doc --all-features -p {name}"));
        OPEN_MPI.build(workspace, &mut examples);
        steps.push(Step::command(format!("documentation's examples: {name} with all features"), examples));
    }
    steps
}

/// The package's tests and examples that require MPI.
fn programs<'a>(workspace: &'a Workspace, library: Library, package: &'a Package) -> Vec<Step<'a>> {
    let of_kind = |kind, ranks: &'static [u32]| {
        package.targets_of(kind).filter(|program| program.needs_mpi()).map(move |program| {
            Step::new(format!("{}: {} {}", library.name, kind, program.name), move || {
                run(&executable(workspace, library, package, program)?, library, ranks)
            })
        })
    };
    of_kind("test", &TEST_RANKS).chain(of_kind("example", &EXAMPLE_RANKS)).collect()
}

impl Library {
    /// Makes cargo build for this library, apart from what it builds for others.
    fn build(self, workspace: &Workspace, cargo: &mut Command) {
        cargo.arg("--target-dir").arg(workspace.variant(self.suffix)).env("MPICC", format!("mpicc.{}", self.suffix));
    }

    /// Its launcher, for ranks on this machine that have a core each,
    pub(crate) fn mpirun(self) -> Command {
        let mut mpirun = command(&format!("mpirun.{} {}", self.suffix, self.transport));
        mpirun.envs(self.environment());
        mpirun
    }

    /// or share cores.
    pub(crate) fn crowded_mpirun(self) -> Command {
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

/// Builds a program, and asks cargo where it is.
fn executable(workspace: &Workspace, library: Library, package: &Package, program: &Target) -> Result<PathBuf, String> {
    let verb = if program.kind == "bench" { "bench --no-run" } else { "build" };
    executable_by(verb, workspace, library, package, program)
}

/// The program without MPI, which reads what was measured.
pub(crate) fn build_downbeat() -> Result<PathBuf, String> {
    let built =
        shell::read(&mut command("cargo build --message-format=json-render-diagnostics -p downbeat --bin downbeat"))?;
    executable_in(&built, "downbeat")
}

/// The rank program as its users build it.
pub(crate) fn released_rank_program(workspace: &Workspace, library: Library) -> Result<PathBuf, String> {
    let programs =
        workspace.packages.iter().flat_map(|package| package.targets_of("bin").map(move |bin| (package, bin)));
    let found = programs.into_iter().find(|(_, bin)| bin.name == rank_program::NAME);
    let (package, program) = found.ok_or(format!("there is no {}", rank_program::NAME))?;
    executable_by("build --release", workspace, library, package, program)
}

fn executable_by(
    verb: &str,
    workspace: &Workspace,
    library: Library,
    package: &Package,
    program: &Target,
) -> Result<PathBuf, String> {
    let Target { kind, name, required_features } = program;
    let mut build = command(&format!("cargo {verb} --message-format=json-render-diagnostics"));
    build.args(["-p", &package.name, &format!("--{kind}"), name, "--features", &required_features.join(",")]);
    library.build(workspace, &mut build);
    executable_in(&shell::read(&mut build)?, name)
}

/// What cargo says of a build.
pub(crate) fn executable_in(messages: &str, name: &str) -> Result<PathBuf, String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or(format!("cargo does not say where it built {name}"))
}

/// Runs the program under each of these numbers of ranks, also after a failure.
fn run(program: &Path, library: Library, ranks: &[u32]) -> Outcome {
    let run_once = |ranks| run_once(&Command::new(program), library.crowded_mpirun(), ranks);
    let failures: Vec<String> =
        ranks.iter().filter_map(|&ranks| run_once(ranks).err().map(|why| format!("{ranks} ranks: {why}"))).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

fn run_once(program: &Command, mut mpirun: Command, ranks: u32) -> Outcome {
    mpirun.args(["-np", &ranks.to_string()]).arg(program.get_program()).args(program.get_args());
    saw_its_ranks(&shell::show_and_read(RUN_LIMIT, &mut mpirun)?, ranks)
}

/// Wants `rank 0 of N` once: a program that was linked to another library runs as N jobs of one rank each, and passes
/// every test of its own.
fn saw_its_ranks(said: &str, ranks: u32) -> Outcome {
    let jobs: Vec<&str> = said
        .split("rank 0 of ")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default())
        .collect();
    match jobs.as_slice() {
        [size] if *size == ranks.to_string() => Ok(()),
        [] => Err(format!("nobody said `rank 0 of {ranks}`")),
        sizes => Err(format!("wanted one job of {ranks} ranks, found jobs of {}", sizes.join(" + "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_noticed() {
        assert_eq!(saw_its_ranks("rank 1 of 3\nrank 0 of 3: fine\nrank 2 of 3\n", 3), Ok(()));
        assert!(saw_its_ranks("rank 0 of 13\n", 3).is_err());
        assert!(saw_its_ranks("fine\n", 3).is_err());
        let singletons = saw_its_ranks("rank 0 of 1\nrank 0 of 1\n", 2);
        assert_eq!(singletons, Err("wanted one job of 2 ranks, found jobs of 1 + 1".into()));
    }
}
