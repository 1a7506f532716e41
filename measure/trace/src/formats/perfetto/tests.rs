//! Tests of Perfetto files with a separate decoder.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::decoder::{DecodedEvent, Viewed, view};
use super::*;
use crate::formats::tests::TEXT;
use crate::formats::{Item, TraceReader};
use crate::{Event, Place, Quantity};
use downbeat_clock_core::Timestamp;
use downbeat_files::testing::TemporaryFolder;

/// Exports a trace.
fn export(trace: &[u8]) -> Result<(Vec<u8>, PerfettoSummary), String> {
    let folder = TemporaryFolder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.file("out.pftrace");
    let open = || TraceReader::new(Path::new("in"), trace).unwrap();
    let (mut survey, mut reader) = (PerfettoSurvey::default(), open());
    while let Some(item) = reader.next_item().map_err(|why| why.to_string())? {
        survey.add_item(&item);
    }
    let mut writer = PerfettoWriter::create(&path, survey).map_err(|why| why.to_string())?;
    let mut reader = open();
    while let Some(item) = reader.next_item().unwrap() {
        writer.write(&item).unwrap();
    }
    assert!(!path.exists(), "it appears when it is complete");
    let summary = writer.finish().unwrap();
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    Ok((fs::read(&path).unwrap(), summary))
}

const HEAD: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\nthread 2 1 c\ncommunicator 0 0 1\n\
                    communicator 1 1 2\nregion 0 f\nregion 1 g\n";

/// Exports and decodes these events, with the locations of `HEAD`.
fn viewed(events: &str) -> (Viewed, PerfettoSummary) {
    let text = format!(
        "{HEAD}{events}end {}\n",
        events
            .lines()
            .filter(|line| !line.starts_with("region"))
            .count()
    );
    let (file, summary) = export(text.as_bytes()).unwrap();
    (view(&file), summary)
}

/// Formats each slice or instant as one line.
fn lines(viewed: &Viewed) -> Vec<String> {
    let line = |shown: &DecodedEvent| {
        let till = match shown.end {
            _ if shown.is_instant => String::new(),
            Some(end) => format!("-{end}"),
            None => "-".to_owned(),
        };
        let annotations: String = shown
            .annotations
            .iter()
            .map(|text| format!(" {text}"))
            .collect();
        format!(
            "{} {}{till} {}{}{annotations}",
            shown.thread,
            shown.begin,
            "  ".repeat(shown.depth),
            shown.name
        )
    };
    viewed.shown.iter().map(line).collect()
}

