//! `downbeat record`: all ranks, from the launch to the corrected trace.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::Failure;
use downbeat_common::output::{print, report_failure};
use downbeat_files::create_folder;

use super::libraries::LibraryOptions;
use super::say;
use super::signals::CaughtSignals;
use super::spool::{await_all, salvage};
use crate::ending::end_like;
use crate::trace::{MergedClocks, correct_recorded, merge_into, run_words};

#[derive(Args, Debug)]
#[command(
    after_help = "The program need not be compiled again: libdownbeat_trace is preloaded into every rank. DIR holds the recording \
                  of each rank, and two OTF2 archives: the trace by their own clocks, in DIR/measured, and the corrected \
                  one, in DIR/corrected, to look at with `downbeat trace`, Vampir, Scalasca and others. \
                  In a batch script, `downbeat record-rank` \
                  and `downbeat trace merge` do the same step by step.\n\n\
                  The exit code is the launcher's, 2 where an option is refused, and 1 where \
                  the program succeeded and no trace could be made. \
                  SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the \
                  launcher.\n\n\
                  Examples:\n  downbeat record --launcher 'mpirun -np 4' -- ./program\n  \
                  downbeat record --launcher 'srun -n 64 --mpi=pmix' -o run -- ./program input\n  \
                  downbeat record --clean"
)]
pub(crate) struct RecordOptions {
    /// Command that starts the ranks, without the program
    #[arg(long, value_name = "COMMAND", required_unless_present = "clean")]
    launcher: Option<String>,
    /// New folder for the recording [default: the name of the program, and -trace]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    libraries: LibraryOptions,
    /// Only collect what killed recordings left in the memory of this node, or remove it if their folder is gone
    #[arg(long, conflicts_with_all = ["launcher", "out", "command"])]
    clean: bool,
    /// Program with its arguments
    #[arg(value_name = "PROGRAM", last = true, required_unless_present = "clean")]
    command: Vec<OsString>,
}

pub(crate) fn run(options: &RecordOptions) -> Result<(), Failure> {
    let found = salvage(None);
    if options.clean {
        found.kept.iter().for_each(|(_, why)| say(why));
        let (collected, removed) = (found.collected, found.removed);
        return print(&format!(
            "Recordings of killed parents: {collected} collected, {removed} removed\n"
        ));
    }
    let out = options.out();
    let is_new = make_new(&out)?;
    let status = options.record(&out);
    if is_new {
        // A folder with recordings stays, since it is not empty.
        let _ = fs::remove_dir(&out);
    }
    end_like(status?)
}

/// Makes the traces of what was recorded, and shows where the program waited.
fn evaluate_recording(out: &Path) -> Result<(), Failure> {
    let [measured, corrected] = ["measured", "corrected"].map(|name| out.join(name));
    let merged = timed(|| merge_into(out, &measured, &MergedClocks::default()))?;
    let adjusted = timed(|| correct_recorded(&measured, &corrected))?;
    let summed = timed(|| run_words([OsStr::new("waits"), corrected.as_os_str()]))?;
    print(&format!(
        "\nTime of merging: {merged}; of correction: {adjusted}; of this summary: {summed}\n"
    ))
}

/// Returns the time that a stage took.
fn timed(stage: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let started = Instant::now();
    stage()?;
    Ok(started.elapsed().into())
}

impl RecordOptions {
    fn out(&self) -> PathBuf {
        if let Some(out) = &self.out {
            return out.clone();
        }
        let program = self.command.first().map(Path::new);
        let name = program.and_then(Path::file_name);
        let mut name = name.unwrap_or_default().to_owned();
        name.push("-trace");
        name.into()
    }

    /// Runs the launcher, and evaluates what was recorded however it ended; returns how.
    fn record(&self, out: &Path) -> Result<ExitStatus, Failure> {
        let status = self.launch(out)?;
        await_all(out);
        if status.success() {
            let evaluated = evaluate_recording(out).map(|()| status);
            // No option is to blame for what a program leaves.
            return evaluated.map_err(|failure| match failure {
                Failure::Input(why) => Failure::Run(why),
                other => other,
            });
        }
        let how = match status.code() {
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        };
        if is_empty(out)? {
            say(&format!(
                "--launcher: it ended with {how} before any rank was recorded"
            ));
            return Ok(status);
        }
        // The exit code is the launcher's, even if there is no trace.
        match evaluate_recording(out) {
            Ok(()) => say(&format!(
                "the program ended with {how}; its trace ends there"
            )),
            Err(failure) => {
                let _ = report_failure(failure, "downbeat");
                say(&format!("the program ended with {how}"));
            }
        }
        Ok(status)
    }

    fn launch(&self, out: &Path) -> Result<ExitStatus, Failure> {
        let launcher = self.launcher.as_deref().unwrap_or_default();
        let refuse = |why| Failure::option("--launcher", format!("{launcher:?}: {why}"));
        let words = shlex::split(launcher).ok_or_else(|| refuse("a quote is not closed"))?;
        if words.is_empty() {
            return Err(refuse("it is no command"));
        }
        let this = env::current_exe().map_err(Failure::run)?;
        let out = std::path::absolute(out).map_err(Failure::run)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(this);
        command.args(["record-rank", "--out"]).arg(out);
        if let Some(mpi) = self.libraries.mpi {
            command.args(["--mpi", mpi.as_str()]);
        }
        if let Some(folder) = &self.libraries.libraries {
            let folder = std::path::absolute(folder).map_err(Failure::run)?;
            command.arg("--libraries").arg(folder);
        }
        // When a signal has ended the launcher, there is a trace to be merged.
        let signals = CaughtSignals::catch()?;
        let started = command.arg("--").args(&self.command).spawn();
        let mut launcher =
            started.map_err(|why| Failure::option("--launcher", format!("{}: {why}", words[0])))?;
        let _passed = signals.pass_on(&launcher);
        launcher.wait().map_err(Failure::run)
    }
}

/// Creates a folder, unless an empty one is there; returns true if there was none.
fn make_new(out: &Path) -> Result<bool, Failure> {
    let is_new = !out.exists();
    create_folder(out).map_err(|why| Failure::option("--out", why))?;
    match is_empty(out)? {
        true => Ok(is_new),
        false => {
            let why = format!("{}: it is not empty", out.display());
            Err(Failure::option("--out", why))
        }
    }
}

fn is_empty(folder: &Path) -> Result<bool, Failure> {
    let failed = |why| Failure::run(format!("{}: {why}", folder.display()));
    let mut entries = fs::read_dir(folder).map_err(failed)?;
    Ok(entries.next().is_none())
}
