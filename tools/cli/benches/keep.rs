//! True errors of clocks that are kept by short sessions, over a simulated hour: `cargo bench -p downbeat-cli --bench keep`. With
//! `-- --gate`, the exit code is 1 when a figure that the project promises is missed.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::process::{Command, ExitCode};

use serde_json::Value;

const SEEDS: u64 = 3;
/// Largest error ever, as a multiple of what the wander of the clocks alone leaves; that right after a session, in nanoseconds; and duration of
/// a session, in seconds.
const MOST: [f64; 3] = [2.0, 30.0, 0.001];

/// Simulates ranks whose clocks are kept; returns the record.
fn kept(ranks: &str, lasting: &str, seed: u64) -> Value {
    let simulate = "simulate --cluster wandering --algorithm cube/10/40 --keep 10s --json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    command.args(simulate.split(' '));
    command.args(["--ranks", ranks, "--lasting", lasting]);
    let output = command.args(["--seed", &seed.to_string()]).output();
    let output = output.expect("the program of this package");
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a JSON document");
    document["runs"][0].clone()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> ExitCode {
    let (ranks, lasting) = match cfg!(debug_assertions) {
        true => ("4", "1min"),
        false => ("256", "1h"),
    };
    let runs: Vec<Value> = (1..=SEEDS).map(|seed| kept(ranks, lasting, seed)).collect();
    let figure = |name: &str, part: &str| {
        let values = runs.iter().map(|run| {
            let found = if part.is_empty() {
                &run[name]
            } else {
                &run[name][part]
            };
            found.as_f64().expect("a number")
        });
        median(values.collect())
    };
    let [ever, alone] = ["shown", "wander_alone"].map(|name| figure(name, "ever_ns"));
    let after = figure("after_session", "ever_ns");
    let session = figure("longest_session_s", "");
    println!(
        "{ranks} simulated ranks, one on each node, clocks that wander by 5 ppb in a second, a session every 10 s for {lasting}; medians of \
         {SEEDS} seeds\n\n\
         | figure | found | at most |\n|---|---|---|"
    );
    let [most_ever, most_after, most_session] = MOST;
    println!(
        "| largest error ever / what wander alone leaves | {ever:.0} ns / {alone:.0} ns = {:.2} | {most_ever} |",
        ever / alone
    );
    println!(
        "| largest error right after a session, of all sessions; median | {after:.0} ns; {:.0} ns | {most_after} |",
        figure("after_session", "median_ns")
    );
    println!(
        "| longest session | {:.2} ms | {} |",
        1e3 * session,
        1e3 * most_session
    );
    println!(
        "| largest error in the past, by all sessions | {:.0} ns | |",
        figure("past", "ever_ns")
    );
    let counted = |name: &str| {
        runs.iter()
            .filter_map(|run| run[name].as_u64())
            .sum::<u64>()
    };
    let [backward, beyond] = ["backward", "beyond_bound"].map(counted);
    println!("| readings earlier than the one before | {backward} | 0 |");
    println!("| true errors beyond the bound of their clock | {beyond} | 0 |");
    let is_missed = ever > most_ever * alone
        || after > most_after
        || session > most_session
        || backward + beyond > 0;
    match is_missed && std::env::args().any(|argument| argument == "--gate") {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}
