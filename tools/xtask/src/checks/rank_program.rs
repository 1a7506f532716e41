//! The rank program as its user meets it: under `mpirun`, with good input and bad, with a rank that dies and with ^C.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::checks::job::{Jobs, Victim, want};
use crate::checks::mpi::Library;
use crate::steps::Outcome;

/// The binary that `mpirun` starts.
pub(crate) const NAME: &str = "downbeat-mpi";

/// Runs everything, also after a failure.
pub(crate) fn check(program: &Path, library: Library, scratch: &Path) -> Outcome {
    let jobs = Jobs::new(program, library, scratch, "rank-program")?;
    let results = [
        ("a good run", runs_well(&jobs)),
        ("imbalance and drift", shows_imbalance_and_drift(&jobs)),
        ("bad input", refuses_bad_input(&jobs)),
        (
            "bad input for imbalance and drift",
            refuses_bad_input_for_imbalance_and_drift(&jobs),
        ),
        ("failures at run time", reports_failures(&jobs)),
        ("a rank that dies", ends_without(&jobs, Victim::Rank)),
        ("an interrupt", ends_without(&jobs, Victim::Launcher)),
    ];
    jobs.end(results)
}

fn runs_well(jobs: &Jobs<'_>) -> Outcome {
    let two_algorithms = "sync --algorithm hca3-offset/skampi/20,h2hca(skampi/skampi/20,prop) --check 0,10ms \
                          --repeat 2 --truth --json --csv DIR/a.csv";
    let job = jobs.run(&[(3, two_algorithms)])?;
    want(job.code == Some(0), &job, "exit code 0")?;
    let report: Value =
        serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
    let runs = report["runs"].as_array().ok_or("no runs")?;
    want(
        report["schema"] == "downbeat.sync_runs" && report["factors"]["ranks"] == "3",
        &job,
        "a schema",
    )?;
    want(runs.len() == 4, &job, "four runs")?;
    for check in runs
        .iter()
        .flat_map(|run| run["checks"].as_array().into_iter().flatten())
    {
        want(
            check["looked_at"] == 2 && check["largest_error"]["ns"].is_i64(),
            &job,
            "two ranks, and the truth",
        )?;
    }
    let lines = fs::read_to_string(jobs.folder.join("a.csv")).map_err(|why| why.to_string())?;
    let rows = lines.lines().filter(|line| !line.starts_with('#')).count();
    if rows != 1 + 4 * 2 {
        return Err(format!("wanted a heading and eight lines in:\n{lines}"));
    }
    let table = jobs.run(&[(
        2,
        "sync --algorithm skampi/skampi/20 --check 0 --clock wtime --pin",
    )])?;
    want(
        table.code == Some(0) && table.stdout.starts_with("2 ranks on 1 node, clock wtime"),
        &table,
        "a table",
    )?;
    let levels = "sync --algorithm h3hca(skampi/skampi/9,skampi/skampi/9,prop) --per-node 2 --per-socket 1 --check 0";
    let by_hand = jobs.run(&[(3, levels)])?;
    want(
        by_hand.code == Some(0) && by_hand.stdout.starts_with("3 ranks on 2 nodes"),
        &by_hand,
        "levels by hand",
    )
}

fn refuses_bad_input(jobs: &Jobs<'_>) -> Outcome {
    let cases = [
        ("sync --algorithm hca4/1/skampi/1", "--algorithm"),
        ("sync --algorithm hca3/0/skampi/10", "--algorithm"),
        ("sync --algorithm hca3/8abc/skampi/10", "--algorithm"),
        (
            "sync --algorithm hca3/10/mean-rtt/10/weighted",
            "--algorithm",
        ),
        ("sync --clock sundial", "--clock"),
        ("sync --check -1s", "--check"),
        ("sync --check NaN", "--check"),
        ("sync --repeat 0", "--repeat"),
        ("sync --sample 0", "--sample"),
        ("sync --sample NaN", "--sample"),
        ("sync --check-by skampi/0", "--check-by"),
        ("sync --per-node 0", "--per-node"),
        ("sync --skew drift=NaNppm", "--skew"),
        ("sync --csv /nonexistent/file", "--csv: /nonexistent/file"),
        (
            "sync --calibration /nonexistent/file",
            "--calibration: /nonexistent/file",
        ),
        ("sink", "sink"),
        ("", "downbeat-mpi"),
    ];
    for (arguments, culprit) in cases {
        jobs.fails(&[(2, arguments)], 2, culprit)?;
    }
    jobs.fails(
        &[(1, "sync --clock tsc"), (2, "sync --clock raw")],
        2,
        "different options",
    )
}

