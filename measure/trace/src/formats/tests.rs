//! Tests of trace files.

use std::fs;
use std::path::Path;

use crate::{
    AccessKind, CollectiveKind, ControlledLogicalClock, Event, Latencies, Location, Matching,
    Place, TraceBuilder,
};
use downbeat_clock_core::{Duration, Global, Timestamp};
use proptest::prelude::*;

use super::*;
use downbeat_files::testing::{TemporaryFolder, is_noticed};
use downbeat_files::{Checksums, FileError};

pub(super) const TEXT: &str = include_str!("golden/all-1.dbt");
/// Trace that was written by hand, without a checksum.
pub(super) const UNSEALED: &str = include_str!("golden/by-hand.dbt");

/// Reads a trace, and writes it to a file.
fn copied(bytes: &[u8]) -> Result<Vec<u8>, FileError> {
    let folder = TemporaryFolder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.file("out");
    let mut reader = TraceReader::new(Path::new("in"), bytes)?;
    let mut writer = TraceWriter::create(&path)?;
    while let Some(item) = reader.next_item()? {
        writer.write(&item)?;
    }
    writer.finish()?;
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    Ok(fs::read(&path).unwrap())
}

#[test]
fn the_format_is_unchanged() {
    assert_eq!(copied(TEXT.as_bytes()).unwrap(), TEXT.as_bytes());
}

#[test]
fn a_file_is_read_as_a_trace() {
    let (_folder, path) = TemporaryFolder::with_file("a.dbt", TEXT.as_bytes());
    let (trace, file) = TraceFile::read(&path, Matching::default()).unwrap();
    assert_eq!((trace.events(), file.master), (52, 0));
    assert_eq!(file.names, ["rank 0", "rank 1, größer", "rank 1, thread 1"]);
    let places: Vec<Place> = trace.locations().iter().map(Location::place).collect();
    let [one, two] = [(0, 0), (1, 7)].map(|(node, process)| Place { node, process });
    assert_eq!(places, [one, two, two]);
    assert_eq!(
        (trace.messages().count(), trace.collectives().count()),
        (6, 6)
    );
    assert_eq!(
        file.sessions
            .iter()
            .map(|of| of.iter().map(Vec::len).collect())
            .collect::<Vec<Vec<_>>>(),
        [vec![], vec![2, 1], vec![]]
    );
    assert_eq!(file.sessions[1][0][1].image, Timestamp::from_nanos(421));
}

/// Replaces all times of a text trace by a placeholder; leaves out its version and its checksum.
fn without_times(text: &str) -> Vec<String> {
    let without = |line: &str| {
        let mut fields: Vec<&str> = line.split(' ').collect();
        match fields[0] {
            "#" => fields.truncate(3),
            "crc32" => fields.truncate(1),
            "sample" => fields[3] = "T",
            number if number.starts_with(|c: char| c.is_ascii_digit()) => fields[1] = "T",
            _ => {}
        }
        fields.join(" ")
    };
    text.split_inclusive('\n').map(without).collect()
}

fn corrected(bytes: &[u8]) -> Vec<u8> {
    let (folder, path) = TemporaryFolder::with_file("a", bytes);
    let (trace, file) = TraceFile::read(&path, Matching::default()).unwrap();
    let micro = Duration::from_micros(1);
    let clock = ControlledLogicalClock::new(Latencies::new(micro, micro, micro).unwrap());
    let mut sessions = file.sessions.clone();
    sessions
        .iter_mut()
        .flatten()
        .flatten()
        .for_each(|sample| sample.at = sample.at + micro);
    let times = clock.correct(&trace).unwrap().into_times();
    let out = folder.file("out");
    file.write_corrected(&out, &times, &sessions).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    fs::read(&out).unwrap()
}

#[test]
fn a_correction_changes_nothing_but_times() {
    // Line ends of both kinds are preserved, also those of the first and the last line.
    for every in [1, 2, 3, 100] {
        let ends = |(i, line): (usize, &str)| {
            format!("{line}{}", if i % every == 0 { "\r\n" } else { "\n" })
        };
        let text: String = UNSEALED.lines().enumerate().map(ends).collect();
        let found = String::from_utf8(corrected(text.as_bytes())).unwrap();
        let expected = format!("{text}crc32");
        assert_eq!(without_times(&found), without_times(&expected));
        assert_eq!(found.ends_with("\r\n"), text.ends_with("\r\n"));
        assert!(found.contains("\n1 2010 receive 0 0 -42"), "{found}");
        assert!(found.contains("sample 1 0 500 400"), "{found}");
    }
}

