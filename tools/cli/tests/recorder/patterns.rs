//! Communication patterns of programs.

use downbeat_sync::internal::scramble;
use downbeat_sync::{Comm, block_on_ready, collective};
use downbeat_trace::CollectiveKind;

use super::{RecordedTeam, Recorder, rest};

/// Answer of the master when no task is left.
const STOP: i32 = 1_000;

/// Runs all patterns and `extra`, with clock comparisons in between.
pub(crate) fn all<M: Comm>(recorder: &mut Recorder<M>, extra: impl FnOnce(&mut Recorder<M>)) {
    recorder.session(8);
    rest();
    ring(recorder, |recorder| &recorder.world, 20);
    partners(recorder, 20);
    rest();
    master_and_workers(recorder, 30);
    recorder.session(8);
    extra(recorder);
    rest();
    halo(recorder, 20);
    ring(recorder, |recorder| &recorder.half, 10);
    rest();
    together(recorder, |recorder| &recorder.world, 5);
    together(recorder, |recorder| &recorder.half, 5);
    recorder.session(8);
}

/// Each rank sends to the next one.
fn ring<M: Comm>(
    recorder: &mut Recorder<M>,
    team: fn(&Recorder<M>) -> &RecordedTeam<M>,
    rounds: i32,
) {
    let comm = &team(recorder).comm;
    let (rank, size) = (comm.rank(), comm.size());
    for round in 0..rounds {
        recorder.work(20);
        recorder.send(team, (rank + 1) % size, round % 3);
        recorder.receive(team, (rank + size - 1) % size);
    }
}

/// Random pairs exchange messages, the lower rank first. With an odd number of ranks, one is idle.
fn partners<M: Comm>(recorder: &mut Recorder<M>, rounds: u64) {
    for round in 0..rounds {
        let mut order: Vec<_> = (0..recorder.size()).collect();
        order.sort_by_key(|rank| scramble(u64::from(*rank) ^ round << 32));
        let at = order
            .iter()
            .position(|rank| *rank == recorder.rank())
            .unwrap();
        let Some(partner) = order.get(at ^ 1).copied() else {
            continue;
        };
        recorder.work(10);
        if recorder.rank() < partner {
            recorder.send(|recorder| &recorder.world, partner, 1);
            recorder.receive(|recorder| &recorder.world, partner);
        } else {
            recorder.receive(|recorder| &recorder.world, partner);
            recorder.send(|recorder| &recorder.world, partner, 2);
        }
    }
}

/// Workers request tasks of different lengths. The master works, too, so that they wait for it.
fn master_and_workers<M: Comm>(recorder: &mut Recorder<M>, tasks: i32) {
    if recorder.rank() > 0 {
        loop {
            recorder.send(|recorder| &recorder.world, 0, 0);
            match recorder.receive(|recorder| &recorder.world, 0) {
                STOP => return,
                task => recorder.work(scramble(task as u64) % 200),
            }
        }
    }
    for task in 1..=tasks {
        for worker in 1..recorder.size() {
            recorder.work(30);
            recorder.receive(|recorder| &recorder.world, worker);
            recorder.send(
                |recorder| &recorder.world,
                worker,
                if task == tasks { STOP } else { task },
            );
        }
    }
}

/// Neighbours in a row exchange edges; rank 0 has the most work.
fn halo<M: Comm>(recorder: &mut Recorder<M>, rounds: i32) {
    let (rank, last) = (recorder.rank(), recorder.size() - 1);
    let neighbours = [rank.checked_sub(1), (rank < last).then_some(rank + 1)]
        .into_iter()
        .flatten();
    for round in 0..rounds {
        recorder.work(if rank == 0 { 200 } else { 20 });
        neighbours
            .clone()
            .for_each(|neighbour| recorder.send(|recorder| &recorder.world, neighbour, round));
        neighbours.clone().for_each(|neighbour| {
            recorder.receive(|recorder| &recorder.world, neighbour);
        });
    }
}

/// Runs collective operations, which consist of messages.
fn together<M: Comm>(
    recorder: &mut Recorder<M>,
    team: fn(&Recorder<M>) -> &RecordedTeam<M>,
    rounds: u64,
) {
    for round in 0..rounds {
        recorder.work(50 * u64::from(recorder.rank()));
        recorder.together(team, CollectiveKind::Barrier, 0, |team| {
            block_on_ready(collective::barrier(&team.comm)).unwrap();
        });
        recorder.together(team, CollectiveKind::Broadcast, 0, |team| {
            block_on_ready(collective::broadcast(&team.comm, round)).unwrap();
        });
        recorder.together(team, CollectiveKind::Gather, 0, |team| {
            block_on_ready(collective::gather(&team.comm, round)).unwrap();
        });
        recorder.together(team, CollectiveKind::Allreduce, 0, |team| {
            block_on_ready(collective::all_reduce(&team.comm, round, u64::max)).unwrap();
        });
    }
}
