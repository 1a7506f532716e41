//! Weighted lines on a machine that sometimes delays all messages for longer than a measurement
//! takes.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use downbeat_clock_core::Duration;
use downbeat_sync::sim::{Clocks, DelayBursts, Drift, Network, NetworkLink};

#[path = "common/simulated.rs"]
mod simulated;
use simulated::{cluster, synchronize};

/// Messages are delayed during two fifths of the time.
fn disturbed() -> Network {
    let bursts = DelayBursts::Spells {
        every: Duration::from_millis(5),
        lasting: Duration::from_millis(2),
        mean: Duration::from_micros(20),
    };
    Network {
        switch: NetworkLink {
            bursts,
            ..Network::noiseless().switch
        },
        ..Network::noiseless()
    }
}

/// Returns the error of rank 1 a second after the synchronization, in nanoseconds.
fn error_after_a_second(label: &str, seed: u64) -> i64 {
    let clocks = Clocks {
        offset: Duration::from_secs(1),
        drift: Drift::Normal(5e-6),
        ..Clocks::perfect()
    };
    let ranks = synchronize(&cluster(2, disturbed(), clocks, seed), label);
    let at = ranks[1].done + Duration::from_secs(1);
    let shown = |rank: usize| {
        ranks[rank]
            .result
            .unwrap()
            .model
            .apply(ranks[rank].clock.ticks_at(at))
    };
    (shown(1) - shown(0)).as_nanos().abs()
}

#[test]
fn weights_reduce_the_effect_of_delayed_offsets() {
    let median = |label: &str| {
        let mut errors: Vec<i64> = (0..40)
            .map(|seed| error_after_a_second(label, seed))
            .collect();
        errors.sort_unstable();
        errors[20]
    };
    let (plain, weighted) = (
        median("hca3/200/skampi/20"),
        median("hca3/200/skampi/20/weighted"),
    );
    assert!(
        weighted * 2 < plain,
        "{weighted} ns with weights, {plain} ns without"
    );
}
