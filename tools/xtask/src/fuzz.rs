//! Fuzz targets: parsers get mutated input, which may be refused but must not make them
//! panic, hang, or take more memory than 64 MB for one allocation. They are built with
//! the instrumentation of libFuzzer, which stable compilers have, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::OPEN_MPI;

use crate::programs::Programs;
use crate::steps::{Lane, Step, side_by_side};
use crate::workspace::{Workspace, host};

const BUILD: &str = "fuzz: targets build";

/// The targets, in a workspace of its own.
const MANIFEST: &str = "tests/fuzz/Cargo.toml";
/// One file for each target.
const TARGETS: &str = "tests/fuzz/fuzz_targets";
/// One folder of seeds for each target.
const CORPUS: &str = "tests/fuzz/corpus";
/// Folders that hold seeds of a target already.
const MORE_SEEDS: [(&str, &str); 3] = [
    ("cluster", "tools/cli/clusters"),
    ("import", "tools/cli/tests/import"),
    ("trace", "measure/trace/src/formats/golden"),
];

/// Flags that `cargo fuzz` passes to the compiler, except for those of a sanitizer.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Time of each target in a long run.
const MINUTE: Duration = Duration::from_secs(60);
/// A target may need this long for its last input.
const GRACE: Duration = Duration::from_secs(60);

/// All targets for a minute each.
pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let run_all = move || {
        let limit = format!("-max_total_time={}", MINUTE.as_secs());
        let programs = build(workspace)?;
        side_by_side(targets()?, |target| {
            let mut fuzz = run(workspace, &programs, &target)?;
            fuzz.arg(&limit);
            let found = shell::finish(MINUTE + GRACE, &mut fuzz)?;
            match found.code {
                Some(0) => Ok(()),
                _ => Err(format!("{target}: {}", found.stderr)),
            }
        })
    };
    vec![
        Step::new(BUILD, move || build(workspace).map(drop)),
        Step::new("fuzz: no target finds anything", run_all).in_lane(Lane::Compute, &[BUILD]),
    ]
}

/// One target, until it finds something, is ended, or has had this number of inputs.
pub(crate) fn long(workspace: &Workspace, target: String, runs: Option<u64>) -> Step<'_> {
    Step::new(format!("fuzz: {target}"), move || {
        let known = targets()?;
        if !known.contains(&target) {
            let known = known.join(", ");
            return Err(format!("no target `{target}`; there are {known}"));
        }
        let mut fuzz = run(workspace, &build(workspace)?, &target)?;
        fuzz.args(runs.map(|runs| format!("-runs={runs}")));
        println!("   {}", shell::shown(&fuzz));
        // Without a time limit.
        let status = fuzz.status().map_err(|why| why.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("{target}: {status}")),
        }
    })
}

/// Names of all targets.
fn targets() -> Result<Vec<String>, String> {
    let stem = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    let files = fs::read_dir(TARGETS).into_iter().flatten().flatten();
    let mut names: Vec<String> = files.filter_map(|file| stem(file.path())).collect();
    names.sort();
    match names.is_empty() {
        true => Err(format!("{TARGETS} has no target")),
        false => Ok(names),
    }
}

fn build(workspace: &Workspace) -> Result<Programs, String> {
    // With `--target`, build scripts are not instrumented.
    let mut build = command(&format!(
        "cargo build --manifest-path {MANIFEST} --bins --release --features mpi --target {}",
        host()?
    ));
    build.arg("--target-dir").arg(workspace.built("fuzz"));
    build
        .env("MPICC", format!("mpicc.{}", OPEN_MPI.suffix()))
        .env("RUSTFLAGS", INSTRUMENTATION);
    Programs::build(&mut build)
}

/// Command of a target, with a folder for new inputs that reach other code, and the
/// seeds.
fn run(workspace: &Workspace, programs: &Programs, target: &str) -> Result<Command, String> {
    let folder = |name: &str| -> Result<PathBuf, String> {
        let folder = workspace.built("fuzz").join(name).join(target);
        let made = fs::create_dir_all(&folder);
        made.map(|()| folder).map_err(|why| why.to_string())
    };
    let mut run = Command::new(programs.executable(target)?);
    run.args([
        "-malloc_limit_mb=64",
        "-timeout=10",
        "-max_len=8192",
        "-print_final_stats=1",
    ]);
    let findings = folder("findings")?.join("input-");
    run.arg(format!("-artifact_prefix={}", findings.display()));
    run.arg(folder("corpus")?);
    let seeds = Some(Path::new(CORPUS).join(target)).filter(|seeds| seeds.is_dir());
    run.args(seeds);
    let more = MORE_SEEDS.iter().filter(|(known, _)| *known == target);
    run.args(more.map(|(_, folder)| folder));
    Ok(run)
}
