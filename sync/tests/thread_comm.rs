//! Guarantees of a communicator of threads, with fewer and with more ranks than cores.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use common::run;
use downbeat_sync::payload::Payload;
use downbeat_sync::{ClusterError, Comm, CommError, ThreadCluster, ThreadComm, block_on_ready};

/// From one rank to more ranks than cores.
const SIZES: [u32; 6] = [1, 2, 3, 4, 5, 8];

fn send<P: Payload>(comm: &ThreadComm, to: u32, payload: P) -> Result<(), CommError> {
    block_on_ready(comm.send(to, payload))
}

fn recv<P: Payload>(comm: &ThreadComm, from: u32) -> Result<P, CommError> {
    block_on_ready(comm.recv(from))
}

fn split(comm: &ThreadComm, color: Option<u32>, key: u32) -> Result<Option<ThreadComm>, CommError> {
    block_on_ready(comm.split(color, key))
}

#[test]
fn messages_arrive_in_order_between_all_ranks() {
    for size in SIZES {
        let all = run(size, |comm| {
            for i in 0..50_u64 {
                for to in 0..comm.size() {
                    send(comm, to, [i, comm.rank().into(), to.into()])?;
                }
                for from in 0..comm.size() {
                    assert_eq!(recv(comm, from), Ok([i, from.into(), comm.rank().into()]));
                }
            }
            Ok((comm.rank(), comm.size()))
        });
        assert_eq!(
            all.unwrap(),
            (0..size)
                .map(|rank| Ok::<_, CommError>((rank, size)))
                .collect::<Vec<_>>()
        );
    }
}

/// Each rank waits for the one before it: most of them long enough to fall asleep.
#[test]
fn a_token_circulates_in_a_ring() {
    for size in SIZES.into_iter().skip(1) {
        let tokens = run(size, |comm| {
            let (next, previous) = (
                (comm.rank() + 1) % comm.size(),
                (comm.rank() + comm.size() - 1) % comm.size(),
            );
            let mut token = 0;
            for _ in 0..200 {
                if comm.rank() > 0 {
                    token = recv(comm, previous)?;
                }
                send(comm, next, token + 1_u64)?;
                if comm.rank() == 0 {
                    token = recv(comm, previous)?;
                }
            }
            Ok::<_, CommError>(token)
        });
        assert_eq!(tokens.unwrap()[0], Ok(200 * u64::from(size)));
    }
}

#[test]
fn a_second_send_waits_until_the_first_was_received() {
    static RECEIVED: AtomicU32 = AtomicU32::new(0);
    run(2, |comm| {
        for i in 0..1_000_u32 {
            if comm.rank() == 0 {
                send(comm, 1, u64::from(i)).unwrap();
                assert!(RECEIVED.load(Ordering::Relaxed) + 1 >= i);
            } else {
                // Counted before the receive, or the sender could continue first.
                RECEIVED.store(i, Ordering::Relaxed);
                assert_eq!(recv(comm, 0), Ok(u64::from(i)));
            }
        }
    })
    .unwrap();
}

#[test]
fn a_synchronous_send_returns_after_the_receive_began() {
    static RECEIVING: AtomicU32 = AtomicU32::new(0);
    run(2, |comm| {
        for i in 1..=1_000_u32 {
            if comm.rank() == 0 {
                block_on_ready(comm.send_sync(1, ())).unwrap();
                assert!(RECEIVING.load(Ordering::Relaxed) >= i);
            } else {
                RECEIVING.store(i, Ordering::Relaxed);
                recv::<()>(comm, 0).unwrap();
            }
        }
    })
    .unwrap();
}

#[test]
fn a_rank_can_send_to_itself_but_not_wait_for_itself() {
    let results = run(2, |comm| {
        let me = comm.rank();
        assert_eq!(recv::<u64>(comm, me), Err(CommError::WaitsForItself));
        assert_eq!(send(comm, me, 5_u64), Ok(()));
        assert_eq!(send(comm, me, 6_u64), Err(CommError::WaitsForItself));
        assert_eq!(recv(comm, me), Ok(5_u64));
        assert_eq!(
            block_on_ready(comm.send_sync(me, 7_u64)),
            Err(CommError::WaitsForItself)
        );
        // The message that could not be sent synchronously was not sent at all.
        recv::<u64>(comm, me)
    });
    assert_eq!(results.unwrap(), [Err(CommError::WaitsForItself); 2]);
}

