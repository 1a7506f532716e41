//! `downbeat run`: an experiment of many launches, which survives interruptions.

mod alike;
mod attempt;
mod command;
mod events;
mod launcher;
mod log;
mod orphans;
mod plan;

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
    after_help = "The command gets `--out DIR --launch launch-001` appended, with the number of the launch; or it has {out} and \
                  {launch} in it, which are replaced. It is to write its record to DIR/launch-001.csv; what it prints goes to \
                  DIR/launch-001.log. With variants it is DIR/VARIANT instead of DIR. What was interrupted, in whatever way, \
                  goes on with the same command line, also with a larger -n: DIR/plan.json says what is to be done.\n\n\
                  Options stand before the first `--`. Several variants take turns: all are launched once before any is \
                  launched again, in an order by lot, so that what drifts hits all alike.\n\n\
                  Examples:\n  \
                  downbeat run -n 10 --out quick -- mpirun -np 2 downbeat-mpi bench\n  \
                  downbeat run --out two --variant openmpi -- mpirun.openmpi -np 4 ./a/downbeat-mpi bench \\\n    \
                  --variant mpich -- mpirun.mpich -np 4 ./b/downbeat-mpi bench\n  \
                  downbeat run --out sh -- sh -c 'ulimit -s unlimited; exec mpirun -np 2 downbeat-mpi bench \\\n    \
                  --out {out} --launch {launch}'\n\n\
                  With Slurm, in a batch script that is submitted again when its time was too short:\n  \
                  #SBATCH --nodes=4 --ntasks-per-node=16 --time=1:00:00 --signal=B:TERM@60\n  \
                  exec downbeat run -n 30 --out $HOME/hour --timeout 10min -- srun downbeat-mpi bench"
)]
pub(crate) struct RunOptions {
    /// How often to launch each variant
    #[arg(short = 'n', long = "launches", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000), allow_hyphen_values = true)]
    launches: u32,
    /// The folder of this experiment, and of no other one
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Of the order of the variants [default: by lot, and written down]
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// The name of the command that follows, where there are several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    variant: Option<String>,
    /// How often to launch again what failed, before that ends the run
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_hyphen_values = true)]
    retries: u32,
    /// End a launch that takes longer: it failed
    #[arg(long, value_name = "DURATION", value_parser = positive, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Print the commands in their order, and launch nothing
    #[arg(long)]
    dry_run: bool,
    /// Show what the launched programs print, on standard error
    #[arg(long)]
    verbose: bool,
    /// What to launch
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
}

pub(crate) fn run(options: &RunOptions) -> Result<(), Failure> {
    let variants = Variant::split(options.variant.as_deref(), &options.words)?;
    if options.out.to_str().is_none() {
        return Err(Failure::option(
            "--out",
            format!("{}: is not in UTF-8", options.out.display()),
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

/// Keeps other runs out of the folder, until this one ends, however that may be.
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
        Ok(LockState::Taken) => Err(refuse(&"another `downbeat run` is at work in this folder")),
        Ok(LockState::Unknown) => {
            say(&format!(
                "downbeat: {}: files cannot be locked there: let no other run use it",
                out.display()
            ));
            Ok(file)
        }
        Err(why) => Err(refuse(&why)),
    }
}

/// What is planned there already, as far as this is the same experiment; or a new plan. One by which nothing was recorded
/// binds nobody: its command may have been mistyped.
fn plan(options: &RunOptions, variants: Vec<Variant>) -> Result<LaunchPlan, Failure> {
    let refuse =
        |why: String| Failure::option("--out", format!("{}: {why}", options.out.display()));
    if let Some(plan) = LaunchPlan::load(&options.out)? {
        let recorded = plan.has_records(&options.out)?;
        match plan.extended(options.launches, options.seed, &variants) {
            Err(why) if recorded => return Err(refuse(format!("is of another experiment: {why}"))),
            Err(_) => (),
            Ok(plan) => return Ok(plan),
        }
    }
    // 32 bits by lot are enough, and can be typed.
    let lot = || std::hash::RandomState::new().build_hasher().finish() >> 32;
    let plan = LaunchPlan::new(options.launches, options.seed.unwrap_or_else(lot), variants);
    for folder in plan.folders(&options.out) {
        if let Some((_, record)) = alike::files(&folder)?.first() {
            return Err(refuse(format!(
                "has a record, {}, but no {}",
                record.display(),
                command::PLAN_FILE
            )));
        }
    }
    Ok(plan)
}

/// The commands in their order; those that are not needed any more as comments.
fn print(out: &Path, plan: &LaunchPlan) -> Result<(), Failure> {
    let todo = plan.todo(out)?;
    let mut text = String::new();
    for launch in plan.launches() {
        text += if todo.contains(&launch) {
            ""
        } else {
            "# complete: "
        };
        text += &quoted(&plan.variants()[launch.variant].words(out, &launch.name));
        text.push('\n');
    }
    output::print(&text)
}
