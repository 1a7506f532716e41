//! Reproducibility of experiments: by our method and by that of the OSU benchmarks, each with ranks wherever they are and only
//! while their cores are near each other, for equal times.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::install::builds::installed_program;
use crate::mpi_builds::installed_mpi_program;
use crate::steps::Step;
use crate::workspace::Workspace;
use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::mpi::OPEN_MPI;

const TRIALS: usize = 10;
const LAUNCHES: usize = 10;
const LIMIT: Duration = Duration::from_secs(600);

/// Largest allowed spread of the means of these trials by ours, near each other, in percent of the smallest.
const PROMISED: [(&str, f64); 3] = [("allreduce", 10.0), ("alltoall", 10.0), ("bcast", 5.0)];
/// Long enough for a busy host to move its virtual cores several times.
const SLICE: &str = "--time-slice 100ms";
/// Names of the variants, the options of their methods, the average that each reports, and true for ranks near each other.
const VARIANTS: [(&str, &str, &str, bool); 4] = [
    ("ours", "", "median", false),
    ("ours-near", "", "median", true),
    ("osu", "--as osu", "reported", false),
    ("osu-near", "--as osu", "reported", true),
];
/// The variant that is checked.
const CHECKED: usize = 1;
/// A cache-line ping-pong between two pinned threads, without MPI: the spread of the machine itself.
const FLOOR: &str = "floor";
const FLOOR_OPERATION: &str = "ping-pong";

pub(super) fn step(workspace: &Workspace, gate: bool) -> Step<'_> {
    Step::new(
        format!(
            "table: {TRIALS} trials of {LAUNCHES} launches over {}",
            OPEN_MPI.name()
        ),
        move || {
            let downbeat = installed_program()?;
            let program = installed_mpi_program(workspace, OPEN_MPI)?;
            let trials = workspace.built("reproducibility");
            // Absent before the first run.
            let _ = fs::remove_dir_all(&trials);
            let near = nearness_option(&program)?;
            for trial in 1..=TRIALS {
                let mut run = Command::new(&downbeat);
                let mpirun = OPEN_MPI.mpirun();
                run.envs(
                    mpirun
                        .get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                );
                run.args(["run", "-n", &LAUNCHES.to_string(), "--out"])
                    .arg(trials.join(format!("trial-{trial:02}")));
                for (name, method, _, is_near) in VARIANTS {
                    let near = if is_near { near.as_str() } else { "" };
                    run.args(["--variant", name, "--"])
                        .args(words(&mpirun))
                        .args(["-np", "2"])
                        .arg(&program);
                    let operations = "--operation allreduce,alltoall,bcast --sizes 8";
                    let bench = format!("bench {operations} {SLICE} {method} {near}");
                    run.args(bench.split_whitespace());
                }
                run.args(["--variant", FLOOR, "--"]).arg(&downbeat);
                run.args(
                    format!("bench --operation {FLOOR_OPERATION} --ranks 2 {SLICE}").split(' '),
                );
                shell::output_within(LIMIT, run.stdout(Stdio::null()))
                    .and_then(|output| shell::succeeded(&output))?;
            }
            let variants = VARIANTS.map(|(name, _, of, _)| spreads(&downbeat, &trials, name, of));
            let floor = spreads(&downbeat, &trials, FLOOR, "median")?;
            println!(
                "Near: {near}, a little more than the smallest distance of ranks on this machine.\n\n\
                 Standard deviation of {TRIALS} trials of {LAUNCHES} launches relative to their mean, in percent [95 % interval]; \
                 range of the trials. Every operation is measured for 100 ms.\n"
            );
            for (operation, spread) in floor {
                println!("{operation} of 8 bytes between two threads, without MPI: {spread}\n");
            }
            let variants: Result<Vec<_>, String> = variants.into_iter().collect();
            show(&variants?, gate)
        },
    )
}

/// Returns the option that has ranks measure only while their cores are nearly as close as they can be: the host of a
/// virtual machine moves them.
fn nearness_option(program: &Path) -> Result<String, String> {
    const TRIES: usize = 5;
    const FARTHER: f64 = 1.2;
    let mut nearest = f64::INFINITY;
    for _ in 0..TRIES {
        let mut job = OPEN_MPI.mpirun();
        job.args(["-np", "2"]).arg(program);
        job.args("bench --operation empty --time-slice 1ms --within 1s --json".split(' '));
        let report: Value =
            serde_json::from_str(&shell::read(&mut job)?).map_err(|why| why.to_string())?;
        let distance = report["groups"][0]["figures_ns"]["distance"].as_f64();
        nearest = nearest.min(distance.ok_or_else(|| format!("no distance: {report}"))?);
    }
    Ok(format!(
        "--within {:.0}ns --patience 5min",
        FARTHER * nearest
    ))
}

/// Returns a command and its arguments.
fn words(command: &Command) -> Vec<OsString> {
    [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(ToOwned::to_owned)
        .collect()
}

/// Spread of the trials of one operation, in percent.
struct TrialSpread {
    range: f64,
    deviation: f64,
    interval: [f64; 2],
}

impl fmt::Display for TrialSpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.interval;
        write!(
            f,
            "{:.1} [{low:.1}, {high:.1}]; {:.1}",
            self.deviation, self.range
        )
    }
}

/// Spreads by operation.
type Spreads = BTreeMap<String, TrialSpread>;

fn spreads(downbeat: &Path, trials: &Path, variant: &str, of: &str) -> Result<Spreads, String> {
    let mut reproducibility = Command::new(downbeat);
    reproducibility.args(["reproducibility", "--json", "--of", of]);
    reproducibility
        .args((1..=TRIALS).map(|trial| trials.join(format!("trial-{trial:02}")).join(variant)));
    let report: Value =
        serde_json::from_str(&shell::read(&mut reproducibility)?).map_err(|why| why.to_string())?;
    let groups = report["groups"].as_array().into_iter().flatten();
    let spread = |group: &Value| {
        let percent = |value: &Value| Some(100.0 * value.as_f64()?);
        let interval = &group["deviation_interval"];
        let spread = TrialSpread {
            range: percent(&group["spread"])?,
            deviation: percent(&group["deviation"])?,
            interval: [percent(&interval[0])?, percent(&interval[1])?],
        };
        Some((group["operation"].as_str()?.to_owned(), spread))
    };
    groups
        .map(|group| spread(group).ok_or_else(|| format!("a group without a spread: {group}")))
        .collect()
}

/// Prints the spreads of all variants.
fn show(variants: &[Spreads], gate: bool) -> Outcome {
    println!(
        "| 8 bytes, 2 ranks | ours | ours, near | --as osu | --as osu, near | range of ours, near, must not exceed |\n\
         |---|---|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for (operation, most) in PROMISED {
        let cells: Option<Vec<_>> = variants.iter().map(|all| all.get(operation)).collect();
        let cells = cells.ok_or(format!("{operation} is missing"))?;
        let shown: Vec<String> = cells.iter().map(ToString::to_string).collect();
        println!("| {operation} | {} | {most} |", shown.join(" | "));
        if cells[CHECKED].range > most {
            missed.push(operation);
        }
    }
    if gate && !missed.is_empty() {
        Err(format!("missed: {}", missed.join(", ")))
    } else {
        Ok(())
    }
}
