//! Errors of the past that is interpolated through sessions, on simulated clusters whose true time is known:
//! `cargo bench -p downbeat --bench timesync [-- RUNS]`.
//!
//! With `-- --gate`, the exit code is 1 if the past at a session is more than a
//! nanosecond from the offset that its exchanges give, if it is worse than straight lines
//! where drifts wander between sessions by more than the exchanges are wrong, or if it is
//! wrong by more than 6 ns between sessions a second apart.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

#[path = "../tests/common/sessions.rs"]
mod sessions;

use std::process::ExitCode;

use downbeat::{Duration, SessionLimits, SessionRule};
use downbeat_sync::sim::Clocks;
use sessions::{PastErrors, SESSIONS, errors, simulate, wandering};

/// Times between sessions in milliseconds.
const APART: [i64; 5] = [100, 1_000, 3_000, 10_000, 60_000];

/// Shortest of these times at which drifts wander by more than the exchanges are wrong.
const WANDERED: i64 = 3_000;

/// Longest of these times at which they hardly wander, and the largest error there in
/// nanoseconds.
const STEADY: i64 = 1_000;
const MOST_STEADY: f64 = 6.0;

fn main() -> ExitCode {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    // As a test, it only has to run.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let runs: u64 = numbers.next().unwrap_or(if is_bench { 200 } else { 2 });
    println!(
        "{SESSIONS} sessions of 100 exchanges, {runs} runs each; root mean square errors between sessions\n\n\
         | drifts | rule | sessions apart | ranks | at sessions, largest | past | lines | past / lines | pasts worse than lines |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    let [lowest, mean] = SessionRule::ALL;
    let mut missed = false;
    for millis in APART {
        let clocks = wandering(Duration::from_millis(millis));
        let found = Case {
            drifts: "wander",
            clocks,
            millis,
            rule: lowest,
        }
        .print_rows(runs);
        missed |= found.at_sessions > 1.0;
        missed |= millis >= WANDERED && found.ratio > 1.0;
        missed |= millis <= STEADY && found.past > MOST_STEADY;
    }
    let others = [
        Case {
            drifts: "wander",
            clocks: wandering(Duration::from_millis(STEADY)),
            millis: STEADY,
            rule: mean,
        },
        Case {
            drifts: "constant",
            clocks: Clocks {
                wander: None,
                ..Clocks::typical()
            },
            millis: 10_000,
            rule: lowest,
        },
    ];
    for case in others {
        missed |= case.print_rows(runs).at_sessions > 1.0;
    }
    u8::from(missed && std::env::args().any(|argument| argument == "--gate")).into()
}

/// Sessions of ranks whose clocks drift.
struct Case {
    drifts: &'static str,
    clocks: Clocks,
    millis: i64,
    rule: SessionRule,
}

/// Largest figures of the rows of a case.
#[derive(Default)]
struct LargestFigures {
    at_sessions: f64,
    past: f64,
    ratio: f64,
}

impl Case {
    /// Prints a row for each number of ranks.
    fn print_rows(&self, runs: u64) -> LargestFigures {
        let mut largest = LargestFigures::default();
        for ranks in [2, 4] {
            let pasts: Vec<PastErrors> =
                (0..runs).flat_map(|seed| self.pasts(ranks, seed)).collect();
            let worse = pasts.iter().filter(|past| past.spline() > past.lines());
            let (worse, of) = (worse.count(), pasts.len());
            let all = pasts
                .into_iter()
                .fold(PastErrors::default(), PastErrors::and);
            let (at, past, lines) = (all.at_sessions, all.spline(), all.lines());
            let (seconds, ratio) = (self.millis as f64 / 1e3, past / lines);
            let (drifts, rule) = (self.drifts, self.rule);
            println!(
                "| {drifts} | {rule} | {seconds} s | {ranks} | {at:.1} ns | {past:.1} ns | {lines:.1} ns | {ratio:.3} | {worse} of {of} |"
            );
            largest = LargestFigures {
                at_sessions: largest.at_sessions.max(at),
                past: largest.past.max(past),
                ratio: largest.ratio.max(ratio),
            };
        }
        largest
    }

    fn pasts(&self, ranks: u32, seed: u64) -> Vec<PastErrors> {
        let apart = Duration::from_millis(self.millis);
        let limits = SessionLimits {
            rule: self.rule,
            ..SessionLimits::default()
        };
        errors(&simulate(ranks, self.clocks.clone(), seed, apart, limits)).collect()
    }
}
