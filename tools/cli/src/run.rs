//! `downbeat run`: an experiment of many launches, which can be interrupted and continued.

mod alike;
mod attempt;
mod command;
mod events;
mod launcher;
mod log;
mod orphans;
mod plan;
mod programs;

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::cli::positive;
use downbeat_common::{Failure, output};

use command::{Variant, quoted};
use events::RunEvents;
use launcher::Launcher;
use log::{LockState, say};
use plan::LaunchPlan;

#[derive(Args, Debug)]
#[command(
    override_usage = "downbeat run [OPTIONS] --out <DIR> -- <COMMAND>...\n       \
                      downbeat run [OPTIONS] --out <DIR> --variant <NAME> -- <COMMAND>... [--variant <NAME> -- <COMMAND>...]...",
    after_help = "`--out DIR --launch launch-001`, with the number of the launch, is appended to the command; or, if the \
                  command contains {out} and {launch}, these are replaced. The command must write its record to \
                  DIR/launch-001.csv; its output goes to DIR/launch-001.log. With variants, DIR/VARIANT is used instead of \
                  DIR. After any interruption, the same command line continues the experiment, also with a larger -n: \
                  DIR/plan.json lists all launches. A program that was rebuilt since, or has another MPI library, is refused.\n\n\
                  Options precede the first `--`. Variants alternate: each is launched once, in random order, before any \
                  is launched again, so that drift affects all equally.\n\n\
                  Examples:\n  \
                  downbeat run -n 10 --out quick -- mpirun -np 2 downbeat-mpi bench\n  \
                  downbeat run --out two \\\n    \
                  --variant openmpi -- mpirun.openmpi -np 4 ./a/downbeat-mpi bench \\\n    \
                  --variant mpich -- mpirun.mpich -np 4 ./b/downbeat-mpi bench\n  \
                  downbeat run --out sh -- sh -c 'ulimit -s unlimited; \\\n    \
                  exec mpirun -np 2 downbeat-mpi bench --out {out} --launch {launch}'\n\n\
                  With Slurm, in a batch script that is submitted again if its time limit was too short:\n  \
                  #SBATCH --nodes=4 --ntasks-per-node=16 --time=1:00:00 --signal=B:TERM@60\n  \
                  exec downbeat run -n 30 --out $HOME/hour --timeout 10min -- \\\n    \
                  srun downbeat-mpi bench"
)]
pub(crate) struct RunOptions {
    /// Number of launches of each variant
    #[arg(short = 'n', long = "launches", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000), allow_hyphen_values = true)]
    launches: u32,
    /// Folder of this experiment; must not contain another one
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Seed of the order of the variants [default: random, stored in the plan]
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Name of the command that follows, if there are several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    variant: Option<String>,
    /// Number of times to repeat a failed launch before the run ends
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_hyphen_values = true)]
    retries: u32,
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

pub(crate) fn run(options: &RunOptions) -> Result<(), Failure> {
    let mut variants = Variant::split(options.variant.as_deref(), &options.words)?;
    for variant in &mut variants {
        variant.programs = programs::digests(&variant.command);
    }
    if options.out.to_str().is_none() {
        return Err(Failure::option(
            "--out",
            format!("{}: not valid UTF-8", options.out.display()),
        ));
    }
    if options.dry_run {
        return print(&options.out, &plan(options, variants)?);
    }
    let events = RunEvents::listen()?;
    orphans::adopt();
    let _lock = lock(&options.out)?;
    let plan = plan(options, variants)?;
    for folder in plan.folders(&options.out) {
        create(&folder)?;
    }
    plan.save(&options.out)?;
    let RunOptions {
        retries, verbose, ..
    } = *options;
    let timeout = options
        .timeout
        .and_then(|time| u64::try_from(time.as_nanos()).ok());
    let timeout = timeout.map(std::time::Duration::from_nanos);
    Launcher {
        out: &options.out,
        plan: &plan,
        events: &events,
        retries,
        timeout,
        verbose,
    }
    .run()
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)
        .map_err(|why| Failure::option("--out", format!("{}: {why}", folder.display())))
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

/// Loads and extends the plan of the folder, or makes a new one. A plan of another experiment is replaced if it has no
/// records: its command may have been mistyped.
fn plan(options: &RunOptions, variants: Vec<Variant>) -> Result<LaunchPlan, Failure> {
    let refuse =
        |why: String| Failure::option("--out", format!("{}: {why}", options.out.display()));
    if let Some(plan) = LaunchPlan::load(&options.out)? {
        let recorded = plan.has_records(&options.out)?;
        match plan.extended(options.launches, options.seed, &variants) {
            Err(why) if recorded => return Err(refuse(format!("holds another experiment: {why}"))),
            Err(_) => (),
            Ok(plan) => return Ok(plan),
        }
    }
    // 32 random bits are enough, and can be typed.
    let random_seed = || std::hash::RandomState::new().build_hasher().finish() >> 32;
    let plan = LaunchPlan::new(
        options.launches,
        options.seed.unwrap_or_else(random_seed),
        variants,
    );
    for folder in plan.folders(&options.out) {
        if let Some((_, record)) = alike::files(&folder)?.first() {
            return Err(refuse(format!(
                "contains a record, {}, but no {}",
                record.display(),
                command::PLAN_FILE
            )));
        }
    }
    Ok(plan)
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
        text += &quoted(&plan.variants()[launch.variant].words(out, &launch.name));
        text.push('\n');
    }
    output::print(&text)
}
