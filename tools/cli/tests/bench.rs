//! Command-line tests of `downbeat bench`.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;

use downbeat_files::Checksums;
use downbeat_records::ObservationState;
use downbeat_records::{is_complete, read_experiment, read_launch};
use serde_json::Value;

/// Default options of the tests.
const USUAL: [[&str; 2]; 3] = [
    ["--ranks", "2"],
    ["--operation", "bcast,ping-pong"],
    ["--warm-up", "2"],
];

/// A scheme that works on a busy machine, too.
const MS1: [&str; 4] = ["--scheme", "ms1", "--reps", "20"];

fn command(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    let usual = USUAL
        .iter()
        .filter(|[name, _]| !options.contains(name))
        .flatten();
    command.arg("bench").args(usual).args(options);
    command
}

fn bench(options: &[&str]) -> Output {
    command(options).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

fn stdout_of(options: &[&str]) -> String {
    let output = bench(options);
    assert!(
        output.status.success(),
        "{options:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stderr), "", "{options:?}");
    text(&output.stdout).to_owned()
}

fn json_of(options: &[&str]) -> Value {
    serde_json::from_str(&stdout_of(&[options, &["--json"]].concat())).expect("a document")
}

/// Asserts this exit code, and one line that names `culprit`.
fn fails(options: &[&str], code: i32, culprit: &str) {
    let output = bench(options);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
    assert!(
        said.starts_with("downbeat: ") && said.lines().count() == 1,
        "{options:?}: {said}"
    );
    assert!(said.contains(culprit), "{options:?}: {said}");
    assert_eq!(text(&output.stdout), "", "{options:?}");
}

/// Path of a folder of this test, which does not exist before and after it.
struct BenchFolder(PathBuf);

impl BenchFolder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("bench-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_table_has_a_row_for_each_operation_and_number_of_ranks() {
    let shown = stdout_of(&[&MS1[..], &["--operation", "all", "--ranks", "3,2"]].concat());
    assert!(shown.starts_with("3 threads on "), "{shown}");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .skip(2)
        // Notes may follow.
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0][..5],
        ["operation", "bytes", "ranks", "valid", "median"]
    );
    assert_eq!(
        (rows[1][..4].to_vec(), rows[2][..4].to_vec()),
        (
            vec!["allreduce", "8", "2", "20"],
            vec!["allreduce", "8", "3", "20"]
        )
    );
    assert_eq!(rows.len(), 1 + 8 * 2, "{shown}");
}

#[test]
fn every_scheme_takes_the_processing_that_fits_it() {
    for (scheme, processing, first) in [
        (&["--scheme", "ms1"][..], "skampi", "mean"),
        (
            &["--scheme", "ms1", "--barrier", "dissemination"],
            "osu",
            "mean",
        ),
        (&["--scheme", "ms1"], "global", "mean"),
        (&["--scheme", "ms2", "--calls", "5"], "root-best", "min"),
        (
            &["--scheme", "ms3", "--calls", "5", "--barrier", "tree"],
            "median",
            "median",
        ),
        (
            &["--scheme", "ms4", "--window", "100ms"],
            "median",
            "median",
        ),
        (&["--scheme", "ms4", "--window", "100ms"], "global", "mean"),
        (&["--scheme", "ms1"], "percentiles", "p50"),
    ] {
        let options = [scheme, &["--processing", processing, "--reps", "10"]].concat();
        let report = json_of(&options);
        assert_eq!(report["schema"], "downbeat.bench");
        assert_eq!(report["factors"]["scheme"], scheme[1]);
        // Barrier schemes need no global clock, but one processing does.
        assert_eq!(
            report["factors"]["sync"].is_string(),
            scheme[1] == "ms4" || processing == "global"
        );
        let groups = report["groups"].as_array().expect("groups");
        assert_eq!(groups.len(), 2, "{report}");
        for group in groups {
            let count = |state: &str| group[state].as_u64().expect("a number");
            let invalid = count("late") + count("long") + count("drifted");
            // Invalid ones are replaced, up to a limit.
            let is_enough = count("valid") == 10 || count("valid") + invalid == 40;
            assert!(is_enough, "{group}");
            assert!(group["figures_ns"][first].is_f64(), "{group}");
        }
    }
}

