//! Errors of the past that is interpolated through sessions, on simulated clusters whose true time is known:
//! `cargo bench -p downbeat --bench timesync [-- RUNS]`.
//!
//! With `-- --gate`, the exit code is 1 if the past at a session is more than a nanosecond from the offset that its exchanges give, or
//! if it is worse than straight lines where drifts wander between sessions by more than the exchanges are wrong.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

#[path = "../tests/common/sessions.rs"]
mod sessions;

use std::process::ExitCode;

use downbeat::{Duration, SessionLimits};
use downbeat_sync::sim::Clocks;
use sessions::{PastErrors, SESSIONS, errors, simulate, wandering};

/// Times between sessions in milliseconds.
const APART: [i64; 5] = [100, 1_000, 3_000, 10_000, 60_000];

/// Shortest of these times at which drifts wander by more than the exchanges are wrong.
const WANDERED: i64 = 10_000;

fn main() -> ExitCode {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    // As a test, it only has to run.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let runs: u64 = numbers.next().unwrap_or(if is_bench { 200 } else { 2 });
    println!(
        "{SESSIONS} sessions of 100 exchanges, {runs} runs each; root mean square errors between sessions\n\n\
         | drifts | sessions apart | ranks | at sessions, largest | past | lines | past / lines | pasts worse than lines |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let mut missed = false;
    for millis in APART {
        let clocks = wandering(Duration::from_millis(millis));
        let [at_sessions, ratio] = rows("wander", &clocks, millis, runs);
        missed |= at_sessions > 1.0 || millis >= WANDERED && ratio > 1.0;
    }
    let steady = Clocks {
        wander: None,
        ..Clocks::typical()
    };
    let [at_sessions, _] = rows("constant", &steady, WANDERED, runs);
    missed |= at_sessions > 1.0;
    u8::from(missed && std::env::args().any(|argument| argument == "--gate")).into()
}

/// Prints a row for each number of ranks; returns the largest deviation at a session, and the largest ratio.
fn rows(drifts: &str, clocks: &Clocks, millis: i64, runs: u64) -> [f64; 2] {
    let mut largest = [0.0_f64; 2];
    for ranks in [2, 4] {
        let pasts: Vec<PastErrors> = (0..runs)
            .flat_map(|seed| pasts(ranks, clocks, millis, seed))
            .collect();
        let worse = pasts.iter().filter(|past| past.spline() > past.lines());
        let (worse, of) = (worse.count(), pasts.len());
        let all = pasts
            .into_iter()
            .fold(PastErrors::default(), PastErrors::and);
        let (at, past, lines) = (all.at_sessions, all.spline(), all.lines());
        let (seconds, ratio) = (millis as f64 / 1e3, past / lines);
        println!(
            "| {drifts} | {seconds} s | {ranks} | {at:.1} ns | {past:.1} ns | {lines:.1} ns | {ratio:.3} | {worse} of {of} |"
        );
        largest = [largest[0].max(at), largest[1].max(ratio)];
    }
    largest
}

fn pasts(ranks: u32, clocks: &Clocks, millis: i64, seed: u64) -> Vec<PastErrors> {
    let (apart, limits) = (Duration::from_millis(millis), SessionLimits::default());
    errors(&simulate(ranks, clocks.clone(), seed, apart, limits)).collect()
}
