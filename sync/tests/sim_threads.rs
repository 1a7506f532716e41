//! Simulation on several threads: results equal those of one thread.

#[path = "common/plain.rs"]
mod plain;

use core::fmt::Debug;
use core::num::NonZero;

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::sim::{
    Clocks, DelayTail, Network, NetworkCard, NetworkLink, SimCluster, SimComm,
};
use downbeat_sync::{Algorithm, ClusterError, Comm, CommError};
use plain::plain;
use proptest::prelude::*;

fn cluster(ranks: u32, network: Network, clocks: Clocks, seed: u64) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 2,
        nodes_per_rack: Some(3),
        network,
        clocks,
        seed,
    }
}

fn threads(count: usize) -> NonZero<usize> {
    NonZero::new(count).unwrap_or(NonZero::<usize>::MIN)
}

/// Runs a program on one thread, and on several; returns the results if all are equal.
fn equal_results<T: Debug + PartialEq + Send>(
    cluster: &SimCluster,
    program: impl AsyncFn(&SimComm) -> T + Sync,
) -> Result<Vec<T>, ClusterError> {
    let one = cluster.simulate(&program);
    for count in [1, 2, 3, 5, 64] {
        let several = cluster.simulate_on(threads(count), &program);
        match (&one, several) {
            (Ok(one), Ok(several)) => {
                assert_eq!(one.results, several.results, "{count} threads");
                assert_eq!(one.messages, several.messages, "{count} threads");
                assert_eq!(one.ended, several.ended, "{count} threads");
            }
            (one, several) => {
                let (one, several) = (one.as_ref().err(), several.err());
                assert_eq!(one, several.as_ref(), "{count} threads");
            }
        }
    }
    one.map(|simulated| simulated.results)
}

/// Networks with cards and without, with racks, and with delays that differ from message to message.
fn networks() -> [Network; 4] {
    let typical = Network::typical();
    [
        plain(),
        typical.clone(),
        Network {
            card: None,
            ..typical.clone()
        },
        Network {
            racks: Some(NetworkLink {
                latency: Duration::from_nanos(900),
                ..typical.switch.clone()
            }),
            card: Some(NetworkCard {
                gap: Duration::from_micros(2),
                per_byte: 1.5,
            }),
            ..typical
        },
    ]
}

#[test]
fn synchronizations_are_equal_on_any_number_of_threads() {
    for (i, network) in networks().into_iter().enumerate() {
        for label in [
            "hca3/5/skampi/5",
            "jk/3/mean-rtt/3",
            "cube/5/10",
            "h2hca(hca2/5/skampi/5,prop)",
            "hlhca(rack=hca3/5/skampi/5,node=cube/5/10,rank=prop)",
        ] {
            let cluster = SimCluster {
                ranks_per_node: 4,
                ..cluster(37, network.clone(), Clocks::typical(), i as u64)
            };
            let algorithm: Algorithm = label.parse().unwrap();
            let found = equal_results(&cluster, async |comm: &SimComm| {
                let clock = comm.clock();
                let me = comm.local_clock(&clock).unwrap();
                let found = algorithm.synchronize(&me, comm).await.unwrap();
                let done = comm.true_now();
                (found.model, clock.ticks_at(done), done)
            });
            let clocks = cluster.true_clocks().unwrap();
            for (rank, (_, ticks, done)) in (0..).zip(found.unwrap()) {
                assert_eq!(ticks, clocks.ticks_at(rank, done));
            }
        }
    }
}

/// Step of a program that all ranks execute.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Ranks send to the rank at this distance, and receive.
    Shift { by: u32, synchronous: bool },
    /// Ranks send bytes to the rank whose number differs in these bits.
    Bytes { bits: u32, length: usize },
    /// Ranks with equal remainders form groups, in reverse order if wanted, and shift in them; then
    /// again in the halves of each group.
    Split { colors: u32, reverse: bool },
    /// Ranks pause, each for another time.
    Pause { nanos: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1_u32..40, any::<bool>()).prop_map(|(by, synchronous)| Step::Shift { by, synchronous }),
        (1_u32..32, 1_usize..200).prop_map(|(bits, length)| Step::Bytes { bits, length }),
        (1_u32..12, any::<bool>()).prop_map(|(colors, reverse)| Step::Split { colors, reverse }),
        (1_i64..5_000).prop_map(|nanos| Step::Pause { nanos }),
    ];
    prop::collection::vec(step, 1..12)
}

