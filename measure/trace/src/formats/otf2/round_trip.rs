//! Tests that a trace is read from an archive as it was.

use std::fs;
use std::path::Path;

use downbeat_clock_core::Timestamp;
use downbeat_files::FileError;
use downbeat_files::testing::TemporaryFolder;
use proptest::prelude::*;

use super::{Archive, Otf2Error, ReadOptions, changed_files, create};
use crate::formats::tests::{Random, TEXT, random};
use crate::formats::{Item, MergedItems, TraceFile, TraceReader, TraceWriter};
use crate::generate::SyntheticProgram;
use crate::presync::PreSynchronization;
use crate::{ControlledLogicalClock, Event, Latencies, Matching, Quantity, Trace};

/// Failure of a round trip.
#[derive(Debug)]
#[expect(dead_code, reason = "it is shown")]
enum Failed {
    Archive(Otf2Error),
    File(FileError),
}

impl From<Otf2Error> for Failed {
    fn from(why: Otf2Error) -> Self {
        Self::Archive(why)
    }
}

impl From<FileError> for Failed {
    fn from(why: FileError) -> Self {
        Self::File(why)
    }
}

fn folder() -> TemporaryFolder {
    let folder = TemporaryFolder::new();
    fs::create_dir_all(&folder.0).unwrap();
    folder
}

/// Returns the items of a trace in the order of time.
fn merged(text: &str, folder: &TemporaryFolder) -> MergedItems {
    let mut merged = MergedItems::new(&folder.file("merged")).unwrap();
    let mut reader = TraceReader::new(Path::new("in"), text.as_bytes()).unwrap();
    while let Some(item) = reader.next_item().unwrap() {
        merged.add_item(&item).unwrap();
    }
    merged.finish().unwrap();
    merged
}

/// Returns a trace as text.
fn text_of(items: &MergedItems, folder: &TemporaryFolder) -> Result<String, Failed> {
    let path = folder.file("out.dbt");
    let mut writer = TraceWriter::create(&path)?;
    items.for_each_item::<Failed>(|item| Ok(writer.write(item)?))?;
    writer.finish()?;
    Ok(fs::read_to_string(path).unwrap())
}

/// Writes an archive of a trace, and returns the trace as it was and as it is read.
fn round_trip(text: &str, folder: &TemporaryFolder) -> Result<[String; 2], Failed> {
    let items = merged(text, folder);
    let archive = folder.file("archive");
    create(&items, &archive)?;
    let archive = Archive::open(&archive.join("traces.otf2"))?;
    let mut read = MergedItems::new(&folder.file("read"))?;
    archive.for_each_item::<Failed>(&ReadOptions::default(), |item| Ok(read.add_item(item)?))?;
    read.finish()?;
    Ok([text_of(&items, folder)?, text_of(&read, folder)?])
}

#[test]
fn a_trace_with_everything_is_read_as_it_was() {
    let folder = folder();
    let [before, after] = round_trip(TEXT, &folder).unwrap();
    assert_eq!(after, before);
    // The order of time is the only difference from the golden file.
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("crc32"));
        lines.sort();
        lines
    };
    assert_eq!(sorted(&after), sorted(TEXT));
}

/// Events that OTF2 has no record for, or whose records it pairs in another way.
#[test]
fn events_that_are_none_of_otf2_are_read_as_they_were() {
    let definitions = "location 0 4 9 rank 5\nthread 1 0 worker\nlocation 2 4 9 rank 51\nlocation 3 0 0 rank 7, main\n\
                       thread 4 3 rank 7 thread 1\ncommunicator 0 2\ncommunicator 1 0 2\ncommunicator 2\n\
                       communicator 3 1 0\nregion 0 MPI_Init\nregion 1 MPI_Finalize\nmaster 2\n\
                       sample 0 0 -5000 -4000\nsample 0 0 -4000 -3001\n";
    let events = "0 -90 enter 0\n0 -80 leave 0\n0 -70 send 3 0 5 0\n0 -70 send 2 1 5\n0 -70 send 2 1 5 0\n\
                  0 -60 collective 0\n0 -60 collective 1\n0 -60 collective-end 0 barrier 0 both\n\
                  0 -60 collective-end 1 barrier 3 both 7\n0 -60 collective 1\n0 -50 collective-start 1 9\n\
                  0 -50 collective-start 0 9\n0 -40 collective-complete 1 bcast 1 none 9\n\
                  0 -30 access-complete 2 9\n0 -30 put 2 1 3\n0 -30 get 3 1 3 0\n0 -30 collective 1\n\
                  0 -20 collective-end 1 barrier 0 both\n0 -20 collective 1\n0 -20 collective-end 1 gather 1 sent 5\n\
                  0 -10 wait 18446744073709551615\n0 -10 signal 18446744073709551615\n0 -10 wait 0\n\
                  0 0 fork 3\n0 0 note a\n0 5 join 3\n0 6 join 3\n0 7 fork 3\n0 8 thread-begin 3\n0 9 thread-end 2\n\
                  2 0 collective-end 1 allreduce 0 sent\n2 0 leave 1\n";
    let events = events.replace("bcast", "broadcast");
    let text = format!(
        "# downbeat trace 1 without checksum\n{definitions}{events}end {}\n",
        events.lines().count()
    );
    let folder = folder();
    let [before, after] = round_trip(&text, &folder).unwrap();
    assert_eq!(after, before);
    assert!(after.contains(definitions), "{after}");
}

