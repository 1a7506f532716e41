use super::*;
use crate::CollectiveKind;
use crate::{ClockOwner, DependencePattern, Event, Matching, Place, TraceBuilder};
use proptest::prelude::*;

fn at(nanos: i64) -> Timestamp<Global> {
    Timestamp::from_nanos(nanos)
}

fn latencies(nanos: [i64; 3]) -> Latencies {
    let [process, node, beyond] = nanos.map(Duration::from_nanos);
    Latencies::new(process, node, beyond).unwrap()
}

/// Builder with locations at these places, which are all members of one communicator.
fn builder(places: &[(u32, u32)]) -> (TraceBuilder, Vec<LocationId>, crate::CommunicatorId) {
    builder_of(places, ClockOwner::Process)
}

fn builder_of(
    places: &[(u32, u32)],
    clock_of: ClockOwner,
) -> (TraceBuilder, Vec<LocationId>, crate::CommunicatorId) {
    let mut builder = TraceBuilder::new(Matching {
        clock_of,
        ..Matching::default()
    });
    let ids: Vec<_> = places
        .iter()
        .map(|(node, process)| {
            builder
                .add_location(Place {
                    node: *node,
                    process: *process,
                })
                .unwrap()
        })
        .collect();
    let world = builder.add_communicator(&ids).unwrap();
    (builder, ids, world)
}

#[test]
fn messages_are_counted_by_kind_of_violation() {
    let (mut builder, ids, communicator) = builder(&[(0, 0), (0, 1), (1, 2)]);
    let mut message = |from: usize, to: usize, sent, received| {
        let send = Event::Send {
            to: ids[to].into(),
            communicator: communicator.into(),
            tag: 0,
            request: None,
            bytes: None,
        };
        builder.push(ids[from], at(sent), send).unwrap();
        builder
            .push(
                ids[to],
                at(received),
                Event::Receive {
                    from: ids[from].into(),
                    communicator: communicator.into(),
                    tag: 0,
                    request: None,
                    bytes: None,
                },
            )
            .unwrap();
    };
    // The latency is 10 within a node, and 100 between nodes.
    message(0, 1, 0, 10);
    message(0, 1, 20, 29);
    message(0, 2, 30, 130);
    message(0, 2, 40, 139);
    message(1, 2, 150, 145);
    message(2, 0, 200, 150);
    message(0, 0, 300, 300);
    let trace = builder.finish().unwrap();
    let found = Verdict::new(&trace, &trace.times(), &latencies([1, 10, 100])).unwrap();
    assert_eq!(found.events, 14);
    assert_eq!(
        found.messages,
        RelationCounts {
            total: 6,
            reversed: 2,
            violated: 4
        }
    );
    assert_eq!(
        found.reversal,
        Reversal {
            total: 55,
            largest: Duration::from_nanos(50)
        }
    );
    assert_eq!(
        (found.collectives, found.all()),
        (RelationCounts::default(), found.messages)
    );
    // The message of a location to itself.
    let within = |total, reversed| WithinClocks { total, reversed };
    assert_eq!(found.within_clocks, within(1, 0));
    let said: Vec<_> = found.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        said[0],
        "event 4 of location 0 is 150 ns too early for event 3 of location 2, a message"
    );
    assert_eq!(said.len(), 4);
    let found = Verdict::new(&trace, &trace.times(), &Latencies::ZERO).unwrap();
    assert_eq!(
        found.messages,
        RelationCounts {
            total: 6,
            reversed: 2,
            violated: 2
        }
    );
}

#[test]
fn times_must_not_decrease_nor_merge() {
    let (mut builder, ids, _) = builder(&[(0, 0), (1, 1)]);
    for (location, time) in [(0, 1), (0, 2), (0, 3), (0, 3), (0, 4), (1, 5)] {
        builder
            .push(ids[location], at(time), Event::Note("work"))
            .unwrap();
    }
    let trace = builder.finish().unwrap();
    let verdict = |times: [i64; 5]| {
        Verdict::new(
            &trace,
            &[times.map(at).to_vec(), vec![at(0)]],
            &Latencies::ZERO,
        )
        .unwrap()
    };
    assert!(verdict([1, 2, 3, 3, 4]).holds());
    assert!(verdict([10, 20, 30, 31, 32]).holds());
    let found = verdict([2, 2, 1, 1, 1]);
    assert_eq!(
        (found.merged, found.decreasing, found.holds()),
        (2, 1, false)
    );
    let event = |event| EventId {
        location: ids[0],
        event,
    };
    assert_eq!(
        found.faults,
        [
            Violation::Merged(event(1)),
            Violation::Decreasing(event(2)),
            Violation::Merged(event(4))
        ]
    );
    assert_eq!(
        found.faults[1].to_string(),
        "event 2 of location 0 is earlier than the event before it"
    );
    let misfit = Verdict::new(&trace, &[vec![at(0); 5]], &Latencies::ZERO).unwrap_err();
    assert_eq!(misfit.location, ids[1]);
    assert!(Verdict::new(&trace, &[vec![at(0); 4], vec![at(0)]], &Latencies::ZERO).is_err());
}

