//! Command-line tests of `downbeat trace convert`.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use downbeat_otf2::{
    Anchor, ArchiveWriter, Base, CollectiveOp, CommFlag, CommRef, Definition, Error, Event,
    GroupFlag, GroupRef, GroupType, List, LocationGroupRef, LocationGroupType, LocationRef,
    LocationType, MetricMemberRef, MetricMode, MetricOccurrence, MetricRef, MetricScope,
    MetricType, MetricValue, Paradigm, RecorderKind, StringRef, SystemTreeNodeRef, ValueType,
};
use downbeat_otf2::{definition, event};

use super::{TraceFolder, without_times};

#[test]
fn a_round_trip_preserves_the_trace() {
    let folder = TraceFolder::new("convert");
    folder
        .says("generate -o a.dbt --nodes 3 --threads 2 --fork-every 9 --events 3000 --sessions 3");
    let said = folder.says("convert a.dbt b.dbt");
    assert!(
        said.starts_with("b.dbt: 6 locations, ") && said.lines().count() == 1,
        "{said}"
    );
    let [a, b] = ["a.dbt", "b.dbt"].map(|name| fs::read(folder.path(name)).expect("it is there"));
    assert!(a == b);
    // An existing file is replaced, even through a link.
    #[cfg(unix)]
    std::os::unix::fs::symlink("b.dbt", folder.path("link.dbt")).expect("there are links");
    #[cfg(unix)]
    folder.says("convert a.dbt link.dbt");
    folder.says("correct a.dbt -o right.dbt");
    assert_eq!(
        without_times(&folder.path("right.dbt")),
        without_times(&folder.path("a.dbt"))
    );
}