/// Writes the trace of a program with its clock samples, as text.
fn text_of_program(program: &SyntheticProgram, folder: &TemporaryFolder) -> String {
    let mut merged = MergedItems::new(&folder.file("program")).unwrap();
    for (location, place) in (0..).zip(program.places()) {
        let (rank, name) = (
            place.process,
            &*format!("rank {}, thread {location}", place.process),
        );
        let item = match location == rank {
            true => Item::Location { place, name },
            false => Item::Thread { rank, name },
        };
        merged.add_item(&item).unwrap();
    }
    for members in program.communicators() {
        let members: Vec<u32> = members.iter().map(|member| member.index() as u32).collect();
        merged
            .add_item(&Item::Communicator { members: &members })
            .unwrap();
    }
    for (location, sessions) in (0..).zip(program.sessions().unwrap()) {
        for (session, samples) in (0..).zip(sessions) {
            for sample in samples {
                let (local, master) = (sample.at, sample.image);
                let sample = Item::Sample {
                    location,
                    session,
                    local,
                    master,
                };
                merged.add_item(&sample).unwrap();
            }
        }
    }
    let run = program.run(|event| {
        let item = Item::Event {
            location: event.location.index() as u32,
            time: Timestamp::from_nanos(event.local.as_nanos()),
            event: event.event,
        };
        merged.add_item(&item).unwrap();
        Ok::<_, downbeat_sync::ClusterError>(())
    });
    run.unwrap();
    merged.finish().unwrap();
    text_of(&merged, folder).unwrap()
}

fn corrected(
    mut trace: Trace,
    sessions: &[Vec<Vec<crate::presync::ClockSample>>],
) -> Vec<Vec<i64>> {
    let master = trace.ids().next().unwrap();
    let maps = PreSynchronization::new(master)
        .maps(&trace.clocks(), sessions)
        .unwrap();
    maps.correct(&mut trace).unwrap();
    let latencies = [500, 500, 500].map(downbeat_clock_core::Duration::from_nanos);
    let latencies = Latencies::new(latencies[0], latencies[1], latencies[2]).unwrap();
    let corrected = ControlledLogicalClock::new(latencies)
        .correct(&trace)
        .unwrap();
    let nanos =
        |times: &crate::Array<Timestamp<_>>| times.iter().map(|time| time.as_nanos()).collect();
    corrected.into_times().iter().map(nanos).collect()
}

#[test]
fn an_archive_is_corrected_as_the_trace_that_it_was_made_of() {
    for (seed, asynchronous) in [(1, false), (2, true), (3, false)] {
        let program = SyntheticProgram {
            processes: 2,
            threads: if asynchronous { 2 } else { 1 },
            collective_every: 5,
            asynchronous,
            sessions: 1 + seed as u32,
            seed,
            ..SyntheticProgram::new(3, 0)
        };
        let folder = folder();
        let text = text_of_program(&program.with_events(1_000), &folder);
        assert!(text.contains("\nsample 5 0 "), "{text}");
        let [before, after] = round_trip(&text, &folder).unwrap();
        assert!(after == before, "seed {seed}");
        fs::write(folder.file("a.dbt"), text).unwrap();
        let (_, file) = read_text(&folder);
        let archive = Archive::open(&folder.file("archive/traces.otf2")).unwrap();
        for offsets in [true, false] {
            let reading = ReadOptions {
                offsets,
                ..ReadOptions::default()
            };
            let read = archive.read(&reading).unwrap();
            let sessions = archive.sessions(&read.origin);
            assert_eq!(sessions, file.sessions);
            let (trace, file) = read_text(&folder);
            assert!(corrected(read.trace, &sessions) == corrected(trace, &file.sessions));
        }
    }
}

