//! `downbeat time`: an experiment with any command, whose run-time and memory are measured from outside.

mod launch;
mod record;
mod table;

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::{Failure, PrintOptions, random_seed};

use crate::run::{CommandOptions, LaunchedExperiment, Timing};
pub(crate) use launch::{TimeLaunchOptions, run as run_launch};
use table::TimedVariant;

#[derive(Args, Debug)]
#[command(
    override_usage = "downbeat time [OPTIONS] -- <COMMAND>...\n       \
                      downbeat time [OPTIONS] \\\n           --variant <NAME> -- <COMMAND>... \\\n           \
                      [--variant <NAME> -- <COMMAND>...]...",
    after_help = "Each launch runs the command once more, and is timed from before its start until it has ended. The command is \
                  started as it is, without a shell, so that none is timed; `sh -c '...'` is timed with its shell. Its standard input is empty. The time of \
                  starting an empty process, which is included, is measured, too. User and system time and memory are those of \
                  the command and of all processes for which it waits; memory is that of the largest of them. A command \
                  that fails ends the run, unless --ignore-failure is given. Processes that a command leaves behind are ended, also \
                  those of --setup.\n\n\
                  With --out, DIR holds a record and a log for each launch, with variants or parameters in DIR/VARIANT: \
                  `downbeat analyze`, `compare` and `report` read it, and the same command line continues after an \
                  interruption, also with a larger -n. Without it nothing is kept but the printed table.\n\n\
                  Options precede the first `--`. Variants alternate: each is launched once, in random order, before any \
                  is launched again, so that drift affects all equally.\n\n\
                  Examples:\n  \
                  downbeat time -- sleep 0.1\n  \
                  downbeat time --out sorted -n 20 --warmup 1 \\\n    \
                  --variant C -- env LC_ALL=C sort words \\\n    \
                  --variant UTF-8 -- env LC_ALL=C.UTF-8 sort words\n  \
                  downbeat time --parameter jobs=1..8*2 \\\n    \
                  --prepare 'make clean' -- make -j{jobs}"
)]
pub(crate) struct TimeOptions {
    /// Number of launches of each variant
    #[arg(short = 'n', long = "launches", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000), allow_hyphen_values = true)]
    launches: u32,
    /// Folder of this experiment; must not contain another one [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    commands: CommandOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &TimeOptions) -> Result<(), Failure> {
    match &options.out {
        Some(out) => time(options, out),
        None => time(options, &TemporaryFolder::create()?.0),
    }
}

fn time(options: &TimeOptions, out: &Path) -> Result<(), Failure> {
    let experiment = LaunchedExperiment {
        out,
        launches: options.launches,
        same_hosts: false,
        retries: 0,
        pauses: &[],
        timing: Some(&options.timing),
        is_temporary: options.out.is_none(),
        commands: &options.commands,
    };
    let launched = experiment.launch()?;
    if launched.is_empty() {
        return Ok(());
    }
    let timed = launched.into_iter().map(TimedVariant::read);
    let timed = timed.collect::<Result<Vec<_>, _>>()?;
    options
        .print
        .print(|| table::document(&timed), || table::render(&timed))
}

/// A folder that is removed at the end.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create() -> Result<Self, Failure> {
        loop {
            let path = env::temp_dir().join(format!("downbeat-time-{:016x}", random_seed()));
            // Logs of a command are nobody else's business.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => {
                    return Err(Failure::Input(format!(
                        "{}: {why}; set TMPDIR, or use --out",
                        path.display()
                    )));
                }
            }
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What cannot be removed remains for the system to clean up.
        let _ = fs::remove_dir_all(&self.0);
    }
}
