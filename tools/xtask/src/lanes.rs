//! Steps of several lanes side by side: each step is a process of its own, whose output
//! is printed as one block when it ends.

use std::env;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _};
use std::os::unix::process::parent_id;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;

use crate::args::{Depth, TestRun};
use crate::checks;
use crate::checks::setup;
use crate::disturbance::Disturbance;
use crate::programs::{FOLDER_OF_RUN, SETTINGS};
use crate::steps::{FinishedStep, Lane, StepPlace, processor_time, refuse, summarize};
use crate::workspace::Workspace;

/// Text before the reason in the verdict of a step that failed.
const FAILED: &str = "failed: ";

/// Runs the steps whose name contains a text, or whose lane is meant, each in its lane;
/// the last line printed counts them.
pub(crate) fn run(wanted: &TestRun) -> ExitCode {
    let (depth, only) = (wanted.extent.depth(), &wanted.only);
    let start = Instant::now();
    let finished = Workspace::read().and_then(|workspace| {
        let steps = checks::all(&workspace, depth).into_iter();
        let steps = steps.map(|step| step.place);
        let is_wanted = |step: &StepPlace| step.name.contains(only) || step.lane.label() == *only;
        let steps: Vec<StepPlace> = steps.filter(is_wanted).collect();
        if steps.is_empty() {
            return Ok(None);
        }
        if steps.iter().any(|step| step.name == setup::PACKAGES) {
            setup::confirm_installation(depth, wanted.yes)?;
        }
        let _disturbance = wanted.disturbed.then(Disturbance::begin).transpose()?;
        StepRunner::new(&workspace, depth).map(|runner| Some(runner.run_all(&steps)))
    });
    match finished {
        Ok(Some(finished)) => summarize(&finished, start),
        Ok(None) => refuse(only),
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one step in this process, and writes its verdict to a file for the process that
/// started it.
pub(crate) fn run_named(depth: Depth, name: &str, verdict: &Path) -> ExitCode {
    thread::spawn(end_with_parent);
    let outcome = Workspace::read().and_then(|workspace| {
        let steps = checks::all(&workspace, depth);
        let step = steps.into_iter().find(|step| step.place.name == name);
        step.ok_or(format!("there is no step `{name}`"))?.run()
    });
    let failure = match outcome {
        Ok(()) => String::new(),
        Err(why) => format!("{FAILED}{why}"),
    };
    let text = format!("{}\n{failure}", processor_time().as_millis());
    match fs::write(verdict, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {}: {why}", verdict.display());
            ExitCode::FAILURE
        }
    }
}

/// Ends this process and all that it started once its parent is gone: nobody waits for
/// the step any more, which holds locks and cores.
#[expect(clippy::exit, reason = "the process is of no use to anybody")]
fn end_with_parent() {
    let parent = parent_id();
    while parent_id() == parent {
        thread::sleep(Duration::from_secs(1));
    }
    downbeat_launch::process::end_descendants(process::id());
    process::exit(1);
}

struct StepRunner {
    depth: Depth,
    /// Folder of what steps write and tell each other, which is deleted on drop.
    folder: PathBuf,
    /// Finished steps, each with its place in the plan.
    finished: Mutex<Vec<(usize, FinishedStep)>>,
    one_finished: Condvar,
}

impl StepRunner {
    fn new(workspace: &Workspace, depth: Depth) -> Result<Self, String> {
        let folder = workspace.absolute(&format!("steps-{}", process::id()))?;
        // A run that was killed may have left one of this name, with what cargo said
        // then.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Self {
            depth,
            folder,
            finished: Mutex::new(vec![]),
            one_finished: Condvar::new(),
        })
    }

    /// Runs all lanes, and returns what finished in the order of the plan.
    fn run_all(self, steps: &[StepPlace]) -> Vec<FinishedStep> {
        thread::scope(|scope| {
            for lane in Lane::ALL {
                let runner = &self;
                scope.spawn(move || {
                    let run = AssertUnwindSafe(|| runner.run_lane(lane, steps));
                    if panic::catch_unwind(run).is_err() {
                        // Standard output is closed, and other lanes may wait for steps
                        // of this one for ever.
                        let _ = fs::remove_dir_all(&runner.folder);
                        process::exit(1);
                    }
                });
            }
        });
        let mut finished = std::mem::take(&mut *self.lock());
        finished.sort_by_key(|(index, _)| *index);
        finished.into_iter().map(|(_, step)| step).collect()
    }

    fn run_lane(&self, lane: Lane, steps: &[StepPlace]) {
        let of_lane = steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.lane == lane);
        for (index, step) in of_lane {
            self.await_earlier(step, steps);
            if io::stderr().is_terminal() {
                eprintln!("started: {}", step.name);
            }
            let finished =
                FinishedStep::run_check(&step.name, || self.run_in_new_process(index, step));
            let mut all = self.lock();
            // Under the lock: no other block comes between these lines.
            println!("\n== {}", step.name);
            print!("{}", self.output_of(index));
            finished.print_verdict();
            all.push((index, finished));
            self.one_finished.notify_all();
        }
    }

    /// Waits for the awaited steps that are part of the run.
    fn await_earlier(&self, step: &StepPlace, steps: &[StepPlace]) {
        let is_ahead = |name: &String| steps.iter().any(|other| other.name == *name);
        let awaited: Vec<&String> = step.after.iter().filter(|name| is_ahead(name)).collect();
        let mut finished = self.lock();
        while !awaited
            .iter()
            .all(|name| finished.iter().any(|(_, step)| step.name == **name))
        {
            finished = self
                .one_finished
                .wait(finished)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs a step in a process of its own; returns its outcome and processor time.
    fn run_in_new_process(&self, index: usize, step: &StepPlace) -> (Outcome, Duration) {
        let verdict = self.folder.join(format!("{index}.verdict"));
        let status = self.start_process(index, step, &verdict);
        let text = fs::read_to_string(&verdict).unwrap_or_default();
        match (status, text.split_once('\n')) {
            (Ok(status), Some((milliseconds, failure))) if status.success() => {
                let computed = Duration::from_millis(milliseconds.parse().unwrap_or(0));
                let outcome = match failure.strip_prefix(FAILED) {
                    None => Ok(()),
                    Some(why) => Err(why.to_owned()),
                };
                (outcome, computed)
            }
            (Ok(status), _) => {
                let why = format!("the step ended without a verdict: {status}");
                let why = shell::after_last_lines(&why, &self.output_of(index));
                (Err(why), Duration::ZERO)
            }
            (Err(why), _) => (Err(format!("cannot start the step: {why}")), Duration::ZERO),
        }
    }

    fn start_process(
        &self,
        index: usize,
        step: &StepPlace,
        verdict: &Path,
    ) -> io::Result<process::ExitStatus> {
        let output = File::create(self.output_path(index))?;
        let mut command = step.lane.starting_command();
        command
            .arg(this_program()?)
            .args(["step", &step.name])
            .arg(verdict)
            .args(self.depth.option())
            .env(FOLDER_OF_RUN, &self.folder)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output);
        let unset = SETTINGS
            .iter()
            .filter(|(variable, _)| env::var_os(variable).is_none());
        command.envs(unset.copied()).status()
    }

    fn output_path(&self, index: usize) -> PathBuf {
        self.folder.join(format!("{index}.output"))
    }

    fn output_of(&self, index: usize) -> String {
        shell::text(&fs::read(self.output_path(index)).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, FinishedStep)>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StepRunner {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns a path by which other processes find this program, whose file is replaced if a
/// step builds it again.
fn this_program() -> io::Result<PathBuf> {
    let running = PathBuf::from(format!("/proc/{}/exe", process::id()));
    if running.exists() {
        Ok(running)
    } else {
        env::current_exe()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Plays all lanes: in each the first step that is left runs as soon as what it
    /// awaits has run.
    #[test]
    fn no_lane_waits_for_ever() {
        let workspace = Workspace::read().expect("the workspace");
        for depth in [Depth::Quick, Depth::Normal, Depth::Long] {
            let steps: Vec<StepPlace> = checks::all(&workspace, depth)
                .into_iter()
                .map(|step| step.place)
                .collect();
            let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names.len(), steps.len(), "two steps have one name");
            let mut done = BTreeSet::new();
            let mut lanes = Lane::ALL.map(|lane| {
                let of_lane = steps.iter().filter(move |step| step.lane == lane);
                of_lane.peekable()
            });
            loop {
                let before = done.len();
                for lane in &mut lanes {
                    let is_ready = |step: &&StepPlace| {
                        let mut awaited = step.after.iter().map(String::as_str);
                        awaited.all(|name| done.contains(name) || !names.contains(name))
                    };
                    let next = lane.next_if(is_ready);
                    done.extend(next.map(|step| step.name.as_str()));
                }
                if done.len() == before {
                    break;
                }
            }
            let waiting: Vec<_> = names.difference(&done).collect();
            assert!(waiting.is_empty(), "{depth:?}: {waiting:?}");
        }
    }
}
