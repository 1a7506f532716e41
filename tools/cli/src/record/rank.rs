//! `downbeat record-rank`: parent of one rank, which collects what the tracer recorded when the rank ends in whatever way.

use std::env::{self, VarError};
use std::ffi::OsString;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use clap::Args;
use downbeat_clock_core::parse_share;
use downbeat_common::Failure;
use downbeat_common::output::count;
use downbeat_files::create_folder;
use downbeat_recording::settings::{FILES, LIBRARY, SHARED, SPOOL, Settings, is_first_rank};
use downbeat_recording::{Collector, LostRecords};
use downbeat_sync::Algorithm;
use downbeat_sync::timesync::SessionRule;
use downbeat_timers::ClockName;
use downbeat_timers::skew::SkewSpec;

use super::libraries::{Libraries, LibraryOptions};
use super::say;
use super::signals::CaughtSignals;
use super::spool::{Spool, salvage};
use crate::ending::end_like;
use crate::memory::all_memory;

#[derive(Args, Debug)]
#[command(
    override_usage = "downbeat record-rank [OPTIONS] --out <DIR> \\\n           -- <PROGRAM>...",
    after_help = "Started by a launcher of MPI, once for each rank. The program runs with libdownbeat_trace preloaded; its \
                  recording, DIR/rank-N.dbrank, has all calls up to its end however it ends, unless the disk is full. Afterwards, `downbeat trace merge` makes \
                  one trace of all ranks.\n\n\
                  Environment:\n  \
                  DOWNBEAT_TRACE_MEMORY    memory for records that are not on disk yet, in MiB per rank [256]\n  \
                  DOWNBEAT_TRACE_OVERFLOW  when it is used up: flush (wait for the disk) or drop (count calls) [flush]\n  \
                  DOWNBEAT_TRACE_SKIP      groups of calls that are not recorded, separated by commas:\n                           \
                  p2p, tests, collectives, rma, io, others\n  \
                  DOWNBEAT_TRACE_RESYNC    synchronize again after each such number of collective operations\n  \
                  DOWNBEAT_ALGORITHM, DOWNBEAT_CLOCK\n                           synchronization, and clock of each rank\n\n\
                  Example:\n  mpirun -np 4 downbeat record-rank -o run -- ./program && \\\n    \
                  downbeat trace merge run -o measured"
)]
pub(crate) struct RankOptions {
    /// Folder for the recordings of all ranks
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    libraries: LibraryOptions,
    /// Program with its arguments
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    command: Vec<OsString>,
}

/// Time between two looks at the memory that is used, and that time while the rank waits for memory.
const STEP: Duration = Duration::from_millis(20);
const SHORT_STEP: Duration = Duration::from_millis(2);

#[expect(clippy::exit, reason = "other ranks print the message")]
pub(crate) fn run(options: &RankOptions) -> Result<(), Failure> {
    let status = prepare(options)
        .and_then(|(settings, libraries, spool)| record(options, &settings, &libraries, &spool));
    match status {
        Ok(status) => end_like(status),
        // All ranks fail alike, and one of them tells.
        Err(Failure::Input(_)) if !is_first() => std::process::exit(2),
        Err(why) => Err(why),
    }
}

fn is_first() -> bool {
    is_first_rank(|name| env::var(name).ok())
}

fn prepare(options: &RankOptions) -> Result<(Settings, Libraries, Spool), Failure> {
    let settings = Settings::check(|name| env::var(name).ok());
    let settings = settings.map_err(|why| Failure::Input(why.to_string()))?;
    check_memory(&settings)?;
    check_variables()?;
    let libraries = Libraries::find(&options.libraries)?;
    let out = &options.out;
    let unwritable = |why| Failure::option("--out", format!("{}: {why}", out.display()));
    create_folder(out).map_err(|why| Failure::option("--out", why))?;
    salvage(Some(out));
    let spool = Spool::create(out, settings.most_bytes()).map_err(unwritable)?;
    if let Some(warning) = spool.warning(out).filter(|_| is_first()) {
        say(&warning);
    }
    Ok((settings, libraries, spool))
}

/// Checks that the memory for records is no more than the machine has, if that is known.
fn check_memory(settings: &Settings) -> Result<(), Failure> {
    let wanted = settings.memory as u64;
    let is_set = env::var_os("DOWNBEAT_TRACE_MEMORY").is_some();
    match all_memory().map(|bytes| bytes >> 20) {
        Some(most) if is_set && wanted > most => Err(Failure::Input(format!(
            "DOWNBEAT_TRACE_MEMORY={wanted}: expected at most {most} MiB, which this machine has"
        ))),
        _ => Ok(()),
    }
}