#[test]
fn round_time_works_with_skewed_clocks() {
    // The large slack lets some rounds start in time on a busy machine.
    let options = ["--scheme", "round-time", "--slack", "10000", "--reps", "20"];
    let skew = [
        "--skew",
        "offset=1s,drift=20ppm",
        "--sync",
        "hca3/200/skampi/20",
    ];
    for skew in [&[][..], &skew, &["--skew", "offset=1s,per=node"]] {
        let report = json_of(&[&options[..], skew].concat());
        for group in report["groups"].as_array().expect("groups") {
            // A clock that is a second ahead would show a second, or nothing valid.
            let median = group["figures_ns"]["median"].as_f64().expect("a number");
            assert!(median.abs() < 2e8, "{group}");
        }
    }
}

#[test]
fn a_launch_is_recorded_and_can_be_continued() {
    let folder = BenchFolder::new("records");
    let launch = |name: &'static str| {
        [
            &MS1[..],
            &["--out", folder.name(), "--launch", name, "--seed", "7"],
        ]
        .concat()
    };
    stdout_of(&launch("a"));
    stdout_of(&launch("b"));
    let experiment =
        read_experiment(&folder.0, Checksums::Verify).expect("two launches of one experiment");
    assert_eq!(experiment.launches.len(), 2);
    for (_, launch) in &experiment.launches {
        assert!(
            launch.complete && launch.facts.get("seed") == Some("7"),
            "{launch:?}"
        );
        assert_eq!(
            (launch.factors.get("ranks"), launch.factors.get("scheme")),
            (Some("2"), Some("ms1"))
        );
        assert!(launch.groups.iter().all(
            |group| group.counts[0] == (ObservationState::Valid, 20) && group.nanos.len() == 20
        ));
    }

    // The record of a program that was killed in the second group.
    let file = folder.file("a.csv");
    let written = fs::read_to_string(&file).expect("a record");
    let end = written.find("# end").expect("a first group");
    let lines: Vec<&str> = written[end..].split_inclusive('\n').take(2).collect();
    assert!(lines[1].starts_with("# crc32 "), "{written}");
    let first = end + lines.concat().len();
    fs::write(&file, format!("{}bcast,8,2,0,val", &written[..first])).expect("a file");
    assert!(!is_complete(&file).expect("a record"));
    let shown = stdout_of(&launch("a"));
    assert!(
        shown.contains("1 group had been measured before"),
        "{shown}"
    );
    assert_eq!(
        read_launch(&file, Checksums::Verify)
            .expect("a record")
            .groups
            .len(),
        2
    );
    assert!(
        fs::read_to_string(&file)
            .expect("a record")
            .starts_with(&written[..first])
    );

    // A launch that is complete, and one of another experiment.
    let again = stdout_of(&launch("b"));
    assert!(again.contains("2 groups had been measured before"));
    // There is nothing to show but the headline.
    assert_eq!(again.lines().count(), 3, "{again}");
    fails(
        &[&launch("b")[..], &["--barrier", "tree"]].concat(),
        2,
        "\"barrier\" is \"library\"",
    );
}

#[test]
fn records_can_be_read_and_raw_keeps_the_times_of_all_ranks() {
    let folder = BenchFolder::new("formats");
    let launch = |more: &[&str]| stdout_of(&[&MS1[..], &["--out", folder.name()], more].concat());
    launch(&["--launch", "a", "--record-format", "csv"]);
    launch(&["--launch", "b", "--raw"]);
    launch(&[]);
    assert_eq!(
        read_experiment(&folder.0, Checksums::Verify)
            .expect("an experiment")
            .launches
            .len(),
        3
    );
    let raw = fs::read_to_string(folder.file("b.raw.csv")).expect("raw times");
    assert_eq!(
        raw.lines().filter(|line| line.contains(",valid,")).count(),
        2 * 20 * 2
    );
}

