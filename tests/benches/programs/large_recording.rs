//! Stages of a recording of 10^8 events, from the program to the page: time and memory of
//! each.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::recorder::{Recorder, bytes_on_disk};

/// Arguments of `many.c` for 10^8 events of two ranks, nine tenths of them of ping-pongs.
const EVENTS: [&str; 3] = ["100", "75000", "12500"];
/// Largest allowed memory of what reads the recording, in MB.
const PROMISED_MB: f64 = 1_000.0;
/// Memory of the correction in a file, in bytes.
const IN_FILE_BYTES: u64 = 50_000_000;
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Runs all stages.
pub(crate) fn print_table(gate: bool) -> Outcome {
    let recorder = Recorder::find()?;
    let folder = recorder.absent("large");
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let finished = all_stages(&recorder, &folder);
    // It takes gigabytes.
    let _ = fs::remove_dir_all(&folder);
    show(&finished?, gate)
}

/// Time and memory of a stage.
struct Stage {
    name: &'static str,
    seconds: f64,
    /// Seconds of processors, in all its processes.
    cpu_seconds: f64,
    /// Memory of its largest process, with pages of files.
    megabytes: f64,
    /// Size of what it wrote, in MB.
    written: Option<u64>,
    /// True if its memory is bounded.
    is_bounded: bool,
}

fn all_stages(recorder: &Recorder, folder: &Path) -> Result<Vec<Stage>, String> {
    let [recording, measured, corrected, page] =
        ["recording", "measured", "corrected", "page.html"].map(|name| folder.join(name));
    let mut program = Command::new(recorder.compile("many")?);
    program.args(EVENTS);
    let trace = |words: &str, input: &Path, output: &Path| {
        let mut downbeat = recorder.downbeat();
        downbeat.arg("trace").args(words.split(' '));
        downbeat.arg(input).arg("-o").arg(output);
        downbeat
    };
    let correct = "correct --latencies 0ns,0ns,0ns";
    let mut in_file = trace(correct, &measured, &corrected);
    in_file.arg("--temporary").arg(folder);
    // Of memory that is not the file's: pages of the file are given back when they are
    // needed.
    let limited = command(&format!("prlimit --data={IN_FILE_BYTES} --"));
    let corrected_in_file = shell::started_by(limited, &in_file);
    let record = recorder.record_rank(&recording, &program);
    let stages = [
        ("the program alone", recorder.launched(&program), None),
        ("recorded", recorder.launched(&record), Some(&recording)),
        (
            "merged",
            trace("merge", &recording, &measured),
            Some(&measured),
        ),
        (
            "corrected in a file, in 50 MB of memory",
            corrected_in_file,
            Some(&corrected),
        ),
        ("shown", trace("show", &corrected, &page), Some(&page)),
    ];
    let timed = stages
        .into_iter()
        .enumerate()
        .map(|(at, (name, command, output))| {
            let (seconds, cpu_seconds, megabytes) = timed(folder, &command)?;
            let written = output.map(|output| bytes_on_disk(output)).transpose()?;
            Ok(Stage {
                name,
                seconds,
                cpu_seconds,
                megabytes,
                written: written.map(|bytes| bytes / 1_000_000),
                is_bounded: at > 1 && !name.contains("in a file"),
            })
        });
    timed.collect()
}

/// Runs a command; returns its seconds, those of processors, and the memory of the
/// largest of its processes in MB.
fn timed(folder: &Path, stage: &Command) -> Result<(f64, f64, f64), String> {
    let report = folder.join("time");
    let mut time = command("time --format=%e,%U,%S,%M --output");
    time.arg(&report);
    shell::show_and_read(LIMIT, &mut shell::started_by(time, stage))?;
    let text = fs::read_to_string(&report).map_err(|why| format!("{}: {why}", report.display()))?;
    let figures: Result<Vec<f64>, _> = text.trim().split(',').map(str::parse).collect();
    match figures.as_deref() {
        Ok(&[seconds, user, system, kibibytes]) => {
            Ok((seconds, user + system, kibibytes * 1024.0 / 1e6))
        }
        _ => Err(format!("no time and memory: {text}")),
    }
}

fn show(stages: &[Stage], gate: bool) -> Outcome {
    println!(
        "| 10^8 events | s | CPU-seconds | memory, MB | on disk, MB | memory must not exceed |\n|---|---|---|---|---|---|"
    );
    let mut missed = vec![];
    for stage in stages {
        let Stage {
            name,
            seconds,
            cpu_seconds,
            megabytes,
            ..
        } = stage;
        let written = stage
            .written
            .map(|written| written.to_string())
            .unwrap_or_default();
        let bound = if stage.is_bounded {
            PROMISED_MB.to_string()
        } else {
            String::new()
        };
        println!(
            "| {name} | {seconds:.1} | {cpu_seconds:.1} | {megabytes:.0} | {written} | {bound} |"
        );
        if stage.is_bounded && *megabytes > PROMISED_MB {
            missed.push(*name);
        }
    }
    if gate && !missed.is_empty() {
        Err(format!("missed: {}", missed.join(", ")))
    } else {
        Ok(())
    }
}