#[test]
fn a_rank_that_does_not_exist_is_refused() {
    let results = run(3, |comm| {
        for rank in [3, 4, u32::MAX] {
            let error = CommError::NoSuchRank { rank, size: 3 };
            assert_eq!(send(comm, rank, ()), Err(error));
            assert_eq!(recv::<()>(comm, rank), Err(error));
            assert_eq!(block_on_ready(comm.send_sync(rank, ())), Err(error));
        }
    });
    assert_eq!(results.unwrap().len(), 3);
}

#[test]
fn a_message_of_another_type_is_refused() {
    use downbeat_clock_core::{ClockModel, Global, Local, Node};
    run(1, |comm| {
        send(comm, 0, [1_u64, 2]).unwrap();
        assert_eq!(
            recv::<u64>(comm, 0),
            Err(CommError::WrongLength {
                from: 0,
                expected: 1,
                found: 2
            })
        );
        send(comm, 0, ()).unwrap();
        assert_eq!(
            recv::<u64>(comm, 0),
            Err(CommError::WrongLength {
                from: 0,
                expected: 1,
                found: 0
            })
        );
        send(comm, 0, 1_u64 << 32).unwrap();
        assert_eq!(recv::<u32>(comm, 0), Err(CommError::WrongType { from: 0 }));
        send(comm, 0, ClockModel::<Local, Global>::IDENTITY).unwrap();
        assert_eq!(
            recv::<ClockModel<Local, Node>>(comm, 0),
            Err(CommError::WrongType { from: 0 })
        );
        // The messages are lost, and the mailbox works as before.
        send(comm, 0, ClockModel::<Local, Global>::IDENTITY).unwrap();
        assert_eq!(recv(comm, 0), Ok(ClockModel::<Local, Global>::IDENTITY));
    })
    .unwrap();
}

#[test]
fn messages_of_a_rank_that_left_can_be_received() {
    for size in SIZES.into_iter().skip(1) {
        let results = run(size, |comm| {
            if comm.rank() == 0 {
                (1..comm.size()).for_each(|to| send(comm, to, 42_u64).unwrap());
                return Err(CommError::Left { rank: 0 });
            }
            assert_eq!(recv(comm, 0), Ok(42_u64));
            let later = recv::<u64>(comm, 0);
            assert_eq!(send(comm, 0, 1_u64), Err(CommError::Left { rank: 0 }));
            later
        });
        assert_eq!(
            results.unwrap(),
            vec![Err(CommError::Left { rank: 0 }); size as usize]
        );
    }
}

/// Covers all waits: for a message, for space for one, for its receipt, and for a split.
#[test]
fn waits_for_a_rank_that_left_fail() {
    let results = run(8, |comm| match comm.rank() {
        0 => Err(CommError::Left { rank: 0 }),
        1..=2 => recv::<()>(comm, 0),
        3..=4 => send(comm, 0, ()).and_then(|()| send(comm, 0, ())),
        5 => block_on_ready(comm.send_sync(0, ())),
        _ => split(comm, Some(1), 0).map(|_| ()),
    });
    let results = results.unwrap();
    assert!(
        results[..6]
            .iter()
            .all(|result| *result == Err(CommError::Left { rank: 0 })),
        "{results:?}"
    );
    // The others leave, too, and any of them may be reported.
    assert!(
        results[6..]
            .iter()
            .all(|result| matches!(result, Err(CommError::Left { .. }))),
        "{results:?}"
    );
}

/// The rank that panics is not the one that most others wait for.
#[test]
fn a_panic_releases_all_ranks() {
    for size in SIZES.into_iter().skip(2) {
        static FAILURES: Mutex<Vec<(u32, CommError)>> = Mutex::new(Vec::new());
        let failed = run(size, |comm| {
            let last = comm.size() - 1;
            if comm.rank() == last {
                // By then some of the others wait.
                block_on_ready(comm.send_sync(0, ())).unwrap();
                panic!("the last rank's own words");
            }
            if comm.rank() == 0 {
                recv::<()>(comm, last).unwrap();
            }
            // In a ring that the last rank would have to start.
            let why = recv::<u64>(comm, (comm.rank() + last) % comm.size()).unwrap_err();
            FAILURES.lock().unwrap().push((comm.rank(), why));
            recv::<u64>(comm, (comm.rank() + 1) % comm.size())
                .expect("this panic is only a consequence");
        });
        match failed.unwrap_err() {
            ClusterError::Panicked { rank, message } => {
                assert_eq!(
                    (rank, message.as_str()),
                    (size - 1, "the last rank's own words")
                );
            }
            other => panic!("{other}"),
        }
        let mut failures = std::mem::take(&mut *FAILURES.lock().unwrap());
        failures.sort_by_key(|(rank, _)| *rank);
        let panicked = (0..size - 1).map(|rank| (rank, CommError::Panicked { rank: size - 1 }));
        assert!(failures.iter().copied().eq(panicked), "{failures:?}");
    }
}

