//! Steps: each is timed and counted, and a failed one ends no other.

use std::fs;
use std::iter;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use downbeat_launch::command as shell;
use downbeat_launch::{Outcome, all_passed};

use crate::may_not_run::{reason_not_to_run, requirement};
use crate::workspace::Workspace;

/// A named check.
pub(crate) struct Step<'a> {
    pub(crate) place: StepPlace,
    check: Box<dyn FnOnce() -> Outcome + 'a>,
}

/// Name of a step, and when it runs.
pub(crate) struct StepPlace {
    pub(crate) name: String,
    pub(crate) lane: Lane,
    /// Names of steps that end before this one starts, if they run at all.
    pub(crate) after: Vec<String>,
}

/// Steps of one lane run one after another, beside the steps of other lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Cargo uses all cores, and locks its target directories.
    Compile,
    /// Programs that compute.
    Compute,
    /// Ranks that share cores.
    Ranks,
    /// Tests that wait: for intervals, for limits, for other programs. Emulated hosts,
    /// which exist once, are here.
    Wait,
}

/// For a step that waits for no other.
pub(crate) const NOTHING: &[&str] = &[];

impl Lane {
    pub(crate) const ALL: [Self; 4] = [Self::Compile, Self::Compute, Self::Ranks, Self::Wait];

    /// Returns what `--only` selects the lane by.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Compile => "lane compile",
            Self::Compute => "lane compute",
            Self::Ranks => "lane ranks",
            Self::Wait => "lane wait",
        }
    }

    /// Returns the command that starts another one with the priority of the lane. What
    /// waits gets a core as soon as it needs one, and the other lanes take the rest:
    /// ranks that wait for each other, and yield to compilers meanwhile, would burn more
    /// time than they work.
    pub(crate) fn starting_command(self) -> Command {
        const CHRT: &str = "/usr/bin/chrt";
        let can_be_idle = Path::new(CHRT).exists();
        match self {
            Self::Compile | Self::Compute if can_be_idle => {
                shell::command(&format!("{CHRT} --idle 0"))
            }
            _ => shell::command("env"),
        }
    }
}

impl<'a> Step<'a> {
    /// Makes a step of the lane that compiles.
    pub(crate) fn new(name: impl Into<String>, check: impl FnOnce() -> Outcome + 'a) -> Self {
        Self {
            place: StepPlace {
                name: name.into(),
                lane: Lane::Compile,
                after: vec![],
            },
            check: Box::new(check),
        }
    }

    /// Makes a step that passes if the command succeeds.
    pub(crate) fn command(name: impl Into<String>, mut command: Command) -> Self {
        Self::new(name, move || shell::run(&mut command))
    }

    /// Moves the step to a lane, where it waits for these steps of any lane.
    pub(crate) fn in_lane(mut self, lane: Lane, after: &[impl ToString]) -> Self {
        self.place.lane = lane;
        self.place
            .after
            .extend(after.iter().map(ToString::to_string));
        self
    }

    /// Runs the check.
    pub(crate) fn run(self) -> Outcome {
        (self.check)()
    }
}

pub(crate) enum Verdict {
    Passed,
    /// With the reason, whose first line is enough while others still run.
    Failed(String),
    NotRun(&'static str),
}

pub(crate) struct FinishedStep {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
    /// Processor time of all processes of the step.
    pub(crate) computed: Duration,
}

impl FinishedStep {
    /// Runs the check of a step, unless this machine cannot run it.
    pub(crate) fn run_check(name: &str, check: impl FnOnce() -> (Outcome, Duration)) -> Self {
        let start = Instant::now();
        let (verdict, computed) = match reason_not_to_run(name) {
            Some(reason) => (Verdict::NotRun(reason), Duration::ZERO),
            None => match check() {
                (Ok(()), computed) => (Verdict::Passed, computed),
                (Err(why), computed) => (Verdict::Failed(why), computed),
            },
        };
        Self {
            name: name.to_owned(),
            verdict,
            took: start.elapsed(),
            computed,
        }
    }

