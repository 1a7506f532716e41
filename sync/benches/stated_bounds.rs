//! Stated error bounds of all algorithms against the true errors, on simulated clusters and on more threads than cores, with
//! clocks that step and without: `cargo bench -p downbeat-sync --bench stated_bounds [-- RUNS]`.
//!
//! With `-- --gate`, the exit code is 1 if an error exceeds its bound, if more than half of the bounds of an algorithm are wider than
//! twice the least possible: half of the round trips on the path, and the declared drift; or if one on an adversarial network is wider
//! than 1.5 times the narrowest interval that the readings and messages of its closing exchanges allow; or if clocks that are kept and do
//! not step are said to have stepped.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

#[path = "../tests/common/adversarial.rs"]
mod adversarial;
#[path = "../tests/common/kept_clocks.rs"]
mod kept_clocks;
#[path = "../tests/common/narrowest.rs"]
mod narrowest;
#[path = "../tests/common/stepping.rs"]
mod stepping;
#[path = "../tests/common/thread_steps.rs"]
mod thread_steps;

use std::process::ExitCode;

use adversarial::Interval;
use downbeat_clock_core::Duration;
use downbeat_sync::Algorithm;
use downbeat_sync::sim::{Clocks, Network, SimCluster};
use fastrand::Rng;
use stepping::StatedError;

const ADVERSARIAL: [&str; 4] = [
    "none",
    "hca3/8/skampi/5",
    "cube/4/8",
    "h2hca(cube/4/4,prop)",
];

const LABELS: [&str; 16] = [
    "none",
    "skampi/skampi/10",
    "skampi/mean-rtt/10",
    "nbcbench/skampi/10",
    "jk/10/skampi/10",
    "jk/10/mean-rtt/10",
    "hca/10/skampi/10",
    "hca2/10/skampi/10",
    "hca3/10/skampi/10",
    "hca3/10/skampi/10/early",
    "hca3/10/skampi/10/recompute",
    "hca3/10/skampi/10/recompute/weighted",
    "hca3/10/mean-rtt/10",
    "hca3/10/trace-collector/10",
    "hca3-offset/skampi/10",
    "h2hca(hca3/10/skampi/10,prop)",
];

fn main() -> ExitCode {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    // As a test, it only has to run.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let runs: u64 = numbers.next().unwrap_or(if is_bench { 100 } else { 2 });
    let (unsound, wide) = adversarial_networks(5 * runs);
    let beyond = simulated_steps(runs) + threads(runs) + false_steps(runs.div_ceil(10));
    let (beyond_sound, widest) = simulated_bounds(runs.div_ceil(20));
    let missed = beyond + beyond_sound + unsound > 0 || widest > 2.0 || wide > 1.5;
    u8::from(missed && std::env::args().any(|argument| argument == "--gate")).into()
}