fn reports_failures(jobs: &Jobs<'_>) -> Outcome {
    let cases = [
        // Every rank but the first is set back in the middle of it: in an exchange, or between two of one offset; there are
        // few offsets, so that it is hardly between two of them, where nothing contradicts it.
        // The ranks are at it by then however slowly they start, and not done by then however fast they are.
        (
            "sync --skew step=-1s@100ms --algorithm jk/20/skampi/100000",
            "rank 1: ",
        ),
        (
            "sync --skew offset=1s --algorithm prop",
            "the ranks do not share a source of time",
        ),
        (
            "sync --algorithm skampi/skampi/10 --csv /dev/full",
            "cannot write to /dev/full",
        ),
    ];
    for (arguments, says) in cases {
        // No more ranks than cores: those of some libraries never yield.
        jobs.fails(&[(2, arguments)], 1, says)?;
    }
    Ok(())
}

/// Starts a job that would go on for long, and ends it the hard way in the middle.
fn ends_without(jobs: &Jobs<'_>, victim: Victim) -> Outcome {
    let csv = jobs.folder.join("a.csv");
    let _ = fs::remove_file(&csv);
    // The file is begun when all ranks have come so far.
    let begun = || fs::metadata(&csv).is_ok_and(|file| file.len() > 0);
    jobs.ended_by(
        victim,
        &[(
            3,
            "sync --algorithm skampi/skampi/10 --check 0,1h --repeat 2 --csv DIR/a.csv",
        )],
        begun,
    )?;
    let lines = fs::read_to_string(&csv).map_err(|why| why.to_string())?;
    if lines.starts_with("# program = ") {
        Ok(())
    } else {
        Err(format!("what was written is gone: {lines}"))
    }
}

/// Two ranks, and a method that has no late calls: on crowded cores no round may be valid.
fn shows_imbalance_and_drift(jobs: &Jobs<'_>) -> Outcome {
    let job = jobs.run(&[(
        2,
        "imbalance --reps 50 --latency --methods osu,ms2,round-time --json",
    )])?;
    want(job.code == Some(0), &job, "exit code 0")?;
    let report: Value =
        serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
    let of = |part: &str| report[part].as_array().map_or(0, Vec::len);
    want(
        report["schema"] == "downbeat.imbalance" && of("barriers") == 4,
        &job,
        "all barriers",
    )?;
    want(
        of("latencies") == 3 * 4,
        &job,
        "three methods behind each barrier",
    )?;
    let table = jobs.run(&[(
        2,
        "imbalance --barrier tree,dissemination --reps 50 --latency --methods ms1",
    )])?;
    want(
        table.code == Some(0) && table.stdout.contains("leaves last"),
        &table,
        "a table",
    )?;

    let drift = "drift --during 1s --every 100ms --windows 500ms --check-by skampi/20 --skew offset=1s,drift=2000ppm \
                 --json --csv DIR/drift.csv";
    let job = jobs.run(&[(2, drift)])?;
    want(job.code == Some(0), &job, "exit code 0")?;
    let report: Value =
        serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
    let rank = &report["ranks"][0];
    let drift = rank["whole"]["drift_ppm"].as_f64().unwrap_or(0.0);
    // The clock of rank 1 loses 1,801 ppm of what it shows; on busy cores offsets can be off by some of that.
    want(
        report["schema"] == "downbeat.drift" && (-2_500.0..-1_000.0).contains(&drift),
        &job,
        "the drift of rank 1",
    )?;
    want(
        report["latency"]["message_ns"].as_f64() > Some(0.0),
        &job,
        "the latency of a message",
    )?;
    let lines = fs::read_to_string(jobs.folder.join("drift.csv")).map_err(|why| why.to_string())?;
    let rows = lines.lines().filter(|line| !line.starts_with('#')).count() as u64;
    let seen = rank["offsets"].as_u64().unwrap_or(0) + rank["contradictory"].as_u64().unwrap_or(0);
    want(
        rows == 1 + seen,
        &job,
        &format!("a line for each offset in\n{lines}"),
    )
}

fn refuses_bad_input_for_imbalance_and_drift(jobs: &Jobs<'_>) -> Outcome {
    let cases = [
        ("imbalance --barrier linear", "--barrier"),
        ("imbalance --reps 0", "--reps"),
        ("imbalance --time-slice -1s", "--time-slice"),
        ("imbalance --methods osu", "--latency"),
        ("imbalance --latency --methods ms9", "--methods"),
        ("imbalance --latency --size 8,16", "--size"),
        (
            "imbalance --out /proc/nonexistent/x",
            "--out: /proc/nonexistent/x",
        ),
        ("drift --during 0s", "--during"),
        ("drift --during NaN", "--during"),
        ("drift --every -1s", "--every"),
        ("drift --every 3min", "--every"),
        (
            "drift --windows 1h",
            "--windows: 3600.000 s is longer than the whole run",
        ),
        ("drift --windows 1s", "--windows"),
        ("drift --csv /nonexistent/file", "--csv: /nonexistent/file"),
    ];
    for (arguments, culprit) in cases {
        jobs.fails(&[(2, arguments)], 2, culprit)?;
    }
    jobs.fails(&[(1, "imbalance")], 2, "there is only one")?;
    jobs.fails(&[(1, "drift")], 2, "there is only one")
}
