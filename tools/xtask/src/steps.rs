//! Steps: each is announced, timed and counted, and a failed one stops no other.

use std::iter;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;

use crate::may_not_run::{MAY_NOT_RUN, reason_not_to_run};
use crate::workspace::Workspace;

/// A named check.
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

    /// Makes a step that passes if the command succeeds.
    pub(crate) fn command(name: impl Into<String>, mut command: Command) -> Self {
        Self::new(name, move || shell::run(&mut command))
    }
}

enum StepResult {
    Passed,
    Failed(String),
    NotRun(&'static str),
}

struct FinishedStep {
    name: String,
    verdict: StepResult,
    took: Duration,
}

/// Runs the steps whose name contains `only`; the last line printed counts them. A run without any step is a failure.
pub(crate) fn run(only: &str, plan: impl FnOnce(&Workspace) -> Vec<Step<'_>>) -> ExitCode {
    let mut finished: Vec<FinishedStep> = match Workspace::read() {
        Ok(workspace) => plan(&workspace)
            .into_iter()
            .filter(|step| step.name.contains(only))
            .map(run_one)
            .collect(),
        Err(why) => vec![run_one(Step::new("read the workspace", || Err(why)))],
    };
    if finished.is_empty() {
        finished.push(run_one(Step::new("find a step", || {
            Err(format!("no step's name contains `{only}`"))
        })));
    }
    summarize(&finished)
}

/// Runs the check for all items, as many at once as there are cores, also after a failure.
pub(crate) fn side_by_side<T>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    check: impl Fn(T) -> Outcome + Sync,
) -> Outcome {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let check_some = || {
        iter::from_fn(next)
            .filter_map(|item| check(item).err())
            .collect()
    };
    let failures: Vec<String> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(check_some)).collect();
        let failures = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| vec!["a thread panicked".into()])
        });
        failures.flatten().collect::<Vec<String>>()
    });
    all_passed(failures)
}

/// Joins the reasons of failures.
pub(crate) fn all_passed(failures: impl IntoIterator<Item = String>) -> Outcome {
    let failures: Vec<String> = failures.into_iter().collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("; "))
    }
}

fn run_one(step: Step<'_>) -> FinishedStep {
    println!("\n== {}", step.name);
    let start = Instant::now();
    let verdict = if let Some(reason) = reason_not_to_run(&step.name) {
        StepResult::NotRun(reason)
    } else {
        match (step.check)() {
            Ok(()) => StepResult::Passed,
            Err(why) => StepResult::Failed(why),
        }
    };
    let took = start.elapsed();
    let seconds = took.as_secs_f64();
    match &verdict {
        StepResult::Passed => println!("-- ok, {seconds:.1} s"),
        // The whole reason, which may be long, is told in the summary.
        StepResult::Failed(why) => {
            let first = why.lines().next().unwrap_or_default();
            println!("-- FAILED, {seconds:.1} s: {first}");
        }
        StepResult::NotRun(reason) => println!("-- not run: {reason}"),
    }
    FinishedStep {
        name: step.name,
        verdict,
        took,
    }
}

fn summarize(finished: &[FinishedStep]) -> ExitCode {
    println!("\n== summary");
    let mut failures = Vec::new();
    let mut not_run = 0;
    for step in finished {
        let verdict = match &step.verdict {
            StepResult::Passed => "ok     ",
            StepResult::Failed(why) => {
                failures.push(format!("FAILED: {}: {why}", step.name));
                "FAILED "
            }
            StepResult::NotRun(_) => {
                not_run += 1;
                "not run"
            }
        };
        println!("{verdict} {:7.1} s  {}", step.took.as_secs_f64(), step.name);
    }
    for listed in &MAY_NOT_RUN {
        println!(
            "may be reported as not run: {}: {}",
            listed.step, listed.reason
        );
    }
    for failure in &failures {
        println!("{failure}");
    }
    let failed = failures.len();
    let passed = finished.len() - failed - not_run;
    if not_run == 0 {
        println!("{passed} passed, {failed} failed");
    } else {
        println!("{passed} passed, {failed} failed, {not_run} not run");
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
