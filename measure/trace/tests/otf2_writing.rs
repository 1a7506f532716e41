//! Tests of writing corrected archives, which are read again by OTF2's own program.
#![expect(clippy::unwrap_used, clippy::panic, reason = "all of this is a test")]

#[path = "otf2/relations.rs"]
mod relations;
#[path = "otf2/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_trace::formats::otf2::{Archive, ReadOptions, WriteOptions, first_difference};
use downbeat_trace::{
    Array, ClockOwner, ControlledLogicalClock, Latencies, Matching, Message, Trace,
};
use relations::{Related, relations};
use support::{ArchiveFolder, NANOS, PrintedEvent, files, in_trace, nanos, shown, words};

const LATENCY: Duration = Duration::from_nanos(500);

fn correct(trace: &Trace) -> Vec<Array<Timestamp<Global>>> {
    let latencies = Latencies::new(LATENCY, LATENCY, LATENCY).unwrap();
    ControlledLogicalClock::new(latencies)
        .correct(trace)
        .unwrap()
        .into_times()
}

/// Number of messages that are faster than the latency.
fn violations(trace: &Trace) -> usize {
    let times = |message: &Message| {
        trace
            .time(message.receive)
            .zip(trace.time(message.send))
            .unwrap()
    };
    let between = trace
        .messages()
        .filter(|message| message.send.location != message.receive.location);
    between
        .filter(|message| {
            let (receive, send) = times(message);
            receive - send < LATENCY
        })
        .count()
}

/// Returns the description of an archive without its properties: ours has checksums.
fn without_properties(text: &str) -> String {
    let (before, rest) = text
        .split_once("Number of properties")
        .unwrap_or((text, ""));
    let after = rest.split_once("Trace identifier").unwrap_or(("", "")).1;
    before.to_owned() + after
}

