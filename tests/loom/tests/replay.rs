//! Replay of a trace by several workers, under the C11 memory model: loom runs every interleaving, and every value that a
//! load may return. It reports a deadlock if a worker sleeps and none will wake it.
//!
//! `RUSTFLAGS="--cfg downbeat_loom" cargo test --release --manifest-path tests/loom/Cargo.toml --test replay -- --nocapture`

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use downbeat_clock_core::{Duration, Timestamp};
use downbeat_loom::explore;
use downbeat_trace::logical::ControlVariable;
use downbeat_trace::{
    Action, CollectiveKind, ControlledLogicalClock, Latencies, Matching, Place, Replaying, Trace,
    TraceBuilder,
};
use loom::sync::atomic::AtomicU64;
use loom::thread;

/// Event of a location.
#[derive(Clone, Copy)]
enum Step {
    Nothing,
    Send(usize),
    Receive(usize),
    Enter,
    Exit(CollectiveKind),
}
use Step::{Enter, Exit, Nothing, Receive, Send};

/// Builds a trace of the events of all locations with their times.
fn trace(steps: &[&[(i64, Step)]]) -> &'static Trace {
    let processes: Vec<u32> = (0..steps.len() as u32).collect();
    trace_on(&processes, steps)
}

/// Builds a trace whose locations are in these processes, each with its own clock.
fn trace_on(processes: &[u32], steps: &[&[(i64, Step)]]) -> &'static Trace {
    let mut builder = TraceBuilder::new(Matching::default());
    let places = processes.iter().map(|process| Place {
        node: *process,
        process: *process,
    });
    let ids: Vec<_> = places
        .map(|place| builder.add_location(place).expect("these are few"))
        .collect();
    let communicator = builder.add_communicator(&ids).expect("all are known");
    for (location, steps) in ids.iter().zip(steps) {
        for (time, step) in *steps {
            let action = match *step {
                Nothing => Action::Internal,
                Send(to) => Action::Send {
                    to: ids[to],
                    communicator,
                    tag: 0,
                },
                Receive(from) => Action::Receive {
                    from: ids[from],
                    communicator,
                    tag: 0,
                },
                Enter => Action::Enter { communicator },
                Exit(kind) => Action::Exit {
                    communicator,
                    kind,
                    root: 0,
                    sent: true,
                    received: true,
                },
            };
            builder
                .push(*location, Timestamp::from_nanos(*time), action)
                .expect("times do not decrease");
        }
    }
    Box::leak(Box::new(builder.finish().expect("all is matched")))
}

/// Messages take 10 ns, and intervals keep their lengths.
fn replaying(trace: &'static Trace, groups: &'static [Range<usize>]) -> Arc<Replaying> {
    let ten = Duration::from_nanos(10);
    let mut clock =
        ControlledLogicalClock::new(Latencies::new(ten, ten, ten).expect("none is negative"));
    clock.rule.control = ControlVariable::ONE;
    Arc::new(Replaying::new(trace, &clock, groups))
}

/// Workers with these locations replay a trace: all of them come to an end, as far as they `come`, and each then sees what
/// every other one did.
fn workers_replay(
    name: &str,
    preemptions: Option<usize>,
    groups: &'static [Range<usize>],
    steps: &[&[(i64, Step)]],
    come: &'static [&'static [i64]],
) {
    workers_replay_trace(name, preemptions, groups, trace(steps), come);
}

fn workers_replay_trace(
    name: &str,
    preemptions: Option<usize>,
    groups: &'static [Range<usize>],
    trace: &'static Trace,
    come: &'static [&'static [i64]],
) {
    explore(name, preemptions, move || {
        let replaying = replaying(trace, groups);
        let work = |worker| {
            let replaying = Arc::clone(&replaying);
            move || {
                replaying.work(worker);
                replaying.words()
            }
        };
        // None of them by the thread that waits for all: to wake a thread that joins another is too much for loom.
        let workers: Vec<_> = (0..groups.len())
            .map(|worker| thread::spawn(work(worker)))
            .collect();
        let seen: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker panicked"))
            .collect();
        assert!(
            seen.iter().all(|seen| *seen == replaying.words()),
            "{seen:?} of {:?}",
            replaying.words()
        );
        assert_eq!(
            Arc::into_inner(replaying)
                .expect("all workers are gone")
                .end(),
            come
        );
    });
}

#[test]
fn a_message_each_way() {
    workers_replay(
        "a message each way",
        None,
        &[0..1, 1..2],
        &[
            &[(100, Send(1)), (110, Receive(1))],
            &[(50, Receive(0)), (60, Send(0))],
        ],
        &[&[100, 130], &[110, 120]],
    );
}

