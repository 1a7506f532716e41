//! A program for `mpirun`: ranks with wrong clocks record their events, and the trace is corrected.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test panics"
)]

mod job;
#[path = "../../tools/cli/tests/recorder/mod.rs"]
mod recorder;
mod yielding_recv;

use std::path::Path;
use std::{env, fs, process};

use downbeat_sync::{MpiComm, block_on_ready, collective};
use downbeat_trace::Event;
use downbeat_trace::check::Verdict;
use downbeat_trace::deviation::TruthComparison;
use downbeat_trace::formats::TraceFile;
use downbeat_trace::presync::PreSynchronization;
use downbeat_trace::{Array, CollectiveKind, ControlledLogicalClock, Latencies, Matching};
use job::job;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::request::scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};
use recorder::{Recorder, patterns};

fn main() {
    job(Threading::Single, |world| {
        let comm = MpiComm::duplicate(world).unwrap();
        let origin = block_on_ready(collective::broadcast(&comm, recorder::origin())).unwrap();
        let mut recorder = Recorder::new(&comm, origin);
        patterns::all(&mut recorder, |recorder| {
            for round in 0..10 {
                messages(world, recorder, round);
                collectives(world, recorder, round % world.size());
            }
        });
        let number =
            block_on_ready(collective::broadcast(&comm, u64::from(process::id()))).unwrap();
        let folder = env::temp_dir().join(format!("downbeat-mpi-trace-{number}"));
        fs::create_dir_all(&folder).unwrap();
        let [wrong, truth] = recorder.write(&folder);
        if world.rank() == 0 {
            correct(&wrong, &truth, &folder.join("right.dbt"), world.size() > 1);
            fs::remove_dir_all(&folder).unwrap();
        }
    });
}

/// Sends messages around a ring, first with nonblocking calls, then with blocking ones.
fn messages(world: &SimpleCommunicator, recorder: &mut Recorder<MpiComm>, round: i32) {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let [tag, other] = [2_000 + round, 3_000 + round];
    let sent = |tag| Event::Send {
        to: next as u32,
        communicator: 0,
        tag,
        request: None,
        bytes: Some(8),
    };
    let received = |tag| Event::Receive {
        from: last as u32,
        communicator: 0,
        tag,
        bytes: Some(8),
        request: None,
    };
    let mut found = 0;
    scope(|scope| {
        let receive = world
            .process_at_rank(last)
            .immediate_receive_into_with_tag(scope, &mut found, tag);
        recorder.stamp(sent(tag));
        let send = world
            .process_at_rank(next)
            .immediate_send_with_tag(scope, &rank, tag);
        recorder.work(20);
        receive.wait();
        recorder.stamp(received(tag));
        send.wait();
    });
    assert_eq!(found, last);
    // Rank 0 sends first, so that all can block.
    if rank == 0 && size > 1 {
        recorder.stamp(sent(other));
        world.process_at_rank(next).send_with_tag(&rank, other);
    }
    if size > 1 {
        world.process_at_rank(last).receive_with_tag::<i32>(other);
        recorder.stamp(received(other));
    }
    if rank > 0 {
        recorder.stamp(sent(other));
        world.process_at_rank(next).send_with_tag(&rank, other);
    }
}

fn collectives(world: &SimpleCommunicator, recorder: &mut Recorder<MpiComm>, root: i32) {
    let (rank, at_root) = (world.rank(), world.process_at_rank(root));
    let mut of_all = vec![0; world.size() as usize];
    let mut one = rank;
    let mut together = |kind, call: &mut dyn FnMut()| {
        recorder.work(30);
        recorder.together(|of| &of.world, kind, root as u32, |_| call());
    };
    together(CollectiveKind::Barrier, &mut || world.barrier());
    together(CollectiveKind::Broadcast, &mut || {
        at_root.broadcast_into(&mut one);
    });
    assert_eq!(one, root);
    together(CollectiveKind::Reduce, &mut || match rank == root {
        true => at_root.reduce_into_root(&rank, &mut one, SystemOperation::max()),
        false => at_root.reduce_into(&rank, SystemOperation::max()),
    });
    together(CollectiveKind::Allreduce, &mut || {
        world.all_reduce_into(&rank, &mut one, SystemOperation::max());
    });
    together(CollectiveKind::Scan, &mut || {
        world.scan_into(&rank, &mut one, SystemOperation::sum());
    });
    assert_eq!(one, rank * (rank + 1) / 2);
    let mine = of_all.clone();
    together(CollectiveKind::Alltoall, &mut || {
        world.all_to_all_into(&mine[..], &mut of_all[..]);
    });
}

/// Checks that the corrected trace has no violation, and differs in times only.
fn correct(wrong: &Path, truth: &Path, right: &Path, has_messages: bool) {
    let read = |path| TraceFile::read(path, Matching::default()).unwrap();
    let (mut trace, wrong) = read(wrong);
    let (truth, _) = read(truth);
    let happened = Verdict::new(&truth, &truth.times(), &Latencies::ZERO).unwrap();
    assert_eq!(
        (happened.messages.violated, happened.collectives.violated),
        (0, 0),
        "{:?}",
        happened.faults
    );

    let clocks = trace.clocks();
    let master = trace.ids().next().unwrap();
    PreSynchronization::new(master)
        .maps(&clocks, &wrong.sessions)
        .unwrap()
        .correct(&mut trace)
        .unwrap();
    let before = Verdict::new(&trace, &trace.times(), &Latencies::ZERO).unwrap();
    assert_eq!(before.all().violated > 0, has_messages, "{before:?}");

    let corrected = ControlledLogicalClock::new(Latencies::ZERO)
        .correct(&trace)
        .unwrap();
    wrong
        .write_corrected(right, corrected.times(), &wrong.sessions)
        .unwrap();
    let (corrected_trace, right) = read(right);
    assert!(
        Verdict::new(&trace, &corrected_trace.times(), &Latencies::ZERO)
            .unwrap()
            .holds()
    );
    assert_eq!(
        (corrected_trace.difference(&truth), &right.names),
        (None, &wrong.names)
    );

    let centred = |times: &[Array<_>]| {
        let mut error = TruthComparison::default();
        let pairs = times
            .iter()
            .flatten()
            .zip(truth.times().into_iter().flatten());
        pairs.for_each(|(shown, truth)| error.add(*shown, *truth));
        error.centred()
    };
    let pre_synchronized: Vec<Array<_>> = trace
        .times()
        .iter()
        .map(|times| times.iter().copied().collect())
        .collect();
    println!(
        "{:?}; centred error {:.0} ns before, {:.0} ns after",
        before.messages,
        centred(&pre_synchronized),
        centred(corrected.times())
    );
}
