use super::*;
use crate::check::Verdict;
use crate::generate::{SyntheticEvent, SyntheticProgram};
use crate::{
    ControlledLogicalClock, Event, Latencies, Matching, Place, Trace, TraceBuilder, UnmatchedEvents,
};
use downbeat_clock_core::{Duration, Timestamp};
use downbeat_sync::ClusterError;
use fastrand::Rng;

/// A small file can define a large communicator once, and then enter many of its operations: with a
/// slot for every member, these would take 14 GB.
#[test]
fn memory_of_operations_is_proportional_to_their_events() {
    const MEMBERS: u32 = 20_000;
    let mut builder = TraceBuilder::new(Matching::default());
    let place = |process| Place { node: 0, process };
    let ids: Vec<_> = (0..MEMBERS)
        .map(|process| builder.add_location(place(process)).unwrap())
        .collect();
    let communicator = builder.add_communicator(&ids).unwrap();
    for time in 0..i64::from(MEMBERS) {
        let mut push = |id: usize, event| {
            builder
                .push(ids[id], Timestamp::from_nanos(time), event)
                .unwrap();
        };
        push(
            0,
            Event::CollectiveBegin {
                communicator: communicator.into(),
                request: None,
            },
        );
        push(
            1,
            Event::Fork {
                team: communicator.into(),
            },
        );
        push(
            MEMBERS as usize - 1,
            Event::ThreadEnd {
                team: communicator.into(),
            },
        );
    }
    let trace = builder.finish().unwrap();
    assert_eq!(
        (trace.slots.len(), trace.left_out().collectives),
        (3 * MEMBERS as usize, 2 * u64::from(MEMBERS))
    );
}

/// Returns the trace of a program when all events of some locations are lost, and the last ones of
/// others.
fn remains(program: &SyntheticProgram, lost: impl Fn(usize) -> Option<usize>) -> Trace {
    let mut builder = TraceBuilder::new(Matching::default());
    let mut kept: Vec<usize> = vec![];
    for place in program.places() {
        let id = builder.add_location(place).unwrap();
        kept.push(lost(id.index()).unwrap_or(usize::MAX));
    }
    for members in program.communicators() {
        builder.add_communicator(&members).unwrap();
    }
    let see = |SyntheticEvent {
                   location,
                   local,
                   event,
                   ..
               }: SyntheticEvent| {
        if kept[location.index()] > 0 {
            kept[location.index()] -= 1;
            builder
                .push(location, Timestamp::from_nanos(local.as_nanos()), event)
                .unwrap();
        }
        Ok::<(), ClusterError>(())
    };
    program.run(see).unwrap();
    builder.finish().unwrap()
}

#[test]
fn incomplete_traces_can_be_corrected() {
    let mut rng = Rng::with_seed(1);
    let microsecond = Duration::from_micros(1);
    let latencies = Latencies::new(microsecond, microsecond, microsecond).unwrap();
    for seed in 0..30 {
        let program = SyntheticProgram {
            processes: 2,
            threads: 2,
            collective_every: 1,
            fork_every: 2,
            asynchronous: seed % 3 == 2,
            sessions: 0,
            seed,
            ..SyntheticProgram::new(4, 0)
        };
        let program = program.with_events(3_000);
        let whole = remains(&program, |_| None);
        assert_eq!(whole.left_out(), UnmatchedEvents::default());
        let absent = rng.usize(0..16);
        let cut = [(); 16].map(|()| rng.bool().then(|| rng.usize(0..200)));
        let trace = remains(&program, |location| {
            if location == absent {
                Some(0)
            } else {
                cut[location]
            }
        });
        let found = trace.left_out();
        assert!(
            found.collectives > 0 && (found.sends > 0 || found.receives > 0),
            "{found:?}"
        );
        // Every slot belongs to a member that took part, and has the rank that its events state.
        for instance in &trace.instances {
            for (rank, slot) in (0..).zip(trace.slots_of(instance)) {
                assert_ne!(slot.location as usize, absent);
                let marks = &trace.locations[slot.location as usize].marks;
                let of = [slot.enter, slot.exit]
                    .into_iter()
                    .filter(|mark| *mark != NONE);
                assert!(
                    of.map(|mark| marks[mark as usize].peer())
                        .all(|peer| peer == rank)
                );
            }
        }
        let [one, two] = [1, 2].map(|workers| {
            let mut clock = ControlledLogicalClock::new(latencies);
            clock.workers = workers;
            clock.correct(&trace).unwrap().into_times()
        });
        assert!(Verdict::new(&trace, &one, &latencies).unwrap().holds());
        assert_eq!(one, two);
    }
}