#[test]
fn a_split_groups_by_color_and_orders_by_key_and_rank() {
    for size in SIZES {
        let groups = run(size, |comm| {
            // Even ranks in reverse order, odd ranks in order; every fourth has no color.
            let rank = comm.rank();
            let color = (rank % 4 != 3).then_some(rank % 2);
            let key = if rank % 2 == 0 { 100 - rank } else { 7 };
            let Some(group) = split(comm, color, key)? else {
                return Ok(None);
            };
            // The first rank of the group collects the members.
            send(&group, 0, u64::from(rank))?;
            let mut members = Vec::new();
            if group.rank() == 0 {
                for from in 0..group.size() {
                    members.push(recv::<u64>(&group, from)?);
                }
            }
            Ok::<_, CommError>(Some((group.rank(), group.size(), members)))
        });
        let even: Vec<u64> = (0..u64::from(size))
            .rev()
            .filter(|rank| rank % 2 == 0)
            .collect();
        let odd: Vec<u64> = (0..u64::from(size)).filter(|rank| rank % 4 == 1).collect();
        for (rank, group) in (0_u64..).zip(groups.unwrap()) {
            let expected = [&even, &odd].into_iter().find_map(|members| {
                let place = members.iter().position(|member| *member == rank)?;
                let collected = if place == 0 { members.clone() } else { vec![] };
                Some((place as u32, members.len() as u32, collected))
            });
            assert_eq!(group, Ok(expected), "rank {rank} of {size}");
        }
    }
}

#[test]
fn successive_splits_do_not_affect_messages() {
    for size in SIZES {
        let results = run(size, |comm| {
            let (next, previous) = (
                (comm.rank() + 1) % comm.size(),
                (comm.rank() + comm.size() - 1) % comm.size(),
            );
            send(comm, next, 1_u64)?;
            for i in 0..50 {
                let group = split(comm, Some((comm.rank() + i) % 2), 0)?.expect("there is a color");
                let group = split(&group, Some(0), 0)?.expect("there is a color");
                send(&group, (group.rank() + 1) % group.size(), u64::from(i))?;
                assert_eq!(
                    recv(&group, (group.rank() + group.size() - 1) % group.size()),
                    Ok(u64::from(i))
                );
            }
            recv(comm, previous)
        });
        assert_eq!(results.unwrap(), vec![Ok(1_u64); size as usize]);
    }
}

#[test]
fn dropping_a_group_does_not_affect_the_communicator() {
    let results = run(2, |comm| {
        let group = split(comm, Some(0), 0).unwrap().unwrap();
        if comm.rank() == 0 {
            drop(group);
            send(comm, 1, 3_u64).map(|()| 3)
        } else {
            assert_eq!(recv::<()>(&group, 0), Err(CommError::Left { rank: 0 }));
            recv(comm, 0)
        }
    });
    assert_eq!(results.unwrap(), [Ok(3_u64), Ok(3)]);
}

#[test]
fn invalid_numbers_of_ranks_are_refused() {
    for ranks in [0, ThreadCluster::MAX_RANKS + 1, u32::MAX] {
        assert!(
            matches!(ThreadCluster::new(ranks).run(|_| ()), Err(ClusterError::Ranks(found)) if found == ranks)
        );
    }
}

#[test]
fn no_rank_starts_unless_all_are_pinned() {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let start = |_: &ThreadComm| STARTED.fetch_add(1, Ordering::Relaxed);

    let refused = ThreadCluster::new(4)
        .pin(|rank| {
            if rank == 2 {
                Err("no such core")
            } else {
                Ok(())
            }
        })
        .run(start);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "rank 2 could not be pinned: no such core"
    );
    let panicked = ThreadCluster::new(4).pin(|rank| {
        if rank == 1 {
            panic!("at {rank}")
        } else {
            Ok::<_, String>(())
        }
    });
    assert_eq!(
        panicked.run(start).unwrap_err().to_string(),
        "rank 1 panicked: at 1"
    );
    assert_eq!(STARTED.load(Ordering::Relaxed), 0);

    let pinned = Mutex::new(Vec::new());
    let cluster = ThreadCluster::new(3).pin(|rank| {
        pinned.lock().unwrap().push(rank);
        Ok::<_, String>(())
    });
    assert_eq!(cluster.run(start).unwrap().len(), 3);
    drop(cluster);
    let mut pinned = pinned.into_inner().unwrap();
    pinned.sort_unstable();
    assert_eq!(
        (pinned, STARTED.load(Ordering::Relaxed)),
        (vec![0, 1, 2], 3)
    );
}