/// Corrects an archive, and checks the result with OTF2's own program.
fn correct_and_check(ticks: u64, variant: &str, offsets: bool, writing: WriteOptions) {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(ticks, 50, variant);
    // Unrelated files next to the archive, and an older archive.
    fs::create_dir(anchor.with_extension("older")).unwrap();
    fs::write(anchor.with_extension("older").join("1.evt"), "").unwrap();
    fs::write(anchor.with_file_name("scorep.cfg"), "").unwrap();
    let before = files(anchor.parent().unwrap());
    let archive = Archive::open(&anchor).unwrap();
    // Events that a thread and its process recorded at one time move apart only if each has its clock.
    let matching = Matching {
        clock_of: match variant {
            "shared" => ClockOwner::Location,
            _ => ClockOwner::Process,
        },
        ..Matching::default()
    };
    let read = archive
        .read(&ReadOptions {
            offsets,
            matching,
            ..ReadOptions::default()
        })
        .unwrap();
    assert!(violations(&read.trace) > 0);
    let times = correct(&read.trace);
    let to = folder.0.join("to");
    let written = archive
        .write_corrected(&read.trace, &read.origin, &times, &to, writing)
        .unwrap();
    assert_eq!(written.anchor, to.join("traces.otf2"));
    let (old, new) = (shown(&anchor), shown(&written.anchor));
    let tick = 1e9 / ticks as f64;
    for (index, location) in archive.locations().iter().enumerate() {
        let [old, new] = [&old, &new].map(|shown| &shown[&location.id]);
        let what = |events: &[PrintedEvent]| {
            events
                .iter()
                .map(|(_, what, rest)| (what.clone(), rest.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(what(old), what(new));
        let shown: Vec<f64> = new
            .iter()
            .filter(in_trace)
            .map(|event| event.0 as f64 * tick)
            .collect();
        let location_of = |index: usize| read.origin.locations[index].index();
        let expected = &times[location_of(index)];
        assert_eq!(shown.len(), expected.len());
        let rewritten = written.rewritten[index];
        let most = if rewritten {
            0.5_f64.max(tick / 2.0)
        } else {
            1.5_f64.max(1.0 + tick / 2.0)
        };
        for (shown, expected) in shown.iter().zip(nanos(expected)) {
            assert!(
                (shown - expected as f64).abs() <= most + 1e-3,
                "{shown} {expected}"
            );
        }
        assert!(new.is_sorted_by_key(|event| event.0));
        let is_unmoved = *expected == read.trace.locations()[location_of(index)].times();
        let knots = match (rewritten, is_unmoved) {
            (true, _) => 0..1,
            // As before.
            (false, true) => 0..4,
            (false, false) => 2..old.len(),
        };
        assert!(knots.contains(&written.knots[index]), "{:?}", written.knots);
        // Only the clock of the first location has different times for all events.
        assert!(
            rewritten == writing.rewrite || variant == "shared" && location.id != 7,
            "{}",
            location.id
        );
    }
    for more in ["-G", "-M", "-I"] {
        let [old, new] = [&anchor, &written.anchor]
            .map(|anchor| words("otf2-print", &[more, anchor.to_str().unwrap()]));
        assert_eq!(without_properties(&old), without_properties(&new));
    }
    assert_eq!(
        written.rewritten.contains(&true),
        writing.rewrite || variant == "shared"
    );
    assert_eq!(first_difference(&anchor, &written.anchor).unwrap(), None);
    // Only local definitions, rewritten events and checksums differ, and the original is unchanged.
    let after = files(&to);
    for (path, content) in &before {
        assert_eq!(&fs::read(path).unwrap(), content);
        if !path.starts_with(anchor.with_extension("")) && path.with_extension("otf2") != anchor {
            continue;
        }
        let copy = to.join(path.strip_prefix(anchor.parent().unwrap()).unwrap());
        let of_location = copy.parent() != Some(&to);
        // The anchor file has checksums, and is compared above.
        let may_differ = *path == anchor
            || of_location
                && (copy.extension().unwrap() == "def" || written.rewritten.contains(&true));
        assert!(may_differ || after[&copy] == *content);
    }
    // All but the older archive: the configuration of the experiment belongs to it.
    assert_eq!(after.len() + 1, before.len());
    let again = Archive::open(&written.anchor)
        .unwrap()
        .read(&ReadOptions::default())
        .unwrap();
    if ticks >= NANOS {
        assert_eq!(violations(&again.trace), 0);
    }
}

#[test]
fn a_corrected_archive_has_the_corrected_times_and_all_other_data() {
    for writing in [
        WriteOptions::default(),
        WriteOptions {
            rewrite: true,
            workers: 3,
        },
    ] {
        correct_and_check(NANOS, "plain", true, writing);
        correct_and_check(NANOS, "corrected", true, writing);
        correct_and_check(NANOS, "corrected", false, writing);
        correct_and_check(NANOS, "lonely", true, writing);
        correct_and_check(2_593_993_000, "plain", true, writing);
        correct_and_check(24_000_000, "plain", true, writing);
        correct_and_check(NANOS, "shared", true, writing);
        correct_and_check(2_593_993_000, "shared", true, writing);
        correct_and_check(50_000_000, "shared", true, writing);
    }
}

/// Times of a trace, delayed by random amounts of at most `most`, in order on each location.
fn jittered(trace: &Trace, seed: u64, most: i64, every: usize) -> Vec<Array<Timestamp<Global>>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut jitter = |times: &[Timestamp<Global>]| -> Array<Timestamp<Global>> {
        let (mut last, mut later) = (i64::MIN, 0);
        let next = |(event, time): (usize, &Timestamp<Global>)| {
            if event % every == 0 {
                later = random.i64(0..most);
            }
            last = (time.as_nanos() + later).max(last);
            Timestamp::from_nanos(last)
        };
        times.iter().enumerate().map(next).collect()
    };
    trace
        .locations()
        .iter()
        .map(|location| jitter(location.times()))
        .collect()
}

/// Markers, snapshots and samples of thumbnails are at times of events before and after.
#[test]
fn other_times_move_with_the_events_around_them() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 20, "marked");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&ReadOptions::default()).unwrap();
    let times = correct(&read.trace);
    let old = shown(&anchor);
    for (name, rewrite) in [("offsets", false), ("rewritten", true)] {
        let writing = WriteOptions {
            rewrite,
            ..WriteOptions::default()
        };
        let to = folder.0.join(name);
        let written = archive.write_corrected(&read.trace, &read.origin, &times, &to, writing);
        let copy = written.unwrap().anchor;
        let new = shown(&copy);
        // The time of an event, before and after.
        let both = |location: u64, index: usize| [&old, &new].map(|all| all[&location][index].0);
        let of = |location: u64, kind: &str| {
            old[&location]
                .iter()
                .position(|event| event.1 == kind)
                .unwrap()
        };
        // Between events of a thread, times are interpolated.
        let near = |found: i64, expected: i64| (found - expected).abs() <= 10;

        let markers =
            [&anchor, &copy].map(|anchor| words("otf2-marker", &[anchor.to_str().unwrap()]));
        let fields = |marker: &str| -> Vec<(i64, i64)> {
            let lines = marker.lines().filter(|line| line.starts_with("MARKER "));
            let number = |line: &str, name: &str| -> i64 {
                let rest = line.split_once(name).unwrap().1.trim_start_matches(':');
                rest.split(',').next().unwrap().trim().parse().unwrap()
            };
            lines
                .map(|line| (number(line, "Time:"), number(line, "Duration")))
                .collect()
        };
        let [before, after] = [&markers[0], &markers[1]].map(|text| fields(text));
        let (sent, complete) = (of(20, "MPI_ISEND"), of(20, "MPI_ISEND_COMPLETE"));
        let [[was, is], [ended, ends]] = [sent, complete].map(|index| both(20, index));
        assert_eq!(before[0], (was, ended - was));
        assert!(
            is != was && near(after[0].0, is) && near(after[0].0 + after[0].1, ends),
            "{after:?}"
        );
        // The fork of process 1; its thread is the first location of the archive, and shares its clock.
        let [was, is] = both(20, of(20, "THREAD_FORK"));
        assert_eq!(before[1..], [(was, 0); 2]);
        assert!(
            is != was
                && after[1..]
                    .iter()
                    .all(|marker| near(marker.0, is) && marker.1 == 0),
            "{after:?} {is}"
        );
        let text = |marker: &str| {
            marker
                .lines()
                .map(|line| line.split("Scope").last().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(text(&markers[0]), text(&markers[1]));

        // The only sample is of one byte, at the end of the record of its time.
        let sample = |anchor: &Path| {
            let file = fs::read(anchor.with_extension("0.thumb")).unwrap();
            let at = file
                .windows(3)
                .position(|bytes| bytes[0] == 11 && bytes[2] <= 8)
                .unwrap();
            let length = usize::from(file[at + 2]);
            let time = &file[at + 3..at + 3 + length];
            time.iter()
                .rev()
                .fold(0_i64, |all, byte| all << 8 | i64::from(*byte))
        };
        assert!(sample(&anchor) == was && near(sample(&copy), is));

        let snapshot = |anchor: &Path| {
            words(
                support::writer().to_str().unwrap(),
                &[anchor.to_str().unwrap()],
            )
        };
        let numbers = |text: &str| -> Vec<i64> {
            text.lines()
                .next()
                .unwrap()
                .split(' ')
                .map(|number| number.parse().unwrap())
                .collect()
        };
        let [was, is] = [&anchor, &copy].map(|anchor| numbers(&snapshot(anchor)));
        let [sent, entered] = [sent, of(20, "ENTER") + 2].map(|index| both(20, index));
        assert_eq!(was, [sent[0], entered[0]]);
        assert!(near(is[0], sent[1]) && near(is[1], entered[1]), "{is:?}");
        assert!(snapshot(&copy).ends_with("3 records\n"));

        // Apart from times, the copy is the same; any other change is found.
        assert_eq!(first_difference(&anchor, &copy).unwrap(), None);
        let snapshots = copy.with_extension("").join("20.snap");
        // A text of a marker, the name of the thumbnail, and the number of records of the
        // snapshot.
        let changes: [(_, &[u8], _); 3] = [
            (copy.with_extension("marker"), b"fork", "record 2"),
            (copy.with_extension("0.thumb"), b"name", "record 0"),
            (snapshots, &[1, 4], "event 2"),
        ];
        for (path, field, place) in changes {
            let before = fs::read(&path).unwrap();
            let mut content = before.clone();
            let is_field = |bytes: &[u8]| bytes == field;
            let at = content.windows(field.len()).rposition(is_field).unwrap();
            content[at + field.len() - 1] ^= 1;
            fs::write(&path, content).unwrap();
            let found = first_difference(&anchor, &copy).unwrap().unwrap();
            assert!(found.contains(place), "{found}");
            fs::write(&path, before).unwrap();
        }
    }
}

/// Every relation that the archive tells holds after a correction, as OTF2's own program shows it.
#[test]
fn requests_windows_threads_and_locks_are_relations() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 40, "requests");
    let archive = Archive::open(&anchor).unwrap();
    let violated = |relations: &[Related]| {
        let mut kinds: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for (kind, from, to) in relations {
            let [all, violated] = kinds.entry(kind).or_default();
            *all += 1;
            *violated += usize::from(*to - *from < LATENCY.as_nanos());
        }
        kinds
    };
    let before = violated(&relations(&shown(&anchor)));
    let wrong = ["message", "non-blocking", "RMA", "creation", "end", "lock"];
    for (kind, all) in wrong.into_iter().zip([80, 320, 240, 40, 40, 79]) {
        assert_eq!(before[kind][0], all, "{kind}");
        assert!(before[kind][1] > 0, "{kind}");
    }
    for clock_of in [ClockOwner::Location, ClockOwner::Process] {
        let reading = ReadOptions {
            matching: Matching {
                clock_of,
                ..Matching::default()
            },
            ..ReadOptions::default()
        };
        let read = archive.read(&reading).unwrap();
        assert!(
            read.origin
                .read
                .unexamined
                .iter()
                .all(|(kind, _)| kind.contains("puts"))
        );
        let to = folder.0.join(format!("to {clock_of:?}"));
        let times = correct(&read.trace);
        let written = archive.write_corrected(
            &read.trace,
            &read.origin,
            &times,
            &to,
            WriteOptions {
                rewrite: true,
                ..WriteOptions::default()
            },
        );
        let after = violated(&relations(&shown(&written.unwrap().anchor)));
        for kind in wrong {
            // Within a process, its clock has recorded what happened.
            let as_recorded = ["creation", "end", "lock"].contains(&kind);
            let left = match clock_of {
                ClockOwner::Process if as_recorded => before[kind][1],
                _ => 0,
            };
            assert_eq!(after[kind], [before[kind][0], left], "{kind}, {clock_of:?}");
        }
    }
}