/// Checks the variables by which libdownbeat synchronizes clocks in the rank: a program
/// that cannot be recorded as asked is not started.
fn check_variables() -> Result<(), Failure> {
    check_variable("DOWNBEAT_ALGORITHM", str::parse::<Algorithm>)?;
    check_variable("DOWNBEAT_CLOCK", str::parse::<ClockName>)?;
    check_variable("DOWNBEAT_SKEW", str::parse::<SkewSpec>)?;
    check_variable("DOWNBEAT_MAX_DRIFT", parse_share)?;
    check_variable("DOWNBEAT_MAX_WANDER", parse_share)?;
    check_variable("DOWNBEAT_SYNC_MAX_MESSAGES", str::parse::<NonZeroU32>)?;
    check_variable("DOWNBEAT_SYNC_RULE", str::parse::<SessionRule>)?;
    check_variable(
        "DOWNBEAT_SYNC_MAX_DURATION",
        str::parse::<downbeat_clock_core::Duration>,
    )
}

fn check_variable<T, E: Display>(
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<(), Failure> {
    let value = match env::var(name) {
        Ok(value) if value.is_empty() => return Ok(()),
        Ok(value) => value,
        Err(VarError::NotPresent) => return Ok(()),
        Err(why) => return Err(Failure::Input(format!("{name}: {why}"))),
    };
    let wrong = |why| Failure::Input(format!("{name}={value}: {why}"));
    parse(&value).map(drop).map_err(wrong)
}

/// Runs the rank, which ends as it would without a recording, whatever happens to that.
fn record(
    options: &RankOptions,
    settings: &Settings,
    libraries: &Libraries,
    spool: &Spool,
) -> Result<ExitStatus, Failure> {
    let signals = CaughtSignals::catch()?;
    let mut child = start(options, libraries, spool)?;
    let passed = signals.pass_on(&child);
    let mut collector = Collector::new(&spool.path, &options.out);
    let most = settings.most_bytes().min(spool.shared) / 4;
    let mut step = STEP;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Failure::run)? {
            break status;
        }
        thread::sleep(step);
        step = match collector.collect_full(most) {
            Ok(true) => SHORT_STEP,
            // What cannot be collected now may be collected at the end.
            Ok(false) | Err(_) => STEP,
        };
    };
    // A signal does not keep the records from being collected.
    passed.ignore();
    match collector.finish(&ending(status)) {
        Ok(recorded) => {
            if let Some(lost) = &recorded.lost {
                say(&said(lost, &recorded.files));
            }
        }
        Err(why) => say(&format!("{why}; nothing more is collected of this rank")),
    }
    Ok(status)
}

/// Tells what is missing, and what is not.
fn said(lost: &LostRecords, files: &[PathBuf]) -> String {
    let why = &lost.why;
    let what = match lost.calls {
        0 => "some records are missing".to_owned(),
        calls => format!("the last {} are lost", count(calls as usize, "call")),
    };
    let names = files.iter().map(|file| file.display().to_string());
    match &names.collect::<Vec<_>>()[..] {
        [] => format!("{why}; nothing was recorded of this rank"),
        names => format!("{why}; {what}, the others are in {}", names.join(", ")),
    }
}

fn start(options: &RankOptions, libraries: &Libraries, spool: &Spool) -> Result<Child, Failure> {
    let [program, arguments @ ..] = &options.command[..] else {
        return Err(Failure::option("PROGRAM", "none is given"));
    };
    let mut preload = libraries.tracer.clone().into_os_string();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let mut command = Command::new(program);
    end_with_parent(&mut command);
    let started = command
        .args(arguments)
        .env("LD_PRELOAD", preload)
        .env(SPOOL, &spool.path)
        .env(FILES, &spool.files)
        .env(SHARED, spool.shared.to_string())
        .env(LIBRARY, &libraries.synchronizer)
        .spawn();
    started.map_err(|why| Failure::option("PROGRAM", format!("{}: {why}", program.display())))
}

/// Has the program killed with this process, where the system can: launchers that kill a
/// rank kill what they have started.
#[cfg(target_os = "linux")]
fn end_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have been killed before.
        match getppid() == Some(parent) {
            true => Ok(()),
            false => Err(std::io::ErrorKind::NotFound.into()),
        }
    };
    // SAFETY: it makes system calls, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent(_: &mut Command) {}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}
