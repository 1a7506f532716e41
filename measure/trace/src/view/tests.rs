//! Tests of views of whole traces.

use std::path::Path;

use downbeat_clock_core::{Duration, Timestamp};
use proptest::prelude::*;

use super::{TraceView, ViewContent, ViewError, ViewLimits, ViewSelection, ViewTime};
use crate::Place;
use crate::calls::CallWalk;
use crate::formats::{Item, TraceReader};
use crate::{AccessKind, Event};

const LIMITS: ViewLimits = ViewLimits {
    bars: 100,
    rows: 10,
    messages: 100,
};

const WHOLE: ViewSelection = ViewSelection::Between([None; 2]);

/// Two locations that call the same region three times; the second one is later by 7 ns.
fn trace() -> String {
    let mut text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                    region 0 MPI_Allreduce\nregion 1 unused\n"
        .to_owned();
    for call in 0..3 {
        for (location, late) in [(0, 0), (1, 7)] {
            let enter = 100 * (call + 1) + late;
            let (send, receive) = (enter + 1, enter + 2);
            let message = match location {
                0 => format!("0 {send} send 1 0 0"),
                _ => format!("1 {receive} receive 0 0 0"),
            };
            let leave = enter + 20;
            text += &format!("{location} {enter} enter 0\n{message}\n{location} {leave} leave 0\n");
        }
    }
    text + "end 18\n"
}

fn view(
    text: &str,
    selection: ViewSelection,
    limits: &ViewLimits,
) -> Result<ViewContent, ViewError> {
    let mut reader = TraceReader::new(Path::new("test"), text.as_bytes()).unwrap();
    let (mut walk, mut view) = (CallWalk::default(), TraceView::new(selection, *limits));
    while let Some(item) = reader.next_item().unwrap() {
        walk.add_item(&item, &mut |found| view.add_finding(found));
    }
    let (names, _) = walk.finish(&mut |found| view.add_finding(found));
    view.finish(&names)
}

fn bars(viewed: &ViewContent) -> Vec<Vec<[i64; 2]>> {
    let times = |row: &super::ViewRow| {
        let bars = row.bars.iter();
        bars.map(|bar| bar.times.map(Timestamp::as_nanos)).collect()
    };
    viewed.rows.iter().map(times).collect()
}

fn at(nanos: i64) -> Option<ViewTime> {
    Some(ViewTime::At(Timestamp::from_nanos(nanos)))
}

#[test]
fn a_whole_trace_has_all_calls_and_messages() {
    let found = view(&trace(), WHOLE, &LIMITS).unwrap();
    assert_eq!(found.interval.map(Timestamp::as_nanos), [100, 327]);
    let expected = [
        vec![[100, 120], [200, 220], [300, 320]],
        vec![[107, 127], [207, 227], [307, 327]],
    ];
    assert_eq!(bars(&found), expected);
    assert_eq!((found.messages.len(), found.is_detailed), (3, true));
}

#[test]
fn an_interval_cuts_calls_and_names_its_events() {
    let since = Some(ViewTime::SinceFirst(Duration::from_nanos(10)));
    let found = view(&trace(), ViewSelection::Between([since, at(205)]), &LIMITS).unwrap();
    assert_eq!(
        bars(&found),
        [vec![[110, 120], [200, 205]], vec![[110, 127]]]
    );
    assert_eq!(found.events, [Some([2, 4]), Some([2, 2])]);
    assert_eq!(found.messages.len(), 1);
    // The same events by another clock.
    let other = trace().replace("\n1 ", "\n1 5");
    let same = view(&other, ViewSelection::Events(found.events), &LIMITS).unwrap();
    assert_eq!(same.interval.map(Timestamp::as_nanos), [120, 5_127]);
}

#[test]
fn a_call_is_shown_with_what_is_around_it() {
    let call = |name: &str, number| ViewSelection::Call {
        name: name.to_owned(),
        number,
    };
    let found = view(&trace(), call("MPI_Allreduce", 2), &LIMITS).unwrap();
    let calls: Vec<_> = found
        .calls
        .iter()
        .flatten()
        .map(|call| call[0].as_nanos())
        .collect();
    assert_eq!(calls, [200, 207]);
    assert_eq!(found.interval.map(Timestamp::as_nanos), [193, 234]);
    assert_eq!(bars(&found), [vec![[200, 220]], vec![[207, 227]]]);
    let refused = |name, number| view(&trace(), call(name, number), &LIMITS).unwrap_err();
    assert_eq!(refused("MPI_Allreduce", 4), ViewError::TooFewCalls(3));
    assert_eq!(refused("unused", 1), ViewError::TooFewCalls(0));
    assert_eq!(refused("MPI_AllReduce", 1), ViewError::UnknownRegion);
}