#[test]
fn the_clock_and_the_cores_are_factors() {
    let cores = thread::available_parallelism().expect("cores");
    for (clock, recorded) in [("raw", "raw"), ("Monotonic", "monotonic")] {
        let found = json_of(&[&MS1[..], &["--clock", clock]].concat());
        let factors = &found["factors"];
        assert_eq!(factors["clock"], recorded);
        // Each rank may run on one of them only.
        assert_eq!(factors["cores"], cores.to_string());
    }
}

#[test]
fn conditions_of_the_user_are_factors() {
    let stated = ["--factor", "place = same socket", "--factor", "a=b=c"];
    let found = json_of(&[&MS1[..], &stated].concat());
    assert_eq!(
        (&found["factors"]["place"], &found["factors"]["a"]),
        (&"same socket".into(), &"b=c".into())
    );
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_it() {
    let refuses = |options: &[&str], culprit: &str| fails(options, 2, culprit);
    for operation in ["alltoall", "", "bcast,", "bcast, gather", "ALL"] {
        refuses(&["--operation", operation], "--operation");
    }
    refuses(
        &["--ranks", "1"],
        "--operation: ping-pong needs at least 2 ranks",
    );
    for ranks in ["0", "-1", "2,0", "8abc", "", "513", "99999999999"] {
        refuses(&["--ranks", ranks], "--ranks");
    }
    for reps in ["0", "-1", "8abc", "1.5"] {
        refuses(&["--reps", reps], "--reps");
    }
    for time in ["0", "-1s", "8abc", "NaN", "10"] {
        refuses(&["--time-slice", time], "--time-slice");
        refuses(&["--scheme", "ms4", "--window", time], "--window");
    }
    refuses(&["--scheme", "ms1", "--window", "1ms"], "--window");
    refuses(
        &["--scheme", "ms2", "--processing", "skampi"],
        "--processing",
    );
    refuses(&["--scheme", "ms5"], "--scheme");
    refuses(&["--factor", "place"], "must be of the form NAME=VALUE");
    refuses(&["--factor", "ranks=3"], "--factor: ranks is \"2\" already");
    refuses(&["--processing", "ps9"], "--processing");
    refuses(&["--stop", "count/0"], "--stop");
    refuses(&["--resync", "-1s"], "--resync");
    refuses(&["--sync", "hca9/1"], "--sync");
    refuses(&["--skew", "speed=1"], "--skew");
    refuses(&["--seed", "-1"], "--seed");
    refuses(&["--clock", "wtime"], "--clock");
    refuses(&["--calibration", "/nonexistent/file"], "--calibration");
    refuses(
        &["--clock", "raw", "--calibration", "/nonexistent/file"],
        "--calibration: there is no counter to which it applies: the clock is raw",
    );
    for launch in ["../x", "", ".x", "a/b", "a b"] {
        refuses(&["--out", "/tmp", "--launch", launch], "--launch");
    }
    refuses(&["--launch", "x"], "--out");
    refuses(&["--out", "/proc/nonexistent"], "--out");
    refuses(&["--out", "/dev/null"], "--out");
}

#[test]
fn output_that_cannot_be_written_is_a_failure_in_one_line() {
    let full = OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux");
    let output = command(&MS1)
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).lines().count() == 1
            && text(&output.stderr).contains("standard output")
    );
}

#[test]
fn ranks_that_cannot_share_a_clock_fail_together() {
    let options = [
        "--scheme",
        "round-time",
        "--sync",
        "prop",
        "--skew",
        "offset=1s",
    ];
    fails(
        &options,
        1,
        "rank 1: prop: the ranks do not share a source of time",
    );
}