#[test]
fn any_times_can_be_written() {
    let folder = ArchiveFolder::new();
    for (round, ticks) in [NANOS, 3_000_000_000, NANOS].into_iter().enumerate() {
        let anchor = folder.archive(ticks, 400, "shared");
        let archive = Archive::open(&anchor).unwrap();
        let read = archive.read(&ReadOptions::default()).unwrap();
        let times = jittered(&read.trace, round as u64, 3_000, 1);
        let to = folder.0.join("to");
        let written = archive
            .write_corrected(
                &read.trace,
                &read.origin,
                &times,
                &to,
                WriteOptions::default(),
            )
            .unwrap();
        assert_eq!(written.rewritten, [true; 4]);
        assert_eq!(first_difference(&anchor, &written.anchor).unwrap(), None);
        let again = Archive::open(&written.anchor)
            .unwrap()
            .read(&ReadOptions::default())
            .unwrap();
        assert!(
            again
                .trace
                .times()
                .iter()
                .zip(&times)
                .all(|(found, expected)| expected == found)
        );
        let [old, new] = [&anchor, &written.anchor].map(|anchor| shown(anchor));
        for (old, new) in old.values().zip(new.values()) {
            assert!(
                old.iter()
                    .map(|event| (&event.1, &event.2))
                    .eq(new.iter().map(|event| (&event.1, &event.2)))
            );
            assert!(new.is_sorted_by_key(|event| event.0));
        }
        // Chunk headers contain the numbers of their events.
        for (path, content) in files(&written.anchor.with_extension("")) {
            if path.extension().unwrap() == "evt" {
                let mut last = 0;
                for chunk in content.chunks(256 << 10) {
                    let [begin, end] =
                        [2, 10].map(|at| u64::from_le_bytes(chunk[at..at + 8].try_into().unwrap()));
                    assert!(
                        begin == last + 1 && end >= begin,
                        "{}: {begin} {end}",
                        path.display()
                    );
                    last = end;
                }
                let id: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
                assert_eq!(
                    archive
                        .locations()
                        .iter()
                        .find(|found| found.id == id)
                        .unwrap()
                        .events,
                    last
                );
            }
        }
        fs::remove_dir_all(to).unwrap();
        fs::remove_dir_all(anchor.parent().unwrap()).unwrap();
    }
}

