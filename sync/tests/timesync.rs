//! Sessions in the run, on simulated clusters whose nodes have several ranks.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[path = "common/typical.rs"]
mod typical;

use core::num::NonZeroU32;
use std::collections::HashSet;

use downbeat_clock_core::{ClockModel, Counter, Duration, Local, Timestamp};
use downbeat_sync::sim::{SimClock, SimCluster, Simulated, VirtualTime};
use downbeat_sync::timesync::{
    ExchangeSession, PastCurve, SessionLimits, SessionRanks, SessionRule,
};
use downbeat_sync::{Comm, LocalClock};
use typical::cluster;

/// One rank of a session.
struct SessionRank {
    session: ExchangeSession,
    clock: SimClock,
    base: ClockModel<Counter, Local>,
    ended: Timestamp<VirtualTime>,
}

/// Clock and settings of a rank of a session.
#[derive(Clone, Copy)]
struct RankSettings {
    base: ClockModel<Counter, Local>,
    source: u64,
    ranks: SessionRanks,
}

/// Runs a session of all ranks, with settings by the rank and its node.
fn run(
    cluster: &SimCluster,
    exchanges: u32,
    settings: impl Fn(u32, u32) -> RankSettings,
) -> Simulated<SessionRank> {
    let limits = SessionLimits {
        exchanges: NonZeroU32::new(exchanges).unwrap(),
        ..SessionLimits::default()
    };
    let program = async |comm: &downbeat_sync::sim::SimComm| {
        let RankSettings {
            base,
            source,
            ranks,
        } = settings(comm.rank(), comm.placement().node);
        let clock = comm.clock();
        let me = LocalClock::new(&clock, base)
            .source(source)
            .placement(comm.placement());
        let global = base.renamed();
        let session = limits.run(&me, &global, comm, ranks).await.unwrap();
        let ended = comm.true_now();
        SessionRank {
            session,
            clock,
            base,
            ended,
        }
    };
    cluster.simulate(program).unwrap()
}

type RankCase = fn(u32, u32) -> RankSettings;

fn of_nodes(_: u32, node: u32) -> RankSettings {
    RankSettings {
        base: SimClock::nominal_model().unwrap(),
        source: node.into(),
        ranks: SessionRanks::FirstOfNodes,
    }
}

/// Returns the number of messages that rank 0 answered.
fn answers(ranks: &[SessionRank]) -> usize {
    let exchanges = ranks.iter().flat_map(|rank| rank.session.exchanges());
    let asked = exchanges.filter(|exchange| exchange.round_trip() > Duration::ZERO);
    asked
        .map(|exchange| exchange.answered)
        .collect::<HashSet<_>>()
        .len()
}

#[test]
fn sixteen_thousand_ranks_at_128_a_node_are_127_pairs() {
    let found = run(&cluster(16_384, 128), 2, of_nodes);
    assert_eq!(answers(&found.results), 2 * 127);
}

#[test]
fn a_session_of_first_ranks_takes_a_fraction_of_the_time_of_all_ranks() {
    let cluster = cluster(1_024, 64);
    let all: RankCase = |rank, node| RankSettings {
        ranks: SessionRanks::All,
        ..of_nodes(rank, node)
    };
    let [firsts, all] = [of_nodes, all].map(|settings: RankCase| run(&cluster, 20, settings));
    assert_eq!(answers(&firsts.results), 20 * 15);
    assert_eq!(answers(&all.results), 20 * 1_023);
    let [firsts, all] = [firsts, all].map(|run| run.ended - Timestamp::ORIGIN);
    assert!(firsts.as_nanos() * 10 < all.as_nanos(), "{firsts}, {all}");
}

/// Local times of the ranks of a node differ, as where each calibrated its counter.
#[test]
fn every_rank_knows_the_time_of_rank_0_by_the_session_of_its_node() {
    let own_times = |rank: u32, node: u32| {
        let nominal = SimClock::nominal_model().unwrap();
        let seconds = Timestamp::from_nanos(1_000_000_000 * i64::from(rank));
        let base = ClockModel::through(SimClock::ZERO, seconds, nominal.rate());
        RankSettings {
            base: base.unwrap(),
            ..of_nodes(rank, node)
        }
    };
    let cases: [RankCase; 2] = [of_nodes, own_times];
    for settings in cases {
        let found = run(&cluster(256, 16), 100, settings);
        assert_eq!(answers(&found.results), 100 * 15);
        let first = &found.results[0];
        assert!(first.session.exchanges().is_empty());
        for (number, rank) in found.results.iter().enumerate().skip(1) {
            let curve = PastCurve::default();
            let curve = curve
                .with_session(&rank.session, SessionRule::Lowest)
                .unwrap();
            let [knot] = curve.knots() else {
                panic!("one session")
            };
            let truth = first.base.renamed().apply(first.clock.ticks_at(rank.ended));
            let own = rank.base.apply(rank.clock.ticks_at(rank.ended));
            let shown = curve.apply(own).unwrap();
            // A single session does not tell the drift.
            let drifted = (own - knot.at).as_nanos() / 10_000;
            let error = (shown - truth).as_nanos().abs();
            let most = if number < 16 { 1 } else { 100 + drifted };
            assert!(
                error <= most,
                "rank {number}: {error} ns, {drifted} ns of drift"
            );
        }
    }
}

#[test]
fn all_ranks_exchange_messages_if_one_of_them_does_not_share_its_counter() {
    let one_says_so = |rank: u32, node: u32| RankSettings {
        ranks: if rank == 11 {
            SessionRanks::All
        } else {
            SessionRanks::FirstOfNodes
        },
        ..of_nodes(rank, node)
    };
    let one_has_another_source = |rank: u32, node: u32| RankSettings {
        source: if rank == 11 { 77 } else { node.into() },
        ..of_nodes(rank, node)
    };
    let cases: [RankCase; 2] = [one_says_so, one_has_another_source];
    for settings in cases {
        let found = run(&cluster(32, 8), 5, settings);
        assert_eq!(answers(&found.results), 5 * 31);
    }
}
