//! `downbeat time-launch`: one launch of `downbeat time`, which runs the command and writes the record.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use downbeat_common::{Failure, ending_signals, machine, now, random_seed};
use downbeat_records::{
    CLOCK_STEP, Factors, GroupKey, HOSTS, Journal, MeasuredGroup, NODES, Observations, RecordFormat,
};
use downbeat_timers::{ChildUsage, Clock as _, Duration, SystemClock, SystemClockId};

use super::record::{EMPTY_TIME, EXIT, Figure, LEAST_MEMORY, PEAK_MEMORY};
use crate::ending::end_like;
use crate::run::{TimedRun, quoted};

#[derive(Args, Debug)]
pub(crate) struct TimeLaunchOptions {
    /// Folder of the record
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the record
    #[arg(long, value_name = "NAME")]
    launch: String,
    /// Value of a parameter, which becomes a factor
    #[arg(long = "value", value_name = "NAME=VALUE")]
    values: Vec<String>,
    #[command(flatten)]
    run: TimedRun,
    /// Command to time
    #[arg(last = true, required = true, value_name = "COMMAND")]
    words: Vec<String>,
}

pub(crate) fn run(options: &TimeLaunchOptions) -> Result<(), Failure> {
    // The command, in the same process group, receives the signal, too: this process waits for its end.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in ending_signals() {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(Failure::run)?;
    }
    let clock = SystemClock::detect(SystemClockId::Monotonic).map_err(Failure::run)?;
    let launch = TimedLaunch {
        options,
        clock,
        interrupted: &interrupted,
    };
    match launch.measure()? {
        Ended::Complete => Ok(()),
        Ended::Failed(status) => end_like(status),
    }
}

/// A launch that is timed.
struct TimedLaunch<'a> {
    options: &'a TimeLaunchOptions,
    clock: SystemClock,
    interrupted: &'a AtomicBool,
}

/// End of a launch.
enum Ended {
    /// The record is complete.
    Complete,
    /// The command failed, or a signal came while it ran.
    Failed(ExitStatus),
}

/// A process that was timed.
#[derive(Clone, Copy)]
struct TimedProcess {
    status: ExitStatus,
    wall: Duration,
    usage: ChildUsage,
}