#[test]
fn calls_of_a_loop_of_tests_are_numbered() {
    let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nregion 0 MPI_Test\n\
                0 10 enter 0\n0 10 note 5 calls\n0 50 leave 0\n0 60 enter 0\n0 70 leave 0\nend 5\n";
    let enter = |number| {
        let name = "MPI_Test".to_owned();
        let found = view(text, ViewSelection::Call { name, number }, &LIMITS);
        found.map(|found| found.calls[0].map(|[enter, _]| enter.as_nanos()))
    };
    assert_eq!([1, 5, 6].map(enter), [10, 10, 60].map(|at| Ok(Some(at))));
    assert_eq!(enter(7), Err(ViewError::TooFewCalls(6)));
}

#[test]
fn intervals_without_events_are_refused() {
    let refused =
        |from, to| view(&trace(), ViewSelection::Between([from, to]), &LIMITS).unwrap_err();
    let times = |times: [i64; 2]| times.map(Timestamp::from_nanos);
    assert_eq!(
        refused(at(200), at(100)),
        ViewError::Reversed(times([200, 100]))
    );
    assert_eq!(
        refused(at(400), None),
        ViewError::Outside(times([100, 327]))
    );
    let empty = "# downbeat trace 1 without checksum\nend 0\n";
    let refused = view(empty, WHOLE, &LIMITS).unwrap_err();
    assert_eq!(refused, ViewError::Empty);
}

#[test]
fn many_calls_are_shares_of_bins() {
    let few = ViewLimits { bars: 3, ..LIMITS };
    let found = view(&trace(), WHOLE, &few).unwrap();
    assert!(!found.is_detailed);
    let first = found.rows[0].bars[0];
    assert_eq!((first.region, first.percent), (0, 100));
    assert_eq!(first.times.map(Timestamp::as_nanos), [100, 120]);
}

proptest! {
    /// Items of any kind in any order, whatever their times are.
    #[test]
    fn no_trace_is_too_strange(
        events in prop::collection::vec((0_u32..3, 0_u32..15, any::<i64>(), 0_u64..3), 0..60),
        selection in 0_usize..4,
        bars in 0_usize..20,
    ) {
        let selection = match selection {
            0 => WHOLE,
            1 => ViewSelection::Between([at(-5), at(i64::MAX)]),
            2 => ViewSelection::Call { name: "main".to_owned(), number: 1 },
            _ => ViewSelection::Events(vec![Some([0, 9]), None, Some([1, u64::MAX])]),
        };
        let limits = ViewLimits { bars, rows: 2, messages: 3 };
        let mut walk = CallWalk::with_memory(20);
        let (mut view, mut states) = (TraceView::new(selection, limits), crate::waits::WaitStates::default());
        let mut observer = |found: &crate::calls::CallFinding<'_>| {
            view.add_finding(found);
            states.add_finding(found);
        };
        let place = Place { node: 0, process: 0 };
        walk.add_item(&Item::Location { place, name: "a" }, &mut observer);
        walk.add_item(&Item::Communicator { members: &[0, 1] }, &mut observer);
        walk.add_item(&Item::Region { name: "main" }, &mut observer);
        for (location, what, time, id) in events {
            let (region, communicator, kind, root) = (id as u32, id as u32, crate::CollectiveKind::Reduce, id as u32);
            let event = match what {
                0 | 1 => Event::Enter { region },
                2 | 3 => Event::Leave { region },
                4 => Event::Send { to: region, communicator, tag: 0, request: Some(id), bytes: Some(id) },
                5 => Event::Receive { from: region, communicator, tag: 0, bytes: Some(id), request: None },
                6 => Event::PostReceive { request: id },
                7 => Event::Receive { from: region, communicator, tag: 0, request: Some(id), bytes: None },
                8 => Event::CollectiveBegin { communicator, request: None },
                9 => Event::CollectiveEnd { communicator, kind, root, sent: true, received: true, bytes: None, request: None },
                10 => Event::CollectiveBegin { communicator, request: Some(id) },
                11 => Event::Access { kind: AccessKind::Get, target: region, communicator, request: id, bytes: None },
                14 => Event::CompleteSend { request: id },
                12 => Event::AccessComplete { communicator, request: id },
                _ => Event::CollectiveEnd { communicator, kind, root, sent: true, received: true, request: Some(id), bytes: Some(id) },
            };
            walk.add_item(&Item::Event { location, time: Timestamp::from_nanos(time), event }, &mut observer);
        }
        let (names, _) = walk.finish(&mut observer);
        if let Ok(found) = view.finish(&names) {
            prop_assert!(found.interval[0] <= found.interval[1]);
        }
        states.finish();
    }
}