#[test]
fn a_file_that_changes_during_correction_is_an_error() {
    let (folder, path) = TemporaryFolder::with_file("a.dbt", TEXT.as_bytes());
    let (trace, file) = TraceFile::read(&path, Matching::default()).unwrap();
    let mut times: Vec<Vec<Timestamp<Global>>> = trace
        .locations()
        .iter()
        .map(|l| l.times().to_vec())
        .collect();
    let out = folder.file("out");
    for longer in [true, false] {
        let time = Timestamp::from_nanos(1 << 62);
        if longer {
            times[2].push(time);
        } else {
            times[2].clear();
        }
        let why = file
            .write_corrected(&out, &times, &file.sessions)
            .unwrap_err()
            .to_string();
        assert_eq!(
            why,
            format!(
                "{}: it is no longer what it was when it was read first",
                path.display()
            )
        );
        assert_eq!(
            fs::read_dir(&folder.0).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }
}

fn read(
    path: &Path,
    bytes: &[u8],
    checksums: Checksums,
) -> Result<(crate::Trace, TraceFile), FileError> {
    fs::write(path, bytes).unwrap();
    TraceFile::read_with_builder(path, TraceBuilder::new(Matching::default()), checksums, 1)
}

#[test]
fn every_change_of_a_trace_is_noticed() {
    let (_folder, path) = TemporaryFolder::with_file("a", b"");
    is_noticed(TEXT.as_bytes(), |damaged| {
        read(&path, damaged, Checksums::Verify).is_err()
    });
}

#[test]
fn edited_traces_are_read_on_request() {
    let (_folder, path) = TemporaryFolder::with_file("a", b"");
    let edited = TEXT.replace("sample 1 0 -500 400", "sample 1 0 -600 400");
    let why = read(&path, edited.as_bytes(), Checksums::Verify).unwrap_err();
    assert!(
        why.to_string().ends_with(
            "line 66: its checksum is wrong: the file was damaged or edited after it was written"
        ),
        "{why}"
    );
    let without_checksum = edited
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("crc32"));
    let without_checksum: String = without_checksum.collect();
    for text in [
        edited.clone(),
        edited.replace('\n', "\r\n"),
        without_checksum.clone(),
    ] {
        let file = read(&path, text.as_bytes(), Checksums::Ignore).unwrap();
        assert_eq!(file.1.sessions[1][0][0].at, Timestamp::from_nanos(-600));
    }
    let why = read(&path, without_checksum.as_bytes(), Checksums::Verify).unwrap_err();
    assert!(
        why.to_string().ends_with(
            "line 66: the checksum is missing; a trace that is written by hand begins with \
             \"# downbeat trace 1 without checksum\""
        ),
        "{why}"
    );
    let why = read(
        &path,
        format!("{without_checksum}end 2\n").as_bytes(),
        Checksums::Ignore,
    );
    assert!(
        why.unwrap_err()
            .to_string()
            .ends_with("line 66: the checksum of the trace is missing")
    );
}

/// Random item; its numbers are taken modulo the number of valid values.
#[derive(Clone, Debug)]
pub(super) struct Random {
    kind: u8,
    numbers: [u32; 3],
    times: [i64; 2],
    name: String,
    tag: i32,
}

pub(super) fn random() -> impl Strategy<Value = Random> {
    let time = prop_oneof![any::<i64>(), -1_000_i64..1_000];
    (
        0_u8..34,
        any::<[u32; 3]>(),
        [time.clone(), time],
        "[ -~äß]{1,12}",
        any::<i32>(),
    )
        .prop_map(|(kind, numbers, times, name, tag)| Random {
            kind,
            numbers,
            times,
            name,
            tag,
        })
}

