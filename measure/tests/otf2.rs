//! Archives that OTF2 itself wrote, read, corrected, and read again by its own program.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_measure::trace::otf2::{Archive, Reading, Writing, first_difference};
use downbeat_sync::postmortem::{CollectiveKind, ControlledLogicalClock, Latencies, Matching, Message, Trace};

const NANOS: u64 = 1_000_000_000;
const LATENCY: Duration = Duration::from_nanos(500);

fn words(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|why| panic!("{program}: {why}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{program} {arguments:?}: {out}{err}");
    out.into_owned()
}

/// What writes archives, compiled once.
fn writer() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("otf2-archive-{}", std::process::id()));
        let flags = words("otf2-config", &["--cflags", "--ldflags", "--libs"]);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otf2/archive.c");
        let arguments = [&["-o", program.to_str().unwrap(), source], &*flags.split_whitespace().collect::<Vec<_>>()];
        words("cc", &arguments.concat());
        program
    })
}

/// A folder of its own, which goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("otf2-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// An archive inside of it; its anchor file.
    fn archive(&self, ticks: u64, rounds: u32, variant: &str) -> PathBuf {
        let folder = self.0.join(variant);
        let (ticks, rounds) = (ticks.to_string(), rounds.to_string());
        words(writer().to_str().unwrap(), &[folder.to_str().unwrap(), &ticks, &rounds, variant]);
        folder.join("traces.otf2")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// An event as OTF2's own program shows it: when it was, in ticks, what, and the rest.
type Shown = (i64, String, String);

/// What that shows of each location.
fn shown(anchor: &Path) -> BTreeMap<u64, Vec<Shown>> {
    let mut events: BTreeMap<u64, Vec<Shown>> = BTreeMap::new();
    for line in words("otf2-print", &[anchor.to_str().unwrap()]).lines() {
        let mut columns = line.split_whitespace();
        let (Some(what), Some(location), Some(time)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        let (Ok(location), Ok(time)) = (location.parse(), time.parse()) else { continue };
        events.entry(location).or_default().push((time, what.to_owned(), columns.collect()));
    }
    events
}

/// Which of the events are in a trace.
fn in_trace(event: &&Shown) -> bool {
    event.1 != "PARAMETER_INT64"
}

fn nanos(times: &[Timestamp<Global>]) -> Vec<i64> {
    times.iter().map(|time| time.as_nanos()).collect()
}

fn correct(trace: &Trace) -> Vec<Vec<Timestamp<Global>>> {
    let latencies = Latencies::new(LATENCY, LATENCY, LATENCY).unwrap();
    ControlledLogicalClock::new(latencies).correct(trace).unwrap().into_times()
}

/// How many messages are faster than the latency.
fn violations(trace: &Trace) -> usize {
    let times = |message: &Message| trace.time(message.receive).zip(trace.time(message.send)).unwrap();
    let between = trace.messages().filter(|message| message.send.location != message.receive.location);
    between
        .filter(|message| {
            let (receive, send) = times(message);
            receive - send < LATENCY
        })
        .count()
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn error(anchor: &Path) -> String {
    let read = Archive::open(anchor).and_then(|archive| archive.read(&Reading::default()));
    let line = read.map(|_| ()).expect_err("something is wrong").to_string();
    assert!(!line.contains('\n'), "{line:?}");
    line
}

#[test]
fn everything_that_matters_is_read() {
    let folder = Folder::new();
    let anchor = folder.archive(NANOS, 5, "plain");
    let archive = Archive::open(&anchor).unwrap();
    assert_eq!(archive.ticks_per_second(), NANOS);
    let names: Vec<_> = archive.locations().iter().map(|found| (found.id, &*found.name)).collect();
    assert_eq!(names, [(11, "location 3"), (3, "location 2"), (20, "location 1"), (7, "location 0")]);

    let read = archive.read(&Reading::default()).unwrap();
    let trace = &read.trace;
    let of_archive =
        |location| archive.locations()[read.origin.locations.iter().position(|&at| at == location).unwrap()].id;
    let place = |id: u64| {
        let index = archive.locations().iter().position(|found| found.id == id).unwrap();
        trace.locations()[read.origin.locations[index].index()].place()
    };
    assert_eq!([7, 20, 3, 11].map(|id| place(id).node), [1, 1, 2, 1]);
    assert_eq!([7, 20, 3, 11].map(|id| place(id).process), [0, 1, 2, 1]);

    // Every event that is shown, at its time.
    let shown = shown(&anchor);
    for (index, location) in archive.locations().iter().enumerate() {
        let times: Vec<i64> = shown[&location.id].iter().filter(in_trace).map(|event| event.0).collect();
        assert_eq!(nanos(trace.locations()[read.origin.locations[index].index()].times()), times);
        assert_eq!(location.events as usize, shown[&location.id].len());
    }

    let mut messages: Vec<_> =
        trace.messages().map(|m| (of_archive(m.send.location), of_archive(m.receive.location))).collect();
    messages.sort_unstable();
    messages.dedup();
    assert_eq!(messages, [(3, 20), (7, 7), (7, 20), (20, 3)]);
    assert_eq!(trace.messages().count(), 4 * 5);

    let mut kinds: Vec<String> = trace.collectives().map(|found| format!("{:?}", found.kind())).collect();
    kinds.sort_unstable();
    let each = |name: &str, count| vec![name.to_owned(); count];
    let expected = [
        each("Allreduce", 1),
        // One of MPI, those of the threads, and MPI_Init and MPI_Finalize.
        each("Barrier", 1 + 5 + 2),
        each("Broadcast", 1),
        each("Fork", 5),
        each("Gather", 1),
        each("Join", 5),
        each("Reduce", 5),
        each("Scan", 1),
    ];
    assert_eq!(kinds, expected.concat());
    let reduce = trace.collectives().find(|found| found.kind() == CollectiveKind::Reduce).unwrap();
    assert_eq!(reduce.root(), 0);
    let members: Vec<_> = reduce
        .members()
        .map(|member| (of_archive(member.location), member.enter.is_some(), member.exit.is_some()))
        .collect();
    // What the root gives itself is no message.
    assert_eq!(members, [(3, false, true), (20, true, false)]);
}

#[test]
fn options_leave_out_what_they_say() {
    let folder = Folder::new();
    let archive = Archive::open(&folder.archive(NANOS, 5, "plain")).unwrap();
    let kinds = |reading: &Reading| {
        let read = archive.read(reading).unwrap();
        read.trace.collectives().map(|found| found.kind()).collect::<Vec<_>>()
    };
    let without = kinds(&Reading { threads: false, init: false, ..Reading::default() });
    assert_eq!(without.iter().filter(|kind| **kind == CollectiveKind::Barrier).count(), 1);
    assert!(!without.iter().any(|kind| matches!(kind, CollectiveKind::Fork | CollectiveKind::Join)));
}

#[test]
fn clock_offsets_are_added_as_otf2_does_or_not_at_all() {
    let folder = Folder::new();
    for ticks in [NANOS, 2_593_993_000] {
        let plain = folder.archive(ticks, 20, "plain");
        for (variant, like_plain) in [("corrected", false), ("lonely", true)] {
            let anchor = folder.archive(ticks, 20, variant);
            let archive = Archive::open(&anchor).unwrap();
            for offsets in [true, false] {
                let read = archive.read(&Reading { offsets, ..Reading::default() }).unwrap();
                let shown = shown(if offsets { &anchor } else { &plain });
                assert_eq!(shown == self::shown(&plain), like_plain || !offsets);
                for (index, location) in archive.locations().iter().enumerate() {
                    let to_nanos = |event: &Shown| (event.0 as f64 / ticks as f64 * 1e9).round() as i64;
                    let times: Vec<i64> = shown[&location.id].iter().filter(in_trace).map(to_nanos).collect();
                    let found = nanos(read.trace.locations()[read.origin.locations[index].index()].times());
                    let close = |(a, b): (&i64, &i64)| (a - b).abs() <= i64::from(ticks != NANOS);
                    assert!(found.len() == times.len() && found.iter().zip(&times).all(close), "{variant} {offsets}");
                }
            }
        }
        fs::remove_dir_all(folder.0.join("plain")).unwrap();
        fs::remove_dir_all(folder.0.join("corrected")).unwrap();
        fs::remove_dir_all(folder.0.join("lonely")).unwrap();
    }
}

/// Corrects an archive, and looks at the result with OTF2's own program.
fn correct_and_check(ticks: u64, variant: &str, offsets: bool, writing: Writing) {
    let folder = Folder::new();
    let anchor = folder.archive(ticks, 50, variant);
    // What others keep beside it, and an archive that was written before, are none of it.
    fs::create_dir(anchor.with_extension("older")).unwrap();
    fs::write(anchor.with_extension("older").join("1.evt"), "").unwrap();
    fs::write(anchor.with_file_name("scorep.cfg"), "").unwrap();
    let before = files(anchor.parent().unwrap());
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&Reading { offsets, ..Reading::default() }).unwrap();
    assert!(violations(&read.trace) > 0);
    let times = correct(&read.trace);
    let to = folder.0.join("to");
    let written = archive.write_corrected(&read.trace, &read.origin, &times, &to, writing).unwrap();
    assert_eq!(written.anchor, to.join("traces.otf2"));
    let (old, new) = (shown(&anchor), shown(&written.anchor));
    let tick = 1e9 / ticks as f64;
    for (index, location) in archive.locations().iter().enumerate() {
        let [old, new] = [&old, &new].map(|shown| &shown[&location.id]);
        let what =
            |events: &[Shown]| events.iter().map(|(_, what, rest)| (what.clone(), rest.clone())).collect::<Vec<_>>();
        assert_eq!(what(old), what(new));
        let shown: Vec<f64> = new.iter().filter(in_trace).map(|event| event.0 as f64 * tick).collect();
        let expected = &times[read.origin.locations[index].index()];
        assert_eq!(shown.len(), expected.len());
        let rewritten = written.rewritten[index];
        let most = if rewritten { 0.5_f64.max(tick / 2.0) } else { 1.5_f64.max(1.0 + tick / 2.0) };
        for (shown, expected) in shown.iter().zip(nanos(expected)) {
            assert!((shown - expected as f64).abs() <= most + 1e-3, "{shown} {expected}");
        }
        assert!(new.is_sorted_by_key(|event| event.0));
        let knots = if rewritten { 0..1 } else { 2..old.len() };
        assert!(knots.contains(&written.knots[index]), "{:?}", written.knots);
        // Only the clock of the first location shows different times for all events.
        assert!(rewritten == writing.rewrite || variant == "shared" && location.id != 7, "{}", location.id);
    }
    for more in ["-G", "-M", "-I"] {
        let [old, new] =
            [&anchor, &written.anchor].map(|anchor| words("otf2-print", &[more, anchor.to_str().unwrap()]));
        assert_eq!(old, new);
    }
    assert_eq!(written.rewritten.contains(&true), writing.rewrite || variant == "shared");
    assert_eq!(first_difference(&anchor, &written.anchor).unwrap(), None);
    // Nothing but local definitions and rewritten events differs, and what was read is as it was.
    let after = files(&to);
    for (path, content) in &before {
        assert_eq!(&fs::read(path).unwrap(), content);
        if !path.starts_with(anchor.with_extension("")) && path.with_extension("otf2") != anchor {
            continue;
        }
        let copy = to.join(path.strip_prefix(anchor.parent().unwrap()).unwrap());
        let of_location = copy.parent() != Some(&to);
        let may_differ = of_location && (copy.extension().unwrap() == "def" || written.rewritten.contains(&true));
        assert!(may_differ || after[&copy] == *content);
    }
    assert_eq!(after.len() + 2, before.len());
    let again = Archive::open(&written.anchor).unwrap().read(&Reading::default()).unwrap();
    if ticks >= NANOS {
        assert_eq!(violations(&again.trace), 0);
    }
}

#[test]
fn a_corrected_archive_has_the_corrected_times_and_all_else() {
    for writing in [Writing::default(), Writing { rewrite: true, workers: 3 }] {
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

/// Times of a trace, later by up to so much by lot, and none before the one before.
fn jittered(trace: &Trace, seed: u64, most: i64, every: usize) -> Vec<Vec<Timestamp<Global>>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut jitter = |times: &[Timestamp<Global>]| -> Vec<Timestamp<Global>> {
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
    trace.locations().iter().map(|location| jitter(location.times())).collect()
}

#[test]
fn any_times_can_be_written() {
    let folder = Folder::new();
    for (round, ticks) in [NANOS, 3_000_000_000, NANOS].into_iter().enumerate() {
        let anchor = folder.archive(ticks, 400, "shared");
        let archive = Archive::open(&anchor).unwrap();
        let read = archive.read(&Reading::default()).unwrap();
        let times = jittered(&read.trace, round as u64, 3_000, 1);
        let to = folder.0.join("to");
        let written = archive.write_corrected(&read.trace, &read.origin, &times, &to, Writing::default()).unwrap();
        assert_eq!(written.rewritten, [true; 4]);
        assert_eq!(first_difference(&anchor, &written.anchor).unwrap(), None);
        let again = Archive::open(&written.anchor).unwrap().read(&Reading::default()).unwrap();
        assert!(again.trace.times().iter().zip(&times).all(|(found, expected)| found == expected));
        let [old, new] = [&anchor, &written.anchor].map(|anchor| shown(anchor));
        for (old, new) in old.values().zip(new.values()) {
            assert!(old.iter().map(|event| (&event.1, &event.2)).eq(new.iter().map(|event| (&event.1, &event.2))));
            assert!(new.is_sorted_by_key(|event| event.0));
        }
        // Chunks say which events are in them.
        for (path, content) in files(&written.anchor.with_extension("")) {
            if path.extension().unwrap() == "evt" {
                let mut last = 0;
                for chunk in content.chunks(256 << 10) {
                    let [begin, end] = [2, 10].map(|at| u64::from_le_bytes(chunk[at..at + 8].try_into().unwrap()));
                    assert!(begin == last + 1 && end >= begin, "{}: {begin} {end}", path.display());
                    last = end;
                }
                let id: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
                assert_eq!(archive.locations().iter().find(|found| found.id == id).unwrap().events, last);
            }
        }
        fs::remove_dir_all(to).unwrap();
        fs::remove_dir_all(anchor.parent().unwrap()).unwrap();
    }
}

/// OTF2 itself fills chunks otherwise, but a file of one chunk there is only one way to write.
#[test]
fn events_that_are_not_moved_are_rewritten_as_they_were() {
    let folder = Folder::new();
    let anchor = folder.archive(NANOS, 100, "plain");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&Reading::default()).unwrap();
    let times: Vec<Vec<_>> = read.trace.times().into_iter().map(<[_]>::to_vec).collect();
    let writing = Writing { rewrite: true, workers: 2 };
    let written = archive.write_corrected(&read.trace, &read.origin, &times, &folder.0.join("to"), writing).unwrap();
    let [old, new] = [&anchor, &written.anchor].map(|anchor| files(&anchor.with_extension("")));
    assert!(old.values().eq(new.values()));
}

#[test]
fn what_else_differs_is_named() {
    let folder = Folder::new();
    let anchor = folder.archive(NANOS, 100, "corrected");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&Reading::default()).unwrap();
    let to = folder.0.join("to");
    let writing = Writing { rewrite: true, workers: 1 };
    let other = archive.write_corrected(&read.trace, &read.origin, &correct(&read.trace), &to, writing).unwrap().anchor;
    for (file, at, expected) in [
        ("7.evt", 200, "/to/traces/7.evt: event "),
        ("7.def", 25, "/to/traces/7.def: definition 0 that is no clock offset: this is not what comes here in "),
        ("../traces.def", 30, "/to/traces.def: it is not as "),
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
    assert!(found.ends_with("/traces/7.snap: there is no such file"), "{found}");
}

#[test]
fn many_offsets_take_many_chunks() {
    let folder = Folder::new();
    let anchor = folder.archive(NANOS, 4_000, "plain");
    let archive = Archive::open(&anchor).unwrap();
    let read = archive.read(&Reading::default()).unwrap();
    let times = jittered(&read.trace, 3, 3_000, 14);
    let written =
        archive.write_corrected(&read.trace, &read.origin, &times, &folder.0.join("to"), Writing::default()).unwrap();
    assert!(written.knots.iter().any(|&knots| knots > 256 * 1024 / 27), "{:?}", written.knots);
    let shown = shown(&written.anchor);
    for (index, location) in archive.locations().iter().enumerate() {
        let found = shown[&location.id].iter().filter(in_trace);
        let expected = &times[read.origin.locations[index].index()];
        assert!(found.zip(expected).all(|(found, expected)| (found.0 - expected.as_nanos()).abs() <= 1));
    }
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let folder = Folder::new();
    let archive = Archive::open(&folder.archive(NANOS, 2, "plain")).unwrap();
    let read = archive.read(&Reading::default()).unwrap();
    let mut times: Vec<Vec<_>> = read.trace.locations().iter().map(|location| location.times().to_vec()).collect();
    let to = folder.0.join("to");
    fs::create_dir(&to).unwrap();
    assert!(
        archive
            .write_corrected(&read.trace, &read.origin, &times, &to, Writing::default())
            .unwrap_err()
            .to_string()
            .ends_with("/to: this is there already")
    );
    fs::remove_dir(&to).unwrap();
    times[0].pop();
    let error =
        archive.write_corrected(&read.trace, &read.origin, &times, &to, Writing::default()).unwrap_err().to_string();
    assert!(error.contains("the corrected times are not those of this archive"), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn what_is_wrong_is_one_line_with_a_name() {
    let folder = Folder::new();
    for (variant, expected) in [
        ("repeated", "/traces/11.def: "),
        ("unended", "/traces/20.evt: collective operations that never end: 1"),
        ("unbegun", "/traces/20.evt: event 6: a collective operation ends that has not begun"),
        ("stranger", "/traces/7.evt: event 3: there is no rank 9 in communicator 0"),
        ("unmatched", "/traces.otf2: event "),
    ] {
        let line = error(&folder.archive(NANOS, 1, variant));
        assert!(line.contains(expected), "{variant}: {line}");
    }
    let unmatched = Archive::open(&folder.0.join("unmatched/traces.otf2")).unwrap();
    let lenient = Reading { matching: Matching { lenient: true, ..Matching::default() }, ..Reading::default() };
    assert_eq!(unmatched.read(&lenient).unwrap().trace.left_out().sends, 1);

    let anchor = folder.archive(NANOS, 2, "plain");
    for (file, expected) in [("20.evt", "/traces/20.evt: No such file"), ("3.def", "/traces/3.def: No such file")] {
        let path = anchor.with_extension("").join(file);
        let content = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let line = error(&anchor);
        assert!(line.contains(expected), "{line}");
        fs::write(&path, content).unwrap();
    }
    assert!(error(&folder.0.join("none.otf2")).contains("/none.otf2: No such file"));
    assert!(error(&folder.0).contains("this is no name of an OTF2 anchor file"));
    fs::write(folder.0.join("text.otf2"), "some text").unwrap();
    assert!(error(&folder.0.join("text.otf2")).contains("/text.otf2: "));
}

#[test]
fn files_that_are_cut_short_are_errors() {
    let folder = Folder::new();
    let anchor = folder.archive(NANOS, 1, "corrected");
    for (path, content) in files(anchor.parent().unwrap()) {
        // OTF2 does not look at the last bytes of an anchor file.
        for length in (0..content.len() - 2).step_by(7) {
            fs::write(&path, &content[..length]).unwrap();

            error(&anchor);
        }
        fs::write(&path, &content).unwrap();
    }
    Archive::open(&anchor).unwrap();
}
