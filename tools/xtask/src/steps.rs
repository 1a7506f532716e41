//! A run is a list of steps: each is announced, timed and counted, and a failed one stops nothing.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::workspace::Workspace;
use downbeat_launch::Outcome;
use downbeat_launch::command as shell;

/// One thing that passes or fails.
pub(crate) struct Step<'a> {
    name: String,
    check: Box<dyn FnOnce() -> Outcome + 'a>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(name: impl Into<String>, check: impl FnOnce() -> Outcome + 'a) -> Self {
        Self {
            name: name.into(),
            check: Box::new(check),
        }
    }

    /// A step that passes when the command does.
    pub(crate) fn command(name: impl Into<String>, mut command: Command) -> Self {
        Self::new(name, move || shell::run(&mut command))
    }
}

struct Done {
    name: String,
    outcome: Outcome,
    took: Duration,
}

/// Runs those steps that `plan` makes of the workspace whose name contains `only`; the last line printed counts them.
/// To run none at all is a failure.
pub(crate) fn run(only: &str, plan: impl FnOnce(&Workspace) -> Vec<Step<'_>>) -> ExitCode {
    let mut done: Vec<Done> = match Workspace::read() {
        Ok(workspace) => plan(&workspace)
            .into_iter()
            .filter(|step| step.name.contains(only))
            .map(run_one)
            .collect(),
        Err(why) => vec![run_one(Step::new("read the workspace", || Err(why)))],
    };
    if done.is_empty() {
        done.push(run_one(Step::new("find a step", || {
            Err(format!("no step's name contains `{only}`"))
        })));
    }
    summarize(&done)
}

fn run_one(step: Step<'_>) -> Done {
    println!("\n== {}", step.name);
    let start = Instant::now();
    let outcome = (step.check)();
    let took = start.elapsed();
    match &outcome {
        Ok(()) => println!("-- ok, {:.1} s", took.as_secs_f64()),
        Err(why) => println!("-- FAILED, {:.1} s: {why}", took.as_secs_f64()),
    }
    Done {
        name: step.name,
        outcome,
        took,
    }
}

fn summarize(done: &[Done]) -> ExitCode {
    println!("\n== summary");
    for Done {
        name,
        outcome,
        took,
    } in done
    {
        let verdict = if outcome.is_ok() { "ok    " } else { "FAILED" };
        println!("{verdict} {:7.1} s  {name}", took.as_secs_f64());
    }
    for Done { name, outcome, .. } in done {
        if let Err(why) = outcome {
            println!("FAILED: {name}: {why}");
        }
    }
    let failed = done.iter().filter(|step| step.outcome.is_err()).count();
    println!("{} passed, {failed} failed", done.len() - failed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
