use super::*;
use crate::check::Verdict;
use crate::{CollectiveKind, CommunicatorId, Event, Matching, Place, TraceBuilder};

struct Setting {
    builder: TraceBuilder,
    ids: Vec<LocationId>,
    world: CommunicatorId,
}

impl Setting {
    /// Returns a setting whose locations are all on different nodes.
    fn new(locations: u32) -> Self {
        let mut builder = TraceBuilder::new(Matching::default());
        let ids: Vec<LocationId> = (0..locations)
            .map(|i| {
                builder
                    .add_location(Place {
                        node: i,
                        process: i,
                    })
                    .unwrap()
            })
            .collect();
        let world = builder.add_communicator(&ids).unwrap();
        Self {
            builder,
            ids,
            world,
        }
    }

    fn push(&mut self, location: usize, nanos: i64, event: Event<'static>) {
        self.builder
            .push(self.ids[location], Timestamp::from_nanos(nanos), event)
            .unwrap();
    }

    fn idle(&mut self, location: usize, nanos: i64) {
        self.push(location, nanos, Event::Note("work"));
    }

    fn send(&mut self, location: usize, nanos: i64, to: usize) {
        self.push(
            location,
            nanos,
            Event::Send {
                to: self.ids[to].into(),
                communicator: self.world.into(),
                tag: 0,
                request: None,
                bytes: None,
            },
        );
    }

    fn receive(&mut self, location: usize, nanos: i64, from: usize) {
        self.push(
            location,
            nanos,
            Event::Receive {
                from: self.ids[from].into(),
                communicator: self.world.into(),
                tag: 0,
                request: None,
                bytes: None,
            },
        );
    }

    fn enter(&mut self, location: usize, nanos: i64) {
        self.push(
            location,
            nanos,
            Event::CollectiveBegin {
                communicator: self.world.into(),
                request: None,
            },
        );
    }

    fn exit(&mut self, location: usize, nanos: i64, kind: CollectiveKind, root: u32) {
        self.push(
            location,
            nanos,
            Event::CollectiveEnd {
                communicator: self.world.into(),
                kind,
                root,
                sent: true,
                received: true,
                request: None,
                bytes: None,
            },
        );
    }
}

/// Returns a clock with a latency of 10 ns, half of the speed, and a gradient of a tenth.
fn clock() -> ControlledLogicalClock {
    let ten = Duration::from_nanos(10);
    let mut clock = ControlledLogicalClock::new(Latencies::new(ten, ten, ten).unwrap());
    clock.rule.control = ControlVariable::new(0.5).unwrap();
    clock.gradient = Gradient::new(0.1).unwrap();
    clock
}

fn nanos(corrected: &CorrectedTimes<'_>, location: usize) -> Vec<i64> {
    corrected.times()[location]
        .iter()
        .map(|time| time.as_nanos())
        .collect()
}

#[test]
fn a_message_that_arrives_too_early_moves_the_events_around_it() {
    let mut of = Setting::new(2);
    of.send(0, 1_000, 1);
    [400, 700].into_iter().for_each(|time| of.idle(1, time));
    of.receive(1, 910, 0);
    [950, 1_200].into_iter().for_each(|time| of.idle(1, time));
    let trace = of.builder.finish().unwrap();
    let mut corrected = clock().forward(&trace).unwrap();
    // The receive moves to 1,010, by 100; then the clock runs at half speed until it has caught up.
    assert_eq!(nanos(&corrected, 1), [400, 700, 1_010, 1_030, 1_200]);
    assert_eq!(nanos(&corrected, 0), [1_000]);
    let id = EventId {
        location: trace.ids().nth(1).unwrap(),
        event: 2,
    };
    assert_eq!(
        corrected.jumps().collect::<Vec<_>>(),
        [(id, Duration::from_nanos(100))]
    );
    assert_eq!(
        corrected.passes(),
        [ForwardPass {
            control: clock().rule.control,
            error: Duration::from_nanos(100)
        }]
    );
    // The line rises from 0 at -90 to 100 at 910.
    corrected.amortize(clock().gradient);
    assert_eq!(
        nanos(&corrected, 1),
        [400 + 49, 700 + 79, 1_010, 1_030, 1_200]
    );
    assert_eq!(corrected.time(id), Some(Timestamp::from_nanos(1_010)));
    assert_eq!(corrected.into_times()[0], [Timestamp::from_nanos(1_000)]);
}

