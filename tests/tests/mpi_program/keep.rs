//! `downbeat-mpi keep`.

use std::fs;

use downbeat_launch::Outcome;
use downbeat_launch::command::FinishedCommand;
use serde_json::Value;

use crate::job::{Failure, expect, test};

/// Bounds hold, by messages and by the truth, for clocks that drift and wander. How well they are kept depends on the load.
#[test]
fn kept_clocks_stay_within_their_bounds() -> Result<(), Failure> {
    test("keep", |jobs| {
        for ranks in [2, 3] {
            let kept = "keep --skew offset=1s,drift=20ppm,wander=0.01ppm --truth --period 200ms --during 1s \
                        --sync cube/20/20 --check-by skampi/20 --max-drift 100ppm --json --csv DIR/keep.csv";
            let (job, report) = jobs.report(ranks, kept)?;
            let sessions = &report["sessions"];
            let counts = ["rounds", "missed"].map(|name| report[name].as_u64());
            expect(
                report["schema"] == "downbeat.keep"
                    && counts[0]
                        .zip(counts[1])
                        .is_some_and(|(made, missed)| made + missed == 51)
                    && sessions["kept_ranks"] == ranks - 1
                    && sessions["sessions"].as_u64() > Some(0),
                &job,
                "51 measurements, and sessions of all other ranks",
            )?;
            errors_are_within(&job, &report["errors"])?;
            let lines =
                fs::read_to_string(jobs.folder.join("keep.csv")).map_err(|why| why.to_string())?;
            let of_counter = lines
                .lines()
                .filter(|line| line.contains(",counter,"))
                .count() as u64;
            expect(
                Some(of_counter) == counts[0].map(|made| made * u64::from(ranks - 1)),
                &job,
                &format!("a row for each rank and measurement in\n{lines}"),
            )?;
        }
        Ok(())
    })
}

/// Checks that errors were measured by messages and by the counter, and none beyond a bound.
fn errors_are_within(job: &FinishedCommand, errors: &Value) -> Outcome {
    for (index, by) in ["skampi/20", "counter"].into_iter().enumerate() {
        let measured = &errors[index];
        let error = measured["kept"]["ever_ns"].as_f64();
        let certain = measured["certain"]["ever_ns"].as_f64();
        let width = measured["half_width_ns"].as_f64();
        expect(
            measured["by"] == by
                && measured["beyond_bound"] == 0
                && error.is_some()
                && certain > Some(0.0)
                && (by != "counter" || (error <= certain && width > Some(0.0))),
            job,
            &format!("errors by {by} within the bounds"),
        )?;
    }
    Ok(())
}

/// Ranks that read one counter have nothing to correct, and show one time.
#[test]
fn a_shared_counter_needs_no_sessions() -> Result<(), Failure> {
    test("keep-shared", |jobs| {
        let shared = "keep --truth --period 200ms --during 500ms --json";
        let (job, report) = jobs.report(2, shared)?;
        let largest = &report["errors"][1]["kept"]["ever_ns"];
        expect(
            report["sessions"]["kept_ranks"] == 0 && *largest == 0.0,
            &job,
            "no error of ranks that share a counter",
        )?;
        let page = jobs.run(&[(2, "keep --period 200ms --during 500ms -o DIR/keep.html")])?;
        let written = fs::read_to_string(jobs.folder.join("keep.html")).unwrap_or_default();
        expect(
            page.code == Some(0) && written.contains("kept, by messages: at most "),
            &page,
            "a page with curves",
        )?;
        let unshared = jobs.run(&[(2, "keep --period 200ms --during 400ms --clock wtime")])?;
        expect(
            unshared.code == Some(0),
            &unshared,
            "an algorithm for MPI_Wtime",
        )
    })
}

#[test]
fn bad_input_is_refused() -> Result<(), Failure> {
    const CASES: [(&str, &str); 13] = [
        ("--period 0", "--period"),
        ("--period -1s", "--period"),
        ("--during NaN", "--during"),
        (
            "--during 1s",
            "--during: 1.000 s is shorter than two periods",
        ),
        ("--every 2s", "--every: 2.000 s is longer than the period"),
        ("--every 1ns", "--every: 1 ns is too short"),
        ("--check-by hca3", "--check-by"),
        ("--sync hlhca(rack=cube,rank=prop)", "--sync: "),
        ("--max-drift 2", "--max-drift"),
        ("--max-wander -1", "--max-wander"),
        ("--csv /nonexistent/file", "--csv: /nonexistent/file"),
        ("-o /nonexistent/file", "-o: /nonexistent/file"),
        (
            "-o both.out --csv both.out",
            "--csv: both.out is also the file of -o",
        ),
    ];
    test("keep-bad-input", |jobs| {
        jobs.all_fail(2, "keep", &CASES)?;
        jobs.fails(&[(1, "keep")], 2, "there is only one")?;
        jobs.all_fail(
            1,
            "keep",
            &[("--csv /dev/full", "cannot write to /dev/full")],
        )
    })
}
