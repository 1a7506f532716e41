//! More ranks than cores: the scheduler interrupts exchanges, and must not spoil the
//! clock.

use std::process::Stdio;
use std::time::Duration;

use downbeat_launch::command as shell;
use downbeat_launch::mpi::OPEN_MPI;
use downbeat_launch::{Outcome, environment};
use serde_json::Value;

use crate::variable;

const RANKS: usize = 4;
/// The algorithm of the paper, without and with weights, and ours.
const UNWEIGHTED: &str = "hca3/1000/skampi/100";
const WEIGHTED: &str = "hca3/1000/skampi/100/weighted";
const CUBE: &str = "cube/2000/5";
const LIMIT: Duration = Duration::from_secs(300);

/// Bounds of the median error with weights, right after the synchronization, and of the
/// median error and duration of the cube, as parts of those with weights.
const PROMISED_NS: f64 = 2_000.0;
const PROMISED_PARTS: [f64; 2] = [1.0, 1.0 / 8.0];

/// Synchronizes the ranks many times by each algorithm.
pub(crate) fn print_table(gate: bool) -> Outcome {
    let mut mpirun = OPEN_MPI.oversubscribed_mpirun();
    mpirun
        .args(["-np", &RANKS.to_string()])
        .arg(variable(environment::MPI_PROGRAM)?);
    mpirun.args("sync --truth --check 0 --repeat 40 --json --algorithm".split(' '));
    mpirun
        .arg([UNWEIGHTED, WEIGHTED, CUBE].join(","))
        .stdout(Stdio::piped());
    let output = shell::output_within(LIMIT, &mut mpirun)?;
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|why| format!("no report: {why}"))?;
    print(&report, gate)
}

fn print(report: &Value, gate: bool) -> Outcome {
    println!(
        "| {RANKS} ranks | largest true error right after: median, ns | worst, ns | duration: median, ms |\n|---|---|---|---|"
    );
    let mut found = vec![];
    for label in [UNWEIGHTED, WEIGHTED, CUBE] {
        let runs = report["runs"].as_array().into_iter().flatten();
        let runs: Vec<_> = runs.filter(|run| run["algorithm"] == label).collect();
        let sorted = |value: fn(&Value) -> Option<f64>| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| value(run)).collect();
            let mut values = values.filter(|values| !values.is_empty())?;
            values.sort_by(f64::total_cmp);
            Some((values[values.len() / 2], values[values.len() - 1]))
        };
        let error = sorted(|run| {
            run["checks"][0]["largest_error"]["ns"]
                .as_f64()
                .map(f64::abs)
        });
        let duration = sorted(|run| run["duration_s"].as_f64());
        let (error, duration) = error.zip(duration).ok_or("a run without an error")?;
        println!(
            "| `{label}` | {} | {} | {:.0} |",
            error.0,
            error.1,
            1e3 * duration.0
        );
        found.push([error.0, duration.0]);
    }
    let [_, weighted, cube] = found[..] else {
        return Err("an algorithm without a run".to_owned());
    };
    let [of_error, of_duration] = [cube[0] / weighted[0], cube[1] / weighted[1]];
    println!("\n| bound | found | must not exceed |\n|---|---|---|");
    let bounds = [
        ("median with weights, ns", weighted[0], PROMISED_NS),
        ("error of the cube / that", of_error, PROMISED_PARTS[0]),
        (
            "duration of the cube / that",
            of_duration,
            PROMISED_PARTS[1],
        ),
    ];
    for (name, found, most) in bounds {
        println!("| {name} | {found:.3} | {most} |");
    }
    match bounds.iter().any(|(_, found, most)| found > most) {
        true if gate => Err("a bound is missed".to_owned()),
        _ => Ok(()),
    }
}
