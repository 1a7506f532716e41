//! Tests of reading archives that OTF2 itself wrote.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is a test"
)]

#[path = "otf2/items.rs"]
mod items;
#[path = "otf2/support.rs"]
mod support;

use std::fs;
use std::path::Path;

use downbeat_trace::CollectiveKind;
use downbeat_trace::formats::otf2::{Archive, ReadOptions};
use support::{ArchiveFolder, NANOS, PrintedEvent, files, in_trace, nanos, shown};

fn error(anchor: &Path) -> String {
    let read = Archive::open(anchor).and_then(|archive| archive.read(&ReadOptions::default()));
    let line = read
        .map(|_| ())
        .expect_err("something is wrong")
        .to_string();
    assert!(!line.contains('\n'), "{line:?}");
    line
}

#[test]
fn all_relevant_events_are_read() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 5, "plain");
    let archive = Archive::open(&anchor).unwrap();
    assert_eq!(archive.ticks_per_second(), NANOS);
    let names: Vec<_> = archive
        .locations()
        .iter()
        .map(|found| (found.id, &*found.name))
        .collect();
    assert_eq!(
        names,
        [
            (11, "location 3"),
            (3, "location 2"),
            (20, "location 1"),
            (7, "location 0")
        ]
    );

    let read = archive.read(&ReadOptions::default()).unwrap();
    let trace = &read.trace;
    let of_archive = |location| {
        archive.locations()[read
            .origin
            .locations
            .iter()
            .position(|&at| at == location)
            .unwrap()]
        .id
    };
    let place = |id: u64| {
        let index = archive
            .locations()
            .iter()
            .position(|found| found.id == id)
            .unwrap();
        trace.locations()[read.origin.locations[index].index()].place()
    };
    assert_eq!([7, 20, 3, 11].map(|id| place(id).node), [1, 1, 2, 1]);
    assert_eq!([7, 20, 3, 11].map(|id| place(id).process), [0, 1, 2, 1]);

    // Every event that `otf2-print` shows, at its time.
    let shown = shown(&anchor);
    for (index, location) in archive.locations().iter().enumerate() {
        let times: Vec<i64> = shown[&location.id]
            .iter()
            .filter(in_trace)
            .map(|event| event.0)
            .collect();
        assert_eq!(
            nanos(trace.locations()[read.origin.locations[index].index()].times()),
            times
        );
        assert_eq!(location.events as usize, shown[&location.id].len());
    }

    let mut messages: Vec<_> = trace
        .messages()
        .map(|m| (of_archive(m.send.location), of_archive(m.receive.location)))
        .collect();
    messages.sort_unstable();
    messages.dedup();
    assert_eq!(messages, [(3, 20), (7, 7), (7, 20), (20, 3)]);
    assert_eq!(trace.messages().count(), 4 * 5);

    let mut kinds: Vec<String> = trace
        .collectives()
        .map(|found| format!("{:?}", found.kind()))
        .collect();
    kinds.sort_unstable();
    let each = |name: &str, count| vec![name.to_owned(); count];
    let expected = [
        each("Allreduce", 1),
        // One MPI barrier, those of the threads, and MPI_Init and MPI_Finalize.
        each("Barrier", 1 + 5 + 2),
        each("Broadcast", 1),
        each("Fork", 5),
        each("Gather", 1),
        each("Join", 5),
        each("Reduce", 5),
        each("Scan", 1),
    ];
    assert_eq!(kinds, expected.concat());
    let reduce = trace
        .collectives()
        .find(|found| found.kind() == CollectiveKind::Reduce)
        .unwrap();
    assert_eq!(reduce.root(), 0);
    let members: Vec<_> = reduce
        .members()
        .map(|member| {
            (
                of_archive(member.location),
                member.enter.is_some(),
                member.exit.is_some(),
            )
        })
        .collect();
    // The root's own data are not a message.
    assert_eq!(members, [(3, false, true), (20, true, false)]);
}

