//! `downbeat run`: an experiment of many launches, which can be interrupted and continued.

mod alike;
mod attempt;
mod command;
mod events;
mod launcher;
mod log;
mod orphans;
mod parameters;
mod plan;
mod programs;
mod timing;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::cli::{not_negative, positive};
use downbeat_common::{Failure, output, random_seed};
use downbeat_files::create_folder;

use crate::experiments::outputs_about;
use command::Variant;
pub(crate) use command::quoted;
use events::RunEvents;
use launcher::Launcher;
use log::{LockState, say};
pub(crate) use parameters::Parameter;
use plan::LaunchPlan;
pub(crate) use timing::{TimedRun, Timing};

/// Returns the command that the plan of an experiment launches, for a folder of records; `None` if there is no such plan.
pub(crate) fn launched_command(folder: &Path) -> Option<String> {
    // Records of variants are in folders next to the plan. A file of this name by another program is no plan.
    let load = |folder: &Path| LaunchPlan::load(folder).ok().flatten();
    let of_variant = || {
        let name = folder.file_name()?.to_str()?;
        load(folder.parent()?)?.command(Some(name))
    };
    load(folder)
        .and_then(|plan| plan.command(None))
        .or_else(of_variant)
}

#[derive(Args, Debug)]
#[command(
    override_usage = "downbeat run [OPTIONS] --out <DIR> -- <COMMAND>...\n       \
                      downbeat run [OPTIONS] --out <DIR> \\\n           --variant <NAME> -- <COMMAND>... \\\n           \
                      [--variant <NAME> -- <COMMAND>...]...",
    after_help = "`--out DIR --launch launch-001`, with the number of the launch, is appended to the command; or, if the \
                  command contains {out} and {launch}, these are replaced. The command must write its record to \
                  DIR/launch-001.csv; its output goes to DIR/launch-001.log. With variants, DIR/VARIANT is used instead of \
                  DIR, with parameters DIR/NAME=VALUE. After any interruption, the same command line continues the experiment, also with a larger -n: \
                  DIR/plan.json lists all launches. A program that was rebuilt since, or has another MPI library, is refused.\n\n\
                  Options precede the first `--`. Variants alternate: each is launched once, in random order, before any \
                  is launched again, so that drift affects all equally.\n\n\
                  Examples:\n  \
                  downbeat run -n 10 --out quick --report quick.html -- \\\n    \
                  mpirun -np 2 downbeat-mpi bench\n  \
                  downbeat run --out two \\\n    \
                  --variant openmpi -- mpirun.openmpi -np 4 ./a/downbeat-mpi bench \\\n    \
                  --variant mpich -- mpirun.mpich -np 4 ./b/downbeat-mpi bench\n  \
                  downbeat run --out ranks --parameter np=2..8*2 -- \\\n    \
                  mpirun -np {np} downbeat-mpi bench\n  \
                  downbeat run --out sh -- sh -c 'ulimit -s unlimited; \\\n    \
                  exec mpirun -np 2 downbeat-mpi bench --out {out} --launch {launch}'\n\n\
                  With Slurm, in a batch script:\n  \
                  #SBATCH --nodes=4 --ntasks-per-node=16\n  #SBATCH --time=1:00:00 --signal=B:TERM@60\n  \
                  #SBATCH --requeue --open-mode=append\n  \
                  exec downbeat run -n 30 --out $HOME/hour --timeout 10min -- \\\n    \
                  srun --mpi=pmix downbeat-mpi bench\n\n\
                  By `exec`, the signal that Slurm sends to the script 60 s before the time limit reaches the run; the job that is \
                  requeued or submitted again continues, maybe on other nodes, and appends its output. Open MPI needs --mpi=pmix, \
                  MPICH --mpi=pmi2: by another interface, each rank would be a world of its own, which is refused. \
                  To requeue itself until all is complete, the script ends with:\n  \
                  downbeat run ... & trap 'kill -TERM $!' TERM; wait $!; code=$?\n  \
                  while kill -0 $! 2>/dev/null; do wait $!; code=$?; done\n  \
                  if [ $code = 143 ]; then scontrol requeue $SLURM_JOB_ID; fi; exit $code"
)]
pub(crate) struct RunOptions {
    /// Number of launches of each variant
    #[arg(short = 'n', long = "launches", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000), allow_hyphen_values = true)]
    launches: u32,
    /// Folder of this experiment; must not contain another one
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// File for a page about the experiment, as `downbeat report` writes it, when all launches are made
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    commands: CommandOptions,
    /// Demand that all launches run on the hosts of the first one; a record from others is moved aside [default: hosts may
    /// differ, as each record states them]
    #[arg(long)]
    same_hosts: bool,
    /// Number of times to repeat a failed launch before the run ends; one that ends with exit code 2 because a program of
    /// Downbeat refuses its input is not repeated
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_hyphen_values = true)]
    retries: u32,
    /// Pauses before the first, second, ... repetition of a launch, separated by commas; the last one precedes all further ones
    #[arg(long, value_name = "DURATIONS", value_delimiter = ',', default_value = "1s,10s,60s", value_parser = not_negative, allow_hyphen_values = true)]
    pauses: Vec<Duration>,
}