    /// Prints the verdict below the output of the step. The whole reason of a failure,
    /// which may be long, is in the summary.
    pub(crate) fn print_verdict(&self) {
        let seconds = self.took.as_secs_f64();
        let computed = self.computed.as_secs_f64();
        match &self.verdict {
            Verdict::Passed => println!("-- ok, {seconds:.1} s, processor {computed:.1} s"),
            Verdict::Failed(why) => {
                let first = why.lines().next().unwrap_or_default();
                println!("-- FAILED, {seconds:.1} s, processor {computed:.1} s: {first}");
            }
            Verdict::NotRun(reason) => println!("-- not run: {reason}"),
        }
    }
}

/// Runs the steps whose name contains `only`, one after another; the last line printed
/// counts them.
pub(crate) fn run(only: &str, plan: impl FnOnce(&Workspace) -> Vec<Step<'_>>) -> ExitCode {
    let start = Instant::now();
    let workspace = match Workspace::read() {
        Ok(workspace) => workspace,
        Err(why) => {
            eprintln!("xtask: {why}");
            return ExitCode::FAILURE;
        }
    };
    let steps = plan(&workspace).into_iter();
    let steps = steps.filter(|step| step.place.name.contains(only));
    let finished: Vec<FinishedStep> = steps.map(run_in_this_process).collect();
    match finished.is_empty() {
        true => refuse(only),
        false => summarize(&finished, start),
    }
}

/// Prints that no step is meant by this text.
pub(crate) fn refuse(only: &str) -> ExitCode {
    eprintln!("xtask: --only: no step's name contains `{only}`, and no lane is named so");
    ExitCode::from(2)
}

fn run_in_this_process(step: Step<'_>) -> FinishedStep {
    println!("\n== {}", step.place.name);
    let before = processor_time();
    let finished = FinishedStep::run_check(&step.place.name.clone(), || {
        let outcome = step.run();
        (outcome, processor_time().saturating_sub(before))
    });
    finished.print_verdict();
    finished
}

/// Processor time of this process and all that it waited for; 0 where the system does not
/// tell.
pub(crate) fn processor_time() -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // `pid (name) state ...`, where the 14th to 17th fields are the times of this process
    // and of its children.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let times = after_name.split_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// Runs the check for all items, as many at once as there are cores, also after a
/// failure.
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

/// Refuses a run of this name whose filter selected none of the tests: it would always
/// pass.
pub(crate) fn refuse_no_tests(name: &str, written: &str) -> Outcome {
    let counts = written.lines().filter_map(|line| {
        let (count, _) = line.strip_prefix("running ")?.split_once(" test")?;
        count.parse().ok()
    });
    let counts: Vec<u32> = counts.collect();
    if !counts.is_empty() && counts.iter().all(|count| *count == 0) {
        return Err(format!("no test was selected by {name}"));
    }
    Ok(())
}

/// Prints a line for each step, the reasons of failures, and the counts.
pub(crate) fn summarize(finished: &[FinishedStep], start: Instant) -> ExitCode {
    println!("\n== summary: seconds, and of these on a processor");
    let mut failures = Vec::new();
    let mut not_run = 0;
    for step in finished {
        let verdict = match &step.verdict {
            Verdict::Passed => "ok     ",
            Verdict::Failed(why) => {
                failures.push(format!("FAILED: {}: {why}", step.name));
                "FAILED "
            }
            Verdict::NotRun(_) => {
                not_run += 1;
                "not run"
            }
        };
        let [took, computed] = [step.took, step.computed].map(|time| time.as_secs_f64());
        println!("{verdict} {took:7.1} {computed:7.1}  {}", step.name);
    }
    for step in finished {
        if let Some((reason, _)) = requirement(&step.name) {
            println!("may be reported as not run: {}: {reason}", step.name);
        }
    }
    for failure in &failures {
        println!("{failure}");
    }
    let computed: Duration = finished.iter().map(|step| step.computed).sum();
    let [took, computed] = [start.elapsed(), computed].map(|time| time.as_secs_f64());
    println!("all steps took {took:.0} s, and {computed:.0} s on processors");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_selects_nothing_is_noticed() {
        let written = "running 0 tests\n\ntest result: ok. 0 passed; 49 filtered out\n";
        assert_eq!(
            refuse_no_tests("places::", written),
            Err("no test was selected by places::".to_owned())
        );
        for written in ["", &format!("{written}\nrunning 1 test\n")] {
            assert_eq!(refuse_no_tests("places::", written), Ok(()), "{written}");
        }
    }
}
