//! A program for `mpirun`: the promises of a communicator over MPI.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

#[path = "../../sync/tests/common/bytes.rs"]
mod bytes;
mod job;
mod messages;

use std::error::Error;
use std::rc::Rc;
use std::{thread, time};

use downbeat_clock_core::{Clock, ClockModel, Global, Local, Node, Ticks};
use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready};
use downbeat_timers::{SystemClock, SystemClockId};
use job::job;
use messages::{recv, send};
use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};

fn main() {
    assert_eq!(refused(), MpiError::NotInitialized);
    let survivor = job(Threading::Funneled, |world| {
        let comm = MpiComm::duplicate(world).unwrap();
        assert_eq!(
            (comm.rank() as i32, comm.size() as i32),
            (world.rank(), world.size())
        );
        messages_arrive_in_order(&comm);
        a_token_goes_round(&comm);
        a_synchronous_send_returns_after_the_receive_began(&comm);
        a_rank_sends_to_itself_but_does_not_wait_for_itself(&comm);
        a_rank_that_does_not_exist_is_refused(&comm);
        another_type_than_was_sent_is_refused(&comm);
        block_on_ready(bytes::bytes_arrive(&comm)).unwrap();
        fewer_bytes_than_were_expected_are_refused(&comm);
        a_split_groups_by_color_and_orders_by_key_and_rank(&comm);
        a_color_that_mpi_does_not_have_is_refused_to_its_rank_only(&comm);
        communicators_do_not_mix(&comm);
        the_program_and_the_communicator_do_not_meet(world, &comm);
        ranks_of_one_machine_are_on_one_node(&comm);
        communicators_by_node_are_kept(&comm);
        another_thread_is_refused();
        comm
    });
    assert_eq!(refused(), MpiError::Finalized);
    nothing_happens_after_the_end(survivor);
}

/// Error of a communicator that cannot be created now.
fn refused() -> MpiError {
    MpiComm::duplicate(&SimpleCommunicator::world()).unwrap_err()
}

