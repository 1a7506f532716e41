//! Ranks that are threads, each on a core, and the clocks that they read.

use downbeat_clock_core::{Clock, ClockModel, Counter};
use downbeat_common::{Failure, SkewSpec};
use downbeat_sync::ThreadCluster;
use downbeat_timers::{SkewedClock, Truth, allowed_cores, pin_to};

/// So many ranks, one on each core that this process may use, as far as there are enough.
pub(crate) fn pinned(ranks: u32) -> ThreadCluster<'static> {
    let cores = allowed_cores();
    ThreadCluster::new(ranks).pin(
        move |rank| match cores.get(rank as usize % cores.len().max(1)) {
            Some(core) => pin_to(*core),
            None => Ok(()),
        },
    )
}

/// Which clock a rank reads. All are on one node: ranks that share the clock of their node share that of the first.
pub(crate) fn clock_of(rank: u32, spec: &SkewSpec) -> u32 {
    if spec.is_per_node() { 0 } else { rank }
}

/// A clock for each rank, wrong in a way of its own.
pub(crate) fn skewed<K: Clock + Copy>(
    spec: &SkewSpec,
    ranks: u32,
    counter: K,
    truth: ClockModel<Counter, Truth>,
) -> Result<Vec<SkewedClock<K>>, Failure> {
    let clock = |rank| SkewedClock::new(counter, truth, spec.for_clock(clock_of(rank, spec)));
    (0..ranks)
        .map(clock)
        .collect::<Result<_, _>>()
        .map_err(|why| Failure::option("--skew", why))
}
