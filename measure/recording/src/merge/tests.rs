//! Tests of merging.

use super::events::MergeSummary;
use super::*;
use crate::packed::PackedBlock;
use crate::packed::tests::pack_one;
use crate::rank_file::{MissingCalls, RankWriter};
use crate::record::tests::written;
use crate::{Access, Envelope, Operation, Record};
use downbeat_files::testing::TemporaryFolder;
use downbeat_trace::CollectiveKind;
use downbeat_trace::{AccessKind, Event};

const MESSAGE: Envelope = Envelope {
    communicator: 0,
    peer: 1,
    tag: 5,
    bytes: Some(80),
};

const BARRIER: Operation = Operation {
    communicator: 0,
    kind: CollectiveKind::Barrier,
    root: 0,
    sent: true,
    received: true,
    bytes: None,
};

fn definitions(rank: u32, size: u32) -> String {
    format!(
        "process {rank} {size} node{rank}\nclock 0 {} 1000 {}\ncall 0 MPI_Send\ncall 1 MPI_Recv\ncall 2 MPI_Barrier\n\
         communicator 0 - world 0-{} -\nsample 0 100 50\nsample 2 200 100\n",
        -1_000 * i64::from(rank),
        500 - 1_000 * i64::from(rank),
        size - 1
    )
}

fn enter(call: u16, ticks: u64) -> Record {
    Record::call_entered(call, (call == 2).then_some(0), ticks)
}

fn leave(call: u16, ticks: u64, failed: bool) -> Record {
    Record::call_left(call, failed, ticks)
}

fn write(folder: &TemporaryFolder, rank: u32, texts: &str, records: &[Record]) {
    let path = folder.file(&format!("rank-{rank}.dbrank"));
    let _ = fs::remove_file(&path);
    let (mut writer, _) = RankWriter::open(&path).unwrap();
    let mut packed = pack_one(&written(records));
    packed.texts = texts.to_owned();
    writer.write_block(&packed).unwrap();
    writer
        .finish("exit code 0", MissingCalls::default())
        .unwrap();
}

fn merged(folder: &TemporaryFolder) -> (Vec<String>, MergeSummary) {
    merged_from(&Recording::read(&folder.0).unwrap())
}

/// Passes the items of a trace to `sink`.
fn merge(
    recording: &Recording,
    mut sink: impl FnMut(&Item<'_>),
) -> Result<MergeSummary, FileError> {
    recording.definitions().iter().for_each(&mut sink);
    let mut events = recording.events()?;
    while let Some(item) = events.next_event()? {
        sink(&item);
    }
    Ok(events.summary())
}

fn merged_from(recording: &Recording) -> (Vec<String>, MergeSummary) {
    let mut lines = vec![];
    let sink = |item: &Item<'_>| {
        lines.push(match item {
            Item::Event {
                location,
                time,
                event,
            } => match event {
                Event::Note(text) => format!("{location} {} note {text}", time.as_nanos()),
                _ => format!("{location} {} {}", time.as_nanos(), event.name()),
            },
            Item::Sample {
                location,
                session,
                local,
                master,
            } => format!(
                "sample {location} {session} {} {}",
                local.as_nanos(),
                master.as_nanos()
            ),
            _ => return,
        });
    };
    let summary = merge(recording, sink).unwrap();
    (lines, summary)
}

fn folder() -> TemporaryFolder {
    TemporaryFolder::with_file("other", b"").0
}

#[test]
fn ranks_become_one_trace() {
    let folder = folder();
    let barrier = Record::operation_ended(BARRIER, None);
    write(
        &folder,
        0,
        &definitions(0, 2),
        &[
            enter(0, 100),
            Record::message_sent(MESSAGE),
            leave(0, 120, false),
            enter(2, 200),
            barrier,
            leave(2, 220, false),
        ],
    );
    let received = Envelope { peer: 0, ..MESSAGE };
    write(
        &folder,
        1,
        &definitions(1, 2),
        &[
            enter(1, 98),
            Record::message_received(received),
            leave(1, 140, false),
            enter(2, 150),
            barrier,
            leave(2, 222, false),
        ],
    );
    let (lines, summary) = merged(&folder);
    let expected = "sample 1 0 -950 50,sample 1 1 -900 100,1 -951 enter,0 50 enter,0 50 send,0 60 leave,1 -930 receive,1 -930 leave,\
                    1 -925 enter,1 -925 collective,0 100 enter,0 100 collective,0 110 collective-end,0 110 leave,\
                    1 -889 collective-end,1 -889 leave";
    assert_eq!(lines.join(","), expected);
    let counted = [
        summary.calls,
        summary.sent,
        summary.received,
        summary.events,
    ];
    assert_eq!(counted, [4, 1, 1, 14]);
}

