//! Reproducibility of experiments, by our method and by that of the OSU benchmarks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::mpi_builds::released_mpi_program;
use crate::steps::Step;
use crate::workspace::Workspace;
use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::OPEN_MPI;

const TRIALS: usize = 10;
const LAUNCHES: usize = 10;
const LIMIT: Duration = Duration::from_secs(600);

/// Largest allowed spread of the means of the trials, in percent of the smallest.
const PROMISED: [(&str, f64); 3] = [("allreduce", 10.0), ("alltoall", 10.0), ("bcast", 5.0)];
/// Long enough for a busy host to move its virtual cores several times.
const SLICE: &str = "--time-slice 100ms --max-reps 1000000";
const OURS: &str = "ours";
const OSU: &str = "osu";
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
            shell::run(&mut command("cargo build --release -p downbeat-cli"))?;
            let downbeat = workspace.built("release/downbeat");
            let program = released_mpi_program(workspace, OPEN_MPI)?;
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
                for (name, method) in [
                    (OURS, format!("{SLICE} {near}").as_str()),
                    (OSU, "--as osu"),
                ] {
                    run.args(["--variant", name, "--"])
                        .args(words(&mpirun))
                        .args(["-np", "2"])
                        .arg(&program);
                    run.args(
                        format!("bench --operation allreduce,alltoall,bcast --sizes 8 {method}")
                            .split(' '),
                    );
                }
                run.args(["--variant", FLOOR, "--"]).arg(&downbeat);
                run.args(
                    format!("bench --operation {FLOOR_OPERATION} --ranks 2 {SLICE}").split(' '),
                );
                shell::output_within(LIMIT, run.stdout(Stdio::null()))
                    .and_then(|output| shell::succeeded(&output))?;
            }
            let ours = spreads(&downbeat, &trials, OURS, "median")?;
            let osu = spreads(&downbeat, &trials, OSU, "reported")?;
            let floor = spreads(&downbeat, &trials, FLOOR, "median")?;
            println!(
                "ours measures with {near}, the smallest distance of ranks on this machine; the others without"
            );
            for (operation, spread) in floor {
                println!(
                    "{operation} of 8 bytes between two threads, without MPI: {spread:.1} %\n"
                );
            }
            show(&ours, &osu, gate)
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

/// Returns the spread of each operation, in percent.
fn spreads(
    downbeat: &Path,
    trials: &Path,
    variant: &str,
    of: &str,
) -> Result<BTreeMap<String, f64>, String> {
    let mut reproducibility = Command::new(downbeat);
    reproducibility.args(["reproducibility", "--json", "--of", of]);
    reproducibility
        .args((1..=TRIALS).map(|trial| trials.join(format!("trial-{trial:02}")).join(variant)));
    let report: Value =
        serde_json::from_str(&shell::read(&mut reproducibility)?).map_err(|why| why.to_string())?;
    let groups = report["groups"].as_array().into_iter().flatten();
    let spread = |group: &Value| {
        Some((
            group["operation"].as_str()?.to_owned(),
            100.0 * group["spread"].as_f64()?,
        ))
    };
    groups
        .map(|group| spread(group).ok_or_else(|| format!("a group without a spread: {group}")))
        .collect()
}

fn show(ours: &BTreeMap<String, f64>, osu: &BTreeMap<String, f64>, gate: bool) -> Outcome {
    println!(
        "| 8 bytes, 2 ranks | spread between trials, % | must not exceed | the same by --as osu, % |\n|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for (operation, most) in PROMISED {
        let (mine, its) = ours
            .get(operation)
            .zip(osu.get(operation))
            .ok_or(format!("{operation} is missing"))?;
        println!("| {operation} | {mine:.1} | {most} | {its:.1} |");
        if *mine > most {
            missed.push(operation);
        }
    }
    if gate && !missed.is_empty() {
        Err(format!("missed: {}", missed.join(", ")))
    } else {
        Ok(())
    }
}