/// Shifts the true times of the ranks; returns that of the other.
async fn shift(comm: &SimComm, by: u32, synchronous: bool) -> Result<u64, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (to, from) = ((rank + by) % size, (rank + size - by % size) % size);
    if to == rank {
        return Ok(0);
    }
    let now = comm.true_now().as_nanos() as u64;
    if !synchronous {
        comm.send(to, now).await?;
        return comm.recv(from).await;
    }
    // The first of every cycle of ranks receives first: no rank waits for one that waits for it.
    let first = (0..size / gcd(by, size))
        .map(|i| (rank + i * by) % size)
        .min();
    if first == Some(rank) {
        let found = comm.recv(from).await?;
        comm.send_sync(to, now).await?;
        Ok(found)
    } else {
        comm.send_sync(to, now).await?;
        comm.recv(from).await
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

async fn run(comm: &SimComm, steps: &[Step]) -> Result<Vec<i64>, CommError> {
    let clock = comm.clock();
    let mut seen = vec![];
    for step in steps {
        match *step {
            Step::Shift { by, synchronous } => {
                seen.push(shift(comm, by, synchronous).await? as i64);
            }
            Step::Bytes { bits, length } => {
                let other = comm.rank() ^ bits;
                if other < comm.size() {
                    let mut bytes = vec![comm.rank() as u8; length];
                    comm.send_bytes(other, &bytes).await?;
                    comm.recv_bytes(other, &mut bytes).await?;
                    seen.push(bytes.iter().map(|byte| i64::from(*byte)).sum());
                }
            }
            Step::Split { colors, reverse } => {
                let key = if reverse {
                    comm.size() - comm.rank()
                } else {
                    0
                };
                let color = comm.rank() % colors;
                let Some(group) = comm.split(Some(color), key).await? else {
                    continue;
                };
                seen.push(group.rank().into());
                seen.push(shift(&group, 1, false).await? as i64);
                let half = 2 * group.rank() / group.size();
                let Some(half) = group.split(Some(half), 0).await? else {
                    continue;
                };
                seen.push(shift(&half, 1, false).await? as i64);
                // No rank leaves while others use a communicator.
                half.split(None, 0).await?;
                group.split(None, 0).await?;
            }
            Step::Pause { nanos } => {
                comm.pause(Duration::from_nanos(nanos * i64::from(comm.rank() % 7)));
            }
        }
        seen.push(clock.ticks().0 as i64);
        seen.push(comm.true_now().as_nanos());
    }
    Ok(seen)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_program_has_equal_results(
        steps in steps(),
        network in 0_usize..4,
        ranks in 1_u32..40,
        ranks_per_node in 1_u32..5,
        seed in 0_u64..1_000,
    ) {
        let cluster = SimCluster {
            ranks_per_node,
            ..cluster(ranks, networks()[network].clone(), Clocks::typical(), seed)
        };
        let found = equal_results(&cluster, async |comm: &SimComm| run(comm, &steps).await);
        prop_assert!(found.unwrap().iter().all(Result::is_ok));
    }
}

/// Ranks of the first node wait in every way for those of the second, which return at once.
#[test]
fn waits_for_ranks_of_another_thread_that_returned_end() {
    for network in networks() {
        let cluster = SimCluster {
            ranks_per_node: 5,
            ..cluster(10, network, Clocks::perfect(), 1)
        };
        let found = cluster.simulate_on(threads(2), async |comm: &SimComm| {
            let rank = comm.rank();
            let others = 5 + rank % 5;
            let result = match rank {
                0 => comm.recv::<u64>(others).await.map(|_| ()),
                1 => comm.send_sync(others, 1_u64).await,
                2 => comm.split(Some(0), 0).await.map(|_| ()),
                3 => comm.recv_bytes(others, &mut [0; 9]).await,
                4 => {
                    assert_eq!(comm.recv(others).await, Ok(7_u64));
                    comm.recv::<u64>(others).await.map(|_| ())
                }
                9 => {
                    comm.pause(Duration::from_millis(1));
                    comm.send(4, 7_u64).await
                }
                _ => Ok(()),
            };
            (result, comm.true_now())
        });
        let found = found.unwrap();
        for (rank, (result, _)) in (0..5).zip(&found.results) {
            assert!(
                matches!(result, Err(CommError::Left { rank: left }) if *left >= 5),
                "{rank}: {result:?}"
            );
        }
        assert!(found.results[4].1.as_nanos() > 1_000_000);
        assert!(found.results[5..].iter().all(|(result, _)| result.is_ok()));
    }
}

#[test]
fn a_deadlock_between_threads_is_found() {
    for network in networks() {
        let cluster = cluster(7, network, Clocks::perfect(), 1);
        let found = equal_results(&cluster, async |comm: &SimComm| {
            let (rank, size) = (comm.rank(), comm.size());
            match rank {
                0 => Ok(0),
                1 => comm.recv::<u64>(size - 1).await,
                _ => comm.recv::<u64>(rank - 1).await,
            }
        });
        let deadlock = ClusterError::Deadlock {
            waiting: 6,
            rank: 1,
            waits_for: Some(6),
        };
        assert_eq!(found, Err(deadlock));
    }
}

/// The other threads must not wait for the one that is gone.
#[test]
fn a_panic_of_a_rank_panics_the_caller() {
    for panicking in [0, 3, 6] {
        let cluster = cluster(7, Network::typical(), Clocks::typical(), 1);
        let simulate = || {
            cluster.simulate_on(threads(3), async |comm: &SimComm| {
                for round in 0..20 {
                    shift(comm, 1, false).await.unwrap();
                    assert!(round < 10 || comm.rank() != panicking, "rank {panicking}");
                }
            })
        };
        let panic = std::panic::catch_unwind(simulate).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert_eq!(*message, format!("rank {panicking}"));
    }
}

/// A program need not be an async function: this one panics before its first await, on one thread.
#[test]
fn a_panic_before_the_first_window_panics_the_caller() {
    fn program(comm: &SimComm) -> impl Future<Output = Result<u64, CommError>> {
        assert!(comm.rank() != 5, "at once");
        shift(comm, 1, false)
    }
    let cluster = cluster(7, Network::typical(), Clocks::typical(), 1);
    let simulate = || cluster.simulate_on(threads(3), program);
    let panic = std::panic::catch_unwind(simulate).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"at once"));
}

/// Messages without latency leave no time in which threads could work independently.
#[test]
fn a_network_without_latency_is_simulated_on_one_thread() {
    let network = Network {
        switch: NetworkLink {
            tail: DelayTail::Pareto {
                scale: Duration::from_nanos(100),
                shape: 2.0,
            },
            ..NetworkLink::steady(Duration::ZERO)
        },
        ..Network::typical()
    };
    let cluster = cluster(9, network, Clocks::typical(), 1);
    let found = equal_results(&cluster, async |comm: &SimComm| {
        let shifted = shift(comm, 2, true).await;
        (shifted, comm.true_now())
    });
    assert!(found.unwrap().iter().all(|(shifted, _)| shifted.is_ok()));
}
