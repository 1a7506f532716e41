//! Automatic synchronization within a stated time, on simulated clusters.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[path = "common/typical.rs"]
mod typical;

use downbeat_clock_core::{Clock, Duration, ReadOrdering, Ticks};
use downbeat_sync::algorithm::{Auto, SyncWarning};
use downbeat_sync::sim::{DelayBursts, DelayTail, Network, NetworkLink, SimClock, SimCluster};
use downbeat_sync::{Algorithm, Comm, LocalClock, SyncError, Synchronized};
use typical::cluster;

/// Clock of a node that a rank reads with an error of its own.
#[derive(Clone)]
struct ShiftedClock {
    clock: SimClock,
    ahead: u64,
}

impl Clock for ShiftedClock {
    fn ticks(&self) -> Ticks {
        Ticks(self.clock.ticks().0.wrapping_add(self.ahead))
    }

    fn ordering(&self) -> ReadOrdering {
        self.clock.ordering()
    }

    fn grain(&self) -> u64 {
        self.clock.grain()
    }
}

/// Ranks on nodes that TCP connects.
fn over_tcp(ranks: u32) -> SimCluster {
    let network = Network::typical();
    SimCluster {
        network: Network {
            switch: NetworkLink {
                latency: Duration::from_micros(15),
                tail: DelayTail::LogNormal {
                    median: Duration::from_micros(2),
                    sigma: 1.0,
                },
                ..network.switch
            },
            ..network
        },
        ..cluster(ranks, 1)
    }
}

/// Result of all ranks.
struct Outcome {
    ranks: Vec<(Synchronized, ShiftedClock)>,
    ended: downbeat_clock_core::Timestamp<downbeat_sync::sim::VirtualTime>,
}

/// Synchronizes all ranks by `algorithm`; the clock of each is `ahead` of that of its
/// node.
fn run(cluster: &SimCluster, algorithm: Algorithm, ahead: fn(u32) -> u64) -> Outcome {
    let simulated = cluster.simulate(async |comm| {
        let ahead = ahead(comm.rank());
        let clock = ShiftedClock {
            clock: comm.clock(),
            ahead,
        };
        let me = LocalClock::new(&clock, SimClock::nominal_model()?)
            .source(u64::from(comm.placement().node) << 32 | ahead)
            .placement(comm.placement());
        let found = algorithm.synchronize(&me, comm).await?;
        Ok::<_, SyncError>(Box::new((found, clock)))
    });
    let simulated = simulated.unwrap();
    let ranks = simulated.results.into_iter();
    Outcome {
        ranks: ranks.map(|rank| *rank.unwrap()).collect(),
        ended: simulated.ended,
    }
}

fn auto(millis: i64) -> Algorithm {
    Algorithm::Auto(Auto {
        budget: Duration::from_millis(millis),
    })
}

fn one_counter(_: u32) -> u64 {
    0
}

impl Outcome {
    /// Returns the largest error some time after the end. No bound is broken then.
    fn error_after(&self, wait: Duration) -> i64 {
        self.errors_after(wait).into_iter().max().unwrap()
    }

    /// Returns the error of each rank.
    fn errors_after(&self, wait: Duration) -> Vec<i64> {
        let at = self.ended + wait;
        let shown = |(found, clock): &(Synchronized, ShiftedClock)| {
            let ticks = clock.clock.ticks_at(at).0.wrapping_add(clock.ahead);
            found.model.apply(Ticks(ticks))
        };
        let first = shown(&self.ranks[0]);
        let error = |rank: &(Synchronized, ShiftedClock)| {
            let shown = shown(rank);
            let error = (shown - first).abs();
            assert!(error <= rank.0.bound.at_time(shown), "{error}");
            error.as_nanos()
        };
        self.ranks.iter().map(error).collect()
    }

    /// Returns the longest duration as a share of the budget.
    fn took(&self) -> f64 {
        let shares = self.ranks.iter().map(|(found, _)| {
            let budget = found.auto.unwrap().budget.as_secs_f64();
            found.took.as_secs_f64() / budget
        });
        shares.fold(0.0, f64::max)
    }
}

/// The flat cube takes the queue of the card for an offset of microseconds.
#[test]
fn one_rank_measures_for_a_node_whose_card_all_would_fill() {
    for (ranks, per_node) in [(512, 64), (100, 16)] {
        let outcome = run(&cluster(ranks, per_node), auto(20), one_counter);
        let error = outcome.error_after(Duration::ZERO);
        assert!(error <= 12, "{ranks} ranks: {error} ns");
        let took = outcome.took();
        assert!((0.84..=1.01).contains(&took), "{ranks} ranks: {took}");
        let report = outcome.ranks[1].0.auto.unwrap();
        assert_eq!(report.nodes, ranks.div_ceil(per_node));
        assert!(report.nodes_share_counters);
        assert_eq!(outcome.ranks[0].0.warnings().next(), None);
        let same = |(found, _): &(Synchronized, ShiftedClock)| found.auto == Some(report);
        assert!(outcome.ranks.iter().all(same));
    }
}