#[test]
fn options_leave_out_dependences() {
    let folder = ArchiveFolder::new();
    let archive = Archive::open(&folder.archive(NANOS, 5, "plain")).unwrap();
    let kinds = |reading: &ReadOptions| {
        let read = archive.read(reading).unwrap();
        read.trace
            .collectives()
            .map(|found| found.kind())
            .collect::<Vec<_>>()
    };
    let without = kinds(&ReadOptions {
        threads: false,
        init: false,
        ..ReadOptions::default()
    });
    assert_eq!(
        without
            .iter()
            .filter(|kind| **kind == CollectiveKind::Barrier)
            .count(),
        1
    );
    assert!(
        !without
            .iter()
            .any(|kind| matches!(kind, CollectiveKind::Fork | CollectiveKind::Join))
    );
}

#[test]
fn clock_offsets_are_added_as_otf2_does_or_not_at_all() {
    let folder = ArchiveFolder::new();
    for ticks in [NANOS, 2_593_993_000] {
        let plain = folder.archive(ticks, 20, "plain");
        for (variant, like_plain) in [("corrected", false), ("lonely", true)] {
            let anchor = folder.archive(ticks, 20, variant);
            let archive = Archive::open(&anchor).unwrap();
            for offsets in [true, false] {
                let read = archive
                    .read(&ReadOptions {
                        offsets,
                        workers: 2,
                        ..ReadOptions::default()
                    })
                    .unwrap();
                let shown = shown(if offsets { &anchor } else { &plain });
                assert_eq!(shown == self::shown(&plain), like_plain || !offsets);
                for (index, location) in archive.locations().iter().enumerate() {
                    let to_nanos =
                        |event: &PrintedEvent| (event.0 as f64 / ticks as f64 * 1e9).round() as i64;
                    let times: Vec<i64> = shown[&location.id]
                        .iter()
                        .filter(in_trace)
                        .map(to_nanos)
                        .collect();
                    let found =
                        nanos(read.trace.locations()[read.origin.locations[index].index()].times());
                    let close = |(a, b): (&i64, &i64)| (a - b).abs() <= i64::from(ticks != NANOS);
                    assert!(
                        found.len() == times.len() && found.iter().zip(&times).all(close),
                        "{variant} {offsets}"
                    );
                }
            }
        }
        fs::remove_dir_all(folder.0.join("plain")).unwrap();
        fs::remove_dir_all(folder.0.join("corrected")).unwrap();
        fs::remove_dir_all(folder.0.join("lonely")).unwrap();
    }
}

#[test]
fn errors_are_one_line_with_the_name_of_the_file() {
    let folder = ArchiveFolder::new();
    let line = error(&folder.archive(NANOS, 1, "repeated"));
    assert!(line.contains("/traces/11.def: "), "{line}");

    let anchor = folder.archive(NANOS, 2, "plain");
    for (file, expected) in [
        ("20.evt", "/traces/20.evt: No such file"),
        ("3.def", "/traces/3.def: No such file"),
    ] {
        let path = anchor.with_extension("").join(file);
        let content = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let line = error(&anchor);
        assert!(line.contains(expected), "{line}");
        fs::write(&path, content).unwrap();
    }
    assert!(error(&folder.0.join("none.otf2")).contains("/none.otf2: No such file"));
    assert!(error(&folder.0).contains("this is not the path of an OTF2 anchor file"));
    fs::write(folder.0.join("text.otf2"), "some text").unwrap();
    assert!(error(&folder.0.join("text.otf2")).contains("/text.otf2: "));
}

#[test]
fn incomplete_messages_and_operations_are_counted() {
    let folder = ArchiveFolder::new();
    for (variant, sends, unexamined) in [
        ("unmatched", 1, None),
        (
            "unended",
            0,
            Some("collective operations that were not ended"),
        ),
        (
            "unbegun",
            0,
            Some("collective operations that were not begun"),
        ),
        (
            "stranger",
            0,
            Some("messages and operations with an undefined peer or communicator"),
        ),
    ] {
        let archive = Archive::open(&folder.archive(NANOS, 1, variant)).unwrap();
        let found = archive.read(&ReadOptions::default()).unwrap();
        assert_eq!(found.trace.left_out().sends, sends, "{variant}");
        let counted = found.origin.read.unexamined.iter().collect::<Vec<_>>();
        let expected = unexamined.map(|kind| (kind, 1));
        assert_eq!(counted, Vec::from_iter(expected), "{variant}");
    }
}