impl TimedLaunch<'_> {
    fn measure(&self) -> Result<Ended, Failure> {
        let TimedRun {
            warmup,
            prepare,
            ignore_failure,
            discard_output,
        } = &self.options.run;
        let mut journal = self.journal()?;
        if journal.is_complete() {
            return Ok(Ended::Complete);
        }
        let empty = self.shortest_empty();
        let mut last = None;
        // The last run is the timed one.
        for _ in 0..=*warmup {
            if let Some(text) = prepare {
                let status = sh(text).and_then(|mut shell| shell.wait());
                let status = status.map_err(|why| Failure::run(format!("--prepare: {why}")))?;
                if !status.success() {
                    return Err(Failure::run(format!("--prepare: {status}")));
                }
            }
            if self.is_interrupted() {
                return Err(Failure::run("stopped by a signal"));
            }
            let timed = self.time(&self.options.words, *discard_output)?;
            if self.is_interrupted() {
                return Ok(Ended::Failed(timed.status));
            }
            if !(timed.status.success() || *ignore_failure) {
                // This is the log. If it cannot be written, the exit code remains.
                let _ = writeln!(
                    io::stderr(),
                    "the command has failed; --ignore-failure would count it nevertheless"
                );
                return Ok(Ended::Failed(timed.status));
            }
            last = Some(timed);
        }
        let timed = last.ok_or_else(|| Failure::run("there was no run"))?;
        // This process only grows, and its memory counts as that of its children.
        let limit = self.empty_process().map(|run| run.usage.peak_memory);
        write(&mut journal, &timed, empty, limit)?;
        Ok(Ended::Complete)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Opens the record, with the conditions of this launch.
    fn journal(&self) -> Result<Journal, Failure> {
        let TimeLaunchOptions {
            out,
            launch,
            values,
            run,
            words,
        } = self.options;
        let mut factors = Factors::default()
            .with("program", &concat!("downbeat ", env!("CARGO_PKG_VERSION")))
            .with("command", &quoted(words));
        for (name, value) in values.iter().filter_map(|value| value.split_once('=')) {
            factors = factors.with(&format!("parameter {name}"), &value);
        }
        factors = factors
            .with("warmup", &run.warmup)
            .with("prepare", &run.prepare.as_deref().unwrap_or("none"))
            .with(
                "failures",
                &if run.ignore_failure {
                    "counted"
                } else {
                    "refused"
                },
            )
            .with(
                "output",
                &if run.discard_output {
                    "/dev/null"
                } else {
                    "log"
                },
            );
        // Another run may continue the experiment on other hosts.
        let facts = Factors::default()
            .with("started", &now())
            .with("seed", &random_seed())
            .with(CLOCK_STEP, &self.clock.grain())
            .with(HOSTS, &machine::host_name())
            .with(NODES, &machine::kind_of_node(&machine::governors()));
        Journal::open(out, launch, RecordFormat::Csv, false, &factors, &facts).map_err(Failure::run)
    }

    /// Returns the time of a process that does nothing: the shortest of some, as disturbances only add.
    fn shortest_empty(&self) -> Option<Duration> {
        let runs = (0..5).filter_map(|_| self.empty_process());
        runs.map(|run| run.wall).min()
    }

    /// Times a process that does nothing, if the system has such a program.
    fn empty_process(&self) -> Option<TimedProcess> {
        self.time(&["true".to_owned()], true).ok()
    }

    /// Runs a command to its end.
    fn time(&self, words: &[String], discard_output: bool) -> Result<TimedProcess, Failure> {
        let [program, arguments @ ..] = words else {
            return Err(Failure::option("COMMAND", "none is given"));
        };
        let failed = |why: io::Error| Failure::option("COMMAND", format!("{program}: {why}"));
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        if discard_output {
            command.stdout(Stdio::null());
        }
        let began = self.clock.ticks();
        let child = command.spawn().map_err(failed)?;
        let (status, usage) = ChildUsage::wait(child).map_err(failed)?;
        let ended = self.clock.ticks();
        Ok(TimedProcess {
            status,
            wall: SystemClock::RATE.duration(ended.0.saturating_sub(began.0)),
            usage,
        })
    }
}

/// Writes the groups of the record, and completes it.
fn write(
    journal: &mut Journal,
    timed: &TimedProcess,
    empty: Option<Duration>,
    limit: Option<u64>,
) -> Result<(), Failure> {
    let mut fact = |name, value: &dyn Display| journal.add_fact(name, &value.to_string());
    fact(EXIT, &timed.status);
    fact(PEAK_MEMORY, &timed.usage.peak_memory);
    if let Some(empty) = empty {
        fact(EMPTY_TIME, &empty.as_nanos());
    }
    if let Some(limit) = limit {
        fact(LEAST_MEMORY, &limit);
    }
    for figure in Figure::ALL {
        let time = match figure {
            Figure::Wall => timed.wall,
            Figure::User => timed.usage.user,
            Figure::System => timed.usage.system,
        };
        let key = figure.key();
        // A record that was interrupted between two groups has the first one.
        if !journal.groups().contains(&key) {
            append(journal, key, time.as_nanos() as f64)?;
        }
    }
    journal.complete().map_err(Failure::run)
}

/// Writes a group of one observation.
fn append(journal: &mut Journal, key: GroupKey, nanos: f64) -> Result<(), Failure> {
    let observations = Observations::of_durations(&[nanos]);
    let group = MeasuredGroup {
        key,
        nanos: vec![nanos],
        counts: Vec::new(),
        figures: Vec::new(),
    };
    journal.append(&group, &observations).map_err(Failure::run)
}

/// Starts a command of the user by a shell.
fn sh(text: &str) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", text])
        .stdin(Stdio::null())
        .spawn()
}
