//! Guarantees of the simulator to a simulated rank.

#[path = "common/plain.rs"]
mod plain;
#[path = "common/simulated.rs"]
mod simulated;

use core::future::pending;
use core::num::NonZero;

use downbeat_clock_core::{Clock, Duration, Timestamp};
use downbeat_sync::RankPlacement;
use downbeat_sync::sim::{
    Clocks, DelayBursts, DelayTail, Drift, DriftWalk, Network, NetworkCard, NetworkLink, SimClock,
    SimCluster, SimComm, VirtualTime,
};
use downbeat_sync::{ClusterError, Comm, CommError};
use plain::plain;
use simulated::{SimOutcome, cluster, synchronize};

const MICROSECOND: i64 = 1_000;

fn at(nanos: i64) -> Timestamp<VirtualTime> {
    Timestamp::from_nanos(nanos)
}

/// `ranks` ranks with a plain network and perfect clocks.
fn simple(ranks: u32) -> SimCluster {
    cluster(ranks, plain(), Clocks::perfect(), 1)
}

fn on_two_threads<T: Send>(
    cluster: &SimCluster,
    program: impl AsyncFn(&SimComm) -> T + Sync,
) -> Result<Vec<T>, ClusterError> {
    let two = NonZero::<usize>::MIN.saturating_add(1);
    Ok(cluster.simulate_on(two, program)?.results)
}