/// Returns the neighbours in a ring.
fn ring(comm: &MpiComm) -> (u32, u32) {
    let (rank, size) = (comm.rank(), comm.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

/// All send before the first receives, also to themselves.
fn messages_arrive_in_order(comm: &MpiComm) {
    for i in 0..50_u64 {
        for to in 0..comm.size() {
            send(comm, to, [i, comm.rank().into(), to.into(), 0, 0, u64::MAX]).unwrap();
            send(comm, to, [i]).unwrap();
        }
        for from in 0..comm.size() {
            assert_eq!(
                recv(comm, from),
                Ok([i, from.into(), comm.rank().into(), 0, 0, u64::MAX])
            );
            assert_eq!(recv(comm, from), Ok([i]));
        }
    }
}

fn a_token_goes_round(comm: &MpiComm) {
    let (next, previous) = ring(comm);
    let mut token = 0;
    for _ in 0..20 {
        if comm.rank() > 0 {
            token = recv(comm, previous).unwrap();
        }
        send(comm, next, token + 1_u64).unwrap();
        if comm.rank() == 0 {
            token = recv(comm, previous).unwrap();
        }
    }
    assert!(comm.rank() > 0 || token == 20 * u64::from(comm.size()));
}

/// The ranks of one machine read one clock.
fn a_synchronous_send_returns_after_the_receive_began(comm: &MpiComm) {
    let clock = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    if comm.rank() == 0 {
        for to in 1..comm.size() {
            send(comm, to, ()).unwrap();
            block_on_ready(comm.send_sync(to, to as u64)).unwrap();
            let returned = clock.ticks();
            assert!(returned >= recv::<Ticks>(comm, to).unwrap());
        }
    } else {
        recv::<()>(comm, 0).unwrap();
        thread::sleep(time::Duration::from_millis(10));
        let began = clock.ticks();
        assert_eq!(recv::<u64>(comm, 0), Ok(comm.rank().into()));
        send(comm, 0, began).unwrap();
    }
}

fn a_rank_sends_to_itself_but_does_not_wait_for_itself(comm: &MpiComm) {
    let me = comm.rank();
    assert_eq!(recv::<u64>(comm, me), Err(CommError::WaitsForItself));
    for i in 0..100_u64 {
        send(comm, me, i).unwrap();
    }
    assert_eq!(
        block_on_ready(comm.send_sync(me, 7_u64)),
        Err(CommError::WaitsForItself)
    );
    for i in 0..100_u64 {
        assert_eq!(recv(comm, me), Ok(i));
    }
    assert_eq!(recv::<u64>(comm, me), Err(CommError::WaitsForItself));
}

fn a_rank_that_does_not_exist_is_refused(comm: &MpiComm) {
    let size = comm.size();
    // The largest are MPI's wildcards, read as numbers without a sign.
    for rank in [size, size + 1, u32::MAX, u32::MAX - 1] {
        let error = CommError::NoSuchRank { rank, size };
        assert_eq!(send(comm, rank, ()), Err(error));
        assert_eq!(recv::<()>(comm, rank), Err(error));
        assert_eq!(block_on_ready(comm.send_sync(rank, ())), Err(error));
    }
}

fn another_type_than_was_sent_is_refused(comm: &MpiComm) {
    let (next, previous) = ring(comm);
    let wrong_length = |found| {
        Err(CommError::WrongLength {
            from: previous,
            expected: 1,
            found,
        })
    };
    for length in [2, 0, 6] {
        match length {
            0 => send(comm, next, ()),
            2 => send(comm, next, [1_u64, 2]),
            _ => send(comm, next, [1_u64; 6]),
        }
        .unwrap();
        assert_eq!(recv::<u64>(comm, previous), wrong_length(length));
    }
    let model = ClockModel::<Local, Global>::IDENTITY;
    send(comm, next, model).unwrap();
    assert_eq!(
        recv::<ClockModel<Local, Node>>(comm, previous),
        Err(CommError::WrongType { from: previous })
    );
    // The refused message is gone.
    send(comm, next, model).unwrap();
    assert_eq!(recv(comm, previous), Ok(model));
}

/// Also if words were sent instead.
fn fewer_bytes_than_were_expected_are_refused(comm: &MpiComm) {
    let (next, previous) = ring(comm);
    if next == comm.rank() {
        return;
    }
    let wrong_length = |found| {
        Err(CommError::WrongLength {
            from: previous,
            expected: 100,
            found,
        })
    };
    block_on_ready(comm.send_bytes(next, &[1; 5])).unwrap();
    assert_eq!(
        block_on_ready(comm.recv_bytes(previous, &mut [0; 100])),
        wrong_length(5)
    );
    send(comm, next, 7_u64).unwrap();
    assert_eq!(
        block_on_ready(comm.recv_bytes(previous, &mut [0; 100])),
        wrong_length(8)
    );
}

/// Even ranks in reverse order, odd ranks in order; every fourth rank takes no part.
fn a_split_groups_by_color_and_orders_by_key_and_rank(comm: &MpiComm) {
    let (rank, size) = (comm.rank(), comm.size());
    let color = (rank % 4 != 3).then_some(if rank % 2 == 0 { 0 } else { i32::MAX as u32 });
    let key = match rank {
        0 => u32::MAX,
        even if even % 2 == 0 => 100 - even,
        _ => 7,
    };
    let Some(group) = block_on_ready(comm.split(color, key)).unwrap() else {
        assert_eq!(rank % 4, 3);
        return;
    };
    let even = (0..size).rev().filter(|rank| rank % 2 == 0);
    let odd = (0..size).filter(|rank| rank % 4 == 1);
    let members: Vec<_> = if rank % 2 == 0 {
        even.collect()
    } else {
        odd.collect()
    };
    let place = members.iter().position(|member| *member == rank);
    assert_eq!(
        (Some(group.rank() as usize), group.size() as usize),
        (place, members.len())
    );
    // The first rank of the group collects its members.
    send(&group, 0, u64::from(rank)).unwrap();
    if group.rank() == 0 {
        for (from, member) in (0..).zip(members) {
            assert_eq!(recv(&group, from), Ok(u64::from(member)));
        }
    }
}

fn a_color_that_mpi_does_not_have_is_refused_to_its_rank_only(comm: &MpiComm) {
    let unlucky = comm.rank() == comm.size() - 1;
    let color = if unlucky { 1 << 31 } else { 0 };
    match block_on_ready(comm.split(Some(color), 0)) {
        Ok(group) => assert_eq!(
            (unlucky, group.map(|group| group.size())),
            (false, Some(comm.size() - 1))
        ),
        Err(why) => assert_eq!(
            (unlucky, why),
            (true, CommError::Mpi(MpiError::ColorTooLarge(color)))
        ),
    }
}

/// A communicator, its duplicate, and one of some ranks: the last message is received first.
fn communicators_do_not_mix(comm: &MpiComm) {
    let (next, previous) = ring(comm);
    for i in 0..20 {
        send(comm, next, 1_u64).unwrap();
        let same = block_on_ready(comm.split(Some(0), 0)).unwrap().unwrap();
        send(&same, next, 2_u64).unwrap();
        let part = block_on_ready(same.split(Some((same.rank() + i) % 2), 0))
            .unwrap()
            .unwrap();
        let (after, before) = ring(&part);
        send(&part, after, 3_u64).unwrap();
        assert_eq!(
            (recv(&part, before), recv(&same, previous)),
            (Ok(3_u64), Ok(2_u64))
        );
        // Also after the communicator that it came from is dropped.
        drop(same);
        send(&part, after, 4_u64).unwrap();
        assert_eq!(
            (recv(&part, before), recv(comm, previous)),
            (Ok(4_u64), Ok(1_u64))
        );
    }
}

/// The program receives from any rank, with any tag, before a message is sent.
fn the_program_and_the_communicator_do_not_meet(world: &SimpleCommunicator, comm: &MpiComm) {
    let (next, previous) = ring(comm);
    let mut heard = 0_u64;
    mpi::request::scope(|scope| {
        let posted = world
            .any_process()
            .immediate_receive_into(scope, &mut heard);
        messages_arrive_in_order(comm);
        world.process_at_rank(next as i32).send(&99_u64);
        assert_eq!(posted.wait().source_rank(), previous as i32);
    });
    assert_eq!(heard, 99);

    // The reverse: the program's message arrives first, with the tag that the communicator uses.
    if comm.size() > 1 {
        world.process_at_rank(next as i32).send_with_tag(&5_u64, 0);
        send(comm, next, 6_u64).unwrap();
        assert_eq!(recv(comm, previous), Ok(6_u64));
        assert_eq!(
            world
                .process_at_rank(previous as i32)
                .receive_with_tag::<u64>(0)
                .0,
            5
        );
    }
}

fn ranks_of_one_machine_are_on_one_node(comm: &MpiComm) {
    assert_eq!(comm.node(), Ok(0));
    let part = block_on_ready(comm.split(Some(comm.rank() % 2), u32::MAX - comm.rank()))
        .unwrap()
        .unwrap();
    assert_eq!(part.node(), Ok(0));
}

/// A split takes longer than a synchronization may.
fn communicators_by_node_are_kept(comm: &MpiComm) {
    let by_node = |node| block_on_ready(comm.by_node(node)).unwrap();
    let first = by_node(comm.rank() % 2);
    let nodes = comm.size().min(2);
    assert_eq!(first.node.size(), (comm.size() + 1 - comm.rank() % 2) / 2);
    let is_first = comm.rank() < nodes;
    assert_eq!(
        first.firsts.as_ref().map(Comm::size),
        is_first.then_some(nodes)
    );
    assert!(Rc::ptr_eq(&first, &by_node(comm.rank() % 2)));
    // If one rank is on another node, all split again.
    let other = by_node(comm.rank() % 2 + u32::from(comm.rank() == 0) * 2);
    assert!(!Rc::ptr_eq(&first, &other));
}

fn another_thread_is_refused() {
    assert_eq!(
        thread::spawn(refused).join().unwrap(),
        MpiError::OtherThread
    );
}

fn nothing_happens_after_the_end(comm: MpiComm) {
    let ended = CommError::Mpi(MpiError::Finalized);
    let other = (comm.rank() + 1) % comm.size();
    if other != comm.rank() {
        assert_eq!(
            (send(&comm, other, ()), recv::<()>(&comm, other)),
            (Err(ended), Err(ended))
        );
        assert_eq!(block_on_ready(comm.send_sync(other, ())), Err(ended));
        assert_eq!(block_on_ready(comm.send_bytes(other, &[1])), Err(ended));
    }
    assert_eq!(block_on_ready(comm.split(None, 0)).map(|_| ()), Err(ended));
    assert_eq!(comm.node(), Err(ended));
    let why: Box<dyn Error> = ended.into();
    assert_eq!(why.to_string(), "MPI is already finalized");
    drop(comm);
}