/// Commands to launch.
#[derive(Args, Debug)]
pub(crate) struct CommandOptions {
    /// Seed of the order of the variants [default: random, stored in the plan]
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Name of the command that follows, if there are several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    variant: Option<String>,
    /// Values that replace {NAME} in the command, separated by commas, also ranges: size=1,2,8..64*2. Each is a variant; of
    /// several parameters, each combination is
    #[arg(
        long = "parameter",
        value_name = "NAME=VALUES",
        allow_hyphen_values = true
    )]
    parameters: Vec<Parameter>,
    /// Maximum duration of a launch; a longer one is ended and counts as failed
    #[arg(long, value_name = "DURATION", value_parser = positive, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Print the commands in their order without launching them
    #[arg(long)]
    dry_run: bool,
    /// Copy the output of the launched programs to standard error
    #[arg(long)]
    verbose: bool,
    /// Command to launch, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
}

/// An experiment to begin or to continue.
#[derive(Debug)]
pub(crate) struct LaunchedExperiment<'a> {
    pub(crate) out: &'a Path,
    pub(crate) launches: u32,
    pub(crate) same_hosts: bool,
    pub(crate) retries: u32,
    pub(crate) pauses: &'a [Duration],
    /// Settings of `downbeat time`.
    pub(crate) timing: Option<&'a Timing>,
    /// True if the folder is removed afterwards.
    pub(crate) is_temporary: bool,
    pub(crate) commands: &'a CommandOptions,
}

/// A variant whose launches are complete.
#[derive(Debug)]
pub(crate) struct LaunchedVariant {
    pub(crate) name: Option<String>,
    pub(crate) command: Vec<String>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
}

impl RunOptions {
    /// Returns the folder of the experiment, and the option and the file of the page about it, if one is wanted.
    pub(crate) fn reported(&self) -> Option<(&Path, &'static str, &Path)> {
        let page = self.report.as_ref().filter(|_| !self.commands.dry_run)?;
        Some((&self.out, "--report", page))
    }
}

/// Launches the experiment. The caller writes the page about it.
pub(crate) fn run(options: &RunOptions) -> Result<(), Failure> {
    if let Some((_, option, page)) = options.reported() {
        outputs_about([&options.out]).text(option, page)?;
    }
    let experiment = LaunchedExperiment {
        out: &options.out,
        launches: options.launches,
        same_hosts: options.same_hosts,
        retries: options.retries,
        pauses: &options.pauses,
        timing: None,
        is_temporary: false,
        commands: &options.commands,
    };
    experiment.launch().map(drop)
}

