//! `downbeat-mpi sync`, and input that no subcommand accepts.

use std::fs;

use downbeat_launch::Outcome;

use crate::job::{Failure, Jobs, Victim, expect, one_line, test};

#[test]
fn repetitions_and_checks_are_reported() -> Result<(), Failure> {
    test("sync-report", |jobs| {
        let two_algorithms = "sync --algorithm hca3-offset/skampi/20,h2hca(skampi/skampi/20,prop) --check 0,10ms \
                              --repeat 2 --truth --json --csv DIR/a.csv";
        let (job, report) = jobs.report(3, two_algorithms)?;
        let runs = report["runs"].as_array().ok_or("no runs")?;
        expect(
            report["schema"] == "downbeat.sync_runs" && report["factors"]["ranks"] == "3",
            &job,
            "a schema",
        )?;
        expect(runs.len() == 4, &job, "four runs")?;
        for check in runs
            .iter()
            .flat_map(|run| run["checks"].as_array().into_iter().flatten())
        {
            expect(
                check["looked_at"] == 2 && check["largest_error"]["ns"].is_i64(),
                &job,
                "two ranks, and the true errors",
            )?;
            // No error is more certain than the agreement of the counters.
            let width = &check["largest_error"]["half_width_ns"];
            let is_exact = check["largest_error"]["rank"] == 0;
            expect(
                is_exact || width.is_null() || width.as_i64() >= Some(1),
                &job,
                "the certainty of true errors",
            )?;
        }
        let lines = fs::read_to_string(jobs.folder.join("a.csv")).map_err(|why| why.to_string())?;
        let rows = lines.lines().filter(|line| !line.starts_with('#')).count();
        if rows != 1 + 4 * 2 {
            return Err(format!("expected a header and eight rows in:\n{lines}"));
        }
        let pinned = "sync --algorithm skampi/skampi/20 --check 0 --truth --pin --json";
        let (job, report) = jobs.report(2, pinned)?;
        let factors = &report["factors"];
        let is_number = |name: &str| {
            let number = factors[name].as_str().map(str::parse::<f64>);
            number.is_some_and(|number| number.is_ok_and(f64::is_finite))
        };
        let several = downbeat_timers::cores::allowed_cores().len() > 1;
        expect(
            !several || is_number("swapped_counters_ns") && is_number("swapped_method_ns"),
            &job,
            "what the swap of cores tells",
        )
    })
}

#[test]
fn table_is_printed() -> Result<(), Failure> {
    test("sync-table", |jobs| {
        let pinned = "sync --algorithm skampi/skampi/20 --check 0 --clock wtime --pin";
        let table = jobs.run(&[(2, pinned)])?;
        expect(
            table.code == Some(0) && table.stdout.starts_with("2 ranks on 1 node, clock wtime"),
            &table,
            "a table",
        )?;
        let levels = "sync --algorithm h3hca(skampi/skampi/9,skampi/skampi/9,prop) --per-node 2 --per-socket 1 --check 0";
        let by_hand = jobs.run(&[(3, levels)])?;
        expect(
            by_hand.code == Some(0) && by_hand.stdout.starts_with("3 ranks on 2 nodes"),
            &by_hand,
            "levels from options",
        )
    })
}

/// Clocks that differ by a thousandth drift by more than a round trip during a long session.
#[test]
fn an_algorithm_that_fails_costs_the_others_nothing() -> Result<(), Failure> {
    test("sync-fails", |jobs| {
        let arguments = "sync --algorithm hca3/10/skampi/10000,none --check 0 --check-by skampi/1 --skew drift=1000ppm";
        let job = jobs.run(&[(2, arguments)])?;
        expect(
            job.code == Some(1) && job.stdout.lines().any(|line| line.starts_with("none ")),
            &job,
            "exit code 1 and the other algorithm's results",
        )?;
        one_line(
            &job,
            "rank 1: hca3/10/skampi/10000: its clock and that of rank 0: ",
        )
    })
}