/// The root of a broadcast may leave before others enter, and its own exit waits for no member,
/// even if it is sooner than a latency after its enter.
#[test]
fn the_root_of_a_broadcast_waits_for_no_member() {
    let mut of = Setting::new(3);
    for (location, enter, exit) in [(0, 500, 503), (1, 100, 505), (2, 600, 700)] {
        of.enter(location, enter);
        of.exit(location, exit, CollectiveKind::Broadcast, 0);
    }
    let trace = of.builder.finish().unwrap();
    let corrected = clock().forward(&trace).unwrap();
    assert_eq!(
        [0, 1, 2].map(|location| nanos(&corrected, location)),
        [[500, 503], [100, 510], [600, 700]]
    );
}

#[test]
fn a_cycle_of_messages_is_reported() {
    let mut of = Setting::new(3);
    of.idle(2, 0);
    for (location, other) in [(0, 1), (1, 0)] {
        of.receive(location, 5, other);
        of.send(location, 6, other);
    }
    let trace = of.builder.finish().unwrap();
    for workers in [1, 2, 3] {
        let mut clock = clock();
        clock.workers = workers;
        let cycle = clock.correct(&trace).unwrap_err();
        assert_eq!(
            cycle.to_string(),
            "events wait for each other in a circle: event 0 of location 0 for event 1 of location 1, which is after \
             event 0 of location 1 for event 1 of location 0, which is after the first"
        );
    }
}

/// Location 0 leaves a barrier before it sends a message that location 1 receives before it enters.
#[test]
fn a_cycle_through_a_barrier_is_reported_but_a_scan_causes_none() {
    for (kind, is_circle) in [
        (CollectiveKind::Barrier, true),
        (CollectiveKind::Scan, false),
    ] {
        let mut of = Setting::new(2);
        of.enter(0, 0);
        of.exit(0, 1, kind, 0);
        of.send(0, 2, 1);
        of.receive(1, 3, 0);
        of.enter(1, 4);
        of.exit(1, 5, kind, 0);
        let trace = of.builder.finish().unwrap();
        let found = clock().correct(&trace);
        let events = |[receive, send]: [EventId; 2]| {
            [receive, send].map(|id| (id.location.index(), id.event))
        };
        let waits = found.err().map(|why| match why {
            CorrectionError::Cycle(cycle) => cycle.waits.into_iter().map(events).collect(),
            other => panic!("{other}"),
        });
        assert_eq!(
            waits,
            is_circle.then(|| vec![[(0_usize, 1_u32), (1, 1)], [(1, 0), (0, 2)]])
        );
    }
}

#[test]
fn a_message_of_a_clock_to_itself_stays_as_it_was_recorded() {
    let mut of = Setting::new(1);
    of.receive(0, 1, 0);
    of.send(0, 2, 0);
    let trace = of.builder.finish().unwrap();
    let corrected = clock().correct(&trace).unwrap();
    assert_eq!(nanos(&corrected, 0), [1, 2]);
    let found = Verdict::new(&trace, corrected.times(), &Latencies::ZERO).unwrap();
    let within = (found.within_clocks.total, found.within_clocks.reversed);
    assert!(found.holds());
    assert_eq!(within, (1, 1));
}

