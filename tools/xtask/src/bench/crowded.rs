//! More ranks than cores: the scheduler interrupts exchanges, and must not spoil the clock.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::mpi_builds::installed_mpi_program;
use crate::steps::Step;
use crate::workspace::Workspace;
use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::mpi::OPEN_MPI;

const RANKS: usize = 4;
/// The algorithm of the paper, without and with weights.
const UNWEIGHTED: &str = "hca3/1000/skampi/100";
const WEIGHTED: &str = "hca3/1000/skampi/100/weighted";
const LIMIT: Duration = Duration::from_secs(300);

/// Bound of the median error with weights, right after the synchronization.
const PROMISED_NS: u64 = 2_000;

pub(super) fn step(workspace: &Workspace, gate: bool) -> Step<'_> {
    Step::new(
        format!(
            "table: {RANKS} ranks that share cores over {}",
            OPEN_MPI.name()
        ),
        move || {
            let mut mpirun = OPEN_MPI.oversubscribed_mpirun();
            mpirun
                .args(["-np", &RANKS.to_string()])
                .arg(installed_mpi_program(workspace, OPEN_MPI)?);
            mpirun.args("sync --truth --check 0 --repeat 10 --json --algorithm".split(' '));
            mpirun
                .arg(format!("{UNWEIGHTED},{WEIGHTED}"))
                .stdout(Stdio::piped());
            let output = shell::output_within(LIMIT, &mut mpirun)?;
            let report: Value = serde_json::from_slice(&output.stdout)
                .map_err(|why| format!("no report: {why}"))?;
            print(&report, gate)
        },
    )
}

fn print(report: &Value, gate: bool) -> Outcome {
    println!(
        "| largest true error of {RANKS} ranks, right after | median, ns | worst, ns |\n|---|---|---|"
    );
    let mut weighted = u64::MAX;
    for label in [UNWEIGHTED, WEIGHTED] {
        let runs = report["runs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|run| run["algorithm"] == label);
        let error = |run: &Value| {
            run["checks"][0]["largest_error"]["ns"]
                .as_i64()
                .map(i64::unsigned_abs)
        };
        let mut errors = runs
            .map(error)
            .collect::<Option<Vec<u64>>>()
            .ok_or("a run without an error")?;
        errors.sort_unstable();
        let (median, worst) = (errors.get(errors.len() / 2), errors.last());
        let (median, worst) = median.zip(worst).ok_or("there are no runs")?;
        println!("| `{label}` | {median} | {worst} |");
        if label == WEIGHTED {
            weighted = *median;
        }
    }
    println!(
        "\n| bound | found | must not exceed |\n|---|---|---|\n| median with weights, ns | {weighted} | {PROMISED_NS} |"
    );
    if gate && weighted > PROMISED_NS {
        Err("the bound is missed".to_owned())
    } else {
        Ok(())
    }
}