/// OTF2 fills chunks differently, but a file of one chunk is unique.
#[test]
fn events_that_are_not_moved_are_rewritten_unchanged() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 100, "plain");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&ReadOptions::default()).unwrap();
    let copied = |times: &[_]| times.iter().copied().collect();
    let times: Vec<Array<_>> = read.trace.times().into_iter().map(copied).collect();
    let writing = WriteOptions {
        rewrite: true,
        workers: 2,
    };
    let written = archive
        .write_corrected(
            &read.trace,
            &read.origin,
            &times,
            &folder.0.join("to"),
            writing,
        )
        .unwrap();
    let [old, new] = [&anchor, &written.anchor].map(|anchor| files(&anchor.with_extension("")));
    assert!(old.values().eq(new.values()));
}

#[test]
fn other_differences_are_named() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 100, "corrected");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&ReadOptions::default()).unwrap();
    let to = folder.0.join("to");
    let writing = WriteOptions {
        rewrite: true,
        workers: 1,
    };
    let other = archive
        .write_corrected(
            &read.trace,
            &read.origin,
            &correct(&read.trace),
            &to,
            writing,
        )
        .unwrap()
        .anchor;
    for (file, at, expected) in [
        ("7.evt", 200, "/to/traces/7.evt: event "),
        (
            "7.def",
            25,
            "/to/traces/7.def: definition 0 (times not counted): differs from ",
        ),
        // Of the first string, after the time span.
        ("../traces.def", 60, "/to/traces.def: definition "),
    ] {
        let path = to.join("traces").join(file);
        let before = fs::read(&path).unwrap();
        let mut content = before.clone();
        content[at] ^= 1;
        fs::write(&path, &content).unwrap();
        let found = first_difference(&anchor, &other).unwrap().unwrap();
        assert!(found.contains(expected), "{found}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, before).unwrap();
        assert_eq!(first_difference(&anchor, &other).unwrap(), None);
    }
    fs::write(to.join("traces/7.snap"), "").unwrap();
    let found = first_difference(&anchor, &other).unwrap().unwrap();
    assert!(
        found.ends_with("/traces/7.snap: this file does not exist"),
        "{found}"
    );
}

