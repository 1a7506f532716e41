//! Time and memory to read and analyse ten million observations: `cargo bench -p downbeat-records
//! --bench records`, with `--all-features` in all formats. With `-- --gate`, the exit code is 1 if
//! a promised limit is exceeded.
//!
//! Every row is measured in a child process, so that each has its own peak of memory. The files are
//! in the cache of the system when they are read: disks are not measured.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark aborts on errors")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use downbeat_files::Checksums;
use downbeat_records::analysis::{Analysis, AnalysisSettings, GroupAnalysis};
use downbeat_records::{
    Factors, GroupKey, MeasuredGroup, Observation, ObservationState, Observations,
};
use downbeat_records::{Journal, RecordFormat, read_experiment};

/// Argument that makes this program a child process: the task and the path follow.
const CHILD: &str = "--row";
const LAUNCHES: usize = 10;
const GROUPS: usize = 20;
/// Unoptimized tests only check that it runs.
const CALLS: usize = if cfg!(debug_assertions) { 50 } else { 50_000 };

/// Promised limits of a format.
struct Bound {
    most_seconds: f64,
    most_megabytes: f64,
}

fn bound(format: RecordFormat) -> Bound {
    match format.name() {
        "csv" => Bound {
            most_seconds: 4.0,
            most_megabytes: 1_000.0,
        },
        "parquet" => Bound {
            most_seconds: 1.0,
            most_megabytes: 1_000.0,
        },
        _ => Bound {
            most_seconds: f64::INFINITY,
            most_megabytes: f64::INFINITY,
        },
    }
}

/// Run-times of a realistic distribution, a narrow peak with a long tail; half of them from a
/// global clock, in whole nanoseconds.
fn seen(group: usize) -> Observations {
    let mut random = fastrand::Rng::with_seed(group as u64);
    let mut nanos = |i: usize| {
        let tail = if random.u8(..) < 5 {
            random.f64() * 5e4
        } else {
            0.0
        };
        let nanos = 400.0 * (group + 1) as f64 + random.f64() * 97.0 + tail;
        if i.is_multiple_of(2) {
            nanos.round()
        } else {
            (nanos * 1e3).round() / 1e3
        }
    };
    let state = |i: usize| {
        if i % 1_000 == 999 {
            ObservationState::Late
        } else {
            ObservationState::Valid
        }
    };
    let observe = |i: usize| Observation {
        state: state(i),
        begin: 0,
        nanos: nanos(i),
    };
    Observations((0..CALLS).map(observe).collect())
}

fn write(folder: &Path, format: RecordFormat) {
    let factors = Factors::default().with("ranks", &4);
    for launch in 0..LAUNCHES {
        let name = format!("launch-{launch:03}");
        let journal = Journal::open(folder, &name, format, false, &factors, &Factors::default());
        let mut journal = journal.expect("a folder of one's own");
        for group in 0..GROUPS {
            let key = GroupKey {
                operation: "allreduce".to_owned(),
                bytes: 8 << group,
                ranks: 4,
            };
            let group = MeasuredGroup {
                key,
                nanos: vec![],
                counts: vec![],
                figures: vec![("min".to_owned(), 400.0)],
            };
            journal
                .append(
                    &group,
                    &seen(launch * GROUPS + group.key.bytes.trailing_zeros() as usize),
                )
                .expect("room for it");
        }
        journal.complete().expect("room for it");
    }
}

/// Reads and analyses all; returns the number of valid observations.
fn analyse(folder: &Path) -> usize {
    let found = read_experiment(folder, Checksums::Verify).expect("what was just written");
    let analysis = Analysis::new(&found.launches, &AnalysisSettings::default())
        .expect("launches with the same factors");
    analysis.groups.iter().map(GroupAnalysis::valid).sum()
}

/// Peak memory of this process.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("Linux has it");
    // The kernel writes kB for 1,024 bytes.
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<f64>()
        .expect("a number")
        * 1_024.0
        / 1e6
}

/// Runs a child process; returns seconds, peak megabytes and observations.
fn in_a_child(what: &str, format: RecordFormat, folder: &Path) -> [f64; 3] {
    let this = std::env::current_exe().expect("this program has a file");
    let output = Command::new(this)
        .args([CHILD, what, format.name()])
        .arg(folder)
        .output();
    let numbers =
        String::from_utf8_lossy(&output.expect("it can be started again").stdout).into_owned();
    let numbers: Vec<f64> = numbers
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.try_into().expect("three numbers")
}

fn child(what: &str, format: RecordFormat, folder: &Path) {
    let began = Instant::now();
    let observations = if what == "analyse" {
        analyse(folder)
    } else {
        write(folder, format);
        0
    };
    println!(
        "{} {} {observations}",
        began.elapsed().as_secs_f64(),
        peak_megabytes()
    );
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == CHILD) {
        child(
            &arguments[at + 1],
            arguments[at + 2].parse().expect("a format"),
            Path::new(&arguments[at + 3]),
        );
        return ExitCode::SUCCESS;
    }
    let mut missed = vec![];
    println!(
        "| what | files, MB | s | must not exceed | peak, MB | must not exceed |\n|---|---|---|---|---|---|"
    );
    for format in RecordFormat::ALL {
        let folder = Folder(
            std::env::temp_dir().join(format!("downbeat-bench-{}-{format}", std::process::id())),
        );
        let [seconds, megabytes, _] = in_a_child("write", *format, &folder.0);
        let files = std::fs::read_dir(&folder.0).expect("it was written");
        let bytes: u64 = files
            .map(|file| file.and_then(|file| file.metadata()).expect("a file").len())
            .sum();
        println!(
            "| write {format} | {:.0} | {seconds:.2} | | {megabytes:.0} | |",
            bytes as f64 / 1e6
        );
        let [seconds, megabytes, observations] = in_a_child("analyse", *format, &folder.0);
        let all = LAUNCHES * GROUPS * CALLS;
        assert!(
            observations as usize == all - all / 1_000 || cfg!(debug_assertions),
            "{observations} were analysed"
        );
        let Bound {
            most_seconds,
            most_megabytes,
        } = bound(*format);
        let shown = |most: f64| {
            if most.is_finite() {
                most.to_string()
            } else {
                String::new()
            }
        };
        let (of_time, of_memory) = (shown(most_seconds), shown(most_megabytes));
        println!(
            "| read and analyse {format} | | {seconds:.2} | {of_time} | {megabytes:.0} | {of_memory} |"
        );
        if seconds > most_seconds || megabytes > most_megabytes {
            missed.push(format!(
                "reading and analysing {format}: at most {most_seconds} s and {most_megabytes} MB"
            ));
        }
    }
    println!(
        "\n{} observations, in {LAUNCHES} launches of {GROUPS} groups",
        LAUNCHES * GROUPS * CALLS
    );
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("missed: {}", missed.join("; "));
    u8::from(arguments.iter().any(|argument| argument == "--gate")).into()
}