#[test]
fn times_of_one_counter_are_true_apart_from_artificial_errors() {
    let folder = folder();
    for rank in [0, 1] {
        let ticks = 100 + 10 * u64::from(rank);
        let records = [enter(0, ticks), leave(0, ticks + 40, false)];
        write(&folder, rank, &definitions(rank, 2), &records);
    }
    let mut recording = Recording::read(&folder.0).unwrap();
    recording.share_counter(|_| Ok::<_, ()>(None)).unwrap();
    let (lines, _) = merged_from(&recording);
    let expected =
        "sample 1 0 50 50,sample 1 1 100 100,0 50 enter,1 55 enter,0 70 leave,1 75 leave";
    assert_eq!(lines.join(","), expected);

    // The clock of the second node runs twice as fast.
    let error = |place: Place| {
        let fast: Arc<ClockError> = Arc::new(|time| time - Timestamp::ORIGIN);
        Ok::<_, ()>((place.node == 1).then_some(fast))
    };
    recording.share_counter(error).unwrap();
    let (lines, _) = merged_from(&recording);
    let expected =
        "sample 1 0 100 50,sample 1 1 200 100,0 50 enter,0 70 leave,1 110 enter,1 150 leave";
    let [mut lines, mut expected] = [lines, expected.split(',').map(str::to_owned).collect()];
    lines.sort();
    expected.sort();
    assert_eq!(lines, expected);
    assert_eq!(recording.share_counter(|_| Err("no")), Err("no"));
}

#[test]
fn a_send_that_failed_is_no_message() {
    let folder = folder();
    write(
        &folder,
        0,
        &definitions(0, 2),
        &[
            enter(0, 100),
            Record::message_sent(MESSAGE),
            leave(0, 120, true),
            enter(0, 130),
            Record::message_sent(MESSAGE),
        ],
    );
    write(&folder, 1, &definitions(1, 2), &[]);
    let (lines, summary) = merged(&folder);
    let expected = "0 50 enter,0 50 note failed,0 60 leave,0 65 enter,0 65 send,0 65 leave";
    assert_eq!(lines[2..].join(","), expected);
    assert_eq!(summary.sent, 1);
}

fn access(kind: AccessKind, target: i32, request: Option<u64>) -> Record {
    Record::access_issued(Access {
        kind,
        window: 0,
        target,
        bytes: 8,
        request,
    })
}

fn complete(target: Option<i32>, request: Option<u64>) -> Record {
    Record::accesses_completed(0, target, request)
}

/// Returns the accesses of one rank by their ids in the trace, each with a sign: issued
/// or complete.
fn accesses(records: &[Record]) -> (String, [u64; 3]) {
    let folder = folder();
    write(&folder, 0, &definitions(0, 2), records);
    write(&folder, 1, &definitions(1, 2), &[]);
    let mut found = vec![];
    let sink = |item: &Item<'_>| match *item {
        Item::Event {
            event:
                Event::Access {
                    kind,
                    target,
                    request,
                    bytes: Some(8),
                    ..
                },
            ..
        } => found.push(format!("{} {request} to {target}", kind.name())),
        Item::Event {
            event: Event::AccessComplete { request, .. },
            ..
        } => found.push(format!("-{request}")),
        Item::Event {
            event: Event::Note(text),
            ..
        } => found.push(text.to_owned()),
        _ => {}
    };
    let merged = merge(&Recording::read(&folder.0).unwrap(), sink);
    (found.join(", "), merged.unwrap().accesses)
}

