//! Tests of the conversion of archives to trace files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use downbeat_trace::formats::otf2::{Archive, Otf2Error, ReadOptions};
use downbeat_trace::formats::{Item, TraceFile, TraceWriter};
use downbeat_trace::{CollectiveKind, EventId, Matching, Trace};

use super::support::{ArchiveFolder, NANOS, shown};

/// Converts an archive to a text file; also returns the numbers of events that were left
/// out.
fn converted(
    anchor: &Path,
    reading: &ReadOptions,
) -> ((Trace, TraceFile), String, BTreeMap<String, u64>) {
    let to = anchor.with_extension("dbt");
    let mut writer = TraceWriter::create(&to).unwrap();
    let archive = Archive::open(anchor).unwrap();
    let left_out = archive.for_each_item::<Otf2Error>(reading, |item| {
        writer.write(item).unwrap();
        Ok(())
    });
    writer.finish().unwrap();
    let text = fs::read_to_string(&to).unwrap();
    (
        TraceFile::read(&to, Matching::default()).unwrap(),
        text,
        left_out.unwrap().0,
    )
}

/// Messages and collective operations by locations and times, regardless of other events in
/// between.
type MatchedEvents = (
    Vec<[(usize, i64); 2]>,
    Vec<(CollectiveKind, u32, Vec<(usize, i64, i64)>)>,
);

fn matched(trace: &Trace) -> MatchedEvents {
    let when = |event: EventId| {
        (
            event.location.index(),
            trace.time(event).unwrap().as_nanos(),
        )
    };
    let mut messages: Vec<_> = trace
        .messages()
        .map(|message| [message.send, message.receive].map(when))
        .collect();
    messages.sort_unstable();
    let mut collectives: Vec<_> = trace
        .collectives()
        .map(|found| {
            let time = |location, event: Option<u32>| {
                event.map_or(-1, |event| when(EventId { location, event }).1)
            };
            let member = |member: downbeat_trace::Member| {
                let location = member.location;
                (
                    location.index(),
                    time(location, member.enter),
                    time(location, member.exit),
                )
            };
            (
                found.kind(),
                found.root(),
                found.members().map(member).collect::<Vec<_>>(),
            )
        })
        .collect();
    collectives.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
    (messages, collectives)
}

#[test]
fn an_archive_and_its_conversion_are_one_trace() {
    let folder = ArchiveFolder::new();
    for (ticks, variant) in [
        (NANOS, "plain"),
        (NANOS, "corrected"),
        (3 * NANOS, "shared"),
    ] {
        let anchor = folder.archive(ticks, 30, variant);
        for offsets in [true, false] {
            let reading = ReadOptions {
                offsets,
                ..ReadOptions::default()
            };
            let read = Archive::open(&anchor).unwrap().read(&reading).unwrap();
            let ((of_file, file), _, _) = converted(&anchor, &reading);
            assert_eq!(matched(&of_file), matched(&read.trace), "{variant}");
            assert!(matched(&of_file).0.len() >= 30);
            let sessions = Archive::open(&anchor).unwrap().sessions(&read.origin);
            let has_some = variant == "corrected" && !offsets;
            assert_eq!(
                file.sessions == sessions,
                has_some || sessions.iter().all(Vec::is_empty),
                "{variant}"
            );
            assert_eq!(
                file.sessions.iter().flatten().count() > 0,
                has_some,
                "{variant}"
            );
        }
        fs::remove_dir_all(anchor.parent().unwrap()).unwrap();
    }
}