impl Random {
    pub(super) fn item<'a>(
        &'a self,
        members: &'a mut Vec<u32>,
        counts: [u32; 3],
        sessions: u32,
    ) -> Item<'a> {
        let [locations, communicators, regions] = counts;
        let [a, b, c] = self.numbers;
        let location = a.checked_rem(locations).unwrap_or(0);
        let team = b.checked_rem(communicators).unwrap_or(0);
        let [one, other] = self.times;
        let request = one as u64;
        let bytes = (other % 2 == 0).then_some(other as u64);
        let name = &self.name[..];
        let event = match self.kind {
            _ if locations == 0 => {
                return Item::Location {
                    place: Place {
                        node: a,
                        process: b,
                    },
                    name,
                };
            }
            0 => {
                return Item::Location {
                    place: Place {
                        node: a,
                        process: b,
                    },
                    name,
                };
            }
            1 => {
                return Item::Thread {
                    rank: location,
                    name,
                };
            }
            2 => return Item::Region { name },
            _ if communicators == 0 => {
                members.extend((0..locations).rev().filter(|member| member % 3 != c % 3));
                return Item::Communicator { members };
            }
            3 => return Item::Communicator { members },
            4 => {
                let (local, master) = (Timestamp::from_nanos(one), Timestamp::from_nanos(other));
                return Item::Sample {
                    location: 0,
                    session: sessions + a % 2,
                    local,
                    master,
                };
            }
            5 | 6 if regions > 0 => {
                let region = b % regions;
                if self.kind == 5 {
                    Event::Enter { region }
                } else {
                    Event::Leave { region }
                }
            }
            7 | 31 => Event::Send {
                to: c % locations,
                communicator: team,
                tag: self.tag,
                request: (self.kind == 31).then_some(request),
                bytes,
            },
            32 => Event::CompleteSend { request },
            8 => Event::Receive {
                from: c % locations,
                communicator: team,
                tag: self.tag,
                bytes,
                request: None,
            },
            9 => Event::CollectiveBegin {
                communicator: team,
                request: None,
            },
            10 => Event::Fork { team },
            11 => Event::ThreadBegin { team },
            12 => Event::ThreadEnd { team },
            13 => Event::Join { team },
            14 => Event::PostReceive { request },
            15 => Event::Receive {
                from: c % locations,
                communicator: team,
                tag: self.tag,
                bytes,
                request: Some(request),
            },
            16 => Event::CancelReceive { request },
            17 => Event::CollectiveBegin {
                communicator: team,
                request: Some(request),
            },
            18 => Event::Signal { id: request },
            19 => Event::Wait { id: request },
            27..30 => Event::Access {
                kind: AccessKind::ALL[usize::from(self.kind - 27)],
                target: c % locations,
                communicator: team,
                request,
                bytes,
            },
            30 => Event::AccessComplete {
                communicator: team,
                request,
            },
            20..23 => {
                let [sent, received] = [b & 1 != 0, b & 2 != 0];
                let kind = CollectiveKind::MPI_KINDS[a as usize % 12];
                Event::CollectiveEnd {
                    communicator: team,
                    kind,
                    root: c,
                    sent,
                    received,
                    request: Some(request),
                    bytes,
                }
            }
            23..27 => {
                let [sent, received] = [b & 1 != 0, b & 2 != 0];
                let kind = CollectiveKind::MPI_KINDS[a as usize % 12];
                Event::CollectiveEnd {
                    communicator: team,
                    kind,
                    root: c,
                    sent,
                    received,
                    bytes,
                    request: None,
                }
            }
            _ => Event::Note(name),
        };
        Item::Event {
            location,
            time: Timestamp::from_nanos(one),
            event,
        }
    }
}

proptest! {
    // Files are written to the disk.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_items_are_read_back(all in proptest::collection::vec(random(), 0..60)) {
        let folder = TemporaryFolder::new();
        fs::create_dir_all(&folder.0).unwrap();
            let mut writer = TraceWriter::create(&folder.file("a")).unwrap();
            let (mut counts, mut sessions, mut shown) = ([0; 3], 0, vec![]);
            for random in &all {
                let mut members = vec![];
                let item = random.item(&mut members, counts, sessions);
                match item {
                    Item::Location { .. } | Item::Thread { .. } => counts[0] += 1,
                    Item::Communicator { .. } => counts[1] += 1,
                    Item::Region { .. } => counts[2] += 1,
                    // The first sample of a location can only be in session 0.
                    Item::Sample { session, .. } if shown.iter().any(|item: &String| item.starts_with("Sample")) => {
                        sessions = session;
                    }
                    Item::Sample { session: 1, .. } => continue,
                    _ => {}
                }
                writer.write(&item).unwrap();
                shown.push(format!("{item:?}"));
            }
            writer.finish().unwrap();
            let mut reader = TraceReader::open(&folder.file("a")).unwrap();
            let mut read = vec![];
            while let Some(item) = reader.next_item().unwrap() {
                read.push(format!("{item:?}"));
            }
            prop_assert_eq!(&read, &shown);
            prop_assert!(reader.next_item().unwrap().is_none());
        let written = fs::read(folder.file("a")).unwrap();
        prop_assert_eq!(copied(&written).unwrap(), written);
    }
}