#[test]
fn accesses_are_completed_by_target_window_and_request() {
    use AccessKind::{Atomic, Get, Put};
    let issue = |issued, ticks| [enter(0, ticks), issued, leave(0, ticks, false)];
    let end = |complete, ticks| [enter(1, ticks), complete, leave(1, ticks, false)];
    let all = [
        issue(access(Put, 1, None), 1),
        issue(access(Get, 0, Some(0)), 2),
        issue(access(Get, 0, Some(7)), 3),
        issue(access(Atomic, 1, None), 4),
        end(complete(Some(0), Some(7)), 5),
        end(complete(Some(1), None), 6),
        // It was complete before.
        end(complete(Some(0), Some(7)), 7),
        issue(access(Put, 0, None), 8),
        end(complete(None, None), 9),
        end(complete(None, None), 10),
    ];
    let (found, counts) = accesses(&all.concat());
    let expected =
        "put 0 to 1, get 1 to 0, get 2 to 0, atomic 3 to 1, -2, -0, -3, put 4 to 0, -1, -4";
    assert_eq!(found, expected);
    assert_eq!(counts, [2, 2, 1]);
}

#[test]
fn an_access_that_failed_is_none() {
    let failing = access(AccessKind::Put, 9, None);
    let all = [
        [enter(0, 1), failing, leave(0, 2, true)],
        [
            enter(0, 3),
            access(AccessKind::Put, 1, None),
            leave(0, 4, true),
        ],
        [enter(1, 5), complete(None, None), leave(1, 6, false)],
    ];
    let (found, counts) = accesses(&all.concat());
    assert_eq!((&found[..], counts), ("failed", [0; 3]));
}

#[test]
fn repeated_and_dropped_calls_are_stretches() {
    let folder = folder();
    let (call, first, last, count) = (1, 100, 180, 17);
    write(
        &folder,
        0,
        &definitions(0, 1),
        &[
            Record::calls_folded(call, first, last, count),
            Record::calls_dropped(200, 300, 4),
        ],
    );
    let (lines, summary) = merged(&folder);
    let expected =
        "0 50 enter,0 50 note 17 calls,0 90 leave,0 100 enter,0 100 note 4 calls,0 150 leave";
    assert_eq!(lines.join(","), expected);
    assert_eq!((summary.calls, summary.dropped), (17, 4));
}

#[test]
fn what_needs_a_partner_is_left_out_after_calls_that_are_missing() {
    let folder = folder();
    let send = |ticks| {
        [
            enter(0, ticks),
            Record::message_sent(MESSAGE),
            leave(0, ticks + 1, false),
        ]
    };
    let gap = |count| Record::calls_dropped(200, 300, count);
    // The first note is that of the missing calls; the end of the file may state earlier
    // ones.
    for (count, since, expected) in [
        (0, 1_000, ["send", "note", "send", "send"]),
        (4, 1_000, ["send", "note", "note", "note"]),
        (0, 240, ["send", "note", "note", "note"]),
    ] {
        let path = folder.file("rank-0.dbrank");
        let _ = fs::remove_file(&path);
        let (mut writer, _) = RankWriter::open(&path).unwrap();
        let mut first = pack_one(&written(
            &[&send(100)[..], &[gap(count)], &send(400)].concat(),
        ));
        first.texts = definitions(0, 2);
        // Another thread may have used the same channel.
        let second = PackedBlock::pack(1, &written(&send(250)));
        first.threads.extend(second.threads);
        writer.write_block(&first).unwrap();
        let missing = MissingCalls {
            lost: 3,
            since: Some(since),
        };
        writer.finish("exit code 0", missing).unwrap();
        let (lines, summary) = merged(&folder);
        let whats = lines.iter().filter_map(|line| line.split(' ').nth(2));
        let found: Vec<_> = whats
            .filter(|what| !["enter", "leave"].contains(what))
            .collect();
        assert_eq!(found, expected);
        let cut_off = expected[2..].iter().filter(|what| **what == "note").count() as u64;
        assert_eq!((summary.sent, summary.cut_off), (3 - cut_off, cut_off));
        assert_eq!(summary.dropped, count + 3);
    }
}