#[test]
fn any_number_of_nodes_keeps_the_time() {
    for nodes in [2, 3, 13, 64] {
        for cluster in [cluster(nodes, 1), over_tcp(nodes)] {
            let outcome = run(&cluster, auto(50), one_counter);
            let took = outcome.took();
            assert!((0.84..=1.01).contains(&took), "{nodes} nodes: {took}");
            let error = outcome.error_after(Duration::from_secs(1));
            assert!(error < 10_000, "{nodes} nodes: {error} ns after a second");
        }
    }
}

/// A rank or a node alone has nothing to measure between nodes.
#[test]
fn ranks_of_one_node_follow_at_once() {
    for ranks in [1, 2, 7, 128] {
        let outcome = run(&cluster(ranks, 128), auto(100), one_counter);
        assert_eq!(outcome.error_after(Duration::ZERO), 0);
        let (found, _) = outcome.ranks[0];
        assert!(
            found.took < Duration::from_micros(500),
            "{ranks} ranks: {}",
            found.took
        );
        assert_eq!(found.least_time(), Some(found.took));
    }
}

/// A budget that is too short is exceeded by what is needed at least, and that is told.
#[test]
fn the_least_that_is_needed_is_taken_and_told() {
    let outcome = run(&over_tcp(64), auto(1), one_counter);
    let (found, _) = outcome.ranks[5];
    let least = found.least_time().unwrap();
    assert!(least > Duration::from_millis(5), "{least}");
    let warnings: Vec<SyncWarning> = found.warnings().collect();
    assert!(
        matches!(warnings[..], [SyncWarning::Budget { .. }]),
        "{warnings:?}"
    );
    assert!(outcome.took() > 5.0);
    let again = Algorithm::Auto(Auto {
        budget: least + least / 2,
    });
    let outcome = run(&over_tcp(64), again, one_counter);
    assert!(outcome.took() <= 1.01, "{}", outcome.took());
}

/// Ranks with clocks of their own measure in their nodes, too.
#[test]
fn ranks_that_share_no_counter_are_synchronized_within_their_node() {
    let ahead = |rank: u32| u64::from(rank) * 1_000_003;
    for (ranks, per_node) in [(32, 8), (64, 16), (4, 4), (10, 4)] {
        let outcome = run(&cluster(ranks, per_node), auto(50), ahead);
        let error = outcome.error_after(Duration::ZERO);
        assert!(error <= 15, "{ranks} ranks: {error} ns");
        assert!((0.8..=1.01).contains(&outcome.took()), "{}", outcome.took());
        assert!(!outcome.ranks[0].0.auto.unwrap().nodes_share_counters);
        let later = outcome.error_after(Duration::from_secs(1));
        assert!(later <= 500, "{ranks} ranks: {later} ns after a second");
    }
}

/// The links within nodes are far quicker than those between them, which the closing
/// exchange crosses, too.
#[test]
fn nodes_without_a_counter_keep_the_time_over_slow_networks() {
    let slow = SimCluster {
        ranks_per_node: 4,
        ..over_tcp(32)
    };
    let outcome = run(&slow, auto(100), |rank| u64::from(rank) * 1_000_003);
    outcome.error_after(Duration::ZERO);
    let took = outcome.took();
    assert!((0.8..=1.01).contains(&took), "{took}");
    let (found, _) = outcome.ranks[5];
    assert_eq!(found.warnings().next(), None);
    let least = found.least_time().unwrap();
    assert!(least < Duration::from_millis(30), "{least}");
}

/// Exchanges take no time by a clock whose steps are longer.
#[test]
fn clocks_of_coarse_steps_are_synchronized() {
    let mut coarse = cluster(8, 1);
    coarse.clocks.granularity = 100_000;
    let outcome = run(&coarse, auto(20), one_counter);
    outcome.error_after(Duration::ZERO);
    let (found, _) = outcome.ranks[3];
    assert!(found.quality.stated_error.unwrap().nanos() >= 100_000.0);
}

/// Where messages wait for a core, no budget helps, and the report says so.
#[test]
fn messages_that_wait_for_cores_show() {
    let mut busy = cluster(4, 1);
    busy.network.switch.bursts = DelayBursts::Chance {
        probability: 0.9,
        mean: Duration::from_millis(4),
    };
    let outcome = run(&busy, auto(20), one_counter);
    outcome.error_after(Duration::ZERO);
    let (found, _) = outcome.ranks[3];
    let warnings: Vec<SyncWarning> = found.warnings().collect();
    assert!(
        matches!(
            warnings[..],
            [SyncWarning::Budget { least, .. }, SyncWarning::SharedCores { exchange }]
                if least > Duration::from_millis(20) && exchange > Duration::from_millis(1)
        ),
        "{warnings:?}"
    );
}