/// A kernel is launched by one location and runs on another one, which share a clock: a jump of the
/// launching one moves both.
#[test]
fn locations_of_a_clock_move_together() {
    let mut builder = TraceBuilder::new(Matching::default());
    let mut add = |process| {
        builder
            .add_location(Place {
                node: process,
                process,
            })
            .unwrap()
    };
    let ids = vec![add(0), add(1), add(1)];
    let world = builder.add_communicator(&ids).unwrap();
    let mut of = Setting {
        builder,
        ids,
        world,
    };
    of.send(0, 1_000, 1);
    of.receive(1, 100, 0);
    // Launch, kernel, and another receive that is early.
    of.send(1, 110, 2);
    of.receive(2, 112, 1);
    of.idle(2, 2_000);
    of.send(0, 5_000, 1);
    of.receive(1, 2_050, 0);
    of.idle(2, 2_060);
    let trace = of.builder.finish().unwrap();
    let mut clock = clock();
    clock.rule.control = ControlVariable::ONE;
    let found = clock.forward(&trace).unwrap();
    assert_eq!(nanos(&found, 1), [1_010, 1_020, 5_010]);
    assert_eq!(nanos(&found, 2), [1_022, 2_910, 5_020]);
    // Backward, an event of another location moves with those around it, here by a tenth of its
    // distance from the start of the interval.
    let both = clock.correct(&trace).unwrap();
    let before = 2_910 + (2_910 - (2_960 - 10 * 2_050)) / 10;
    assert_eq!(nanos(&both, 2)[1], before);
    assert!(both.times()[1].is_sorted() && both.times()[2].is_sorted());
}

/// Returns a trace whose error depends on the control variable: the part of a jump that remains
/// when the next message leaves.
fn chain() -> Trace {
    let mut of = Setting::new(3);
    of.send(0, 1_000, 1);
    of.receive(1, 0, 0);
    of.send(1, 1_000, 2);
    of.receive(2, 500, 1);
    of.builder.finish().unwrap()
}

#[test]
fn passes_end_at_the_threshold_or_without_improvement() {
    let trace = chain();
    let run = |threshold, most_passes| {
        let mut clock = clock();
        clock.rule.control = ControlVariable::new(0.9).unwrap();
        (clock.threshold, clock.most_passes) = (threshold, most_passes);
        let corrected = clock.forward(&trace).unwrap();
        let passes = corrected.passes().iter().map(|pass| {
            (
                (pass.control.get() * 10.0).round() / 10.0,
                pass.error.as_nanos(),
            )
        });
        (passes.collect::<Vec<_>>(), nanos(&corrected, 2))
    };
    // The first receive is at 1,010. The second send is at 1,910, 1,810, and so on, and is received
    // 10 ns later.
    let ns = |nanos| Some(Duration::from_nanos(nanos));
    assert_eq!(run(None, 8), (vec![(0.9, 1_420)], vec![1_920]));
    assert_eq!(run(ns(1_420), 8), (vec![(0.9, 1_420)], vec![1_920]));
    assert_eq!(
        run(ns(1_400), 8),
        (vec![(0.9, 1_420), (0.8, 1_320)], vec![1_820])
    );
    assert_eq!(run(ns(1_010), 2).0.len(), 2);
    // The first receive cannot be improved: when the error is no longer lowered, the previous pass
    // is repeated and counts.
    let (passes, last) = run(ns(1_000), 8);
    assert_eq!(
        passes,
        [
            (0.9, 1_420),
            (0.8, 1_320),
            (0.6, 1_120),
            (0.2, 1_010),
            (0.0, 1_010),
            (0.2, 1_010)
        ]
    );
    assert_eq!(last, [1_220]);
}

#[test]
fn an_empty_trace_can_be_corrected() {
    let trace = TraceBuilder::new(Matching::default()).finish().unwrap();
    assert!(clock().correct(&trace).unwrap().times().is_empty());
    let trace = Setting::new(2).builder.finish().unwrap();
    let corrected = clock().correct(&trace).unwrap();
    assert_eq!(
        (corrected.times(), corrected.jumps().count()),
        (&[Array::default(), Array::default()][..], 0)
    );
}
