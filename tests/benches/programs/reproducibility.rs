//! Reproducibility of experiments: by our method and by that of the OSU benchmarks,
//! for equal times.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use downbeat_launch::command as shell;
use downbeat_launch::mpi::OPEN_MPI;
use downbeat_launch::{Outcome, environment};
use serde_json::Value;

use crate::{temporary, variable};

const TRIALS: usize = 10;
const LAUNCHES: usize = 10;
const LIMIT: Duration = Duration::from_secs(600);

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

/// Runs all trials, and compares their results.
pub(crate) fn print_table(gate: bool) -> Outcome {
    let downbeat = variable(environment::PROGRAM)?;
    let program = variable(environment::MPI_PROGRAM)?;
    let trials = temporary("reproducibility");
    // Absent before the first run.
    let _ = fs::remove_dir_all(&trials);
    for trial in 1..=TRIALS {
        let folder = trials.join(format!("trial-{trial:02}"));
        let mut run = launches(&downbeat, &program, &folder);
        let pipes = run.stdout(Stdio::null()).stderr(Stdio::piped());
        let output = shell::output_within(LIMIT, pipes)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        print!("{errors}");
        shell::succeeded(&output)?;
    }
    let variants = VARIANTS.map(|(name, _, of)| spreads(&downbeat, &trials, name, of));
    let variants: Result<Vec<_>, String> = variants.into_iter().collect();
    let floor = spreads(&downbeat, &trials, FLOOR, VARIANTS[0].2)?;
    println!(
        "Standard deviation of {TRIALS} trials relative to their mean, in percent [95 % interval]; range of the trials. Each trial \
         takes {LAUNCHES} launches. Every operation is measured for 150 ms.\n"
    );
    if let Some(floor) = floor.get(FLOOR_OPERATION) {
        println!("{FLOOR_OPERATION} of 8 bytes between two threads, without MPI: {floor}\n");
    }
    show(&variants?, gate)
}

/// Returns the command of a trial: launches of all variants, in turns.
fn launches(downbeat: &Path, program: &Path, folder: &Path) -> Command {
    let mut run = Command::new(downbeat);
    let mpirun = OPEN_MPI.mpirun();
    run.envs(OPEN_MPI.environment());
    run.args(format!("run -n {LAUNCHES} --out").split(' '))
        .arg(folder);
    for (name, method, _) in VARIANTS {
        run.args(["--variant", name, "--"])
            .arg(mpirun.get_program())
            .args(mpirun.get_args())
            .args(["-np", "2"])
            .arg(program);
        let operations = OPERATIONS.join(",");
        let bench = format!("bench --operation {operations} --sizes 8 {SLICE} {method}");
        run.args(bench.split_whitespace());
    }
    run.args(["--variant", FLOOR, "--"]).arg(downbeat);
    run.args(format!("bench --operation {FLOOR_OPERATION} --ranks 2 {SLICE}").split(' '));
    run
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
    reproducibility
        .args(["reproducibility", "--json", "--of", of])
        .args((1..=TRIALS).map(|trial| trials.join(format!("trial-{trial:02}")).join(variant)));
    let report: Value =
        serde_json::from_str(&shell::read(&mut reproducibility)?).map_err(|why| why.to_string())?;
    let list = |groups: &Value| groups.as_array().cloned().unwrap_or_default();
    let with_operation =
        |group: &Value| Some((group["operation"].as_str()?.to_owned(), spread(group)?));
    list(&report["groups"])
        .iter()
        .map(|group| {
            with_operation(group).ok_or_else(|| format!("a group without a spread: {group}"))
        })
        .collect()
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
    println!("| 8 bytes, 2 ranks | ours | --as osu |\n|---|---|---|");
    let mut missed = Vec::new();
    for operation in OPERATIONS {
        let cells: Option<Vec<_>> = variants.iter().map(|all| all.get(operation)).collect();
        let cells = cells.ok_or(format!("{operation} is missing"))?;
        let shown: Vec<String> = cells.iter().map(ToString::to_string).collect();
        println!("| {operation} | {} |", shown.join(" | "));
        if cells[0].range >= cells[1].range {
            missed.push(operation);
        }
    }
    if gate && !missed.is_empty() {
        Err(format!("missed: {}", missed.join(", ")))
    } else {
        Ok(())
    }
}