/// Prints a table of adversarial networks, half of the runs with a clock that steps; returns the number of intervals that do not hold and
/// of synchronizations that failed without a step, and the largest relative width.
fn adversarial_networks(runs: u64) -> (usize, f64) {
    println!(
        "Adversarial networks, {runs} runs each; a clock steps in every second run. Width: relative to the narrowest that messages \
         allow\n\n| ranks | failed, with a step | failed, without | beyond | width: median | 99 % | largest | algorithm |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let (mut all, mut widest) = (0, 0f64);
    for (ranks, label) in each_of([2, 3, 8, 17, 64], ADVERSARIAL) {
        let algorithm: Algorithm = label.parse().unwrap();
        let (mut failed, mut beyond, mut widths) = ([0; 2], 0, Vec::new());
        for seed in 0..runs {
            let cluster = adversarial::cluster(ranks, seed);
            let steps = seed % 2 == 1;
            match adversarial::intervals(&cluster, &algorithm, steps) {
                Err(_) => failed[usize::from(!steps)] += 1,
                Ok(found) => {
                    beyond += found.iter().filter(|rank| !rank.is_sound()).count();
                    widths.extend(found[1..].iter().map(Interval::relative_width));
                }
            }
        }
        widths.sort_by(f64::total_cmp);
        let at = |share: f64| widths[((widths.len() - 1) as f64 * share) as usize];
        println!(
            "| {ranks} | {} | {} | {beyond} | {:.2} | {:.2} | {:.2} | {label} |",
            failed[0],
            failed[1],
            at(0.5),
            at(0.99),
            at(1.0)
        );
        all += beyond + failed[1];
        widest = widest.max(at(1.0));
    }
    (all, widest)
}

/// Prints a table of sound clocks that are kept; returns the number of runs in which one is said to have stepped.
fn false_steps(runs: u64) -> usize {
    println!(
        "\nSound clocks are kept, {runs} runs each\n\n| ranks | resolution, ns | false steps | algorithm |\n|---|---|---|---|"
    );
    let mut all = 0;
    for (ranks, label) in each_of([2, 3, 8, 17, 64], kept_clocks::LABELS) {
        for granularity in kept_clocks::GRANULARITIES {
            let is_false =
                |seed: &u64| kept_clocks::keep(label, ranks, granularity, *seed).is_err();
            let found = (0..runs).filter(is_false).count();
            println!("| {ranks} | {granularity} | {found} | {label} |");
            all += found;
        }
    }
    all
}

/// Prints a table of clocks that step by 10 us to 1 s; returns the number of errors beyond their bounds.
fn simulated_steps(runs: u64) -> usize {
    println!(
        "\nA clock steps, {runs} runs each\n\n| ranks | failed | beyond | algorithm |\n|---|---|---|---|"
    );
    let mut all = 0;
    for (ranks, label) in each([2, 4, 5, 64]) {
        let algorithm = label.parse().unwrap();
        let (mut failed, mut beyond) = (0, 0);
        for seed in 0..runs {
            match stepping::errors_with_step(&cluster(ranks, label, seed), &algorithm).1 {
                Err(_) => failed += 1,
                Ok(errors) => beyond += errors.iter().filter(|rank| rank.is_beyond()).count(),
            }
        }
        println!("| {ranks} | {failed} | {beyond} | {label} |");
        all += beyond;
    }
    all
}

/// Prints a table of threads on too few cores; returns the number of errors beyond their bounds.
fn threads(runs: u64) -> usize {
    println!(
        "\nThreads, {runs} runs each\n\n| ranks | step: failed | beyond | no step: failed | beyond | algorithm |\n|---|---|---|---|---|---|"
    );
    let (mut all, mut random) = (0, Rng::with_seed(1));
    // Algorithms that stop early read their clocks a random number of times.
    for (ranks, label) in each([2, 4]).filter(|(_, label)| !label.contains("early")) {
        let algorithm: Algorithm = label.parse().unwrap();
        let [mut failed, mut beyond] = [[0; 2]; 2];
        for _ in 0..runs {
            let step = thread_steps::random_step(ranks, &algorithm, &mut random);
            for (i, step) in [step, thread_steps::STEADY].into_iter().enumerate() {
                match thread_steps::beyond(&thread_steps::synchronize(ranks, &algorithm, step)) {
                    None => failed[i] += 1,
                    Some(errors) => beyond[i] += errors.len(),
                }
            }
        }
        println!(
            "| {ranks} | {} | {} | {} | {} | {label} |",
            failed[0], beyond[0], failed[1], beyond[1]
        );
        all += beyond[0] + beyond[1];
    }
    all
}

/// Prints a table of clocks that do not step; returns the number of errors beyond their bounds, and the largest median width.
fn simulated_bounds(runs: u64) -> (usize, f64) {
    println!(
        "\nNo clock steps, {runs} runs each; width: median of the bound, relative to the least possible\n\n\
         | ranks | beyond | largest error / bound | width | algorithm |\n|---|---|---|---|---|"
    );
    let (mut all, mut widest) = (0, 0f64);
    for (ranks, label) in each([64, 256, 512, 1_024, 2_048]) {
        let algorithm: Algorithm = label.parse().unwrap();
        let errors = |seed| stepping::errors_without_step(&cluster(ranks, label, seed), &algorithm);
        let errors: Vec<StatedError> = (0..runs)
            .flat_map(|seed| errors(seed).split_off(1))
            .collect();
        let beyond = errors.iter().filter(|rank| rank.is_beyond()).count();
        let ratio = |a: Duration, b: Duration| a.as_nanos() as f64 / b.as_nanos() as f64;
        let worst = errors
            .iter()
            .map(|rank| ratio(rank.error, rank.bound))
            .fold(0.0, f64::max);
        let mut widths: Vec<f64> = errors
            .iter()
            .map(|rank| ratio(rank.bound, rank.least))
            .collect();
        let middle = widths.len() / 2;
        let (_, median, _) = widths.select_nth_unstable_by(middle, f64::total_cmp);
        println!("| {ranks} | {beyond} | {worst:.2} | {median:.2} | {label} |");
        all += beyond;
        // The clocks are not synchronized by `none`.
        if label != "none" {
            widest = widest.max(*median);
        }
    }
    (all, widest)
}

fn each(ranks: impl IntoIterator<Item = u32>) -> impl Iterator<Item = (u32, &'static str)> {
    each_of(ranks, LABELS)
}

fn each_of<const N: usize>(
    ranks: impl IntoIterator<Item = u32>,
    labels: [&'static str; N],
) -> impl Iterator<Item = (u32, &'static str)> {
    ranks
        .into_iter()
        .flat_map(move |ranks| labels.map(|label| (ranks, label)))
}

fn cluster(ranks: u32, label: &str, seed: u64) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: if label.starts_with("h2hca") { 2 } else { 1 },
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks: Clocks::typical(),
        seed,
    }
}