/// The wait for the first rank of a node, which synchronizes with others before, is no
/// duration of a turn.
#[test]
fn a_cube_of_some_time_below_another_level_takes_that_time() {
    let label = "h2hca(cube/20ms/20,cube/20ms/20)";
    let ahead = |rank: u32| u64::from(rank) * 1_000_003;
    let outcome = run(&cluster(8, 4), label.parse().unwrap(), ahead);
    let took = outcome.ranks[0].0.took.as_secs_f64();
    assert!((0.036..0.044).contains(&took), "{took}");
    let later = outcome.error_after(Duration::from_secs(1));
    assert!(later <= 500, "{later} ns after a second");
    // What is known of the first rank of a node limits what is known of the others.
    let stated = |rank: usize| outcome.ranks[rank].0.quality.stated_error.unwrap().nanos();
    assert!(stated(5) > stated(4));
}

/// Not one after the other.
#[test]
fn ranks_of_a_node_prove_along_a_tree_that_they_share_a_counter() {
    let outcome = run(&cluster(128, 128), "prop".parse().unwrap(), one_counter);
    let took = outcome.ranks[0].0.took;
    assert!(took < Duration::from_micros(300), "{took}");
}

/// A flat cube of all ranks of fat nodes is wrong by the queues of their network cards,
/// and says so; what it states is not far from true.
#[test]
fn a_flat_cube_on_fat_nodes_states_what_the_queues_of_cards_leave() {
    let algorithm = "cube/4/20".parse().unwrap();
    let outcome = run(&cluster(512, 128), algorithm, one_counter);
    let error = outcome.error_after(Duration::ZERO) as f64;
    let (found, _) = outcome.ranks[300];
    let stated = found.quality.stated_error.unwrap();
    assert!(stated.is_error(), "{stated:?}");
    assert!(
        (300.0..3.0 * stated.nanos()).contains(&error),
        "{error}: {stated:?}"
    );
    let warnings: Vec<SyncWarning> = found.warnings().collect();
    assert!(
        matches!(warnings[..], [SyncWarning::FullCards { slower }] if slower > 2.0),
        "{warnings:?}"
    );
    let two = run(&cluster(256, 128), algorithm, one_counter);
    let error = two.error_after(Duration::ZERO) as f64;
    let stated = two.ranks[200].0.quality.stated_error.unwrap();
    assert!(
        !stated.is_error() && error < 3.0 * stated.nanos(),
        "{error}: {stated:?}"
    );
    let thin = run(&cluster(16, 1), algorithm, one_counter);
    assert_eq!(thin.ranks[0].0.warnings().next(), None);
}

/// Nothing shows how unequal the two directions between two ranks are; four ranks have a
/// cycle.
#[test]
fn two_ranks_state_a_scatter_and_more_an_error() {
    for label in [
        "auto/5ms",
        "cube/10/40",
        "hca3/10/skampi/10",
        "jk/10/skampi/10",
    ] {
        for (ranks, is_error) in [(2, false), (3, false), (4, true), (16, true)] {
            let outcome = run(&cluster(ranks, 1), label.parse().unwrap(), one_counter);
            let stated = outcome.ranks[1].0.quality.stated_error.unwrap();
            assert_eq!(stated.is_error(), is_error, "{label}, {ranks} ranks");
            assert!(stated.nanos() > 0.0, "{label}, {ranks} ranks");
        }
    }
}

/// Nine of ten true errors are within twice the stated one.
#[test]
fn stated_errors_are_true() {
    for (label, per_node) in [
        ("auto/10ms", 1),
        ("auto/10ms", 4),
        ("cube/20/20", 1),
        ("hca3/30/skampi/10", 1),
        ("hca3/30/skampi/10", 4),
    ] {
        let (mut within, mut all) = (0, 0);
        for seed in 0..8 {
            let cluster = SimCluster {
                seed,
                ..cluster(16 * per_node, per_node)
            };
            let outcome = run(&cluster, label.parse().unwrap(), one_counter);
            let errors = outcome.errors_after(Duration::ZERO).into_iter().enumerate();
            // Those on the node of rank 0 follow it.
            for (rank, error) in errors.skip(per_node as usize) {
                let stated = outcome.ranks[rank].0.quality.stated_error.unwrap();
                let error = error as f64;
                assert!(stated.is_error());
                within += u32::from(error <= 2.0 * stated.nanos());
                all += 1;
            }
        }
        let share = f64::from(within) / f64::from(all);
        assert!(share >= 0.9, "{label}, {per_node} a node: {share}");
    }
}