/// Converts an event of `otf2-print` to a line of a text file; `None` for kinds that no trace has.
fn expected_line((time, what, rest): &(i64, String, String)) -> Option<String> {
    let region = || rest.split('"').nth(1).unwrap().to_owned();
    let word = match &what[..] {
        "ENTER" => format!("enter {}", region()),
        "LEAVE" => format!("leave {}", region()),
        "MPI_SEND" => "send".to_owned(),
        "MPI_ISEND" => "send-start".to_owned(),
        "MPI_RECV" => "receive".to_owned(),
        "MPI_IRECV" => "receive-complete".to_owned(),
        "MPI_ISEND_COMPLETE" => "send-complete".to_owned(),
        "MPI_IRECV_REQUEST" => "receive-post".to_owned(),
        "THREAD_FORK" => "fork".to_owned(),
        "THREAD_JOIN" => "join".to_owned(),
        "THREAD_TEAM_BEGIN" => "thread-begin".to_owned(),
        "THREAD_TEAM_END" => "thread-end".to_owned(),
        _ => return None,
    };
    Some(format!("{time} {word}"))
}

#[test]
fn every_event_is_what_otf2_shows() {
    let folder = ArchiveFolder::new();
    let anchor = folder.archive(NANOS, 20, "corrected");
    let (_, text, left_out) = converted(&anchor, &ReadOptions::default());
    let names: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("region "))
        .map(|line| line.splitn(3, ' ').nth(2).unwrap().replace(' ', ""))
        .collect();
    let archive = Archive::open(&anchor).unwrap();
    let shown = shown(&anchor);
    let (mut compared, mut other) = (0, 0);
    for (location, line) in text
        .lines()
        .filter(|line| line.contains("location ") || line.starts_with("thread "))
        .enumerate()
    {
        // Names are those of the archive, whose locations are in another order.
        let name = line
            .splitn(if line.starts_with("thread") { 4 } else { 5 }, ' ')
            .last()
            .unwrap();
        let id = archive
            .locations()
            .iter()
            .find(|found| found.name == name)
            .unwrap()
            .id;
        let of_location = text
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("{location} ")));
        let words = of_location
            .filter(|line| !line.contains(" collective"))
            .map(|line| {
                let mut fields = line.splitn(3, ' ');
                let (time, word, rest) = (
                    fields.next().unwrap(),
                    fields.next().unwrap(),
                    fields.next().unwrap(),
                );
                match word {
                    "enter" | "leave" => {
                        format!("{time} {word} {}", names[rest.parse::<usize>().unwrap()])
                    }
                    "note" => format!("{time} note {}", rest.replace(' ', "")),
                    _ => format!("{time} {word}"),
                }
            });
        let expected: Vec<String> = shown[&id].iter().filter_map(expected_line).collect();
        assert_eq!(words.collect::<Vec<_>>(), expected, "{name}");
        compared += expected.len();
        other += shown[&id]
            .iter()
            .filter(|event| event.1.starts_with("PARAMETER"))
            .count();
    }
    assert!(compared > 200 && other > 0);
    let kinds = ["ParameterString", "ParameterInt", "ParameterUnsignedInt"];
    let parameters = kinds.map(|kind| left_out.get(kind).copied().unwrap_or(0));
    assert_eq!(parameters.iter().sum::<u64>(), other as u64);
    // Definitions are named, too.
    assert!(left_out["Parameter"] > 0, "{left_out:?}");
}

#[test]
fn errors_of_the_receiver_end_the_conversion() {
    let folder = ArchiveFolder::new();
    let archive = Archive::open(&folder.archive(NANOS, 1, "unended")).unwrap();
    let mut taken = 0;
    let enough = |item: &Item<'_>| {
        taken += 1;
        let is_event = matches!(item, Item::Event { .. });
        if is_event {
            Err(Otf2Error::Io {
                path: "enough".into(),
                why: std::io::ErrorKind::Other.into(),
            })
        } else {
            Ok(())
        }
    };
    let why = archive
        .for_each_item(&ReadOptions::default(), enough)
        .unwrap_err()
        .to_string();
    assert!(why.starts_with("enough: ") && taken > 5, "{why}");
    // Incomplete operations are passed on unchanged.
    archive
        .for_each_item::<Otf2Error>(&ReadOptions::default(), |_| Ok(()))
        .unwrap();
}