impl LaunchedExperiment<'_> {
    /// Launches all that is not complete; a dry run prints the commands. Returns the variants, none after a dry run.
    ///
    /// # Errors
    /// If the options are not valid, the folder holds another experiment, a launch fails, or on a signal.
    pub(crate) fn launch(&self) -> Result<Vec<LaunchedVariant>, Failure> {
        let CommandOptions {
            variant,
            words,
            parameters,
            ..
        } = self.commands;
        let mut variants = command::variants(variant.as_deref(), words, parameters, self.timing)?;
        for variant in &mut variants {
            variant.programs = programs::digests(variant);
        }
        if self.out.to_str().is_none() {
            return Err(Failure::option(
                "--out",
                format!("{}: not valid UTF-8", self.out.display()),
            ));
        }
        if self.commands.dry_run {
            print(self.out, &self.plan(self.launches, variants)?)?;
            return Ok(Vec::new());
        }
        let events = RunEvents::listen()?;
        orphans::adopt();
        let _lock = lock(self.out)?;
        let plan = self.plan(self.launches, variants)?;
        self.run(&plan, &events)?;
        let launched = |variant: &Variant| LaunchedVariant {
            name: variant.name.clone(),
            command: variant.command.clone(),
            parameters: variant.parameters.clone(),
            folder: variant.folder(self.out),
        };
        Ok(plan.variants().iter().map(launched).collect())
    }

    /// Launches all of a plan that is not complete.
    fn run(&self, plan: &LaunchPlan, events: &RunEvents) -> Result<(), Failure> {
        for folder in plan.folders(self.out) {
            create(&folder)?;
        }
        plan.save(self.out)?;
        // Neither is negative.
        let of_system =
            |time: Duration| std::time::Duration::from_nanos(time.as_nanos().unsigned_abs());
        let pauses: Vec<_> = self.pauses.iter().copied().map(of_system).collect();
        let launcher = Launcher {
            out: self.out,
            plan,
            events,
            retries: self.retries,
            pauses: &pauses,
            timeout: self.commands.timeout.map(of_system),
            verbose: self.commands.verbose,
            is_temporary: self.is_temporary,
        };
        launcher.run()
    }

    /// Loads and extends the plan of the folder, or makes a new one. A plan of another experiment is replaced if it has no
    /// records: its command may have been mistyped.
    fn plan(&self, launches: u32, variants: Vec<Variant>) -> Result<LaunchPlan, Failure> {
        let refuse =
            |why: String| Failure::option("--out", format!("{}: {why}", self.out.display()));
        let seed = self.commands.seed;
        if let Some(plan) = LaunchPlan::load(self.out)? {
            let recorded = plan.has_records(self.out)?;
            match plan.extended(launches, seed, self.same_hosts, &variants) {
                Err(why) if recorded => {
                    return Err(refuse(format!("holds another experiment: {why}")));
                }
                Err(_) => (),
                Ok(plan) => return Ok(plan),
            }
        }
        // 32 random bits are enough, and can be typed.
        let seed = seed.unwrap_or_else(|| random_seed() >> 32);
        let plan = LaunchPlan::new(launches, seed, self.same_hosts, variants);
        for folder in plan.folders(self.out) {
            if let Some(record) = alike::binding(&folder)? {
                return Err(refuse(format!(
                    "contains a record, {}, but no {}",
                    record.display(),
                    command::PLAN_FILE
                )));
            }
        }
        Ok(plan)
    }
}

fn create(folder: &Path) -> Result<(), Failure> {
    create_folder(folder).map_err(|why| Failure::option("--out", why))
}

/// Locks the folder against other runs until this process ends.
fn lock(out: &Path) -> Result<File, Failure> {
    create(out)?;
    let path = out.join(".lock");
    let refuse =
        |why: &dyn std::fmt::Display| Failure::option("--out", format!("{}: {why}", out.display()));
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let file =
        opened.map_err(|why| Failure::option("--out", format!("{}: {why}", path.display())))?;
    match log::lock(&file) {
        Ok(LockState::Mine) => Ok(file),
        Ok(LockState::Taken) => Err(refuse(&"another `downbeat run` is using this folder")),
        Ok(LockState::Unsupported) => {
            say(&format!(
                "downbeat: {}: this file system cannot lock files; make sure that no other run uses this folder",
                out.display()
            ));
            Ok(file)
        }
        Err(why) => Err(refuse(&why)),
    }
}

/// Prints the commands in their order; those of complete launches as comments.
fn print(out: &Path, plan: &LaunchPlan) -> Result<(), Failure> {
    let remaining = plan.remaining(out)?;
    let mut text = String::new();
    for launch in plan.launches() {
        text += if remaining.contains(&launch) {
            ""
        } else {
            "# complete: "
        };
        text += &quoted(&plan.variants()[launch.variant].shown(out, &launch.name));
        text.push('\n');
    }
    output::print(&text)
}
