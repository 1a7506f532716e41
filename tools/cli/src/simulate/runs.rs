//! Simulations of one cluster by each algorithm, any number of times.

use downbeat_common::output::count;
use downbeat_common::{Failure, ProgressBar};
use downbeat_sync::Algorithm;
use downbeat_sync::sim::SimCluster;

/// Simulations of a cluster: each algorithm, any number of times.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedRuns<'a> {
    pub(super) algorithms: &'a [Algorithm],
    pub(super) repeat: u32,
    pub(super) seed: u64,
}

impl SimulatedRuns<'_> {
    /// Makes all simulations; returns their results.
    pub(super) fn each<T>(
        self,
        sim: &mut SimCluster,
        mut simulate: impl FnMut(&SimCluster, &Algorithm, u32) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let Self {
            algorithms,
            repeat,
            seed,
        } = self;
        let progress = ProgressBar::new(u64::from(repeat) * algorithms.len() as u64);
        let mut results = Vec::new();
        for run in 1..=repeat {
            // Each run is a new job: with other random delays and other clocks.
            sim.seed = seed.wrapping_add(run.into());
            for algorithm in algorithms {
                progress.reach(results.len() as u64);
                progress.say(&format!("{algorithm}"));
                results.push(simulate(sim, algorithm, run)?);
            }
        }
        Ok(results)
    }
}

/// Names a cluster by its numbers of ranks and nodes.
pub(super) fn size(sim: &SimCluster) -> String {
    let nodes = count(sim.ranks.div_ceil(sim.ranks_per_node) as usize, "node");
    let ranks = count(sim.ranks as usize, "rank");
    format!("{ranks} on {nodes} of a simulated cluster")
}