#[test]
fn equal_seeds_give_equal_results() {
    let found = || {
        let network = Network::typical();
        let cluster = SimCluster {
            ranks_per_node: 3,
            sockets_per_node: 2,
            nodes_per_rack: None,
            ..cluster(40, network, Clocks::typical(), 7)
        };
        let outcomes = synchronize(&cluster, "h2hca(hca3/5/skampi/5,hca2/5/mean-rtt/3)");
        let shown = |outcome: &SimOutcome| {
            (
                outcome.result.unwrap().model,
                outcome.clock.ticks_at(at(0)),
                outcome.done,
            )
        };
        outcomes.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(found(), found());
}

/// Each rank and each node has its own random numbers, which depend on the seed.
#[test]
fn random_numbers_differ_between_ranks_nodes_and_seeds() {
    let tail = DelayTail::LogNormal {
        median: Duration::from_micros(100),
        sigma: 1.0,
    };
    let noise = Network {
        switch: NetworkLink {
            tail,
            ..plain().switch
        },
        ..plain()
    };
    let asymmetry = Duration::from_millis(1);
    let asymmetric = Network {
        switch: NetworkLink {
            asymmetry,
            ..plain().switch
        },
        ..plain()
    };
    for (network, clocks) in [
        (noise, Clocks::perfect()),
        (asymmetric, Clocks::perfect()),
        (plain(), Clocks::typical()),
    ] {
        let found = |seed| {
            // In a ring, so that all messages are alike.
            let program = async |comm: &SimComm| {
                let (rank, size) = (comm.rank(), comm.size());
                comm.send((rank + 1) % size, ()).await?;
                comm.recv::<()>((rank + size - 1) % size).await?;
                Ok::<_, CommError>((comm.true_now(), comm.clock().ticks_at(at(0))))
            };
            cluster(10, network.clone(), clocks.clone(), seed)
                .run(program)
                .unwrap()
        };
        let mut all: Vec<_> = found(1)
            .into_iter()
            .chain(found(2))
            .map(Result::unwrap)
            .collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }
}

#[test]
fn messages_of_a_pair_arrive_in_order_despite_delays() {
    let tail = DelayTail::Pareto {
        scale: Duration::from_micros(5),
        shape: 0.8,
    };
    let spells = DelayBursts::Spells {
        every: Duration::from_micros(50),
        lasting: Duration::from_micros(20),
        mean: Duration::from_micros(30),
    };
    let switch = NetworkLink {
        tail,
        bursts: spells,
        ..plain().switch
    };
    let card = NetworkCard {
        gap: Duration::from_nanos(10),
        per_byte: 0.0,
    };
    for card in [None, Some(card)] {
        let cluster = cluster(
            3,
            Network {
                switch: switch.clone(),
                card,
                ..plain()
            },
            Clocks::perfect(),
            1,
        );
        let program = async |comm: &SimComm| {
            if comm.rank() == 0 {
                for number in 0..500_u64 {
                    comm.send(1 + (number % 2) as u32, number).await?;
                }
                return Ok(vec![]);
            }
            let mut received = vec![];
            for _ in 0..250 {
                received.push((comm.recv::<u64>(0).await?, comm.true_now()));
            }
            Ok::<_, CommError>(received)
        };
        for (first, received) in cluster
            .run(program)
            .unwrap()
            .into_iter()
            .skip(1)
            .enumerate()
        {
            let received = received.unwrap();
            let numbers = received.iter().map(|(number, _)| *number);
            assert!(numbers.eq((first as u64..500).step_by(2)), "card: {card:?}");
            assert!(received.is_sorted_by_key(|(_, time)| *time));
        }
    }
}

#[test]
fn latencies_and_overheads_of_all_levels_add_up() {
    let network = Network {
        socket: NetworkLink::steady(Duration::from_nanos(7)),
        node: NetworkLink::steady(Duration::from_nanos(70)),
        switch: NetworkLink {
            per_byte: 2.0,
            ..NetworkLink::steady(Duration::from_nanos(700))
        },
        racks: Some(NetworkLink::steady(Duration::from_nanos(7_000))),
        send_overhead: Duration::from_nanos(10_000),
        receive_overhead: Duration::from_nanos(100_000),
        header: 4,
        card: None,
    };
    let cluster = SimCluster {
        ranks_per_node: 4,
        sockets_per_node: 2,
        nodes_per_rack: Some(2),
        ..cluster(9, network, Clocks::perfect(), 1)
    };
    for (to, way) in [(0, 0), (1, 7), (2, 70), (4, 700 + 2 * (4 + 16)), (8, 7_000)] {
        let program = async |comm: &SimComm| {
            if comm.rank() == 0 {
                comm.send(to, [1_u64, 2]).await?;
                assert_eq!(comm.true_now(), at(10_000));
            }
            if comm.rank() == to {
                comm.recv::<[u64; 2]>(0).await?;
                assert_eq!(comm.true_now(), at(10_000 + way + 100_000));
            }
            Ok::<_, CommError>(comm.placement())
        };
        let places: Vec<_> = cluster
            .run(program)
            .unwrap()
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let wanted = (0..9).map(|rank| RankPlacement {
            rack: rank / 8,
            ..RankPlacement::new(rank / 4, rank / 2 % 2)
        });
        assert!(places.into_iter().eq(wanted));
    }
}

#[test]
fn a_split_groups_by_color_and_orders_by_key_and_rank() {
    let program = async |comm: &SimComm| {
        let rank = comm.rank();
        comm.pause(Duration::from_micros(rank.into()));
        // Ranks 0, 3, 6, 9 have no color; the keys reverse the order, except for ranks 7 and 8.
        let color = Some(rank % 3).filter(|color| *color > 0);
        let group = comm.split(color, 100 - rank / 2 * 2).await?;
        let left = comm.true_now();
        let Some(group) = group else {
            return Ok((None, left, vec![]));
        };
        // Every member sends its rank in the whole cluster to the first of the group.
        group.send(0, u64::from(rank)).await?;
        let mut members = vec![];
        if group.rank() == 0 {
            for member in 0..group.size() {
                members.push(group.recv::<u64>(member).await?);
            }
        }
        Ok::<_, CommError>((Some((group.rank(), group.size())), left, members))
    };
    let found: Vec<_> = simple(11)
        .run(program)
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect();
    // The last arrived after 10 us, followed by eight hops of 1 us up and down the tree of eleven
    // ranks.
    assert!(
        found
            .iter()
            .all(|(_, left, _)| *left == at((10 + 8) * MICROSECOND)),
        "{found:?}"
    );
    let members = |first: usize| found[first].2.clone();
    assert_eq!(
        (members(10), members(8)),
        (vec![10, 7, 4, 1], vec![8, 5, 2])
    );
    assert_eq!(found[4].0, Some((2, 4)));
    assert!([0, 3, 6, 9].iter().all(|rank| found[*rank].0.is_none()));
}

#[test]
fn messages_of_different_communicators_do_not_mix() {
    let program = async |comm: &SimComm| {
        let same = comm.split(Some(0), comm.rank()).await?.unwrap();
        let turned = same.split(Some(0), 9 - comm.rank()).await?.unwrap();
        let (rank, other) = (comm.rank(), 1 - comm.rank());
        for (number, comm) in [(1, &turned), (2, comm), (3, &same)] {
            comm.send(1 - comm.rank(), 10 * u64::from(rank) + number)
                .await?;
        }
        let received = [
            comm.recv(other).await?,
            same.recv(other).await?,
            turned.recv(rank).await?,
        ];
        Ok::<[u64; 3], CommError>(received)
    };
    assert_eq!(
        simple(2).run(program).unwrap(),
        [Ok([12, 13, 11]), Ok([2, 3, 1])]
    );
}

#[test]
fn a_synchronous_send_waits_until_it_is_received_and_a_plain_one_does_not() {
    let program = async |comm: &SimComm| {
        if comm.rank() == 0 {
            comm.send(1, 1_u64).await?;
            let plain = comm.true_now();
            comm.send_sync(1, 2_u64).await?;
            return Ok((plain, comm.true_now()));
        }
        comm.pause(Duration::from_micros(50));
        let sum = comm.recv::<u64>(0).await? + comm.recv::<u64>(0).await?;
        Ok::<_, CommError>((at(sum as i64), comm.true_now()))
    };
    let wanted = [
        Ok((at(0), at(51 * MICROSECOND))),
        Ok((at(3), at(50 * MICROSECOND))),
    ];
    assert_eq!(simple(2).run(program).unwrap(), wanted);
}

#[test]
fn waits_for_a_rank_that_left_fail_after_its_messages_were_received() {
    for card in [
        None,
        Some(NetworkCard {
            gap: Duration::from_nanos(5),
            per_byte: 0.0,
        }),
    ] {
        let cluster = cluster(5, Network { card, ..plain() }, Clocks::perfect(), 1);
        let program = async |comm: &SimComm| match comm.rank() {
            0 => {
                comm.pause(Duration::from_micros(9));
                comm.send(1, 7_u64).await.map(|()| 0)
            }
            1 => {
                assert_eq!(comm.recv(0).await, Ok(7_u64));
                comm.recv::<u64>(0).await
            }
            2 => comm.recv::<u64>(0).await,
            3 => comm.send_sync(0, 1_u64).await.map(|()| 0),
            _ => comm.split(None, 0).await.map(|_| 0),
        };
        let left = Err(CommError::Left { rank: 0 });
        assert_eq!(
            cluster.run(program).unwrap(),
            [Ok(0), left, left, left, left]
        );
    }
}

/// Independent of the first of the two to be simulated, and on one thread or a thread each.
#[test]
fn dropping_a_communicator_does_not_affect_others() {
    for leaver in [0, 1] {
        let program = async |comm: &SimComm| {
            let group = comm.split(Some(0), comm.rank()).await?.unwrap();
            let other = 1 - comm.rank();
            if comm.rank() == leaver {
                drop(group);
                comm.send(other, 5_u64).await?;
                return Ok(comm.recv(other).await);
            }
            let lost = group.recv::<u64>(other).await;
            let left = CommError::Left { rank: other };
            assert_eq!(
                (
                    group.send(other, 1_u64).await,
                    group.send_sync(other, 1_u64).await
                ),
                (Err(left), Err(left))
            );
            assert_eq!(group.split(None, 0).await.map(|_| ()), Err(left));
            comm.send(other, comm.recv::<u64>(other).await?).await?;
            Ok::<_, CommError>(lost)
        };
        for found in [
            simple(2).run(program).unwrap(),
            on_two_threads(&simple(2), program).unwrap(),
        ] {
            assert_eq!(found[leaver as usize], Ok(Ok(5)));
            assert_eq!(
                found[1 - leaver as usize],
                Ok(Err(CommError::Left { rank: leaver }))
            );
        }
    }
}

/// A rank can return a communicator, but never use it again.
#[test]
fn a_rank_that_returned_has_left_even_if_it_kept_the_communicator() {
    for leaver in [0, 1] {
        let program = async |comm: &SimComm| {
            let group = comm.split(Some(0), comm.rank()).await?.unwrap();
            let lost = if comm.rank() == leaver {
                None
            } else {
                Some(group.recv::<u64>(leaver).await)
            };
            Ok::<_, CommError>((lost, group))
        };
        let mut found = simple(2).run(program).unwrap();
        let (lost, _) = found.swap_remove(1 - leaver as usize).unwrap();
        assert_eq!(lost, Some(Err(CommError::Left { rank: leaver })));
    }
}

#[test]
fn a_deadlock_is_an_error() {
    let ring = async |comm: &SimComm| comm.recv::<u64>((comm.rank() + 2) % 3).await.map(|_| ());
    let error = ClusterError::Deadlock {
        waiting: 3,
        rank: 0,
        waits_for: Some(2),
    };
    assert_eq!(simple(3).run(ring), Err(error.clone()));
    assert_eq!(
        error.to_string(),
        "3 ranks are deadlocked: the first is rank 0, which waits for rank 2"
    );

    // Rank 0 returns, but no rank waits for it.
    let some = async |comm: &SimComm| match comm.rank() {
        0 => Ok(()),
        rank => comm.send_sync(3 - rank, ()).await,
    };
    assert_eq!(
        simple(3).run(some),
        Err(ClusterError::Deadlock {
            waiting: 2,
            rank: 1,
            waits_for: Some(2)
        })
    );

    let meeting = async |comm: &SimComm| {
        if comm.rank() == 0 {
            comm.recv::<()>(1).await
        } else {
            comm.split(None, 0).await.map(|_| ())
        }
    };
    assert_eq!(
        simple(2).run(meeting),
        Err(ClusterError::Deadlock {
            waiting: 2,
            rank: 0,
            waits_for: Some(1)
        })
    );
    let outside = async |_: &SimComm| pending::<()>().await;
    assert_eq!(
        simple(2).run(outside),
        Err(ClusterError::Deadlock {
            waiting: 2,
            rank: 0,
            waits_for: None
        })
    );
}

#[test]
fn all_operations_work_on_a_single_rank() {
    let program = async |comm: &SimComm| {
        comm.send(0, 4_u64).await?;
        assert_eq!(comm.recv::<u64>(0).await, Ok(4));
        assert_eq!(comm.recv::<u64>(0).await, Err(CommError::WaitsForItself));
        assert_eq!(
            comm.send_sync(0, 4_u64).await,
            Err(CommError::WaitsForItself)
        );
        assert_eq!(
            comm.send(1, 4_u64).await,
            Err(CommError::NoSuchRank { rank: 1, size: 1 })
        );
        assert_eq!(
            comm.recv::<u64>(7).await,
            Err(CommError::NoSuchRank { rank: 7, size: 1 })
        );
        comm.send(0, [1_u64, 2]).await?;
        assert_eq!(
            comm.recv::<u64>(0).await,
            Err(CommError::WrongLength {
                from: 0,
                expected: 1,
                found: 2
            })
        );
        assert!(comm.split(None, 0).await?.is_none());
        Ok::<_, CommError>(
            comm.split(Some(3), 5)
                .await?
                .map(|group| (group.rank(), group.size())),
        )
    };
    assert_eq!(simple(1).run(program).unwrap(), [Ok(Some((0, 1)))]);
    for label in [
        "hca/2/skampi/2",
        "hca3/2/skampi/2",
        "h2hca(jk/2/skampi/2,prop)",
    ] {
        assert!(synchronize(&simple(1), label)[0].result.is_ok());
    }
}

#[test]
fn pauses_and_readings_take_time_and_true_time_is_free() {
    let clocks = Clocks {
        offset: Duration::from_millis(1),
        drift: Drift::Within(1e-5),
        read_cost: Duration::from_nanos(30),
        ..Clocks::perfect()
    };
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        comm.pause(Duration::from_nanos(100));
        comm.pause(Duration::from_nanos(-100));
        assert_eq!(
            (comm.true_now(), clock.ticks_at(at(5))),
            (at(100), clock.ticks_at(at(5)))
        );
        assert_eq!(clock.ticks(), clock.ticks_at(at(130)));
        assert_eq!(clock.close(), clock.ticks_at(at(160)));
        assert_eq!(comm.true_now(), at(160));
        clock
    };
    let cluster = SimCluster {
        ranks_per_node: 2,
        ..cluster(3, plain(), clocks, 1)
    };
    let clocks = cluster.run(program).unwrap();
    // The two ranks of a node share a clock, which can be read after the simulation.
    let later = at(3_600_000_000_000);
    assert_eq!(clocks[0].ticks_at(later), clocks[1].ticks_at(later));
    let apart = clocks[0]
        .ticks_at(later)
        .0
        .abs_diff(clocks[2].ticks_at(later).0);
    assert!(apart > 0 && apart < 2 * (1_000_000 + 36_000_000), "{apart}");
    assert_eq!(
        SimClock::nominal_model().unwrap().apply(SimClock::ZERO),
        Timestamp::ORIGIN
    );
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let good = || cluster(2, Network::typical(), Clocks::typical(), 1);
    let negative = Duration::from_nanos(-1);
    type Spoil = fn(&mut SimCluster, Duration);
    let cases: [(&str, Spoil); 20] = [
        ("ranks", |c, _| c.ranks = 0),
        ("ranks", |c, _| c.ranks = u32::MAX),
        ("ranks_per_node", |c, _| c.ranks_per_node = 0),
        ("sockets_per_node", |c, _| c.sockets_per_node = 0),
        ("nodes_per_rack", |c, _| c.nodes_per_rack = Some(0)),
        ("network.socket.latency", |c, negative| {
            c.network.socket.latency = negative;
        }),
        ("network.node.per_byte", |c, _| {
            c.network.node.per_byte = f64::NAN;
        }),
        ("network.switch.asymmetry", |c, negative| {
            c.network.switch.asymmetry = negative;
        }),
        ("network.switch.tail.sigma", |c, _| {
            c.network.switch.tail = DelayTail::LogNormal {
                median: Duration::ZERO,
                sigma: -1.0,
            };
        }),
        ("network.switch.tail.shape", |c, _| {
            c.network.switch.tail = DelayTail::Pareto {
                scale: Duration::ZERO,
                shape: 0.0,
            };
        }),
        ("1 - network.switch.bursts.probability", |c, _| {
            c.network.switch.bursts = DelayBursts::Chance {
                probability: 1.5,
                mean: Duration::ZERO,
            };
        }),
        ("network.switch.bursts.every - lasting", |c, _| {
            let [every, lasting] = [1, 2].map(Duration::from_nanos);
            c.network.switch.bursts = DelayBursts::Spells {
                every,
                lasting,
                mean: Duration::ZERO,
            };
        }),
        ("network.send_overhead", |c, negative| {
            c.network.send_overhead = negative;
        }),
        ("network.receive_overhead", |c, negative| {
            c.network.receive_overhead = negative;
        }),
        ("network.card.gap", |c, negative| {
            c.network.card = Some(NetworkCard {
                gap: negative,
                per_byte: 0.0,
            });
        }),
        ("clocks.offset", |c, negative| c.clocks.offset = negative),
        ("clocks.drift", |c, _| {
            c.clocks.drift = Drift::Normal(f64::INFINITY);
        }),
        ("clocks.granularity", |c, _| c.clocks.granularity = 0),
        ("clocks.read_cost", |c, negative| {
            c.clocks.read_cost = negative;
        }),
        ("clocks.wander.lasting", |c, _| {
            let (interval, lasting) = (Duration::from_nanos(1), Duration::from_secs(1));
            c.clocks.wander = Some(DriftWalk {
                drift_per_sqrt_second: 0.0,
                interval,
                lasting,
            });
        }),
    ];
    assert_eq!(good().validate(), Ok(()));
    for (wanted, spoil) in cases {
        let mut cluster = good();
        spoil(&mut cluster, negative);
        let found = cluster.run(async |_| ());
        assert!(
            matches!(&found, Err(ClusterError::Parameter { name, .. }) if name == wanted),
            "{wanted}: {found:?}"
        );
    }
}
