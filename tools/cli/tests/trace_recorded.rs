//! Correction of traces recorded from real threads with skewed clocks, compared with the true times.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod recorder;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_sync::ThreadCluster;
use downbeat_trace::check::Verdict;
use downbeat_trace::formats::TraceFile;
use downbeat_trace::{Latencies, Matching};
use recorder::{Recorder, patterns};

/// Returns the output of `downbeat trace` with these arguments.
fn output_of(folder: &Path, arguments: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    let output = program
        .arg("trace")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(
        output.status.success(),
        "{arguments}: {}",
        text(output.stderr)
    );
    text(output.stdout)
}

#[test]
fn recorded_communication_patterns_are_corrected() {
    for ranks in [2, 3, 5] {
        let name = format!("recorded-{ranks}-{}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let origin = recorder::origin();
        let run = ThreadCluster::new(ranks).run(|comm| {
            // A rank has a communicator, and may split it.
            let mut recorder = Recorder::new(comm, origin);
            patterns::all(&mut recorder, |_| ());
            recorder.write(&folder);
        });
        run.unwrap();

        let read = |name: &str| {
            TraceFile::read(&folder.join(name), Matching::default())
                .unwrap()
                .0
        };
        let truth = read("truth.dbt");
        // Latencies between threads are unknown, but no message was received before it was sent.
        let happened = Verdict::new(&truth, &truth.times(), &Latencies::ZERO).unwrap();
        assert_eq!(
            (happened.messages.violated, happened.collectives.violated),
            (0, 0),
            "{:?}",
            happened.faults
        );

        let options = "--truth truth.dbt --latencies 0 --json";
        for method in ["none", "linear", "least-squares", "spline"] {
            let said = output_of(
                &folder,
                &format!(
                    "correct wrong.dbt -o {method}.dbt --pre-synchronization {method} {options}"
                ),
            );
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            let before = &said["pre_synchronized"]["messages"];
            assert!(before["violated"].as_u64() > Some(0), "{before}");
            assert_eq!(said["corrected"]["holds"], true);
            output_of(
                &folder,
                &format!("check {method}.dbt --against wrong.dbt --latencies 0"),
            );
            assert_eq!(read(&format!("{method}.dbt")).difference(&truth), None);
            let centred = |stage: &str| said["truth"][stage]["centred_nanos"].as_f64().unwrap();
            println!(
                "{ranks} ranks, {method}: {before}, centred error {:.0} ns before, {:.0} ns after",
                centred("pre_synchronized"),
                centred("corrected")
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