#[test]
fn the_end_of_a_rank_is_told_unless_it_is_the_usual_one() {
    let folder = folder();
    let finalized = definitions(0, 1) + "call 9 MPI_Finalize\n";
    write(&folder, 0, &finalized, &[enter(0, 100)]);
    assert_eq!(Recording::read(&folder.0).unwrap().endings().count(), 0);
    write(&folder, 0, &definitions(0, 1), &[enter(0, 100)]);
    let recording = Recording::read(&folder.0).unwrap();
    let ending = recording.endings().next().unwrap();
    assert_eq!(
        (ending.how, ending.is_finalized),
        (Some("exit code 0"), false)
    );
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let folder = folder();
    let said = |folder: &TemporaryFolder| Recording::read(&folder.0).unwrap_err().to_string();
    assert!(said(&folder).contains("no recording of a rank"));
    write(&folder, 0, &definitions(0, 2), &[]);
    assert_eq!(Recording::read(&folder.0).unwrap().missing(), [1]);
    write(&folder, 1, &definitions(1, 3), &[]);
    assert!(said(&folder).contains("had 3 ranks"));
    write(&folder, 1, &definitions(0, 2), &[]);
    assert!(said(&folder).contains("is of rank 0"));
    write(&folder, 1, "call 0 MPI_Send\n", &[]);
    assert!(said(&folder).contains("does not tell its rank"));
    for (rank, run) in [(0, 7), (1, 8)] {
        let texts = format!("{}run {run}\n", definitions(rank, 2));
        write(&folder, rank, &texts, &[]);
    }
    assert!(said(&folder).contains("is of another run"));
    write(&folder, 0, &definitions(0, 2), &[]);
    let outside = definitions(1, 2).replace("0-1", "0-2");
    write(&folder, 1, &outside, &[]);
    assert!(said(&folder).contains("none of the 2 ranks"));
}

#[test]
fn a_message_with_an_unknown_rank_is_refused() {
    let folder = folder();
    let message = Envelope { peer: 2, ..MESSAGE };
    let records = [
        enter(0, 1),
        Record::message_sent(message),
        leave(0, 2, false),
    ];
    write(&folder, 0, &definitions(0, 2), &records);
    let recording = Recording::read(&folder.0).unwrap();
    let why = merge(&recording, |_| ()).unwrap_err().to_string();
    assert!(why.contains("rank 2 of 2"), "{why}");
}

#[test]
fn an_operation_between_two_groups_is_one_in_each_direction() {
    let folder = folder();
    // Rank 2 broadcasts to ranks 0 and 1: rank 3 is in its group.
    for rank in 0..4 {
        let (own, other) = if rank < 2 {
            ("0-1", "2-3")
        } else {
            ("2-3", "0-1")
        };
        let texts = definitions(rank, 4) + &format!("communicator 2 - i7.0 {own} {other}\n");
        let operation = Operation {
            communicator: 2,
            kind: CollectiveKind::Broadcast,
            root: 0,
            sent: rank == 2,
            received: rank < 2,
            bytes: Some(8),
        };
        let enter = Record::call_entered(2, Some(2), 200);
        let records = [
            enter,
            Record::operation_ended(operation, None),
            leave(2, 220, false),
        ];
        write(&folder, rank, &texts, &records);
    }
    let mut ends = vec![];
    let mut starts = 0;
    let sink = |item: &Item<'_>| {
        if let Item::Event {
            location, event, ..
        } = item
        {
            match event {
                Event::CollectiveBegin {
                    request: Some(_), ..
                } => starts += 1,
                Event::CollectiveEnd {
                    kind,
                    sent,
                    received,
                    request: Some(request),
                    ..
                } => ends.push((request >> 62, *location, *kind, [*sent, *received])),
                _ => {}
            }
        }
    };
    let recording = Recording::read(&folder.0).unwrap();
    merge(&recording, sink).unwrap();
    ends.sort_by_key(|(direction, location, ..)| (*direction, *location));
    let kind = CollectiveKind::Allreduce;
    let none = [false, false];
    // The first group has nothing to send.
    let expected = [
        (1, 0, kind, [false, true]),
        (1, 1, kind, [false, true]),
        (1, 2, kind, [true, false]),
        (1, 3, kind, none),
        (2, 0, kind, none),
        (2, 1, kind, none),
        (2, 2, kind, none),
        (2, 3, kind, none),
    ];
    assert_eq!(ends, expected);
    assert_eq!(starts, 8);
}