#[test]
fn all_items_are_shown() {
    let (file, summary) = export(TEXT.as_bytes()).unwrap();
    let viewed = view(&file);
    assert_eq!(viewed.processes, ["rank 0 (node 0) 1", "rank 1 (node 1) 2"]);
    assert_eq!(
        viewed.threads,
        ["rank 0 1 of 1", "größer 2 of 2", "thread 1 3 of 2"]
    );
    // All times are shifted by 30 ns.
    let expected = [
        "rank 0 0-4611686018427387934 main()",
        "größer 10-3330 main()",
        "größer 630   receive from=rank 0 communicator=0 tag=-42 bytes=0",
        "thread 1 670-730 thread team=1",
        "größer 680-720   fork team=1",
        "rank 0 1030-1080    MPI_Send, \"quoted\"",
        "rank 0 1040     send to=rank 1, größer communicator=0 tag=-42 bytes=0",
        "rank 0 1080   counter 3 = 1.5e9",
        "größer 1530-1630   broadcast kind=broadcast communicator=0 data=received root=0",
        "rank 0 2030-2130   broadcast kind=broadcast communicator=0 data=sent root=0 bytes=4096",
        "rank 0 3030-3031   exscan kind=exscan communicator=0 data=none",
        "größer 3030-3031   exscan kind=exscan communicator=0 data=both",
        "rank 0 3130   receive posted",
        "größer 3130   send to=rank 0 communicator=0 tag=5",
        "größer 3135   send to=rank 0 communicator=0 tag=5 bytes=18446744073709551615",
        "rank 0 3140   receive posted",
        "rank 0 3150   receive from=rank 1, größer communicator=0 tag=5 bytes=800",
        "rank 0 3160   receive from=rank 1, größer communicator=0 tag=5",
        "rank 0 3165   receive posted",
        "rank 0 3166   receive cancelled",
        "rank 0 3170   collective started communicator=0",
        "rank 0 3171   collective started communicator=0",
        "rank 0 3175   barrier kind=barrier communicator=0 data=both",
        "rank 0 3176   gather kind=gather communicator=0 data=sent root=1 bytes=128",
        "größer 3180   collective started communicator=0",
        "größer 3181   collective started communicator=0",
        "größer 3182   gather kind=gather communicator=0 data=received root=1",
        "größer 3183   barrier kind=barrier communicator=0 data=both",
        "rank 0 3190   put to=rank 1, größer communicator=0 bytes=4096",
        "rank 0 3191   get to=rank 0 communicator=1 bytes=0",
        "rank 0 3192   atomic to=rank 1, größer communicator=0 bytes=8",
        "größer 3193   put to=rank 0 communicator=0",
        "rank 0 3200   access complete communicator=0",
        "rank 0 3201   access complete communicator=0",
        "rank 0 3202   access complete communicator=1",
        "rank 0 3210   send to=rank 1, größer communicator=0 tag=8",
        "rank 0 3211   send to=rank 1, größer communicator=0 tag=8 bytes=64",
        "rank 0 3212   send complete",
        "rank 0 3213   send complete",
        "größer 3215   receive from=rank 0 communicator=0 tag=8",
        "größer 3216   receive from=rank 0 communicator=0 tag=8 bytes=64",
        "thread 1 3220 wait",
        "größer 3230   signal",
    ];
    assert_eq!(lines(&viewed), expected);
    // From the receive and the wait, which are too early, to the send and the signal. The receives
    // that were posted complete in the other order.
    assert_eq!(
        viewed.arrows,
        [[2, 6], [14, 16], [13, 17], [35, 39], [36, 40], [41, 42]]
    );
    let categories: Vec<&str> = viewed
        .shown
        .iter()
        .map(|shown| &shown.category[..])
        .collect();
    assert_eq!(categories[..3], ["region", "region", "message"]);
    assert_eq!(
        categories[3..9],
        [
            "thread",
            "thread",
            "region",
            "message",
            "note",
            "collective"
        ]
    );
    let shift = downbeat_clock_core::Duration::from_nanos(30);
    assert_eq!(
        summary,
        PerfettoSummary {
            locations: 3,
            events: 52,
            shift,
            ..PerfettoSummary::default()
        }
    );
}

#[test]
fn improper_nesting_is_cut_and_counted() {
    let (viewed, summary) = viewed(
        "0 1 enter 0\n0 2 enter 1\n0 3 leave 0\n0 4 leave 1\n0 5 join 1\n0 6 enter 1\n0 7 enter 1\n0 8 leave 1\n\
         1 0 collective-end 0 reduce 1 none\n1 9 collective 0\n1 10 enter 0\n1 11 note x\n1 12 collective 1\n\
         1 13 collective-end 0 gather 1 both\n",
    );
    let expected = [
        "b 0 reduce kind=reduce communicator=0 data=none root=1 not begun=true",
        "a 1-3 f",
        "a 2-3   g",
        "a 4 g not begun=true",
        "a 5 fork not begun=true",
        "a 6- g",
        "a 7-8   g",
        "b 9-13 gather kind=gather communicator=0 data=both root=1",
        "b 10-13   f",
        "b 11     x",
        "b 12-13     collective",
    ];
    assert_eq!(lines(&viewed), expected);
    let counts = (
        summary.not_begun,
        summary.cut_short,
        summary.not_ended,
        summary.too_deep,
    );
    assert_eq!(counts, (3, 3, 1, 0));
}

#[test]
fn messages_are_matched_in_order() {
    let (viewed, summary) = viewed(
        "0 10 send 1 0 5\n0 11 send 1 0 5\n0 12 send 1 0 6\n2 20 receive 0 0 5\n1 30 receive 0 0 5\n1 31 receive 0 0 7\n\
         1 40 receive 0 1 9\n1 41 receive 0 1 9\n0 50 send 2 1 9\n",
    );
    // The thread belongs to its process.
    assert_eq!(viewed.arrows, [[0, 3], [1, 4], [6, 8]]);
    assert_eq!(summary.unmatched, 3);
}