#[test]
fn a_thousand_members_have_a_million_pairs() {
    let places: Vec<_> = (0..1_000).map(|i| (i / 10, i)).collect();
    let (mut builder, ids, communicator) = builder(&places);
    for (i, id) in ids.iter().enumerate() {
        builder
            .push(
                *id,
                at(i as i64),
                Event::CollectiveBegin {
                    communicator: communicator.into(),
                    request: None,
                },
            )
            .unwrap();
        let exit = Event::CollectiveEnd {
            communicator: communicator.into(),
            kind: CollectiveKind::Barrier,
            root: 0,
            sent: false,
            received: false,
            request: None,
            bytes: None,
        };
        builder.push(*id, at(i as i64), exit).unwrap();
    }
    let trace = builder.finish().unwrap();
    let found = Verdict::new(&trace, &trace.times(), &Latencies::ZERO).unwrap();
    // Every member leaves before those with higher ranks enter.
    assert_eq!(
        found.collectives,
        RelationCounts {
            total: 999_000,
            reversed: 499_500,
            violated: 499_500
        }
    );
    assert_eq!(found.faults.len(), Verdict::MOST_FAULTS);
}

/// Member of a collective operation: place, time of enter, duration, and whether it sends and
/// receives data.
type MemberStay = ((u32, u32), i64, i64, bool, bool);

fn stays() -> impl Strategy<Value = Vec<MemberStay>> {
    let place = (0_u32..3, 0_u32..3).prop_map(|(node, process)| (node, 10 * node + process));
    prop::collection::vec(
        (
            place,
            0_i64..60,
            0_i64..40,
            prop::bool::weighted(0.8),
            prop::bool::weighted(0.8),
        ),
        1..10,
    )
}

fn kind() -> impl Strategy<Value = CollectiveKind> {
    prop::sample::select(vec![
        CollectiveKind::Barrier,
        CollectiveKind::Broadcast,
        CollectiveKind::Gather,
        CollectiveKind::Allgather,
        CollectiveKind::Scan,
        CollectiveKind::Exscan,
    ])
}