#[test]
fn regions_that_overlap_are_nested() {
    let folder = folder();
    let records = [
        leave(2, 90, false),
        enter(0, 100),
        enter(1, 110),
        leave(0, 120, false),
        leave(1, 130, false),
    ];
    write(&folder, 0, &definitions(0, 1), &records);
    let (lines, _) = merged(&folder);
    assert_eq!(
        lines.join(","),
        "0 50 enter,0 55 enter,0 60 leave,0 60 leave"
    );
}

#[test]
fn a_rank_that_is_killed_in_mpi_init_is_left_out() {
    let folder = folder();
    write(&folder, 1, "process 1 2 node\n", &[enter(0, 100)]);
    let why = Recording::read(&folder.0).unwrap_err().to_string();
    assert!(why.contains("no rank got through MPI_Init"), "{why}");
    write(
        &folder,
        0,
        &definitions(0, 2),
        &[enter(0, 100), leave(0, 120, false)],
    );
    let recording = Recording::read(&folder.0).unwrap();
    assert_eq!(recording.uninitialized(), [(1, "exit code 0".to_owned())]);
    assert!(recording.missing().is_empty());
    assert_eq!(merged_from(&recording).1.calls, 1);
}

#[test]
fn a_call_that_fails_leaves_no_trace_of_its_arguments() {
    let folder = folder();
    let wrong = Envelope {
        peer: 99,
        ..MESSAGE
    };
    let barrier = |ticks| {
        [
            enter(2, ticks),
            Record::operation_ended(BARRIER, None),
            leave(2, ticks + 5, false),
        ]
    };
    let mut records = vec![
        // Failed, with an error code; in a collective operation; left by longjmp, which
        // shows late.
        enter(0, 100),
        Record::message_sent(wrong),
        leave(0, 110, true),
        enter(2, 120),
        leave(2, 130, true),
        enter(0, 140),
        Record::message_sent(wrong),
    ];
    records.extend(barrier(150));
    records.extend([leave(0, 160, true)]);
    records.extend(barrier(170));
    write(&folder, 0, &definitions(0, 2), &records);
    write(&folder, 1, &definitions(1, 2), &barrier(300));
    let (lines, summary) = merged(&folder);
    assert_eq!((summary.sent, summary.calls), (0, 6));
    let count = |what: &str| lines.iter().filter(|line| line.ends_with(what)).count();
    assert_eq!([count("enter"), count("leave")], [6, 6]);
    assert_eq!(
        [
            count("collective"),
            count("collective-end"),
            count("note failed")
        ],
        [3, 3, 1]
    );
}

#[test]
fn live_times_are_those_of_the_model_of_their_time() {
    let folder = folder();
    let live = "live 100 5000 200 5100\nlive 150 9000 250 9200\n";
    let calls = [
        enter(0, 98),
        leave(0, 120, false),
        enter(0, 160),
        leave(0, 170, false),
    ];
    write(&folder, 0, &(definitions(0, 1) + live), &calls);
    let mut recording = Recording::read(&folder.0).unwrap();
    recording.keep_live().unwrap();
    let (lines, _) = merged_from(&recording);
    assert_eq!(
        lines,
        [
            "0 4998 enter",
            "0 5020 leave",
            "0 9020 enter",
            "0 9040 leave"
        ]
    );
    write(&folder, 0, &definitions(0, 1), &calls);
    let why = Recording::read(&folder.0).unwrap().keep_live().unwrap_err();
    let why = why.to_string();
    assert!(
        why.contains("rank-0.dbrank") && why.contains("global time"),
        "{why}"
    );
}
