//! Simulations of one cluster by each algorithm, any number of times.

use downbeat_common::output::count;
use downbeat_common::{Failure, ProgressBar, TrialOptions};
use downbeat_sync::Algorithm;
use downbeat_sync::sim::SimCluster;

/// Simulates the cluster with each algorithm, the numbers of runs and the seed of `trial`; returns all results.
pub(super) fn each_run<T>(
    sim: &mut SimCluster,
    algorithms: &[Algorithm],
    trial: &TrialOptions,
    mut simulate: impl FnMut(&SimCluster, &Algorithm, u32) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let progress = ProgressBar::new(u64::from(trial.repeat) * algorithms.len() as u64);
    let mut runs = Vec::new();
    for run in 1..=trial.repeat {
        // Each run is a new job: with other random delays and other clocks.
        sim.seed = trial.seed.wrapping_add(run.into());
        for algorithm in algorithms {
            progress.reach(runs.len() as u64);
            progress.say(&format!("{algorithm}"));
            runs.push(simulate(sim, algorithm, run)?);
        }
    }
    Ok(runs)
}

/// Names a cluster by its numbers of ranks and nodes.
pub(super) fn size(sim: &SimCluster) -> String {
    let nodes = count(sim.ranks.div_ceil(sim.ranks_per_node) as usize, "node");
    let ranks = count(sim.ranks as usize, "rank");
    format!("{ranks} on {nodes} of a simulated cluster")
}
