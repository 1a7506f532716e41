use super::*;
use crate::trace::NONE;
use crate::{CollectiveKind, EventId, Message};

struct Setting {
    builder: TraceBuilder,
    ids: Vec<LocationId>,
    world: CommunicatorId,
    now: i64,
}

impl Setting {
    fn new(locations: u32, matching: Matching) -> Self {
        let mut builder = TraceBuilder::new(matching);
        let place = |process| Place {
            node: process,
            process,
        };
        let ids: Vec<LocationId> = (0..locations)
            .map(|i| builder.add_location(place(i)).unwrap())
            .collect();
        let world = builder.add_communicator(&ids).unwrap();
        Self {
            builder,
            ids,
            world,
            now: 0,
        }
    }

    fn push(&mut self, location: usize, event: Event<'static>) -> Result<(), TraceError> {
        self.now += 1;
        self.builder
            .push(self.ids[location], Timestamp::from_nanos(self.now), event)
    }

    fn send(&mut self, from: usize, to: usize, tag: i32) {
        let event = Event::Send {
            to: self.ids[to].into(),
            communicator: self.world.into(),
            tag,
            request: None,
            bytes: None,
        };
        self.push(from, event).unwrap();
    }

    fn receive(&mut self, to: usize, from: usize, tag: i32) {
        let event = Event::Receive {
            from: self.ids[from].into(),
            communicator: self.world.into(),
            tag,
            request: None,
            bytes: None,
        };
        self.push(to, event).unwrap();
    }

    fn enter(&mut self, location: usize) {
        let event = Event::CollectiveBegin {
            communicator: self.world.into(),
            request: None,
        };
        self.push(location, event).unwrap();
    }

    fn exit(&mut self, location: usize, kind: CollectiveKind, root: u32) -> Result<(), TraceError> {
        let event = Event::CollectiveEnd {
            communicator: self.world.into(),
            kind,
            root,
            sent: true,
            received: true,
            request: None,
            bytes: None,
        };
        self.push(location, event)
    }

    fn event(&self, location: usize, event: u32) -> EventId {
        EventId {
            location: self.ids[location],
            event,
        }
    }
}

fn messages(trace: &Trace) -> Vec<(EventId, EventId)> {
    trace
        .messages()
        .map(|Message { send, receive }| (send, receive))
        .collect()
}

#[test]
fn only_messages_of_different_channels_may_overtake_each_other() {
    let mut of = Setting::new(2, Matching::default());
    for tag in [1, 1, 2] {
        of.send(0, 1, tag);
    }
    for tag in [2, 1, 1] {
        of.receive(1, 0, tag);
    }
    let expected =
        [(2, 0), (0, 1), (1, 2)].map(|(sent, received)| (of.event(0, sent), of.event(1, received)));
    let trace = of.builder.finish().unwrap();
    assert_eq!(messages(&trace), expected);
    assert_eq!(trace.events(), 6);
}

/// All receivers come first, with as many channels as messages, so that empty channels are removed.
#[test]
fn any_number_of_messages_can_be_under_way() {
    for distinct in [1, 100_000] {
        let mut of = Setting::new(2, Matching::default());
        for round in 0..2 {
            for i in 0..10_000 {
                of.receive(1, 0, (round * 10_000 + i) % distinct);
            }
            for i in 0..10_000 {
                of.send(0, 1, (round * 10_000 + i) % distinct);
            }
        }
        let trace = of.builder.finish().unwrap();
        assert!(
            trace
                .messages()
                .all(|message| message.send.event == message.receive.event)
        );
        assert_eq!(trace.messages().count(), 20_000);
    }
}

#[test]
fn unmatched_messages_are_counted() {
    let mut of = Setting::new(3, Matching::default());
    of.push(1, Event::Note("work")).unwrap();
    of.send(1, 0, 5);
    of.send(2, 0, 5);
    of.receive(0, 2, 5);
    of.receive(2, 1, 4);
    let trace = of.builder.finish().unwrap();
    assert_eq!(
        trace.left_out(),
        UnmatchedEvents {
            sends: 1,
            receives: 1,
            collectives: 0
        }
    );
    assert_eq!(trace.messages().count(), 1);
}