#[test]
fn bad_input_is_refused() -> Result<(), Failure> {
    const MISSING_CLOCK: &str = match cfg!(target_arch = "aarch64") {
        true => "sync --clock tsc",
        false => "sync --clock cntvct",
    };
    const CASES: [(&str, &str); 23] = [
        ("sync --algorithm hca4/1/skampi/1", "--algorithm"),
        ("sync --algorithm hca3/0/skampi/10", "--algorithm"),
        ("sync --algorithm hca3/8abc/skampi/10", "--algorithm"),
        (
            "sync --algorithm hca3/10/mean-rtt/10/weighted",
            "--algorithm",
        ),
        ("sync --algorithm hca3,none,hca3", "is given twice"),
        ("sync --clock sundial", "--clock"),
        (MISSING_CLOCK, " on rank 0: "),
        ("sync --check -1s", "--check"),
        ("sync --check NaN", "--check"),
        ("sync --repeat 0", "--repeat"),
        ("sync --sample 0", "--sample"),
        ("sync --sample NaN", "--sample"),
        (
            "sync --sample 1e-9",
            "--sample: 0.000000001 with --seed 1 selects no rank, of 1 rank besides rank 0",
        ),
        ("sync --truth --predict --sample 0.5", "--sample"),
        ("sync --truth --predict --check-by skampi/9", "--check-by"),
        ("sync --check-by skampi/0", "--check-by"),
        ("sync --per-node 0", "--per-node"),
        ("sync --skew drift=NaNppm", "--skew"),
        ("sync --csv /nonexistent/file", "--csv: /nonexistent/file"),
        (
            "sync --calibration /nonexistent/file",
            "--calibration: /nonexistent/file",
        ),
        ("sink", "sink"),
        ("clocks", "did you mean nodes?"),
        ("", "downbeat-mpi"),
    ];
    test("sync-bad-input", |jobs| {
        jobs.all_fail(2, "", &CASES)?;
        jobs.fails(
            &[(1, "sync --clock tsc"), (2, "sync --clock raw")],
            2,
            "different options",
        )
    })
}

#[test]
fn failures_at_run_time_are_reported() -> Result<(), Failure> {
    const CASES: [(&str, &str); 3] = [
        // All ranks but the first are set back in the middle, at whatever speed messages
        // go: all ranks have started by then, and none has finished.
        ("sync --skew step=-1s@500ms --algorithm cube/2s", "rank 1: "),
        (
            "sync --skew offset=1s --algorithm prop",
            "the ranks do not share a source of time",
        ),
        (
            "sync --algorithm skampi/skampi/10 --csv /dev/full",
            "cannot write to /dev/full",
        ),
    ];
    // No more ranks than cores: those of some libraries never yield.
    test("sync-failures", |jobs| jobs.all_fail(1, "", &CASES))
}

#[test]
fn records_survive_a_dead_rank() -> Result<(), Failure> {
    test("sync-dead-rank", |jobs| ends_by(jobs, Victim::Rank))
}

#[test]
fn records_survive_an_interrupt() -> Result<(), Failure> {
    test("sync-interrupt", |jobs| ends_by(jobs, Victim::Launcher))
}

/// Starts a long job, and ends it by force in the middle.
fn ends_by(jobs: &Jobs, victim: Victim) -> Outcome {
    let csv = jobs.folder.join("a.csv");
    // The file is begun when all ranks are ready.
    let begun = || fs::metadata(&csv).is_ok_and(|file| file.len() > 0);
    jobs.end_by(
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
        Err(format!("the record is lost: {lines}"))
    }
}

#[test]
fn common_returns_are_compared_with_the_barrier() -> Result<(), Failure> {
    test("harmonize", |jobs| {
        let (job, report) =
            jobs.report(3, "harmonize --rounds 200 --sync hca3/20/skampi/20 --json")?;
        let skews = ["barrier", "harmonize"].map(|name| report[name]["median_ns"].as_f64());
        let is_skew = |skew: Option<f64>| skew.is_some_and(|skew| skew >= 0.0);
        let missed = report["missed_rounds"].as_u64();
        expect(
            report["schema"] == "downbeat.harmonize"
                && report["rounds"] == 200
                && report["by_shared_counter"] == true
                && skews.into_iter().all(is_skew)
                && missed.is_some_and(|missed| missed <= 200),
            &job,
            "skews of 200 rounds",
        )?;
        let unshared = jobs.run(&[(2, "harmonize --rounds 20 --clock wtime")])?;
        expect(
            unshared.code == Some(0),
            &unshared,
            "an algorithm for MPI_Wtime",
        )?;
        jobs.all_fail(
            2,
            "harmonize",
            &[
                ("--max-error 1ns", "--max-error: "),
                ("--rounds 0", "--rounds"),
                ("--max-error -1us", "--max-error"),
                ("--sync hlhca(rack=cube,rank=prop)", "--sync: "),
            ],
        )
    })
}