/// Flushes end after they begin, and move with the events around them; all times are within the span
/// of the archive.
#[test]
fn flushes_and_the_span_of_an_archive_move() {
    let number = |text: &str, name: &str| -> i64 {
        let (_, rest) = text.split_once(name).unwrap();
        let digits = rest
            .trim_start()
            .split(|c: char| !c.is_ascii_digit())
            .next();
        digits.unwrap().parse().unwrap()
    };
    for rewrite in [false, true] {
        let folder = ArchiveFolder::new();
        let archive = Archive::open(&folder.archive(NANOS, 30, "flushed")).unwrap();
        let read = archive.read(&ReadOptions::default()).unwrap();
        let times = correct(&read.trace);
        let to = folder.0.join("to");
        let writing = WriteOptions {
            rewrite,
            workers: 2,
        };
        let written = archive.write_corrected(&read.trace, &read.origin, &times, &to, writing);
        let anchor = written.unwrap().anchor;
        assert_eq!(first_difference(archive.anchor(), &anchor).unwrap(), None);
        let (mut flushes, mut ends) = (0, [i64::MAX, i64::MIN]);
        for (time, what, rest) in shown(&anchor).values().flatten() {
            ends = [ends[0].min(*time), ends[1].max(*time)];
            if what == "BUFFER_FLUSH" {
                let took = number(rest, "StopTime:") - time;
                assert!((890..=910).contains(&took), "{took}");
                flushes += 1;
            }
        }
        assert_eq!(flushes, 90);
        let definitions = words("otf2-print", &["-G", anchor.to_str().unwrap()]);
        let [start, length] = ["Global Offset:", "Length:"].map(|name| number(&definitions, name));
        assert!(
            start <= ends[0] && ends[1] <= start + length,
            "{ends:?} {start} {length}"
        );
    }
}