#[test]
fn decreasing_or_out_of_range_times_are_rejected() {
    let mut of = Setting::new(1, Matching::default());
    let push = |of: &mut Setting, nanos| {
        of.builder
            .push(of.ids[0], Timestamp::from_nanos(nanos), Event::Note("work"))
    };
    push(&mut of, 5).unwrap();
    push(&mut of, 5).unwrap();
    assert_eq!(
        push(&mut of, 4),
        Err(TraceError::Decreasing(of.event(0, 2)))
    );
    assert_eq!(
        push(&mut of, i64::MAX),
        Err(TraceError::TooFar(of.event(0, 2)))
    );
    let other = Setting::new(4, Matching::default()).ids[3];
    let unknown = of
        .builder
        .push(other, Timestamp::ORIGIN, Event::Note("work"));
    assert_eq!(unknown, Err(TraceError::UnknownLocation(other)));
    assert_eq!(
        of.builder.add_thread(other),
        Err(TraceError::UnknownLocation(other))
    );
    assert_eq!(
        of.builder.add_communicator(&[other]),
        Err(TraceError::UnknownLocation(other))
    );
    assert_eq!(
        of.builder.add_communicator(&[of.ids[0]; 2]),
        Err(TraceError::MemberTwice(of.ids[0]))
    );
}

#[test]
fn events_with_unknown_ids_are_rejected() {
    let mut of = Setting::new(1, Matching::default());
    let stranger = Setting::new(4, Matching::default()).ids[3];
    let (world, none) = (of.world, CommunicatorId(7));
    let send = Event::Send {
        to: stranger.into(),
        communicator: world.into(),
        tag: 0,
        request: None,
        bytes: None,
    };
    assert_eq!(
        of.push(0, send),
        Err(TraceError::UnknownPeer(of.event(0, 0)))
    );
    for (number, unmatched) in (1..).zip([
        Event::Send {
            to: of.ids[0].into(),
            communicator: none.into(),
            tag: 0,
            request: None,
            bytes: None,
        },
        Event::CollectiveBegin {
            communicator: none.into(),
            request: None,
        },
    ]) {
        let event = of.event(0, number);
        assert_eq!(
            of.push(0, unmatched),
            Err(TraceError::NotAMember {
                event,
                communicator: none
            })
        );
    }
}

#[test]
fn disagreeing_members_are_reported() {
    let setting = || {
        let mut of = Setting::new(2, Matching::default());
        of.enter(0);
        of.enter(1);
        of.exit(0, CollectiveKind::Broadcast, 1).unwrap();
        of
    };
    let finish = |kind, root| {
        let mut of = setting();
        of.exit(1, kind, root).unwrap();
        of.builder.finish().unwrap_err()
    };
    let of = setting();
    let [event, other] = [of.event(1, 1), of.event(0, 1)];
    assert_eq!(
        finish(CollectiveKind::Reduce, 1),
        TraceError::OtherKind { event, other }
    );
    assert_eq!(
        finish(CollectiveKind::Broadcast, 0),
        TraceError::OtherRoot { event, other }
    );
    assert_eq!(
        setting().exit(1, CollectiveKind::Broadcast, 2),
        Err(TraceError::OtherRoot {
            event,
            other: event
        })
    );
    let event = of.event(0, 2);
    assert_eq!(
        setting().exit(0, CollectiveKind::Broadcast, 1),
        Err(TraceError::NotEntered(event))
    );
    // For kinds without a root, the stated root is ignored.
    let mut of = Setting::new(2, Matching::default());
    for location in 0..2 {
        of.enter(location);
        of.exit(location, CollectiveKind::Allreduce, 7 + location as u32)
            .unwrap();
    }
    of.builder.finish().unwrap();
}

#[test]
fn incomplete_operations_are_counted() {
    let build = |leaves| {
        let mut of = Setting::new(3, Matching::default());
        (0..2).for_each(|location| of.enter(location));
        if leaves {
            of.exit(0, CollectiveKind::Barrier, 0).unwrap();
        }
        of.builder.finish().unwrap()
    };
    let members = |trace: &Trace| -> Vec<(bool, bool)> {
        let operation = trace.collectives().next().unwrap();
        operation
            .members()
            .map(|member| (member.enter.is_some(), member.exit.is_some()))
            .collect()
    };
    let trace = build(true);
    assert_eq!(trace.left_out().collectives, 1);
    assert_eq!(members(&trace), [(true, true), (true, false)]);
    let trace = build(false);
    assert_eq!(trace.left_out().collectives, 1);
    assert_eq!(members(&trace), [(false, false); 2]);
}

