//! Simulated network cards: they transfer one message at a time, in the order of true time.

#[path = "common/plain.rs"]
mod plain;
#[path = "common/simulated.rs"]
mod simulated;

use downbeat_clock_core::Duration;
use downbeat_sync::sim::{
    Clocks, DelayTail, Network, NetworkCard, NetworkLink, SimCluster, SimComm,
};
use downbeat_sync::{Comm, CommError};
use plain::plain;
use proptest::prelude::*;
use simulated::{cluster, synchronize};

/// Two messages to each of two nodes, and one within the node, all sent at once.
#[test]
fn a_card_sends_one_message_at_a_time_and_none_within_its_node() {
    let card = NetworkCard {
        gap: Duration::from_nanos(300),
        per_byte: 10.0,
    };
    let network = Network {
        card: Some(card),
        header: 2,
        ..plain()
    };
    let cluster = SimCluster {
        ranks_per_node: 3,
        ..cluster(9, network, Clocks::perfect(), 1)
    };
    let program = async |comm: &SimComm| {
        let rank = comm.rank();
        match rank {
            0 | 1 => {
                comm.send(3 + rank, 0_u64).await?;
                comm.send(6 + rank, 0_u64).await?;
                comm.send(2, 0_u64).await?;
            }
            2 => drop((comm.recv::<u64>(0).await?, comm.recv::<u64>(1).await?)),
            3 | 4 => drop(comm.recv::<u64>(rank - 3).await?),
            6 | 7 => drop(comm.recv::<u64>(rank - 6).await?),
            _ => {}
        }
        Ok::<_, CommError>(comm.true_now().as_nanos())
    };
    let times: Vec<_> = cluster
        .run(program)
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(times[2], 0, "a message within the node waits for no card");
    // A message of ten bytes occupies a card for 400 ns. Four leave one after the other, by the
    // rank of the sender.
    let mut arrived = [times[3], times[4], times[6], times[7]];
    arrived.sort_unstable();
    assert_eq!(arrived, [1_000, 1_400, 1_800, 2_200]);
}

#[test]
fn a_card_receives_one_message_at_a_time() {
    let card = NetworkCard {
        gap: Duration::from_nanos(300),
        per_byte: 0.0,
    };
    let cluster = cluster(
        6,
        Network {
            card: Some(card),
            ..plain()
        },
        Clocks::perfect(),
        1,
    );
    let program = async |comm: &SimComm| {
        let mut times = vec![];
        if comm.rank() > 0 {
            comm.pause(Duration::from_nanos(10 * i64::from(6 - comm.rank())));
            comm.send(0, ()).await?;
            return Ok(times);
        }
        // In the order of arrival: the last rank was the first to send.
        for from in (1..6).rev() {
            comm.recv::<()>(from).await?;
            times.push(comm.true_now().as_nanos());
        }
        Ok::<_, CommError>(times)
    };
    let times = cluster.run(program).unwrap().swap_remove(0).unwrap();
    assert_eq!(times, [1_010, 1_310, 1_610, 1_910, 2_210]);
}

/// Rank 0 is simulated first and needs the card at 1.5 us; rank 1 needs it at 1 us, when a message
/// to it arrives.
#[test]
fn a_card_serves_messages_in_the_order_of_true_time() {
    let card = NetworkCard {
        gap: Duration::from_micros(2),
        per_byte: 0.0,
    };
    let network = Network {
        card: Some(card),
        ..plain()
    };
    let cluster = SimCluster {
        ranks_per_node: 2,
        ..cluster(4, network, Clocks::perfect(), 1)
    };
    let program = async |comm: &SimComm| {
        match comm.rank() {
            0 => {
                comm.pause(Duration::from_nanos(1_500));
                comm.send(2, ()).await?;
            }
            1 => comm.send(3, comm.recv::<()>(3).await?).await?,
            2 => comm.recv(0).await?,
            _ => {
                comm.send(1, ()).await?;
                comm.recv::<()>(1).await?;
            }
        }
        Ok::<_, CommError>(comm.true_now().as_nanos())
    };
    assert_eq!(
        cluster.run(program).unwrap(),
        [Ok(1_500), Ok(1_000), Ok(4_000), Ok(2_000)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A card that is never occupied changes nothing, although every message is then processed by
    /// events.
    #[test]
    fn infinitely_fast_cards_change_nothing(ranks in 1_u32..40, ranks_per_node in 1_u32..5, seed: u64) {
        let found = |card| {
            let network = Network { card, ..Network::typical() };
            let cluster = SimCluster { ranks_per_node, ..cluster(ranks, network, Clocks::typical(), seed) };
            let outcomes = synchronize(&cluster, "h2hca(hca3/3/skampi/4,hca/3/mean-rtt/4)");
            let shown = |outcome: &simulated::SimOutcome| outcome.clock.ticks_at(outcome.done);
            outcomes.iter().map(|outcome| (outcome.result, outcome.done, shown(outcome))).collect::<Vec<_>>()
        };
        prop_assert_eq!(found(None), found(Some(NetworkCard { gap: Duration::ZERO, per_byte: 0.0 })));
    }

    /// Random messages: cards never make an arrival earlier, and there is no deadlock.
    #[test]
    fn slow_cards_make_nothing_earlier(ranks in 2_u32..20, rounds in 1_u32..20, seed: u64) {
        let found = |card| {
            let network = Network { card, switch: NetworkLink { tail: DelayTail::None, ..Network::typical().switch }, ..plain() };
            let cluster = cluster(ranks, network, Clocks::perfect(), seed);
            let program = async |comm: &SimComm| {
                for round in 1..=rounds {
                    let (rank, size) = (comm.rank(), comm.size());
                    comm.send((rank + round) % size, u64::from(rank)).await?;
                    let from = (rank + rounds * size - round) % size;
                    assert_eq!(comm.recv::<u64>(from).await?, u64::from(from));
                }
                Ok::<_, CommError>(comm.true_now())
            };
            cluster.run(program).unwrap().into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        let slow = found(Some(NetworkCard { gap: Duration::from_nanos(700), per_byte: 1.0 }));
        prop_assert!(found(None).iter().zip(slow).all(|(free, slow)| *free <= slow));
    }
}