#[test]
fn many_offsets_take_many_chunks() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 8_000, "plain");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&ReadOptions::default()).unwrap();
    let times = jittered(&read.trace, 3, 3_000, 20);
    let written = archive
        .write_corrected(
            &read.trace,
            &read.origin,
            &times,
            &folder.0.join("to"),
            WriteOptions::default(),
        )
        .unwrap();
    assert!(
        written.knots.iter().any(|&knots| knots > 256 * 1024 / 27),
        "{:?}",
        written.knots
    );
    let shown = shown(&written.anchor);
    for (index, location) in archive.locations().iter().enumerate() {
        let found = shown[&location.id].iter().filter(in_trace);
        let location_of = |index: usize| read.origin.locations[index].index();
        let expected = &times[location_of(index)];
        assert!(
            found
                .zip(expected)
                .all(|(found, expected)| (found.0 - expected.as_nanos()).abs() <= 1)
        );
    }
}

#[test]
fn failed_writes_leave_nothing_behind() {
    let folder = ArchiveFolder::new();
    let archive = Archive::open(&folder.archive(NANOS, 2, "plain")).unwrap();
    let read = archive.read(&ReadOptions::default()).unwrap();
    let mut times: Vec<Array<_>> = read
        .trace
        .locations()
        .iter()
        .map(|location| location.times().iter().copied().collect())
        .collect();
    let to = folder.0.join("to");
    fs::create_dir(&to).unwrap();
    assert!(
        archive
            .write_corrected(
                &read.trace,
                &read.origin,
                &times,
                &to,
                WriteOptions::default()
            )
            .unwrap_err()
            .to_string()
            .ends_with("/to: this already exists")
    );
    fs::remove_dir(&to).unwrap();
    let first = &times[0];
    times[0] = first[..first.len() - 1].iter().copied().collect();
    let error = archive
        .write_corrected(
            &read.trace,
            &read.origin,
            &times,
            &to,
            WriteOptions::default(),
        )
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the corrected times are not those of this archive"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}