/// As EZTrace and APEX write archives; otf2-print reads them, with warnings.
#[test]
fn mistakes_that_other_readers_accept_are_counted() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 3, "loose");
    let archive = Archive::open(&anchor).unwrap();
    let found = archive.read(&ReadOptions::default()).unwrap();
    assert_eq!((archive.redefined(), found.origin.read.miscounted), (1, 4));
    assert!(found.origin.read.unexamined.is_empty());
    let right = Archive::open(&folder.archive(NANOS, 3, "plain")).unwrap();
    let right = right.read(&ReadOptions::default()).unwrap();
    assert_eq!(found.trace.difference(&right.trace), None);
    assert_eq!(found.trace.times(), right.trace.times());

    // A location without events, although they are defined.
    let anchor = folder.archive(NANOS, 3, "unmatched");
    let empty = [&[3, 0x42][..], &[0; 16], &[2, 1]].concat();
    fs::write(anchor.with_extension("").join("20.evt"), empty).unwrap();
    let archive = Archive::open(&anchor).unwrap();
    let found = archive.read(&ReadOptions::default()).unwrap();
    assert_eq!(found.origin.read.miscounted, 1);
    assert!(found.trace.left_out().receives > 0);
}

#[test]
fn relations_that_are_not_examined_are_counted() {
    let folder = ArchiveFolder::new();
    let archive = Archive::open(&folder.archive(NANOS, 3, "kinds")).unwrap();
    let found = archive.read(&ReadOptions::default()).unwrap();
    let counted: Vec<_> = found.origin.read.unexamined.iter().collect();
    let expected = [
        (
            "non-blocking collective operations that were not completed",
            1,
        ),
        (
            "operations that create or free communicators, windows or files",
            1,
        ),
        ("RMA collective operations", 1),
        ("RMA puts, gets and atomic operations", 3),
        ("RMA locks and synchronizations", 4),
        ("tasks", 1),
    ];
    assert_eq!(counted, expected);
    let events: u64 = archive
        .locations()
        .iter()
        .map(|location| location.events)
        .sum();
    assert_eq!(found.trace.events(), events);
}

#[test]
fn truncated_files_are_errors() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 1, "corrected");
    for (path, content) in files(anchor.parent().unwrap()) {
        // OTF2 does not read the last bytes of an anchor file.
        for length in (0..content.len() - 2).step_by(7) {
            fs::write(&path, &content[..length]).unwrap();
            error(&anchor);
        }
        fs::write(&path, &content).unwrap();
    }
    Archive::open(&anchor).unwrap();
}

#[test]
fn damaged_events_give_the_same_error_on_any_number_of_threads() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 2, "plain");
    let mut refused = 0;
    for name in ["7.evt", "20.evt"] {
        let path = anchor.with_extension("").join(name);
        let content = fs::read(&path).unwrap();
        for at in 0..content.len() - 2 {
            for byte in [0, content[at] ^ 1, content[at] ^ 0x80, 0xff] {
                let mut damaged = content.clone();
                damaged[at] = byte;
                fs::write(&path, damaged).unwrap();
                let archive = Archive::open(&anchor).unwrap();
                let read = archive.read(&ReadOptions::default());
                let by_two = archive.read(&ReadOptions {
                    workers: 2,
                    ..ReadOptions::default()
                });
                assert_eq!(
                    format!("{read:?}"),
                    format!("{by_two:?}"),
                    "byte {at} of {name}: {byte}"
                );
                refused += usize::from(read.is_err_and(|why| !why.to_string().contains('\n')));
            }
        }
        fs::write(&path, content).unwrap();
    }
    assert!(refused > 1_000, "{refused}");
    Archive::open(&anchor)
        .unwrap()
        .read(&ReadOptions::default())
        .unwrap();
}