/// Reads the trace in `a.dbt`.
fn read_text(folder: &TemporaryFolder) -> (Trace, TraceFile) {
    TraceFile::read(&folder.file("a.dbt"), Matching::default()).unwrap()
}

/// Signals whose ids are used again belong to the same waits, although an archive has the
/// events of one thread after those of another.
#[test]
fn signals_and_teams_of_an_archive_are_those_of_the_trace() {
    let program = SyntheticProgram {
        threads: 2,
        fork_every: 5,
        asynchronous: true,
        seed: 7,
        ..SyntheticProgram::new(3, 0)
    };
    let folder = folder();
    let text = text_of_program(&program.with_events(2_000), &folder);
    let id = |line: &str| line.split_once(" signal ").map(|(_, id)| id.to_owned());
    let mut ids: Vec<String> = text.lines().filter_map(id).collect();
    let signals = ids.len();
    ids.sort();
    ids.dedup();
    assert!(signals > 3 * ids.len(), "{signals} {ids:?}");
    let [before, after] = round_trip(&text, &folder).unwrap();
    assert!(after == before);
    fs::write(folder.file("a.dbt"), before).unwrap();
    let (trace, _) = read_text(&folder);
    let archive = Archive::open(&folder.file("archive/traces.otf2")).unwrap();
    let read = archive.read(&ReadOptions::default()).unwrap();
    let times = |trace: &Trace| {
        let times = trace.messages().map(|message| {
            [message.send, message.receive].map(|event| (event.location, trace.time(event)))
        });
        let mut times: Vec<_> = times.collect();
        times.sort();
        times
    };
    assert!(times(&read.trace).len() > signals);
    assert!(times(&read.trace) == times(&trace));
    assert_eq!(
        read.trace.collectives().count(),
        trace.collectives().count()
    );
}

#[test]
fn values_of_metrics_keep_their_types() {
    let folder = folder();
    let mut items = MergedItems::new(&folder.file("merged")).unwrap();
    let place = crate::Place {
        node: 0,
        process: 0,
    };
    items
        .add_item(&Item::Location { place, name: "a" })
        .unwrap();
    for name in ["whole", "real", "both"] {
        items.add_item(&Item::Metric { name, unit: "B" }).unwrap();
    }
    let values = [
        (0, Quantity::Whole(-3)),
        (0, Quantity::Whole(i64::MAX)),
        (1, Quantity::Real(0.1)),
        (2, Quantity::Whole((1 << 53) + 1)),
        (2, Quantity::Real(-7.0)),
    ];
    for (time, (metric, value)) in (-2..).map(Timestamp::from_nanos).zip(values) {
        items
            .add_item(&Item::Event {
                location: 0,
                time,
                event: Event::Metric { metric, value },
            })
            .unwrap();
    }
    items.finish().unwrap();
    create(&items, &folder.file("archive")).unwrap();
    let archive = Archive::open(&folder.file("archive/traces.otf2")).unwrap();
    let mut found = vec![];
    let read = archive.for_each_item::<Failed>(&ReadOptions::default(), |item| {
        if let Item::Event {
            time,
            event: Event::Metric { metric, value },
            ..
        } = *item
        {
            found.push((time.as_nanos(), (metric, value)));
        }
        Ok(())
    });
    read.unwrap();
    assert_eq!(found, (-2..).zip(values).collect::<Vec<_>>());
}

proptest! {
    // Files are written to the disk.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_trace_is_read_as_it_was(all in proptest::collection::vec(random(), 0..60)) {
        let folder = folder();
        let text = valid_text(&all, &folder);
        let [before, after] = round_trip(&text, &folder).unwrap();
        prop_assert_eq!(after, before);
    }
}

