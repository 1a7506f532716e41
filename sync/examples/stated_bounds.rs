//! Checks the stated error bounds of all algorithms against the true errors, on simulated clusters:
//! with clocks that step, and without.
//!
//! `cargo run --release --example stated_bounds [RUNS]`; the table has a line for each algorithm and number of ranks.

#![expect(clippy::print_stdout, reason = "examples print their results")]
#![expect(clippy::unwrap_used, reason = "the example shows errors by panics")]

#[path = "../tests/common/stepping.rs"]
mod stepping;

use downbeat_sync::{Algorithm, Clocks, Network, SimCluster};
use stepping::StatedError;

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

fn main() {
    let runs: u64 = std::env::args()
        .nth(1)
        .map_or(20, |runs| runs.parse().unwrap());
    println!("A clock steps by 10 us to 1 s, {runs} runs each\n\nranks  failed  beyond  algorithm");
    for (ranks, label) in each([2, 4, 5, 64]) {
        let algorithm = label.parse().unwrap();
        let tried = (0..runs)
            .map(|seed| stepping::errors_with_step(&cluster(ranks, label, seed), &algorithm).1);
        let tried: Vec<_> = tried.collect();
        let failed = tried.iter().filter(|errors| errors.is_err()).count();
        let beyond = tried
            .into_iter()
            .flatten()
            .flatten()
            .filter(StatedError::is_beyond)
            .count();
        println!("{ranks:5}  {failed:6}  {beyond:6}  {label}");
    }
    println!(
        "\nNo clock steps; width: median of the bound / half round trips and declared drift\n"
    );
    println!("ranks  beyond  worst error / bound  width  algorithm");
    for (ranks, label) in each([64, 256, 512, 1_024, 2_048]) {
        let algorithm: Algorithm = label.parse().unwrap();
        let (mut beyond, mut worst, mut widths) = (0, 0f64, Vec::new());
        for seed in 0..runs / 20 {
            for rank in stepping::errors_without_step(&cluster(ranks, label, seed), &algorithm)
                .into_iter()
                .skip(1)
            {
                let bound = rank.bound.as_nanos() as f64;
                beyond += usize::from(rank.is_beyond());
                worst = worst.max(rank.error.as_nanos() as f64 / bound);
                widths.push(bound / rank.least.as_nanos() as f64);
            }
        }
        let middle = widths.len() / 2;
        let (_, median, _) = widths.select_nth_unstable_by(middle, f64::total_cmp);
        println!("{ranks:5}  {beyond:6}  {worst:19.2}  {median:5.2}  {label}");
    }
}

fn each(ranks: impl IntoIterator<Item = u32>) -> impl Iterator<Item = (u32, &'static str)> {
    ranks
        .into_iter()
        .flat_map(|ranks| LABELS.map(|label| (ranks, label)))
}

fn cluster(ranks: u32, label: &str, seed: u64) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: if label.starts_with("h2hca") { 2 } else { 1 },
        sockets_per_node: 1,
        network: Network::typical(),
        clocks: Clocks::typical(),
        seed,
    }
}
