//! Intervals of offsets between clocks that count in steps, from 1 ns to more than a message takes: certain ones contain the
//! truth.

#![expect(clippy::unwrap_used, reason = "test helpers fail like tests")]

#[path = "common/simulated.rs"]
mod simulated;

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Duration, Global, Local, Timestamp};
use downbeat_sync::pair::{OffsetClient, answer};
use downbeat_sync::sim::{Clocks, DelayTail, Network, NetworkLink, SimClock, SimComm, VirtualTime};
use downbeat_sync::{Algorithm, Comm, OffsetAlgorithm, SyncError};
use simulated::{cluster, synchronize};

const SESSIONS: u64 = 650;

/// Messages of 0.6 to about 1 us.
fn network() -> Network {
    Network {
        switch: NetworkLink {
            tail: DelayTail::LogNormal {
                median: Duration::from_nanos(100),
                sigma: 0.8,
            },
            ..NetworkLink::steady(Duration::from_nanos(500))
        },
        ..Network::noiseless()
    }
}

fn clocks(granularity: u64) -> Clocks {
    Clocks {
        offset: Duration::from_millis(1),
        granularity,
        ..Clocks::perfect()
    }
}

/// Difference of a clock without drift from the true time: at the beginning of a step, the reading is exact.
fn ahead(clock: &SimClock) -> i64 {
    let shown = |nanos| {
        clock
            .ticks_at(Timestamp::<VirtualTime>::from_nanos(nanos))
            .0
    };
    let began = (0..)
        .find(|nanos| shown(*nanos) > shown(*nanos - 1))
        .unwrap();
    (shown(began) as i64) - began
}

/// Rank 1 measures its offset to rank 0; the samples, and the clock.
async fn measure(
    algorithm: OffsetAlgorithm,
    comm: &SimComm,
) -> (Vec<Result<OffsetSample<Local>, SyncError>>, SimClock) {
    let clock = comm.clock();
    let mut samples = vec![];
    if comm.rank() == 0 {
        let global: ClockModel<_, Global> = SimClock::nominal_model().unwrap().renamed();
        for _ in 0..SESSIONS {
            answer(&clock, &global, comm, 1).await.unwrap();
        }
    } else {
        let local = SimClock::nominal_model().unwrap();
        let mut client = OffsetClient::<Local, Global>::new(algorithm, 0).unwrap();
        for _ in 0..SESSIONS {
            samples.push(client.measure(&clock, &local, comm).await);
        }
    }
    (samples, clock)
}

#[test]
fn certain_intervals_contain_the_offset_between_clocks_that_count_in_steps() {
    for label in [
        "skampi/10",
        "skampi/100",
        "mean-rtt/10",
        "trace-collector/10",
    ] {
        let algorithm: OffsetAlgorithm = label.parse().unwrap();
        for granularity in [1, 7, 10, 100, 1_000] {
            for seed in 0..4 {
                let two = cluster(2, network(), clocks(granularity), seed);
                let found = two
                    .run(async |comm: &SimComm| measure(algorithm, comm).await)
                    .unwrap();
                assert_eq!(found[1].1.grain(), granularity);
                let truth = ahead(&found[1].1) - ahead(&found[0].1);
                for sample in &found[1].0 {
                    let sample = sample.unwrap();
                    let error = (sample.offset.as_nanos() - truth).abs();
                    let certain = sample.half_width.unwrap().as_nanos();
                    assert!(
                        error <= certain,
                        "{label}, {granularity} ns: {error} beyond {certain}"
                    );
                }
            }
        }
    }
}

/// Readings that do not fit each other are none of a step or of another source.
#[test]
fn clocks_that_count_in_steps_are_synchronized_within_their_bounds() {
    for label in [
        "hca3/10/skampi/10",
        "jk/10/skampi/10",
        "skampi/mean-rtt/10",
        "prop",
    ] {
        label.parse::<Algorithm>().unwrap();
        for granularity in [1, 10, 100, 1_000] {
            for seed in 0..20 {
                let mut clocks = clocks(granularity);
                let mut ranks = cluster(5, network(), clocks.clone(), seed);
                if label == "prop" {
                    clocks.offset = Duration::ZERO;
                    ranks.ranks_per_node = 5;
                    ranks.clocks = clocks;
                }
                let outcomes = synchronize(&ranks, label);
                let end = outcomes.iter().map(|outcome| outcome.done).max().unwrap();
                // Exact at the same true time, but for the steps of two readings.
                let shown = |rank: usize| {
                    let ticks = outcomes[rank].clock.ticks_at(end);
                    outcomes[rank].result.unwrap().model.apply(ticks)
                };
                for (rank, outcome) in outcomes.iter().enumerate().skip(1) {
                    let bound = outcome.result.unwrap().bound;
                    let error = (shown(rank) - shown(0)).abs();
                    let bound =
                        bound.at_time(shown(rank)) + Duration::from_nanos(granularity as i64 + 2);
                    assert!(
                        error <= bound,
                        "{label}, {granularity} ns: {error} beyond {bound}"
                    );
                }
            }
        }
    }
}