/// Events are in the order of time there; everything else is as it was.
#[test]
fn an_archive_of_a_trace_is_the_same_trace() {
    let folder = TraceFolder::new("archive");
    let program = "--nodes 3 --threads 2 --fork-every 9 --events 3000 --sessions 3 --asynchronous";
    folder.says(&format!("generate -o a.dbt {program}"));
    let said = folder.says("convert a.dbt a");
    assert!(!said.contains("eft out"), "{said}");
    folder.says(&format!("generate -o generated {program}"));
    folder.says("convert generated generated.dbt");
    folder.says("convert a/traces.otf2 b.dbt");
    folder.says("convert b.dbt b");
    folder.says("convert b/traces.otf2 c.dbt");
    let [a, b, c, d] = ["a.dbt", "b.dbt", "c.dbt", "generated.dbt"]
        .map(|name| fs::read_to_string(folder.path(name)).expect("it is there"));
    assert!(b == c && b == d && b.contains("\nsample 2 2 "));
    let sorted = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("crc32"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(sorted(&a) == sorted(&b));
}

/// The clock samples of an archive correct it as they correct the trace that it was made
/// of.
#[test]
fn an_archive_of_a_trace_is_corrected_alike() {
    let folder = TraceFolder::new("archive-corrected");
    folder.says("generate -o a.dbt --nodes 3 --events 1200 --sessions 3");
    // In the order of time, as archives are.
    folder.says("convert a.dbt a");
    folder.says("convert a/traces.otf2 sorted.dbt");
    let options = "--latencies 200ns,500ns,2us --json";
    let said = |text: &str| {
        let mut said: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
        let report = said["pre_synchronization"].take();
        (report, said["corrected"].take())
    };
    let of_file = said(&folder.says(&format!("correct sorted.dbt -o right.dbt {options}")));
    assert_eq!(of_file.0["method"], "spline");
    assert_eq!(of_file.0["sessions"], 3);
    let events = |name: &str| {
        let text = fs::read_to_string(folder.path(name)).expect("it is there");
        let is_event = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
        text.lines()
            .filter(is_event)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (to, rewrite) in [("offsets", ""), ("rewritten", "--rewrite")] {
        let of_archive = format!("correct a/traces.otf2 -o {to} {options} {rewrite}");
        assert!(said(&folder.says(&of_archive)) == of_file, "{to}");
        folder.says(&format!("convert {to}/traces.otf2 {to}.dbt"));
        // Clock offsets lead to times that differ by a nanosecond.
        if !rewrite.is_empty() {
            let [mut found, mut expected] = [&format!("{to}.dbt"), "right.dbt"].map(events);
            found.sort();
            expected.sort();
            assert!(found == expected);
        }
        // Its clock offsets are those of the correction, not those of the samples.
        let again = folder.says(&format!("correct {to}/traces.otf2 -o {to}2 {options}"));
        let method = if rewrite.is_empty() {
            "archive"
        } else {
            "none"
        };
        assert_eq!(said(&again).0["method"], method);
        folder.says(&format!(
            "check {to}/traces.otf2 --latencies 200ns,500ns,2us"
        ));
    }
}

/// The library tests the content of such files.
#[test]
fn a_perfetto_file_contains_the_whole_trace() {
    let folder = TraceFolder::new("perfetto");
    folder.says("generate -o a.dbt --nodes 3 --events 3000 --truth truth.dbt");
    let said = folder.says("convert truth.dbt a.pftrace");
    assert!(
        said.starts_with("a.pftrace: 3 locations, ") && said.lines().count() == 1,
        "{said}"
    );
    let found = fs::read(folder.path("a.pftrace")).expect("it is there");
    for name in ["rank 2 (node 2)", "allreduce", "receive", "work"] {
        assert!(
            found
                .windows(name.len())
                .any(|bytes| bytes == name.as_bytes()),
            "no {name}"
        );
    }
    folder.says("convert truth.dbt b.perfetto-trace");
    assert_eq!(
        fs::read(folder.path("b.perfetto-trace")).expect("it is there"),
        found
    );

    let head =
        "# downbeat trace 1 without checksum\nlocation 0 0 0 a\ncommunicator 0 0\nregion 0 f\n";
    let deep = "0 5 enter 0\n".repeat(501);
    let text = format!(
        "{head}0 -7 send 0 0 5\n0 0 leave 0\n0 1 collective 0\n{deep}0 6 join 0\nend 505\n"
    );
    fs::write(
        folder.path("odd.dbt"),
        text.replace("0 6 join 0", "0 6 collective-end 0 barrier 0 both"),
    )
    .expect("it can be written");
    let said = folder.says("convert odd.dbt odd.pftrace");
    let expected = "odd.pftrace: 1 location, 505 events\n\
                    All timestamps were shifted by 7 ns, so that none is negative\n\
                    Sends and receives without a counterpart, shown without arrow: 1\n\
                    Ends of intervals without a beginning, shown as instants: 2\n\
                    Intervals that never end: 502\n\
                    Intervals nested too deeply to be shown: 2\n";
    assert_eq!(said, expected);
}

/// Writes an archive of a process with two threads and metrics: `traces.otf2` in the folder.
fn archive_with_metrics(folder: &Path) -> Result<(), Error> {
    let mut archive = ArchiveWriter::create(folder, "traces", Anchor::default())?;
    let mut counts = vec![];
    for location in 0..2 {
        let mut events = archive.events(LocationRef(location))?;
        for round in 0..10 {
            let time = 1_000 * round + location;
            events.write(
                time,
                &Event::MpiCollectiveBegin(event::MpiCollectiveBegin {}),
            )?;
            // A class of two metrics, and one about the whole process.
            let values = [
                MetricValue::U64(round),
                MetricValue::F64(0.5 * round as f64),
            ];
            let metric = |metric, values| {
                Event::Metric(event::Metric {
                    metric: MetricRef(metric),
                    values: List::from(values),
                })
            };
            events.write(time + 10, &metric(0, &values[..]))?;
            events.write(time + 10, &metric(1, &values[..1]))?;
            events.write(
                time + 20,
                &Event::MpiCollectiveEnd(event::MpiCollectiveEnd {
                    operation: CollectiveOp::BARRIER,
                    communicator: CommRef(0),
                    root: u32::MAX,
                    size_sent: 0,
                    size_received: 0,
                }),
            )?;
        }
        counts.push(events.finish()?);
    }
    archive.define(&Definition::ClockProperties(definition::ClockProperties {
        resolution: 1_000_000_000,
        offset: 0,
        length: 10_000,
        real_time: u64::MAX,
    }))?;
    let strings = [
        "", "node", "process", "memory", "kB", "load", "thread 0", "thread 1",
    ];
    for (reference, text) in (0..).map(StringRef).zip(strings) {
        archive.define(&Definition::String(definition::String {
            reference,
            text: text.into(),
        }))?;
    }
    archive.define(&Definition::SystemTreeNode(definition::SystemTreeNode {
        reference: SystemTreeNodeRef(0),
        name: StringRef(1),
        class: StringRef(1),
        parent: SystemTreeNodeRef::UNDEFINED,
    }))?;
    archive.define(&Definition::LocationGroup(definition::LocationGroup {
        reference: LocationGroupRef(0),
        name: StringRef(2),
        group_type: LocationGroupType::PROCESS,
        parent: SystemTreeNodeRef(0),
        creator: LocationGroupRef::UNDEFINED,
    }))?;
    for (location, events) in (0..).zip(counts) {
        archive.define(&Definition::Location(definition::Location {
            reference: LocationRef(location),
            name: StringRef(6 + location as u32),
            location_type: LocationType::CPU_THREAD,
            events,
            group: LocationGroupRef(0),
        }))?;
    }
    let metrics = [(3, ValueType::U64, 3, 4), (5, ValueType::F64, 0, 0)];
    for (reference, (name, value_type, exponent, unit)) in (0..).map(MetricMemberRef).zip(metrics) {
        archive.define(&Definition::MetricMember(definition::MetricMember {
            reference,
            name: StringRef(name),
            description: StringRef(0),
            metric_type: MetricType::OTHER,
            mode: MetricMode::ABSOLUTE_POINT,
            value_type,
            base: Base::DECIMAL,
            exponent,
            unit: StringRef(unit),
        }))?;
    }
    for (reference, members) in [(0, &[0, 1][..]), (2, &[0])] {
        let members: Vec<_> = members.iter().copied().map(MetricMemberRef).collect();
        archive.define(&Definition::MetricClass(definition::MetricClass {
            reference: MetricRef(reference),
            members: List::from(&members[..]),
            occurrence: MetricOccurrence::ASYNCHRONOUS,
            recorder_kind: RecorderKind::ABSTRACT,
        }))?;
    }
    archive.define(&Definition::MetricInstance(definition::MetricInstance {
        reference: MetricRef(1),
        class: MetricRef(2),
        recorder: LocationRef(0),
        scope_type: MetricScope::LOCATION_GROUP,
        scope: 0,
    }))?;
    for (reference, group_type) in [(0, GroupType::COMM_LOCATIONS), (1, GroupType::COMM_GROUP)] {
        archive.define(&Definition::Group(definition::Group {
            reference: GroupRef(reference),
            name: StringRef(0),
            group_type,
            paradigm: Paradigm::OPENMP,
            flags: GroupFlag::NONE,
            members: List::from(&[0, 1][..]),
        }))?;
    }
    archive.define(&Definition::Comm(definition::Comm {
        reference: CommRef(0),
        name: StringRef(0),
        group: GroupRef(1),
        parent: CommRef::UNDEFINED,
        flags: CommFlag::NONE,
    }))?;
    archive.finish().map(drop)
}

#[test]
fn metrics_of_an_archive_become_counters() {
    let folder = TraceFolder::new("metrics");
    archive_with_metrics(&folder.path("a")).expect("it can be written");
    let said = folder.says("convert a/traces.otf2 a.pftrace");
    assert_eq!(
        said,
        "a.pftrace: 2 locations, 40 events\nValues of metrics, shown as counters: 60\n"
    );
    let shown = |name: &str| fs::read(folder.path(name)).expect("it is there");
    let found = shown("a.pftrace");
    for name in ["memory", "kB", "load", "memory of process"] {
        let is_there = found
            .windows(name.len())
            .any(|bytes| bytes == name.as_bytes());
        assert!(is_there, "{name}");
    }
    // The same in a new archive, whose units are without a factor.
    folder.says("convert a/traces.otf2 b");
    folder.says("convert b/traces.otf2 b.pftrace");
    // The process is on another node there.
    let of_node_0 = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("(node 1)", "(node 0)");
    assert_eq!(of_node_0(&shown("b.pftrace")), of_node_0(&found));
    let said = folder.says("convert a/traces.otf2 a.dbt");
    assert_eq!(
        said,
        "a.dbt: 2 locations, 40 events\nValues of metrics left out: 60\n"
    );
}

/// As Kineto writes it: a thread that launches kernels on a device, whose clock is 50 us early.
const KINETO: &str = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 911, "tid": 911, "ts": 1700000000000010.250, "dur": 30, "args": {"External id": 4}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 911, "tid": 911, "ts": 1700000000000012.5, "dur": 5.125, "args": {"correlation": 4}},
{"ph": "s", "id": 4, "pid": 911, "tid": 911, "ts": 1700000000000012.5, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1699999999999970, "dur": 9, "args": {"correlation": 4}},
{"ph": "f", "id": 4, "pid": 0, "tid": 7, "ts": 1699999999999970, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "M", "name": "process_name", "pid": 911, "tid": 0, "ts": 0, "args": {"name": "python"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7"}},
{"ph": "i", "s": "g", "name": "Iteration Start", "pid": "Traces", "tid": "Trace", "ts": 1700000000000001},
{"ph": "C", "name": "memory", "pid": 911, "ts": 1700000000000020, "args": {"Total": 4096}},
{"ph": "b", "id": 1, "name": "async", "pid": 911, "tid": 911, "ts": 1700000000000001}
], "traceName": "a.json"}"#;

#[test]
fn host_and_device_of_a_json_file_are_locations_with_clocks_of_their_own() {
    let folder = TraceFolder::new("kineto");
    fs::write(folder.path("a.json"), KINETO).expect("it can be written");
    let said = folder.says("convert a.json a.dbt");
    assert_eq!(
        said,
        "a.dbt: 3 locations, 9 events\nValues of metrics left out: 1\nLeft out, of unsupported kinds: other or incomplete events (1)\n"
    );
    let text = fs::read_to_string(folder.path("a.dbt")).expect("it is there");
    let expected = "location 0 0 0 python, thread 911
location 1 0 1 process 0, stream 7
location 2 0 2 process Traces, thread Trace
communicator 0 0 1 2
region 0 aten::mm
region 1 cudaLaunchKernel
region 2 gemm
1 1699999999999970000 enter 2
1 1699999999999970000 receive 0 0 0
1 1699999999999979000 leave 2
2 1700000000000001000 note Iteration Start
0 1700000000000010250 enter 0
0 1700000000000012500 enter 1
0 1700000000000012500 send 1 0 0
0 1700000000000017625 leave 1
0 1700000000000040250 leave 0
end 9
";
    assert!(text.contains(expected), "{text}");
    // The kernel does not begin before its launch.
    let said = folder.says("correct a.dbt -o right.dbt --latencies 1us");
    assert!(said.contains("no violation is left"), "{said}");
    let said = folder.says("convert a.json a.pftrace");
    assert!(said.contains("shown as counters: 1"), "{said}");
    // As PyTorch compresses it.
    let file = fs::File::create(folder.path("z.json.gz")).expect("it can be");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(KINETO.as_bytes()).expect("it can be");
    packed.finish().expect("it can be");
    folder.says("convert z.json.gz z.dbt");
    let unpacked = fs::read_to_string(folder.path("z.dbt")).expect("it is there");
    assert_eq!(unpacked, text);
    for command in ["correct z.json.gz -o out.dbt", "check a.json"] {
        let (why, _) = folder.fails(2, command);
        assert!(why.contains("downbeat trace convert "), "{why}");
    }
    fs::write(folder.path("cut.json.gz"), b"\x1f\x8b\x08").expect("it can be");
    let (why, _) = folder.fails(2, "convert cut.json.gz out.dbt");
    assert!(why.starts_with("cut.json.gz: "), "{why}");

    // As a profiler that is killed leaves an array, in an event or after one.
    let whole = r#"[{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 4, "name": "a"},"#;
    for cut in [
        "",
        "\n",
        r#"{"ph": "X", "pid": 1, "#,
        r#"{"ph": "X", "ts": 2."#,
    ] {
        fs::write(folder.path("killed.json"), format!("{whole}{cut}")).expect("it can be written");
        for command in ["convert killed.json killed.dbt", "waits killed.json"] {
            let output = folder.call(command);
            assert!(output.status.success(), "{command}");
            let line =
                "killed.json: the array of events has no end: the last event may be missing\n";
            assert_eq!(super::text(&output.stderr), line, "{command}");
            assert!(super::text(&output.stdout).contains(": 1 location, 2 events\n"));
        }
    }

    for (text, expected) in [
        (
            "{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1},",
            "EOF while parsing a value",
        ),
        ("{\"events\": []}", "there is no array \"traceEvents\""),
        ("[{\"ph\": \"X\", \"pid\": 1}]", "an event has no time (ts)"),
        (
            "[{\"ph\": \"X\", \"ts\": [3]}]",
            "[3] is not a time in microseconds",
        ),
        (
            "[{\"ph\": 3}]",
            "invalid type: integer `3`, expected a string",
        ),
        ("[{", "EOF while parsing an object"),
        ("7", "expected events in Chrome's JSON"),
    ] {
        fs::write(folder.path("bad.json"), text).expect("it can be written");
        folder.refuses("convert bad.json bad.dbt", expected);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_by_programs_without_it() {
    let folder = TraceFolder::new("no-parquet");
    folder.says("generate -o a.dbt --events 100");
    folder.refuses(
        "convert a.dbt a.parquet",
        "OUT: a.parquet: this program was built without Parquet; build it with --features parquet",
    );
}

#[cfg(feature = "parquet")]
#[test]
fn a_trace_becomes_a_table() {
    let folder = TraceFolder::new("parquet");
    folder.says("generate -o a.dbt --events 1000");
    let said = folder.says("convert a.dbt a.parquet");
    assert!(
        said.starts_with("a.parquet: ") && said.lines().count() == 1,
        "{said}"
    );
    let table = fs::read(folder.path("a.parquet")).expect("it is there");
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = TraceFolder::new("inconvertible");
    let wide = format!(
        "# downbeat trace 1 without checksum\nlocation 0 0 0 a\n0 {} note x\n0 {} note x\nend 2\n",
        i64::MIN,
        i64::MAX
    );
    folder.says("generate -o a.dbt --events 1000");
    let whole = fs::read_to_string(folder.path("a.dbt")).expect("it is there");
    let files = [
        ("wide.dbt", &wide[..]),
        ("cut.dbt", &whole[..whole.len() / 2]),
        ("other.dbt", "# downbeat trace 7\n"),
    ];
    for (name, content) in files {
        fs::write(folder.path(name), content).expect("it can be written");
    }
    folder.refuses(
        "convert a.dbt a.dbt",
        "a.dbt is the same file as a.dbt, which is only read",
    );
    folder.refuses("convert a.dbt ./a.dbt", "which is only read");
    #[cfg(unix)]
    {
        fs::hard_link(folder.path("a.dbt"), folder.path("hard.dbt")).expect("there are links");
        folder.refuses("convert a.dbt hard.dbt", "which is only read");
    }
    folder.refuses(
        "convert a.dbt a.csv",
        "a.csv: the name must end in .dbt, .pftrace, .perfetto-trace or .parquet, or be that of a new folder",
    );
    folder.refuses(
        "convert a.dbt no/such/out.dbt",
        "OUT: no/such/out.dbt: No such file",
    );
    folder.refuses(
        "convert a.dbt out.dbt --as-recorded",
        "a.dbt is not an OTF2 archive",
    );
    for to in ["out.dbt", "out.pftrace"] {
        folder.refuses(
            &format!("convert nothing.dbt {to}"),
            "nothing.dbt: No such file",
        );
        folder.refuses(
            &format!("convert cut.dbt {to}"),
            ": the file is cut off here",
        );
        folder.refuses(
            &format!("convert other.dbt {to}"),
            "other.dbt: line 1: version \"7\" is not known here",
        );
        folder.refuses(&format!("convert nothing.otf2 {to}"), "nothing.otf2: ");
    }
    folder.refuses(
        "convert wide.dbt out.pftrace",
        "wide.dbt: some times are negative, and times are so far apart",
    );
    folder.says("convert wide.dbt out.dbt");
    assert_eq!(
        fs::read_to_string(folder.path("a.dbt")).expect("it is there"),
        whole
    );
}

#[test]
fn lengths_of_messages_survive_an_archive() {
    let folder = TraceFolder::new("lengths");
    let events = "0 100 send 1 0 7 4096\n0 300 collective 0\n0 400 collective-end 0 broadcast 0 sent 64\n\
                  1 200 receive 0 0 7 4096\n1 300 collective 0\n1 400 collective-end 0 broadcast 0 received 0\n";
    let definitions = "location 0 0 0 rank 0\nlocation 1 0 1 rank 1\ncommunicator 0 0 1\n";
    let text = format!("# downbeat trace 1 without checksum\n{definitions}{events}end 6\n");
    fs::write(folder.path("a.dbt"), text).expect("it can be written");
    folder.says("convert a.dbt archive");
    folder.says("convert archive/traces.otf2 b.dbt");
    let back = fs::read_to_string(folder.path("b.dbt")).expect("it is there");
    for line in events.lines() {
        let (_, event) = line.split_once(' ').expect("a location");
        let (_, event) = event.split_once(' ').expect("a time");
        assert!(back.contains(event), "{event} is not in\n{back}");
    }
}

#[test]
fn a_folder_for_an_archive_may_contain_a_dot() {
    let folder = TraceFolder::new("dots");
    folder.says("generate -o run-1.5.dbt --events 100");
    for name in ["run-1.5", "results.v2", "out."] {
        let said = folder.says(&format!("convert run-1.5.dbt {name}"));
        let expected = format!("{name}/traces.otf2: ");
        assert!(said.starts_with(&expected), "{said}");
        folder.says(&format!("correct {name}/traces.otf2 -o {name}.corrected"));
        folder.says(&format!("waits {name}.corrected/traces.otf2"));
    }
    let said = folder.says("show run-1.5.dbt");
    assert!(said.starts_with("run-1.5.html: "), "{said}");
}
