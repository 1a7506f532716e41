//! Reproducibility of experiments: by our method and by that of the OSU benchmarks, each
//! over all launches and in one state of the machine, for equal times.

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

/// Launches of a trial at most: a state that is rare today is given up.
const MOST: usize = 16;

/// End of the error of a trial that did not find enough launches in the state; it counts
/// with those that it has.
const GIVEN_UP: &str = "--most allows no more";

/// Largest allowed spread of the means of the trials by ours in one state of the machine,
/// in percent of the smallest.
const PROMISED: f64 = 5.0;
const OPERATIONS: [&str; 3] = ["allreduce", "alltoall", "bcast"];
/// Long enough for a busy host to move its virtual cores several times.
const SLICE: &str = "--time-slice 150ms";
/// Names of the variants, the options of their methods, and the average that each
/// reports.
const VARIANTS: [(&str, &str, &str); 2] = [("ours", "", "median"), ("osu", "--as osu", "mean")];
/// A cache-line ping-pong between two pinned threads, without MPI: the spread of the
/// machine itself.
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
            for trial in 1..=TRIALS {
                let mut run = Command::new(&downbeat);
                let mpirun = OPEN_MPI.mpirun();
                run.envs(
                    mpirun
                        .get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                );
                let goal = format!("run --in-state {LAUNCHES} --most {MOST} --out");
                run.args(goal.split(' '))
                    .arg(trials.join(format!("trial-{trial:02}")));
                for (name, method, _) in VARIANTS {
                    run.args(["--variant", name, "--"])
                        .args(words(&mpirun))
                        .args(["-np", "2"])
                        .arg(&program);
                    let operations = OPERATIONS.join(",");
                    let bench = format!(
                        "bench --states --operation {operations} --sizes 8 {SLICE} {method}"
                    );
                    run.args(bench.split_whitespace());
                }
                run.args(["--variant", FLOOR, "--"]).arg(&downbeat);
                run.args(
                    format!("bench --states --operation {FLOOR_OPERATION} --ranks 2 {SLICE}")
                        .split(' '),
                );
                let pipes = run.stdout(Stdio::null()).stderr(Stdio::piped());
                let output = shell::output_within(LIMIT, pipes)?;
                let errors = String::from_utf8_lossy(&output.stderr);
                if errors.contains(GIVEN_UP) {
                    println!("   {}", errors.trim());
                } else {
                    print!("{errors}");
                    shell::succeeded(&output)?;
                }
            }
            let variants = VARIANTS.map(|(name, _, of)| spreads(&downbeat, &trials, name, of));
            let variants: Result<Vec<_>, String> = variants.into_iter().collect();
            let floor = spreads(&downbeat, &trials, FLOOR, VARIANTS[0].2)?;
            println!(
                "Standard deviation of {TRIALS} trials relative to their mean, in percent [95 % interval]; range of the trials. Each trial \
                 takes at least {LAUNCHES} launches, until {LAUNCHES} were in the state of the machine that was met most often, and at most \
                 {MOST}. Every operation is measured for 150 ms, with the same probes of the state.\n"
            );
            if let Some([overall, in_state]) = floor.get(FLOOR_OPERATION) {
                println!(
                    "{FLOOR_OPERATION} of 8 bytes between two threads, without MPI: {overall}; in the state: {in_state}\n"
                );
            }
            show(&variants?, gate)
        },
    )
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

/// Spreads by operation: overall, and in the state of the machine met most often.
type Spreads = BTreeMap<String, [TrialSpread; 2]>;

fn spreads(downbeat: &Path, trials: &Path, variant: &str, of: &str) -> Result<Spreads, String> {
    let mut reproducibility = Command::new(downbeat);
    reproducibility
        .args(["reproducibility", "--json", "--of", of])
        .args((1..=TRIALS).map(|trial| trials.join(format!("trial-{trial:02}")).join(variant)));
    let report: Value =
        serde_json::from_str(&shell::read(&mut reproducibility)?).map_err(|why| why.to_string())?;
    let list = |groups: &Value| groups.as_array().cloned().unwrap_or_default();
    let by_state = list(&report["by_state"]["groups"]);
    let with_states = |group: &Value| {
        let operation = group["operation"].as_str()?;
        let same = by_state
            .iter()
            .filter(|one| one["operation"].as_str() == Some(operation));
        let usual = same.max_by_key(|one| launches(one))?;
        Some((operation.to_owned(), [spread(group)?, spread(usual)?]))
    };
    list(&report["groups"])
        .iter()
        .map(|group| with_states(group).ok_or_else(|| format!("a group without a spread: {group}")))
        .collect()
}

/// Returns the number of launches of a group in all trials.
fn launches(group: &Value) -> u64 {
    let trials = group["trials"].as_array().into_iter().flatten();
    trials.filter_map(|trial| trial["launches"].as_u64()).sum()
}

fn spread(group: &Value) -> Option<TrialSpread> {
    let percent = |value: &Value| Some(100.0 * value.as_f64()?);
    let interval = &group["deviation_interval"];
    Some(TrialSpread {
        range: percent(&group["spread"])?,
        deviation: percent(&group["deviation"])?,
        interval: [percent(&interval[0])?, percent(&interval[1])?],
    })
}

/// Prints the spreads of all variants.
fn show(variants: &[Spreads], gate: bool) -> Outcome {
    println!(
        "| 8 bytes, 2 ranks | ours | ours, in the state | --as osu | --as osu, in the state | range of ours in the state: at most, and less \
         than OSU's |\n|---|---|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for operation in OPERATIONS {
        let cells: Option<Vec<_>> = variants.iter().map(|all| all.get(operation)).collect();
        let cells = cells.ok_or(format!("{operation} is missing"))?;
        let shown: Vec<String> = cells
            .iter()
            .copied()
            .flatten()
            .map(ToString::to_string)
            .collect();
        println!("| {operation} | {} | {PROMISED} |", shown.join(" | "));
        let [ours, osu] = [0, 1].map(|variant| cells[variant][1].range);
        if ours > PROMISED || ours >= osu {
            missed.push(operation);
        }
    }
    if gate && !missed.is_empty() {
        Err(format!("missed: {}", missed.join(", ")))
    } else {
        Ok(())
    }
}