#[test]
fn waiting_for_names_of_operations_is_bounded() {
    let notes = "1 2 note 012345678901234567890123456789\n".repeat(2_000);
    let (viewed, _) = viewed(&format!(
        "1 1 collective 0\n1 1 enter 0\n1 1 collective 1\n{notes}1 3 collective-end 1 barrier 0 both\n\
         1 3 collective 1\n1 4 collective-end 1 barrier 0 both\n1 5 leave 0\n1 6 collective-end 0 scan 0 both\n"
    ));
    let found = lines(&viewed);
    assert_eq!(
        found[..3],
        [
            "b 1-6 collective kind=scan communicator=0 data=both",
            "b 1-5   f",
            "b 1-3     collective kind=barrier communicator=1 data=both",
        ]
    );
    assert!(
        found[3..2_003]
            .iter()
            .all(|line| line == "b 2       012345678901234567890123456789")
    );
    assert_eq!(
        found[2_003..],
        ["b 3-4     barrier kind=barrier communicator=1 data=both"]
    );
}

#[test]
fn too_deeply_nested_slices_are_left_out() {
    let repeated = |line: &str| line.repeat(700);
    let (viewed, summary) = viewed(&format!(
        "{}{}0 3 note x\n{}{}",
        repeated("0 1 enter 0\n"),
        "0 2 collective 0\n",
        "0 4 collective-end 0 barrier 0 both\n",
        repeated("0 5 leave 0\n")
    ));
    assert_eq!(
        (summary.too_deep, summary.not_ended, summary.not_begun),
        (201, 0, 0)
    );
    assert!(
        viewed
            .shown
            .iter()
            .all(|shown| shown.depth <= 500 && shown.end.is_some())
    );
    assert_eq!(viewed.shown.len(), 501);
}

#[test]
fn times_are_shifted_only_if_necessary() {
    let (viewed, summary) = viewed("0 7 note x\n");
    assert_eq!((viewed.shown[0].begin, summary.shift.as_nanos()), (7, 0));
    let far = |first: i64| format!("{HEAD}0 {first} note x\n1 {} note x\nend 2\n", i64::MAX - 5);
    assert!(export(far(-5).as_bytes()).is_ok());
    for first in [-6, i64::MIN] {
        let why = export(far(first).as_bytes()).unwrap_err();
        assert!(why.contains("so far apart") && !why.contains('\n'), "{why}");
    }
    let alone = format!("{HEAD}0 {} note x\nend 1\n", i64::MIN);
    assert!(
        export(alone.as_bytes())
            .unwrap_err()
            .contains("so far apart")
    );
}

#[test]
fn only_few_and_short_notes_are_interned() {
    let long = "y".repeat(1_000);
    let many: String = (0..5_000)
        .map(|i| format!("0 {i} note n{i}\n0 {i} note {long}\n"))
        .collect();
    let (viewed, _) = viewed(&many);
    let names = viewed.shown.iter().map(|shown| &shown.name[..]);
    let expected: Vec<String> = (0..5_000)
        .flat_map(|i| [format!("n{i}"), long.clone()])
        .collect();
    assert!(names.eq(expected.iter().map(String::as_str)));
    let repeated = format!(
        "{HEAD}{}end 10000\n",
        "0 1 note something that is said again and again\n".repeat(10_000)
    );
    assert!(export(repeated.as_bytes()).unwrap().0.len() < 250_000);
}

/// End of a message: true for the send; sender, receiver and tag; index of the instant.
type MessageEnd = (bool, u8, u8, u8, usize);

/// Expected contents, computed without the file format.
#[derive(Default)]
struct FlowModel {
    text: String,
    /// Open slices of each location: name and index.
    open: [Vec<(String, usize)>; 3],
    /// Names and ends.
    shown: Vec<(String, Option<usize>)>,
    ends: Vec<MessageEnd>,
}

impl FlowModel {
    fn add(&mut self, time: usize, location: u8, kind: u8, number: u8) {
        let (other, region) = ((location + 1) % 3, ["f", "g"][number as usize]);
        let line = match kind {
            0 | 1 => self.begin(location, format!("enter {number}"), region, region),
            2 | 3 => self.end(time, location, format!("leave {number}"), region, region),
            4 => self.begin(
                location,
                format!("collective {number}"),
                &format!("collective {number}"),
                "collective",
            ),
            5 => {
                let line = format!("collective-end {number} reduce 0 both");
                self.end(
                    time,
                    location,
                    line,
                    &format!("collective {number}"),
                    "reduce",
                )
            }
            6 => self.begin(
                location,
                format!("fork {number}"),
                &format!("fork {number}"),
                "fork",
            ),
            7 => self.end(
                time,
                location,
                format!("join {number}"),
                &format!("fork {number}"),
                "fork",
            ),
            _ => {
                let is_send = kind.is_multiple_of(2);
                // The last location is a thread of the one before.
                let [this, peer] = [location, other].map(|location| location.min(1));
                let (from, to) = if is_send { (this, peer) } else { (peer, this) };
                self.ends
                    .push((is_send, from, to, number, self.shown.len()));
                let word = if is_send { "send" } else { "receive" };
                self.shown.push((word.to_owned(), Some(time)));
                format!("{word} {other} 0 {number}")
            }
        };
        self.text += &format!("{location} {time} {line}\n");
    }