#[test]
fn threads_without_fork_or_join_are_counted() {
    for event in [
        |team| Event::ThreadBegin { team },
        |team| Event::ThreadEnd { team },
    ] {
        let mut of = Setting::new(2, Matching::default());
        of.push(1, event(of.world.into())).unwrap();
        let trace = of.builder.finish().unwrap();
        assert_eq!(trace.left_out().collectives, 1);
    }
}

#[test]
fn alltoallv_can_be_skipped() {
    for skip_alltoallv in [false, true] {
        let mut of = Setting::new(
            2,
            Matching {
                skip_alltoallv,
                ..Matching::default()
            },
        );
        for location in 0..2 {
            of.enter(location);
            of.exit(location, CollectiveKind::Alltoallv, 0).unwrap();
        }
        let trace = of.builder.finish().unwrap();
        let all = trace
            .collectives()
            .flat_map(|operation| operation.members());
        assert_eq!(
            all.filter(|member| member.enter.or(member.exit).is_some())
                .count(),
            if skip_alltoallv { 0 } else { 2 }
        );
    }
}

/// Messages and collective operations of a thread count as those of its rank; in a team the thread
/// is a member itself.
#[test]
fn events_of_threads_count_as_those_of_their_rank() {
    let mut of = Setting::new(2, Matching::default());
    let thread = of.builder.add_thread(of.ids[0]).unwrap();
    of.ids.push(thread);
    of.send(2, 1, 3);
    of.receive(1, 0, 3);
    of.enter(2);
    of.enter(1);
    of.exit(2, CollectiveKind::Barrier, 0).unwrap();
    of.exit(1, CollectiveKind::Barrier, 0).unwrap();
    let team = of.builder.add_communicator(&[of.ids[0], thread]).unwrap();
    of.push(0, Event::Fork { team: team.into() }).unwrap();
    of.push(2, Event::ThreadBegin { team: team.into() })
        .unwrap();
    let expected = (of.event(2, 0), of.event(1, 0));
    let trace = of.builder.finish().unwrap();
    assert_eq!(messages(&trace), [expected]);
    let members: Vec<LocationId> = trace
        .collectives()
        .flat_map(|operation| operation.members())
        .map(|m| m.location)
        .collect();
    assert_eq!(members, [2, 1, 0, 2].map(LocationId));
    assert_eq!(trace.locations()[2].place(), trace.locations()[0].place());
}

/// An archive has all events of the first thread before those of the second.
#[test]
fn threads_that_use_one_channel_are_in_the_order_of_their_clock() {
    let mut of = Setting::new(2, Matching::default());
    let threads = [0, 1].map(|rank| of.builder.add_thread(of.ids[rank]).unwrap());
    of.ids.extend(threads);
    let mut at = |nanos: i64, location: usize, sends: bool| {
        of.now = nanos - 1;
        match sends {
            true => {
                let event = Event::Send {
                    to: 1,
                    communicator: of.world.into(),
                    tag: 5,
                    request: None,
                    bytes: None,
                };
                of.push(location, event).unwrap();
            }
            false => of.receive(location, 0, 5),
        }
    };
    at(200, 0, true);
    at(400, 0, true);
    at(210, 1, false);
    at(100, 2, true);
    at(300, 2, true);
    at(110, 3, false);
    at(310, 3, false);
    at(410, 3, false);
    let event = |location: usize, event: u32| EventId {
        location: LocationId(location as u32),
        event,
    };
    let expected = [
        (event(0, 0), event(1, 0)),
        (event(2, 0), event(3, 0)),
        (event(2, 1), event(3, 1)),
        (event(0, 1), event(3, 2)),
    ];
    assert_eq!(messages(&of.builder.finish().unwrap()), expected);
}

/// As where any thread of a team executes a `single` region with a call of MPI.
#[test]
fn threads_that_use_one_communicator_are_in_the_order_of_their_clock() {
    let mut of = Setting::new(2, Matching::default());
    let thread = of.builder.add_thread(of.ids[0]).unwrap();
    of.ids.push(thread);
    let kinds = [
        CollectiveKind::Allreduce,
        CollectiveKind::Barrier,
        CollectiveKind::Alltoall,
    ];
    let calls = [(0, 0), (0, 2), (2, 1), (1, 0), (1, 1), (1, 2)];
    for (location, operation) in calls {
        of.now = 100 * operation as i64;
        of.enter(location);
        of.exit(location, kinds[operation], 0).unwrap();
    }
    let trace = of.builder.finish().unwrap();
    let found: Vec<_> = trace
        .instances
        .iter()
        .map(|instance| {
            let members = trace.slots_of(instance).iter().map(|slot| slot.location);
            (instance.kind, members.collect::<Vec<_>>())
        })
        .collect();
    let expected = [
        (kinds[0], vec![0, 1]),
        (kinds[2], vec![0, 1]),
        (kinds[1], vec![2, 1]),
    ];
    assert_eq!(found, expected);
}