fn owner() -> impl Strategy<Value = ClockOwner> {
    prop::sample::select(vec![
        ClockOwner::Location,
        ClockOwner::Process,
        ClockOwner::Node,
        ClockOwner::Cluster,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    /// Compares the counts with a check of every pair.
    #[test]
    fn pair_counts_match_a_check_of_every_pair(
        stays in stays(), kind in kind(), root in 0_usize..10, steps in (0_i64..10, 0_i64..20, 0_i64..30), zero: bool,
        owner in owner(),
    ) {
        let places: Vec<_> = stays.iter().map(|stay| stay.0).collect();
        let (mut builder, ids, communicator) = builder_of(&places, owner);
        let root = root % ids.len();
        for (id, (_, enter, stay, sent, received)) in ids.iter().zip(&stays) {
            builder.push(*id, at(*enter), Event::CollectiveBegin { communicator: communicator.into(), request: None }).unwrap();
            let exit = Event::CollectiveEnd { communicator: communicator.into(), kind, root: root as u32, sent: *sent, received: *received, request: None, bytes: None };
            builder.push(*id, at(enter + stay), exit).unwrap();
        }
        let trace = builder.finish().unwrap();
        let of = [steps.0, steps.0 + steps.1, steps.0 + steps.1 + steps.2];
        let latencies = latencies(if zero { [0; 3] } else { of });

        let (mut wanted, mut within) = (RelationCounts::default(), WithinClocks::default());
        let mut early = vec![];
        for (k, (_, enter, _, sent, _)) in stays.iter().enumerate() {
            for (i, (_, start, stay, _, received)) in stays.iter().enumerate() {
                let waits = match kind.pattern() {
                    DependencePattern::FromRoot => k == root,
                    DependencePattern::ToRoot => i == root,
                    DependencePattern::AllToAll => true,
                    DependencePattern::ToLater => i > k,
                };
                let data = kind == CollectiveKind::Barrier || (*sent && *received);
                if i == k || !waits || !data {
                    continue;
                }
                let latency = latencies.between(&trace, ids[k], ids[i]).as_nanos();
                let (sent, received) = (*enter, start + stay);
                if trace.share_clock(ids[k], ids[i]) {
                    within.total += 1;
                    within.reversed += u64::from(received < sent);
                    continue;
                }
                wanted.total += 1;
                wanted.reversed += u64::from(received < sent);
                wanted.violated += u64::from(received < sent + latency);
                if received < sent + latency {
                    let event = |location: usize, event| EventId { location: ids[location], event };
                    let by = Duration::from_nanos(sent + latency - received);
                    early.push(Violation::Early { send: event(k, 0), receive: event(i, 1), by, kind: Some(kind) });
                }
            }
        }
        let found = Verdict::new(&trace, &trace.times(), &latencies).unwrap();
        prop_assert_eq!((found.collectives, found.within_clocks), (wanted, within));
        let amounts = early.iter().map(|fault| match fault {
            Violation::Early { by, .. } => *by,
            _ => Duration::ZERO,
        });
        prop_assert_eq!(found.largest_violation, amounts.max().unwrap_or_default());
        prop_assert!(found.faults.iter().all(|fault| early.contains(fault)), "{:?} of {early:?}", found.faults);
        let receivers = early.iter().map(|fault| match fault {
            Violation::Early { receive, .. } => receive.location.index(),
            _ => usize::MAX,
        });
        let receivers: std::collections::BTreeSet<_> = receivers.collect();
        prop_assert_eq!(found.faults.len(), receivers.len().min(Verdict::MOST_FAULTS));
        prop_assert_eq!(found.holds(), wanted.violated == 0);
    }
}

#[test]
fn traces_may_differ_in_time_only() {
    let build = |places: &[(u32, u32)], tag: i32, extra: bool, root: u32| {
        let (mut builder, ids, communicator) = builder(places);
        let mut push = |location: usize, event| {
            builder
                .push(ids[location], at(location as i64), event)
                .unwrap();
        };
        push(
            0,
            Event::Send {
                to: ids[1].into(),
                communicator: communicator.into(),
                tag,
                request: None,
                bytes: None,
            },
        );
        push(
            0,
            Event::Send {
                to: ids[1].into(),
                communicator: communicator.into(),
                tag: 5,
                request: None,
                bytes: None,
            },
        );
        for tag in [5, 3] {
            push(
                1,
                Event::Receive {
                    from: ids[0].into(),
                    communicator: communicator.into(),
                    tag,
                    request: None,
                    bytes: None,
                },
            );
        }
        for location in 0..2 {
            push(
                location,
                Event::CollectiveBegin {
                    communicator: communicator.into(),
                    request: None,
                },
            );
            let kind = CollectiveKind::Broadcast;
            push(
                location,
                Event::CollectiveEnd {
                    communicator: communicator.into(),
                    kind,
                    root,
                    sent: true,
                    received: true,
                    request: None,
                    bytes: None,
                },
            );
        }
        if extra {
            push(1, Event::Note("work"));
        }
        builder.finish()
    };
    let near = [(0, 0), (0, 1)];
    let trace = build(&near, 3, false, 0).unwrap();
    let mut later = build(&near, 3, false, 0).unwrap();
    later
        .map_times(later.ids().next().unwrap(), |time| {
            time + Duration::from_nanos(7)
        })
        .unwrap();
    assert_eq!(trace.difference(&later), None);
    let location = trace.ids().nth(1).unwrap();
    let differs = |other: Trace| {
        trace
            .difference(&other)
            .map(|found| (found, found.to_string()))
    };
    let said = |found, text: &str| Some((found, text.to_owned()));
    assert_eq!(
        differs(build(&[(0, 0), (0, 1), (0, 2)][..2], 3, true, 0).unwrap()),
        said(
            TraceDifference::Events(location),
            "location 1 has a different number of events"
        )
    );
    assert_eq!(
        differs(build(&[(0, 0), (1, 1)], 3, false, 0).unwrap()),
        said(
            TraceDifference::Place(location),
            "location 1 is on another node or in another process"
        )
    );
    assert_eq!(
        differs(build(&near, 3, false, 1).unwrap()),
        said(
            TraceDifference::Collective(0),
            "collective operation 0 is not the same"
        )
    );
    let single = TraceBuilder::new(Matching::default()).finish().unwrap();
    assert_eq!(
        differs(single),
        said(
            TraceDifference::Locations,
            "the traces have different numbers of locations"
        )
    );

    let one_way = |twice: bool| {
        let (mut builder, ids, communicator) = builder(&near);
        let mut push = |location: usize, event| builder.push(ids[location], at(0), event).unwrap();
        let (first, second) = if twice { (0, 1) } else { (1, 0) };
        for tag in [0, 1] {
            push(
                0,
                Event::Send {
                    to: ids[1].into(),
                    communicator: communicator.into(),
                    tag,
                    request: None,
                    bytes: None,
                },
            );
        }
        for tag in [first, second] {
            push(
                1,
                Event::Receive {
                    from: ids[0].into(),
                    communicator: communicator.into(),
                    tag,
                    request: None,
                    bytes: None,
                },
            );
        }
        builder.finish().unwrap()
    };
    let event = EventId { location, event: 0 };
    assert_eq!(
        one_way(true).difference(&one_way(false)),
        Some(TraceDifference::Message(event))
    );
}
