//! Command-line tests of `downbeat trace convert`.

use std::fs;

use serde_json::Value;

use super::{TraceFolder, without_times};

#[test]
fn a_round_trip_preserves_the_trace() {
    let folder = TraceFolder::new("convert");
    folder
        .says("generate -o a.dbt --nodes 3 --threads 2 --fork-every 9 --events 3000 --sessions 3");
    let said = folder.says("convert a.dbt b.dbtb");
    assert!(
        said.starts_with("b.dbtb: 6 locations, ") && said.lines().count() == 1,
        "{said}"
    );
    folder.says("convert b.dbtb c.dbt");
    folder.says("convert b.dbtb d.dbtb");
    let [a, b, c, d] = ["a.dbt", "b.dbtb", "c.dbt", "d.dbtb"]
        .map(|name| fs::read(folder.path(name)).expect("it is there"));
    assert!(a == c && b == d && b.starts_with(b"\x89dbt"));
    // An existing file is replaced, even through a link.
    #[cfg(unix)]
    std::os::unix::fs::symlink("d.dbtb", folder.path("link.dbtb")).expect("there are links");
    #[cfg(unix)]
    folder.says("convert a.dbt link.dbtb");
    folder.says("correct a.dbt -o right.dbtb");
    folder.says("convert right.dbtb right.dbt");
    assert_eq!(
        without_times(&folder.path("right.dbt")),
        without_times(&folder.path("a.dbt"))
    );
}

/// The library tests the content of such files.
#[test]
fn a_perfetto_file_contains_the_whole_trace() {
    let folder = TraceFolder::new("perfetto");
    folder.says("generate -o a.dbtb --nodes 3 --events 3000 --truth truth.dbt");
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

    let head = "# downbeat trace 1\nlocation 0 0 0 a\ncommunicator 0 0\nregion 0 f\n";
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

#[test]
fn chrome_s_json_contains_the_whole_trace() {
    let folder = TraceFolder::new("chrome");
    folder.says("generate -o wrong.dbtb --truth a.dbtb --nodes 2 --processes 2 --threads 2 --fork-every 5 --asynchronous --events 4000");
    let said = folder.says("convert a.dbtb a.json");
    assert!(said.starts_with("a.json: 8 locations, "), "{said}");
    let text = fs::read_to_string(folder.path("a.json")).expect("it is there");
    let shown: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(shown["displayTimeUnit"], "ns");
    let events = shown["traceEvents"].as_array().expect("an array");
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert!(
        count("B") == count("E") && count("B") > 100,
        "{} {}",
        count("B"),
        count("E")
    );
    assert!(count("s") == count("f") && count("s") > 200 && count("X") == 2 * count("s"));
    let names = events.iter().filter(|event| event["name"] == "thread_name");
    assert_eq!(names.count(), 8);
    // The same instants as in the trace.
    folder.says("convert a.dbtb a.dbt");
    let trace = fs::read_to_string(folder.path("a.dbt")).expect("it is there");
    let sends = trace.lines().filter(|line| line.contains(" send "));
    let times = sends.map(|line| line.split(' ').nth(1).expect("a time").to_owned());
    let mut expected: Vec<String> = times.collect();
    let sends = events.iter().filter(|event| event["name"] == "send");
    let nanos = |event: &Value| (event["ts"].as_f64().expect("a number") * 1e3).round() as i64;
    let mut found: Vec<String> = sends.map(|event| nanos(event).to_string()).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
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
        "# downbeat trace 1\nlocation 0 0 0 a\n0 {} note x\n0 {} note x\nend 2\n",
        i64::MIN,
        i64::MAX
    );
    folder.says("generate -o a.dbt --events 1000");
    let whole = fs::read_to_string(folder.path("a.dbt")).expect("it is there");
    let files = [
        ("wide.dbt", &wide[..]),
        ("cut.dbt", &whole[..whole.len() / 2]),
        ("other.dbt", "# downbeat trace 4\n"),
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
        fs::hard_link(folder.path("a.dbt"), folder.path("hard.dbtb")).expect("there are links");
        folder.refuses("convert a.dbt hard.dbtb", "which is only read");
    }
    folder.refuses(
        "convert a.dbt a.csv",
        "a.csv: the name must end in .dbt, .dbtb, .pftrace, .perfetto-trace, .json or .parquet, or be that of a new folder, without a dot",
    );
    folder.refuses("convert a.dbt out.", "out.: the name must end in");
    folder.refuses(
        "convert a.dbt no/such/out.dbtb",
        "OUT: no/such/out.dbtb: No such file",
    );
    folder.refuses(
        "convert a.dbt out.dbt --as-recorded",
        "a.dbt is not an OTF2 archive",
    );
    for to in ["out.dbtb", "out.pftrace"] {
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
            "other.dbt: line 1: version \"4\" is not known here",
        );
        folder.refuses(&format!("convert nothing.otf2 {to}"), "nothing.otf2: ");
    }
    folder.refuses(
        "convert wide.dbt out.pftrace",
        "wide.dbt: some times are negative, and times are so far apart",
    );
    folder.says("convert wide.dbt out.dbtb");
    assert_eq!(
        fs::read_to_string(folder.path("a.dbt")).expect("it is there"),
        whole
    );
}