/// As where a thread of a program that crashes is in a collective operation, after other threads
/// called some of the same communicator.
#[test]
fn an_operation_that_a_thread_does_not_leave_keeps_those_of_other_threads() {
    let mut of = Setting::new(2, Matching::default());
    let thread = of.builder.add_thread(of.ids[0]).unwrap();
    of.ids.push(thread);
    of.now = 500;
    of.enter(0);
    for location in [2, 1] {
        for operation in 0..2 {
            of.now = 100 * operation;
            of.enter(location);
            of.exit(location, CollectiveKind::Barrier, 0).unwrap();
        }
    }
    of.now = 510;
    of.enter(1);
    let trace = of.builder.finish().unwrap();
    let members = |instance| trace.slots_of(instance).iter().map(|slot| slot.location);
    let found: Vec<Vec<_>> = trace
        .instances
        .iter()
        .map(|of| members(of).collect())
        .collect();
    assert_eq!(found, [vec![0, 1], vec![2, 1], vec![2, 1]]);
    assert_eq!(trace.left_out().collectives, 1);
}

/// The order of the threads in the file makes no difference, and requests are used again.
#[test]
fn an_operation_that_another_thread_completes_is_incomplete() {
    let push = |of: &mut Setting, time: i64, location: usize, begins: bool| {
        of.now = time - 1;
        let (communicator, request) = (of.world.into(), Some(7));
        let event = match begins {
            true => Event::CollectiveBegin {
                communicator,
                request,
            },
            false => Event::CollectiveEnd {
                communicator,
                kind: CollectiveKind::Barrier,
                root: 0,
                sent: true,
                received: true,
                request,
                bytes: None,
            },
        };
        of.push(location, event).unwrap();
    };
    // Location 2 is a thread of the process of location 0, and completes its first operation.
    let of_process = [
        (100, 0, true),
        (110, 2, false),
        (200, 0, true),
        (210, 0, false),
    ];
    let mut orders = [of_process; 3];
    orders[1].sort_by_key(|(time, location, _)| (*location, *time));
    orders[2].sort_by_key(|(time, location, _)| (2 - *location, *time));
    for order in orders {
        let mut of = Setting::new(2, Matching::default());
        let thread = of.builder.add_thread(of.ids[0]).unwrap();
        of.ids.push(thread);
        let other = [100, 200].into_iter();
        let other = other.flat_map(|time| [(time, 1, true), (time + 10, 1, false)]);
        for (time, location, begins) in order.into_iter().chain(other) {
            push(&mut of, time, location, begins);
        }
        let trace = of.builder.finish().unwrap();
        assert_eq!(trace.left_out().collectives, 1, "{order:?}");
        let exits = trace.instances.iter().map(|of| trace.slots_of(of)[0].exit);
        let is_left: Vec<_> = exits.map(|exit| exit != NONE).collect();
        assert_eq!(is_left, [false, true], "{order:?}");
    }
    // No other thread has an operation that was not left.
    let mut of = Setting::new(2, Matching::default());
    push(&mut of, 1, 0, false);
    push(&mut of, 2, 0, true);
    let event = of.event(0, 0);
    assert_eq!(
        of.builder.finish().err(),
        Some(TraceError::NotEntered(event))
    );
}

#[test]
fn times_can_be_mapped_in_order() {
    let mut of = Setting::new(1, Matching::default());
    (0..3).for_each(|_| of.push(0, Event::Note("work")).unwrap());
    let id = of.ids[0];
    let event = of.event(0, 1);
    let mut trace = of.builder.finish().unwrap();
    trace
        .map_times(id, |time| Timestamp::from_nanos(time.as_nanos() * 10))
        .unwrap();
    assert_eq!(trace.time(event), Some(Timestamp::from_nanos(20)));
    let reversed = trace.map_times(id, |time| Timestamp::from_nanos(-time.as_nanos()));
    assert_eq!(reversed, Err(TraceError::Decreasing(event)));
}
