//! The lock-free parts under every interleaving that the memory model allows.

use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::command::{self as shell, LIMIT, command};

use crate::args::Depth;
use crate::programs::Programs;
use crate::steps::{Lane, Step, side_by_side};
use crate::workspace::Workspace;

/// The models, in a workspace of its own whose libraries have loom's primitives.
pub(crate) const MODELS: &str = "tests/loom/Cargo.toml";

/// Variables that change the number of preemptions that the models allow; read by
/// `tests/loom/src/lib.rs`. Two show most faults, and the long run has every order of the
/// models that limit nothing.
const MOST_PREEMPTIONS: (&str, &str) = ("DOWNBEAT_MOST_PREEMPTIONS", "2");
const MORE_PREEMPTIONS: (&str, &str) = ("DOWNBEAT_MORE_PREEMPTIONS", "1");

const BUILD: &str = "loom: models build";

/// Runs each model in a process of its own: loom maps new stacks for every interleaving,
/// and for that, threads of one process wait for each other.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> [Step<'_>; 2] {
    let models = Step::new("loom: every order", move || {
        let programs = build(workspace)?;
        if programs.is_empty() {
            return Err(format!("cargo reports no test of {MODELS}"));
        }
        let models: Result<Vec<_>, String> =
            programs.iter().map(|program| models(program)).collect();
        side_by_side(models?.into_iter().flatten(), |mut model: Command| {
            let preemptions = match depth {
                Depth::Long => MORE_PREEMPTIONS,
                _ => MOST_PREEMPTIONS,
            };
            model.env(preemptions.0, preemptions.1);
            shell::show_and_read(LIMIT, &mut model)
                .map(drop)
                .map_err(|why| format!("{}: {why}", shell::shown(&model)))
        })
    });
    [
        Step::new(BUILD, || build(workspace).map(drop)),
        models.in_lane(Lane::Compute, &[BUILD]),
    ]
}

/// Builds in a target directory of its own, since the flag rebuilds everything.
fn build(workspace: &Workspace) -> Result<Vec<PathBuf>, String> {
    let mut build = command("cargo test --release --no-run --manifest-path");
    build
        .arg(MODELS)
        .arg("--target-dir")
        .arg(workspace.built("loom"));
    // Not RUSTFLAGS: this overrides the user's settings.
    build.env("CARGO_ENCODED_RUSTFLAGS", "--cfg=downbeat_loom");
    let programs = Programs::build(&mut build)?.tests();
    Ok(programs
        .iter()
        .map(|(_, test)| test.get_program().into())
        .collect())
}

/// Returns the commands that run each model of a program.
fn models(program: &Path) -> Result<Vec<Command>, String> {
    let list = shell::read(Command::new(program).args(["--list", "--format", "terse"]))?;
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let run = |name| {
        let mut run = Command::new(program);
        run.args(["--exact", name, "--nocapture"]);
        run
    };
    let models: Vec<Command> = names.map(run).collect();
    if models.is_empty() {
        Err(format!("there are no models in {}", program.display()))
    } else {
        Ok(models)
    }
}
