//! `downbeat-mpi imbalance` and `downbeat-mpi drift`.

use std::fs;

use serde_json::Value;

use crate::job::{Failure, expect, test};

/// The library's algorithms are selected one after the other, and those for other numbers of ranks do not end the rest.
#[test]
fn algorithms_of_the_library_are_studied() -> Result<(), Failure> {
    test("imbalance-algorithms", |jobs| {
        let all = "imbalance --barrier library --algorithms all --reps 20 --json";
        for ranks in [2, 3] {
            let (job, report) = jobs.report(ranks, all)?;
            let barriers = report["barriers"].as_array().map_or(&[][..], Vec::as_slice);
            let of_library = |one: &&Value| {
                let name = one["barrier"].as_str().unwrap_or_default();
                name.starts_with("library:")
            };
            let found = barriers.iter().filter(of_library).count();
            expect(
                found >= 3 && found + 1 == barriers.len(),
                &job,
                "each algorithm",
            )?;
        }
        jobs.fails(
            &[(2, "imbalance --algorithms none-such")],
            2,
            "--algorithms: the library has no barrier algorithm \"none-such\"; it has ",
        )?;
        jobs.fails(&[(2, "imbalance --algorithms tree,")], 2, "--algorithms")
    })
}

/// Two ranks, and methods that have no late calls: on oversubscribed cores no round may be valid.
#[test]
fn imbalance_of_barriers_is_reported() -> Result<(), Failure> {
    test("imbalance", |jobs| {
        let latency = "imbalance --reps 50 --latency --methods osu,ms2,round-time --json";
        let (job, report) = jobs.report(2, latency)?;
        let count = |part: &str| report[part].as_array().map_or(0, Vec::len);
        expect(
            report["schema"] == "downbeat.imbalance" && count("barriers") == 8,
            &job,
            "all barriers",
        )?;
        expect(
            count("latencies") == 3 * 8,
            &job,
            "three methods behind each barrier",
        )?;
        let table = jobs.run(&[(
            2,
            "imbalance --barrier tree,dissemination --reps 50 --latency --methods ms1",
        )])?;
        expect(
            table.code == Some(0) && table.stdout.contains("leaves last"),
            &table,
            "a table",
        )
    })
}

#[test]
fn drift_of_a_skewed_clock_is_found() -> Result<(), Failure> {
    test("drift", |jobs| {
        let skewed = "drift --during 1s --every 100ms --windows 500ms --check-by skampi/20 \
                      --skew offset=1s,drift=2000ppm --json --csv DIR/drift.csv";
        let (job, report) = jobs.report(2, skewed)?;
        let rank = &report["ranks"][0];
        let drift = rank["whole"]["drift_ppm"].as_f64().unwrap_or(0.0);
        // The clock of rank 1 loses 1,801 ppm of what it shows; on busy cores offsets can be off by some of that.
        expect(
            report["schema"] == "downbeat.drift" && (-2_500.0..-1_000.0).contains(&drift),
            &job,
            "the drift of rank 1",
        )?;
        expect(
            report["latency"]["message_ns"].as_f64() > Some(0.0),
            &job,
            "the latency of a message",
        )?;
        let lines =
            fs::read_to_string(jobs.folder.join("drift.csv")).map_err(|why| why.to_string())?;
        let rows = lines.lines().filter(|line| !line.starts_with('#')).count() as u64;
        let offsets =
            rank["offsets"].as_u64().unwrap_or(0) + rank["contradictory"].as_u64().unwrap_or(0);
        expect(
            rows == 1 + offsets,
            &job,
            &format!("a row for each offset in\n{lines}"),
        )
    })
}

#[test]
fn pages_show_barriers_drift_and_synchronizations() -> Result<(), Failure> {
    let cases: [(&str, &[&str]); 4] = [
        (
            "imbalance --barrier tree,linear --reps 20 --latency --methods ms1",
            &["tree: median ", "ms1 behind linear: "],
        ),
        (
            "imbalance --barrier library --reps 20 --latency --methods osu,round-time --sizes 8,64,0",
            &[
                "Latency of allreduce behind library",
                "<title>round-time, 64 B: ",
            ],
        ),
        (
            "drift --during 500ms --every 50ms --check-by skampi/9",
            &["<title>rank 1</title>", "Residuals of a line"],
        ),
        (
            "sync --algorithm skampi/skampi/9 --check 0 --repeat 2",
            &["skampi/skampi/9, run 2: took "],
        ),
    ];
    test("pages", |jobs| {
        for (command, parts) in cases {
            let written = jobs.run(&[(2, &format!("{command} -o DIR/page.html --svg DIR/svg"))])?;
            expect(
                written.code == Some(0) && written.stdout.is_empty(),
                &written,
                "a page instead of text",
            )?;
            let page = fs::read_to_string(jobs.folder.join("page.html"));
            let page = page.map_err(|why| why.to_string())?;
            if let Some(part) = parts.iter().find(|part| !page.contains(**part)) {
                return Err(format!("no \"{part}\" in the page of {command}:\n{page}"));
            }
        }
        Ok(())
    })
}

#[test]
fn bad_input_is_refused() -> Result<(), Failure> {
    const CASES: [(&str, &str); 22] = [
        ("imbalance --barrier bruck", "--barrier"),
        // Its readings are unordered, and time no calls.
        ("imbalance --clock wtime", "--clock"),
        ("bench --clock wtime", "--clock"),
        ("drift --clock wtime", "--clock"),
        ("imbalance --reps 0", "--reps"),
        ("imbalance --time-slice -1s", "--time-slice"),
        ("imbalance --methods osu", "--latency"),
        ("imbalance --latency --methods ms9", "--methods"),
        ("imbalance --latency --sizes 8,x", "--sizes"),
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
        ("drift -o /nonexistent/file", "-o: /nonexistent/file"),
        ("imbalance -o /nonexistent/file", "-o: /nonexistent/file"),
        (
            "sync --check 0 -o /nonexistent/file",
            "-o: /nonexistent/file",
        ),
        (
            "sync --check 0 -o both.out --csv both.out",
            "--csv: both.out is also the file of -o",
        ),
        (
            "drift -o both.out --csv ./both.out",
            "--csv: ./both.out is also the file of -o",
        ),
    ];
    test("imbalance-and-drift-bad-input", |jobs| {
        jobs.all_fail(2, "", &CASES)?;
        jobs.fails(&[(1, "imbalance")], 2, "there is only one")?;
        jobs.fails(&[(1, "drift")], 2, "there is only one")
    })
}