/// Returns random items as a trace whose times do not decrease, and whose threads have
/// ranks.
fn valid_text(all: &[Random], folder: &TemporaryFolder) -> String {
    const FAR: i64 = 1 << 60;
    let path = folder.file("random.dbt");
    let mut writer = TraceWriter::create(&path).unwrap();
    let (mut counts, mut sessions, mut has_samples) = ([0; 3], 0, false);
    let (mut ranks, mut last) = (vec![], vec![]);
    for random in all {
        let mut members = vec![];
        let mut item = random.item(&mut members, counts, sessions);
        match &mut item {
            Item::Location { .. } => {
                ranks.push(counts[0]);
                counts[0] += 1;
                last.push(-FAR);
            }
            Item::Thread { rank, .. } => {
                *rank = ranks[*rank as usize % ranks.len()];
                counts[0] += 1;
                last.push(-FAR);
            }
            Item::Communicator { .. } => counts[1] += 1,
            Item::Region { .. } => counts[2] += 1,
            Item::Sample {
                session,
                local,
                master,
                ..
            } => {
                if !has_samples {
                    *session = 0;
                }
                (sessions, has_samples) = (*session, true);
                *local = Timestamp::from_nanos(local.as_nanos() % FAR);
                *master = Timestamp::from_nanos(master.as_nanos() % FAR);
            }
            Item::Event { location, time, .. } => {
                let last = &mut last[*location as usize];
                *last = (time.as_nanos() % FAR).max(*last);
                *time = Timestamp::from_nanos(*last);
            }
            _ => {}
        }
        writer.write(&item).unwrap();
    }
    writer.finish().unwrap();
    // Definitions of one kind follow each other; nothing but text without a checksum is
    // sorted.
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("crc32"))
        .collect();
    let kinds = ["location", "thread", "communicator", "region", "sample"];
    let kind = |line: &str| kinds.iter().position(|kind| line.starts_with(kind));
    lines[1..].sort_by_key(|line| kind(line).map_or(kinds.len(), |kind| kind.max(1)));
    lines[0] = "# downbeat trace 1 without checksum";
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Archive of two locations with clock samples, and events that state what they are.
const STATED: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\nmaster 0\n\
                sample 1 0 5 6\nsample 1 0 7 9\n0 5 fork 0\n0 5 signal 7\n0 6 join 0\nend 3\n";

#[test]
fn damaged_statements_are_errors() {
    let folder = folder();
    round_trip(STATED, &folder).unwrap();
    let anchor = folder.file("archive/traces.otf2");
    let definitions = anchor.with_extension("def");
    let failure = |path: &Path, from: &str, to: &str| {
        let before = fs::read(path).unwrap();
        let at = before
            .windows(from.len())
            .position(|bytes| bytes == from.as_bytes())
            .unwrap();
        let mut damaged = before.clone();
        damaged[at..at + to.len()].copy_from_slice(to.as_bytes());
        fs::write(path, damaged).unwrap();
        let archive = Archive::open(&anchor);
        let read = archive.and_then(|archive| {
            archive.for_each_item::<Otf2Error>(&ReadOptions::default(), |_| Ok(()))
        });
        fs::write(path, before).unwrap();
        read.map(drop).unwrap_err().to_string()
    };
    for (path, [from, to], expected) in [
        (
            &anchor,
            ["EVENTS\x001", "EVENTS\x002"],
            "traces.otf2: property DOWNBEAT::EVENTS: \"2\" is not known here",
        ),
        (
            &anchor,
            ["MASTER\x000", "MASTER\x00-"],
            "traces.otf2: property DOWNBEAT::MASTER: \"-\" is not known here",
        ),
        (
            &anchor,
            ["MASTER\x000", "MASTER\x002"],
            "traces.otf2: property DOWNBEAT::MASTER: \"2\" is not known here",
        ),
        (
            &definitions,
            ["0 5 1;", "0 5 x;"],
            "traces.def: property DOWNBEAT::SAMPLES_0 of location 1: \"0 5 x\" is not a clock sample",
        ),
        (
            &definitions,
            ["SAMPLES_0", "SAMPLES_1"],
            "traces.def: property DOWNBEAT::SAMPLES_0 of location 1: it is missing, or there are two",
        ),
        (
            &definitions,
            ["SAMPLES_0", "SAMPLES_x"],
            "traces.def: property DOWNBEAT::SAMPLES_x of location 1: it has no number",
        ),
        (
            &definitions,
            ["fork 0", "fork 7"],
            "0.evt: event 0: it refers to a location or communicator that is not defined",
        ),
        (
            &definitions,
            ["fork 0", "spoon0"],
            "\"spoon0\" is not the kind of an event",
        ),
        (&definitions, ["fork 0", "leave "], "0.evt: event 0: "),
    ] {
        let found = failure(path, from, to);
        assert!(
            found.ends_with(expected) || found.contains(expected),
            "{found}"
        );
        assert_eq!(found.lines().count(), 1);
    }
}