    fn begin(&mut self, location: u8, line: String, what: &str, name: &str) -> String {
        self.open[location as usize].push((what.to_owned(), self.shown.len()));
        self.shown.push((name.to_owned(), None));
        line
    }

    fn end(&mut self, time: usize, location: u8, line: String, what: &str, name: &str) -> String {
        let open = &mut self.open[location as usize];
        let Some(at) = open.iter().rposition(|(begun, _)| begun == what) else {
            self.shown.push((name.to_owned(), Some(time)));
            return line;
        };
        self.shown[open[at].1].0 = name.to_owned();
        for (_, ended) in open.drain(at..) {
            self.shown[ended].1 = Some(time);
        }
        line
    }

    /// Matches the first send with the first receive, the second with the second, and so on.
    fn arrows(&self) -> Vec<[usize; 2]> {
        let of = |is_send: bool, like: &MessageEnd| -> Vec<usize> {
            let alike = |end: &&MessageEnd| {
                end.0 == is_send && (end.1, end.2, end.3) == (like.1, like.2, like.3)
            };
            self.ends.iter().filter(alike).map(|end| end.4).collect()
        };
        let mut arrows = vec![];
        for send in self.ends.iter().filter(|end| end.0) {
            let place = of(true, send).iter().position(|at| *at == send.4).unwrap();
            arrows.extend(
                of(false, send)
                    .get(place)
                    .map(|receive| [send.4.min(*receive), send.4.max(*receive)]),
            );
        }
        arrows.sort_unstable();
        arrows
    }
}

proptest! {
    // Few cases, as each writes a file to disk.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn slices_and_arrows_are_as_expected(all in proptest::collection::vec((0_u8..3, 0_u8..12, 0_u8..2), 0..80)) {
        let mut model = FlowModel::default();
        for (time, (location, kind, number)) in all.into_iter().enumerate() {
            model.add(time, location, kind, number);
        }
        let (mut found, summary) = viewed(&model.text);
        let shown = found.shown.iter().map(|shown| (shown.name.clone(), shown.end.map(|end| end as usize)));
        prop_assert_eq!(shown.collect::<Vec<_>>(), &model.shown[..]);
        let arrows = model.arrows();
        found.arrows.sort_unstable();
        prop_assert_eq!(model.ends.len() as u64 - 2 * arrows.len() as u64, summary.unmatched);
        prop_assert_eq!(found.arrows, arrows);
    }
}

#[test]
fn values_of_metrics_are_counters_of_their_threads() {
    let folder = TemporaryFolder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let place = |process| Place { node: 0, process };
    let value = |location, time, metric, value| Item::Event {
        location,
        time: Timestamp::from_nanos(time),
        event: Event::Metric { metric, value },
    };
    let items = [
        Item::Location {
            place: place(0),
            name: "a",
        },
        Item::Location {
            place: place(1),
            name: "b",
        },
        Item::Metric {
            name: "memory",
            unit: "bytes",
        },
        Item::Metric {
            name: "load",
            unit: "",
        },
        value(0, -5, 0, Quantity::Whole(-7)),
        value(1, 3, 1, Quantity::Real(0.25)),
        value(0, 4, 0, Quantity::Whole(i64::MAX)),
        value(1, 4, 0, Quantity::Whole(8)),
    ];
    let mut survey = PerfettoSurvey::default();
    items.iter().for_each(|item| survey.add_item(item));
    let path = folder.file("a.pftrace");
    let mut writer = PerfettoWriter::create(&path, survey).unwrap();
    items.iter().for_each(|item| writer.write(item).unwrap());
    let undefined = value(0, 5, 2, Quantity::Whole(0));
    assert!(writer.write(&undefined).is_err());
    assert_eq!(writer.finish().unwrap().values, 4);
    let expected = [
        "a: memory [bytes] 0 -7",
        "b: load [] 8 0.25",
        "a: memory [bytes] 9 9223372036854775807",
        "b: memory [bytes] 9 8",
    ];
    assert_eq!(view(&fs::read(path).unwrap()).values, expected);
}
