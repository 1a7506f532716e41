//! The lock-free parts under every interleaving that the memory model allows.

use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::Workspace;
use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, LIMIT, command};

pub(crate) fn step(workspace: &Workspace) -> Step<'_> {
    Step::new("loom", || {
        let models: Result<Vec<_>, String> = build(workspace)?
            .iter()
            .map(|program| models(program))
            .collect();
        run(models?.into_iter().flatten())
    })
}

/// In a target directory of its own, since the flag rebuilds everything.
fn build(workspace: &Workspace) -> Result<Vec<PathBuf>, String> {
    let mut build = command("cargo test --profile loom --no-run");
    build
        .args(["-p", "downbeat-tests", "--test", "loom_*", "--target-dir"])
        .arg(workspace.variant("loom"));
    // Rather than RUSTFLAGS: wins over whatever the user has set.
    build.env("CARGO_ENCODED_RUSTFLAGS", "--cfg=loom");
    let programs = Programs::build(&mut build)?;
    let tests = workspace
        .packages
        .iter()
        .flat_map(|package| package.targets_of("test"));
    tests
        .filter(|test| test.name.starts_with("loom_"))
        .map(|test| programs.executable(&test.name))
        .collect()
}

/// How each model of a program is run.
fn models(program: &Path) -> Result<Vec<Command>, String> {
    let list = shell::read(Command::new(program).args(["--list", "--format", "terse"]))?;
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let run = |name| {
        let mut run = Command::new(program);
        run.args(["--exact", name, "--nocapture"]);
        run
    };
    let models: Vec<Command> = names.map(run).collect();
    // Without the flag these files are empty, and pass.
    if models.is_empty() {
        Err(format!("there are no models in {}", program.display()))
    } else {
        Ok(models)
    }
}

/// Runs as many at once as there are cores, each in a process of its own: loom maps new stacks for every interleaving, and
/// for that, threads of one process wait for each other.
fn run(models: impl Iterator<Item = Command> + Send) -> Outcome {
    let models = Mutex::new(models);
    let next = || models.lock().unwrap_or_else(PoisonError::into_inner).next();
    let failure = |mut model: Command| {
        let why = shell::show_and_read(LIMIT, &mut model).err()?;
        Some(format!("{}: {why}", shell::shown(&model)))
    };
    let run_some = || iter::from_fn(next).filter_map(failure).collect();
    let failures: Vec<String> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let runs: Vec<_> = (0..cores).map(|_| scope.spawn(run_some)).collect();
        let ended = runs.into_iter().map(|run| {
            run.join()
                .unwrap_or_else(|_| vec!["a thread panicked".into()])
        });
        ended.flatten().collect::<Vec<String>>()
    });
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("; "))
    }
}