/// Damaged archives are errors, or other archives; none ends the program.
#[test]
fn damaged_archives_are_read_without_a_panic() {
    let folder = folder();
    round_trip(STATED, &folder).unwrap();
    let anchor = folder.file("archive/traces.otf2");
    let files = ["def", "otf2", "/0.def", "/0.evt", "/1.def", "/1.evt"].map(|end| {
        let path = match end.strip_prefix('/') {
            Some(name) => anchor.with_extension("").join(name),
            None => anchor.with_extension(end),
        };
        (fs::read(&path).unwrap(), path)
    });
    let mut rng = fastrand::Rng::with_seed(5);
    let mut refused = 0;
    for _ in 0..600 {
        let (whole, path) = &files[rng.usize(..files.len())];
        let mut damaged = whole.clone();
        let at = rng.usize(..damaged.len());
        match rng.u8(..4) {
            0 => damaged.truncate(at),
            1 => damaged[at] = rng.u8(..),
            _ => damaged[at] ^= 1 << rng.u8(..8),
        }
        fs::write(path, damaged).unwrap();
        let read = Archive::open(&anchor).and_then(|archive| {
            archive.for_each_item::<Otf2Error>(&ReadOptions::default(), |_| Ok(()))?;
            let read = archive.read(&ReadOptions::default())?;
            let sessions = archive.sessions(&read.origin);
            assert!(sessions.len() == read.trace.locations().len());
            Ok(())
        });
        refused += usize::from(read.is_err());
        fs::write(path, whole).unwrap();
    }
    assert!(refused > 150, "{refused}");
}

/// Returns what a user of an archive is told: an error, or the files that are not as they were.
fn examined(anchor: &Path) -> Result<Vec<String>, String> {
    let archive = Archive::open(anchor).map_err(|why| why.to_string())?;
    let read = archive.for_each_item::<Otf2Error>(&ReadOptions::default(), |_| Ok(()));
    read.map_err(|why| why.to_string())?;
    let changed = changed_files(archive.anchor()).map_err(|why| why.to_string())?;
    let names = changed.iter().filter_map(|path| path.file_name());
    Ok(names.map(|name| name.display().to_string()).collect())
}

#[test]
fn damage_is_found_in_every_file() {
    let folder = folder();
    let archive = folder.file("archive");
    let anchor = create(&merged(TEXT, &folder), &archive).unwrap().anchor;
    let whole = examined(&anchor);
    assert_eq!(whole, Ok(vec![]));
    let mut random = fastrand::Rng::with_seed(3);
    for name in downbeat_otf2::files::all(&anchor).unwrap() {
        let path = archive.join(&name);
        let bytes = fs::read(&path).unwrap();
        for case in 0..60 {
            let mut damaged = bytes.clone();
            match case {
                0 => damaged.push(0),
                1 => damaged.truncate(bytes.len() - 1),
                _ => damaged[random.usize(..bytes.len())] ^= 1 << random.u8(..8),
            }
            fs::write(&path, &damaged).unwrap();
            assert_ne!(examined(&anchor), whole, "{}, case {case}", name.display());
        }
        fs::remove_file(&path).unwrap();
        assert_ne!(examined(&anchor), whole, "{} is gone", name.display());
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(examined(&anchor), whole);
}

#[test]
fn a_corrected_copy_states_checksums_of_its_own() {
    let folder = folder();
    let anchor = create(&merged(TEXT, &folder), &folder.file("archive"));
    let archive = Archive::open(&anchor.unwrap().anchor).unwrap();
    let copy = archive.begin_copy(&folder.file("copy")).unwrap();
    fs::write(copy.part().join("traces/0.evt"), b"other").unwrap();
    fs::write(copy.part().join("traces/0.def"), b"other").unwrap();
    let anchor = copy.finish(archive.file_name()).unwrap();
    let text = String::from_utf8_lossy(&fs::read(&anchor).unwrap()).into_owned();
    assert_eq!(text.matches("DOWNBEAT::CRC32\0").count(), 1);
    let sum = format!("{:08x} /0.evt", downbeat_files::Crc32::of_bytes(b"other"));
    assert!(text.contains(&sum), "{text}");
}