/// The first worker has more to do than a turn, and the second one nothing.
#[test]
fn work_that_is_left_to_another() {
    workers_replay(
        "work that is left",
        None,
        &[0..2, 2..2],
        &[
            &[
                (1, Nothing),
                (2, Nothing),
                (3, Nothing),
                (4, Nothing),
                (5, Send(1)),
            ],
            &[(1, Receive(0))],
        ],
        &[&[1, 2, 3, 4, 5], &[15]],
    );
}

/// Two workers have more to do than a turn, and only one of them can leave some of it to the third.
#[test]
fn work_that_two_would_leave_to_one() {
    let long: &[(i64, Step)] = &[
        (1, Nothing),
        (2, Nothing),
        (3, Nothing),
        (4, Nothing),
        (5, Nothing),
    ];
    workers_replay(
        "work that two would leave",
        Some(2),
        &[0..2, 2..4, 4..4],
        &[long, &[(1, Nothing)], long, &[(2, Nothing)]],
        &[&[1, 2, 3, 4, 5], &[1], &[1, 2, 3, 4, 5], &[2]],
    );
}

#[test]
fn a_barrier() {
    workers_replay(
        "a barrier",
        None,
        &[0..1, 1..2],
        &[
            &[(100, Enter), (101, Exit(CollectiveKind::Barrier))],
            &[(50, Enter), (51, Exit(CollectiveKind::Barrier))],
        ],
        &[&[100, 101], &[50, 110]],
    );
}

#[test]
fn a_scan() {
    workers_replay(
        "a scan",
        None,
        &[0..1, 1..2],
        &[
            &[(100, Enter), (101, Exit(CollectiveKind::Scan))],
            &[(50, Enter), (51, Exit(CollectiveKind::Scan))],
        ],
        &[&[100, 101], &[50, 110]],
    );
}

/// Two locations of a clock, of which one leaves a barrier before the other one enters it. It must
/// wait for the third one, but not for the second.
#[test]
fn a_barrier_that_a_clock_leaves_early() {
    let trace = trace_on(
        &[0, 0, 1],
        &[
            &[(40, Enter), (50, Exit(CollectiveKind::Barrier))],
            &[(60, Enter), (70, Exit(CollectiveKind::Barrier))],
            &[(100, Enter), (101, Exit(CollectiveKind::Barrier))],
        ],
    );
    workers_replay_trace(
        "a barrier that a clock leaves early",
        Some(2),
        &[0..2, 2..3],
        trace,
        &[&[40, 110], &[120, 130], &[100, 130]],
    );
}

/// Locations that wait for each other for ever do not keep workers from coming to an end.
#[test]
fn a_circle() {
    workers_replay(
        "a circle",
        None,
        &[0..1, 1..2],
        &[
            &[(1, Receive(1)), (2, Send(1))],
            &[(1, Receive(0)), (2, Send(0))],
        ],
        &[&[], &[]],
    );
}

/// One worker panics with a location that has not come to its end, while the other one waits for work, or is about to.
#[test]
fn a_worker_that_panics() {
    let trace = trace(&[&[(100, Send(1))], &[(50, Receive(0))]]);
    explore("a worker that panics", None, move || {
        let replaying = replaying(trace, &[0..1, 1..2]);
        let other = thread::spawn({
            let replaying = Arc::clone(&replaying);
            move || replaying.work(1)
        });
        replaying.abandon();
        other.join().expect("the other one does not panic");
    });
}

/// Either the receiver finds the time of a send, or its sender learns that it is waited for; whoever learns of the other
/// sees what that one did before.
#[test]
fn told_or_awaited() {
    let trace = trace(&[&[(100, Send(1))], &[(50, Receive(0))]]);
    explore("told or awaited", None, move || {
        let replaying = replaying(trace, &[0..1, 1..2]);
        let notes = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let receiver = thread::spawn({
            let (replaying, notes) = (Arc::clone(&replaying), Arc::clone(&notes));
            move || {
                notes[1].store(1, Ordering::Relaxed);
                let found = replaying.get_or_wait(0, 0);
                assert!(
                    found.is_none_or(|time| time == 100 && notes[0].load(Ordering::Relaxed) == 1)
                );
                found.is_none()
            }
        });
        notes[0].store(1, Ordering::Relaxed);
        let is_awaited = replaying.tell(0, 0, 100);
        assert!(!is_awaited || notes[1].load(Ordering::Relaxed) == 1);
        assert_eq!(
            receiver.join().expect("the receiver does not panic"),
            is_awaited
        );
        assert_eq!(replaying.get_or_wait(0, 0), Some(100));
    });
}
