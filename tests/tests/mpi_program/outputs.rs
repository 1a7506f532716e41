//! Outputs that are inputs: refused before anything is measured.

use std::fs;
use std::os::unix::fs::symlink;

use downbeat_launch::Outcome;
use downbeat_timers::calibration::{Machine, SavedCalibration, calibrate_during};
use downbeat_timers::{ClockName, Duration, SystemClock, SystemClockId, TscClock};

use crate::job::{Failure, Jobs, test};

const REFUSED: &str = "which is only read";

/// Saves a calibration and a file of places, with a link to each.
fn write_inputs(jobs: &Jobs) -> Outcome {
    let tsc = TscClock::detect().map_err(|why| why.to_string())?;
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(|why| why.to_string())?;
    let calibration = calibrate_during(&tsc, &raw, Duration::from_millis(2));
    let saved = SavedCalibration {
        counter: ClockName::Tsc,
        calibration: calibration.map_err(|why| why.to_string())?,
        reference: SystemClockId::MonotonicRaw,
        machine: Machine::this().map_err(|why| why.to_string())?,
    };
    let path = |name: &str| jobs.folder.join(name);
    saved
        .save(path("calibration"))
        .map_err(|why| why.to_string())?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").map_err(|why| why.to_string())?;
    let places = format!("downbeat places 1\nhost rack\n{} r1\n", host.trim());
    fs::write(path("places"), places).map_err(|why| why.to_string())?;
    for input in ["calibration", "places"] {
        symlink(path(input), path(&format!("{input}-link"))).map_err(|why| why.to_string())?;
    }
    Ok(())
}

#[test]
fn outputs_replace_no_input_of_any_rank() -> Result<(), Failure> {
    test("outputs", |jobs| {
        write_inputs(jobs)?;
        for command in ["sync", "keep", "drift --clock tsc", "imbalance"] {
            let outputs: &[&str] = match command {
                "imbalance" => &["-o"],
                _ => &["-o", "--csv"],
            };
            for input in ["calibration", "places"] {
                let cases = outputs.iter().flat_map(|output| {
                    ["", "-link"]
                        .map(|link| format!("--{input} DIR/{input} {output} DIR/{input}{link}"))
                });
                let cases: Vec<String> = cases.collect();
                let cases: Vec<(&str, &str)> =
                    cases.iter().map(|case| (case.as_str(), REFUSED)).collect();
                jobs.all_fail(2, command, &cases)?;
            }
        }
        let reads = "sync --json --algorithm skampi/skampi/10 --calibration DIR/calibration";
        jobs.report(2, reads).map(drop)
    })
}

#[test]
fn offsets_replace_no_trace_of_any_rank() -> Result<(), Failure> {
    test("offsets-outputs", |jobs| {
        write_inputs(jobs)?;
        let path = |name: &str| jobs.folder.join(name);
        for rank in 0..2 {
            let trace = r#"{"traceEvents": []}"#;
            fs::write(path(&format!("k{rank}.json")), trace).map_err(|why| why.to_string())?;
            let link = path(&format!("link{}.json", 1 - rank));
            symlink(path(&format!("k{rank}.json")), link).map_err(|why| why.to_string())?;
        }
        symlink(path("s1.json"), path("s1-link.json")).map_err(|why| why.to_string())?;
        let kineto = "--kineto DIR/k{rank}.json --shifted";
        let shifted = format!("{kineto} DIR/s{{rank}}.json --perfetto-manifest");
        let cases = [
            (format!("{kineto} DIR/link{{rank}}.json"), REFUSED),
            (format!("{shifted} DIR/k1.json"), REFUSED),
            (format!("{shifted} DIR/link0.json"), REFUSED),
            (
                format!("{shifted} DIR/s1.json"),
                "is also the file of --shifted",
            ),
            (
                "--places DIR/places --perfetto-manifest DIR/places-link".to_owned(),
                REFUSED,
            ),
            (
                "--perfetto-manifest DIR/k1.json --traces DIR/k{rank}.json".to_owned(),
                REFUSED,
            ),
        ];
        let cases: Vec<(&str, &str)> = cases
            .iter()
            .map(|(case, why)| (case.as_str(), *why))
            .collect();
        jobs.all_fail(2, "offsets", &cases)
    })
}
