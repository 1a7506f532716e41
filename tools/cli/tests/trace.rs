//! Command-line tests of `downbeat trace`.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "trace/temporary.rs"]
mod temporary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

#[path = "trace/convert.rs"]
mod convert;

#[path = "trace/outputs.rs"]
mod outputs;

#[path = "trace/waits.rs"]
mod waits;

/// Working directory of a test.
struct TraceFolder(PathBuf);

impl TraceFolder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("trace-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("there can be a folder");
        Self(path)
    }

    fn call(&self, arguments: &str) -> Output {
        let arguments = arguments.split_whitespace();
        let mut program = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        program
            .arg("trace")
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .expect("the program starts")
    }

    fn says(&self, arguments: &str) -> String {
        let output = self.call(arguments);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{arguments}: {}",
            text(&output.stderr)
        );
        text(&output.stdout).to_owned()
    }

    /// Returns the line of a failure, and the output before.
    fn fails(&self, code: i32, arguments: &str) -> (String, String) {
        let output = self.call(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
        let line = said
            .strip_prefix("downbeat: ")
            .expect("the program names itself")
            .trim_end();
        (line.to_owned(), text(&output.stdout).to_owned())
    }

    /// Calls the program in a shell with this limit; returns the exit code and what it
    /// complains of.
    #[cfg(unix)]
    fn limited(&self, limit: &str, arguments: &str) -> (Option<i32>, String) {
        let program = env!("CARGO_BIN_EXE_downbeat");
        let script = format!("{limit}; exec {program} trace {arguments}");
        let mut shell = Command::new("sh");
        let output = shell
            .args(["-c", &script])
            .current_dir(&self.0)
            .output()
            .expect("there is a shell");
        (output.status.code(), text(&output.stderr).to_owned())
    }

    /// Asserts that bad input gives this one line, no output and no files.
    fn refuses(&self, arguments: &str, line: &str) {
        let before = self.names();
        let (found, printed) = self.fails(2, arguments);
        assert!(found.contains(line), "{arguments}: {found}");
        assert_eq!(
            (printed, self.names()),
            (String::new(), before),
            "{arguments}"
        );
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .expect("it is")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TraceFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("one document")
}

/// Returns a text trace as it is written by hand: without a checksum.
fn handwritten(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    let lines: String = lines.filter(|line| !line.starts_with("crc32 ")).collect();
    lines.replacen(
        "# downbeat trace 1",
        "# downbeat trace 1 without checksum",
        1,
    )
}

/// Returns the lines of a trace without the times of events and samples, and the checksum.
fn without_times(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("it is there");
    let without = |line: &str| {
        let mut fields: Vec<&str> = line.split(' ').collect();
        match fields[0].as_bytes()[0] {
            b'0'..=b'9' => fields[1] = "T",
            b's' => fields[3] = "T",
            b'c' if fields[0] == "crc32" => fields.clear(),
            _ => {}
        }
        fields.join(" ")
    };
    text.lines().map(without).collect()
}

#[test]
fn violations_are_found_and_corrected() {
    let folder = TraceFolder::new("whole");
    let generated = folder.says(
        "generate -o wrong.dbt --truth truth.dbt --nodes 3 --processes 2 --threads 2 --fork-every 9 --events 4000",
    );
    assert!(
        generated.starts_with("wrong.dbt: 12 locations, "),
        "{generated}"
    );
    let wrong = fs::read(folder.path("wrong.dbt")).expect("it is there");
    let (why, found) = folder.fails(1, "check wrong.dbt");
    assert!(
        why.starts_with("wrong.dbt: ") && why.ends_with(" violations"),
        "{why}"
    );
    assert!(
        found.contains(" too early for event ") && found.contains("The first of them:\n"),
        "{found}"
    );
    let said = folder.says("check truth.dbt --latencies 200ns,500ns,2us");
    let nothing = ": none of 414 messages; none of 40 pairs in collective operations.\n";
    assert!(said.ends_with(nothing), "{said}");

    let fixed = folder.says("correct wrong.dbt -o right.dbt --control 0");
    assert!(fixed.contains(" (control factor 0) moved "), "{fixed}");
    let said =
        folder.says("correct wrong.dbt -o right.dbt --latencies 200ns,500ns,2us --truth truth.dbt");
    for what in [
        "wrong.dbt: 12 locations, ",
        " After pre-synchronization (spline, of 2 sessions): ",
        " As measured, too early for latencies of 200ns,500ns,2000ns (given): ",
        " (control factor 1 - ",
        " Against the truth, the error without bias went from ",
        " right.dbt: no violation is left.\n",
    ] {
        assert!(said.contains(what), "no {what} in:\n{said}");
    }
    let by_default = folder.says("check truth.dbt");
    assert!(
        by_default.contains(" Too early for latencies of 0ns,0ns,0ns (default): none of "),
        "{by_default}"
    );
    let checked = folder.says("check right.dbt --against wrong.dbt --latencies 200ns,500ns,2us");
    assert!(checked.contains("\nSince wrong.dbt, "), "{checked}");
    assert_eq!(
        fs::read(folder.path("wrong.dbt")).expect("it is there"),
        wrong
    );
    assert_eq!(
        without_times(&folder.path("right.dbt")),
        without_times(&folder.path("wrong.dbt"))
    );
    assert_eq!(
        folder.names(),
        ["right.dbt", "truth.dbt", "wrong.dbt"],
        "nothing else is left behind"
    );

    // Correcting a corrected trace changes nothing.
    folder.says(
        "correct right.dbt -o again.dbt --pre-synchronization none --latencies 200ns,500ns,2us",
    );
    let [right, again] =
        ["right.dbt", "again.dbt"].map(|name| fs::read(folder.path(name)).expect("it is there"));
    assert_eq!(right, again);
}

/// The mean and the largest reversal are those of messages, of which there are none.
#[test]
fn reversed_operations_are_not_said_to_be_reversed_by_nothing() {
    let folder = TraceFolder::new("reversed");
    let trace = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                 0 1000 collective 0\n0 1010 collective-end 0 barrier 0 both\n\
                 1 100 collective 0\n1 200 collective-end 0 barrier 0 both\nend 4\n";
    fs::write(folder.path("a.dbt"), trace).expect("it can be written");
    let (_, said) = folder.fails(1, "check a.dbt --latencies 0 --page page.html");
    let counts = ": none of 0 messages; 1 of 2 pairs (50.0 %) in collective operations.\n";
    assert!(said.contains(counts), "{said}");
    let page = fs::read_to_string(folder.path("page.html")).expect("it is there");
    assert!(
        !page.contains("0.0 ns") && page.contains("<td>-<td>-"),
        "{page}"
    );
}

/// Relations within one clock are not corrected, and not said to be right.
#[test]
fn reversals_within_clocks_stay_and_are_counted() {
    let folder = TraceFolder::new("one-clock");
    folder.says("generate -o wrong.dbt --events 2000");
    let one_clock = "--clock-of cluster --page page.html";
    let said = folder.says(&format!("correct wrong.dbt -o right.dbt {one_clock}"));
    let (_, end) = said.split_once(" right.dbt: ").expect("the outcome");
    let number = end.strip_prefix("no violation between clocks is left; ");
    let number = number.and_then(|end| end.strip_suffix(" reversals within clocks stay.\n"));
    let number = number.unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains(&format!("; {number} within clocks, which stay")));
    let page = fs::read_to_string(folder.path("page.html")).expect("it is there");
    let lead = format!(
        "operation between clocks violates its latency; {number} reversals within clocks stay."
    );
    assert!(page.contains(&lead), "{page}");
    let again = folder.says(&format!(
        "correct right.dbt -o again.dbt {one_clock} --pre-synchronization none"
    ));
    assert!(
        again.contains("nothing moved; no violation between clocks is left; "),
        "{again}"
    );
}

/// A refused number names the option, and what it takes.
#[test]
fn numbers_are_within_limits_that_are_named() {
    let folder = TraceFolder::new("numbers");
    let any = "from 0 to 18446744073709551615";
    for (option, value, range) in [
        ("--events <NUMBER>", "-5", any),
        ("--seed <SEED>", "8abc", any),
        ("--sessions <NUMBER>", "-1", "from 0 to 4294967295"),
        ("--samples <NUMBER>", "1.5", "from 0 to 4294967295"),
        ("--collective-every <ROUNDS>", "-1", "from 0 to 4294967295"),
        ("--fork-every <ROUNDS>", "-1", "from 0 to 4294967295"),
        ("--threads <NUMBER>", "4000000", "from 1 to 1048576"),
        (
            "--nodes <NUMBER>",
            "99999999999999999999",
            "from 1 to 1048576",
        ),
        ("--processes <NUMBER>", "-3", "from 1 to 1048576"),
    ] {
        let name = option.split(' ').next().expect("a word");
        let why =
            format!("invalid value '{value}' for '{option}': expected a whole number {range}");
        folder.refuses(&format!("generate -o out.dbt {name} {value}"), &why);
    }
    folder.refuses(
        "generate -o out.dbt --nodes 1000000 --processes 1000000",
        "--nodes, --processes, --threads: expected at most 1048576 threads in all, not 1000000000000",
    );
    folder.refuses(
        "waits a.dbt --top -5",
        "for '--top <NUMBER>': expected a whole number from 0",
    );
    folder.refuses(
        "correct a.dbt -o b.dbt --threads x",
        "'--threads <NUMBER>': expected a whole number from 1 to 1024",
    );
}

#[test]
fn clocks_are_mapped_without_moving_events() {
    let folder = TraceFolder::new("only-pre-synchronize");
    folder.says("generate -o wrong.dbt --nodes 3 --events 3000");
    let latencies = "--latencies 200ns,500ns,2us";
    let options = format!("{latencies} --pre-synchronization linear");
    let only = "--only-pre-synchronize";
    let mapped = folder.says(&format!(
        "correct wrong.dbt -o mapped.dbt {options} {only} --json"
    ));
    let mapped = json(&mapped);
    let violated = |stage: &str| {
        let violated = &mapped[stage]["messages"]["violated"];
        violated.as_u64().expect("a number")
    };
    let [raw, left, end] = ["as_measured", "pre_synchronized", "corrected"].map(violated);
    assert!(raw > left && left > 0 && end == left, "{mapped}");
    assert_eq!(mapped["passes"].as_array().map(Vec::len), Some(0));
    // The logical clock finds the same violations, and moves events by them.
    folder.says(&format!(
        "correct mapped.dbt -o right.dbt --pre-synchronization none {latencies} --control 1"
    ));
    folder.says(&format!(
        "correct wrong.dbt -o both.dbt {options} --control 1"
    ));
    let [right, both] =
        ["right.dbt", "both.dbt"].map(|name| fs::read(folder.path(name)).expect("it is there"));
    assert!(right == both);
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let folder = TraceFolder::new("formats");
    folder.says("generate -o wrong.dbt --events 3000 --traffic stencil");
    folder.says("correct wrong.dbt -o one.dbt --threads 1");
    folder.says("correct wrong.dbt -o two.dbt --threads 2");
    folder.says("correct wrong.dbt -o three --threads 3");
    let [one, two, three] = ["one.dbt", "two.dbt", "three"]
        .map(|name| fs::read(folder.path(name)).expect("it is there"));
    assert_eq!(one, two);
    assert_eq!(one, three, "the name is no matter");
}

#[test]
fn documents_have_a_schema_and_the_content_of_the_text() {
    let folder = TraceFolder::new("json");
    folder.says("generate -o wrong.dbt --truth truth.dbt --events 3000 --sessions 4");
    let (_, checked) = folder.fails(1, "check wrong.dbt --json");
    let checked = json(&checked);
    assert_eq!(checked["schema"], "downbeat.trace_check");
    assert_eq!(checked["violations"]["holds"], false);
    assert!(
        checked["violations"]["faults"][0]
            .as_str()
            .expect("a text")
            .contains(" too early for ")
    );

    let passes = "--pre-synchronization linear --threshold 1ns --max-passes 3";
    let said = json(&folder.says(&format!(
        "correct wrong.dbt -o right.dbt --json --truth truth.dbt {passes}"
    )));
    assert_eq!(said["schema"], "downbeat.trace_correction");
    assert_eq!(said["pre_synchronization"]["method"], "linear");
    assert_eq!(said["pre_synchronization"]["sessions"], 4);
    assert!(
        said["passes"].as_array().expect("a list").len() > 1,
        "{said}"
    );
    assert_eq!(said["corrected"]["holds"], true);
    assert!(said["explicitly_corrected"].as_u64() > Some(0), "{said}");
    assert!(
        said["truth"]["corrected"]["centred_nanos"].as_f64() > Some(0.0),
        "{said}"
    );
    assert_eq!(
        said["deviation"]["event_distance"]["above"]
            .as_array()
            .expect("a list")
            .len(),
        6
    );
    let checked = json(&folder.says("check right.dbt --against wrong.dbt --json"));
    assert_eq!(checked["violations"]["holds"], true);
    assert_eq!(checked["difference"], Value::Null);
}

/// One receive is moved from 900 ns to 1000 ns after the start of its location.
#[test]
fn messages_tell_clocks_that_were_never_compared() {
    let folder = TraceFolder::new("hull");
    folder.says(
        "generate -o a.dbt --truth truth.dbt --sessions 0 --duration 10s --processes 2 --events 20000",
    );
    let error = |options: &str| {
        let said = json(&folder.says(&format!(
            "correct a.dbt -o b.dbt --json --truth truth.dbt {options}"
        )));
        let method = said["pre_synchronization"]["method"].as_str();
        let centred = said["truth"]["pre_synchronized"]["centred_nanos"].as_f64();
        (
            method.expect("a name").to_owned(),
            centred.expect("an error"),
        )
    };
    let (method, found) = error("");
    let (_, none) = error("--pre-synchronization none");
    assert!(
        method == "hull" && found < 1_000.0 && none > 1e6,
        "{found} {none}"
    );
    // What messages do not contradict stays as it is, unless a method is named.
    let said = folder.says("correct truth.dbt -o again.dbt");
    let unmoved = "again.dbt: nothing moved; no violation is left, by latencies of ";
    assert!(said.starts_with(unmoved), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let said = folder.says("correct truth.dbt -o again.dbt --pre-synchronization hull");
    assert!(said.contains(" After pre-synchronization (hull, by messages; if clocks drift at constant rates, their errors are at most "), "{said}");
}

#[test]
fn figures_equal_those_by_hand() {
    let folder = TraceFolder::new("hand");
    let trace = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                 0 1000 send 1 0 5\n1 0 note x\n1 900 receive 0 0 5\nend 3\n";
    fs::write(folder.path("a.dbt"), trace).expect("it can be written");
    fs::write(folder.path("truth.dbt"), trace.replace("900", "1010")).expect("it can be written");
    let options = "--no-backward --latencies 0 --truth truth.dbt";
    let said = json(&folder.says(&format!("correct a.dbt -o b.dbt --json {options}")));
    assert_eq!(
        handwritten(&fs::read_to_string(folder.path("b.dbt")).expect("it is there")),
        trace.replace("900", "1000")
    );
    assert_eq!(said["pre_synchronization"]["method"], "none");
    let [before, after] =
        ["pre_synchronized", "corrected"].map(|stage| said[stage]["messages"].clone());
    assert_eq!(
        before,
        serde_json::json!({"total": 1, "reversed": 1, "violated": 1})
    );
    assert_eq!(
        after,
        serde_json::json!({"total": 1, "reversed": 0, "violated": 0})
    );
    assert_eq!(
        (
            &said["explicitly_corrected"],
            &said["as_measured"]["largest_reversal_nanos"]
        ),
        (&1.into(), &100.into())
    );
    assert_eq!(
        said["passes"],
        serde_json::json!([{"control": 0.999, "largest_displacement_nanos": 100}])
    );
    let deviation = &said["deviation"];
    assert_eq!(
        (
            &deviation["displacement"]["moved"],
            &deviation["displacement"]["events"]
        ),
        (&1.into(), &3.into())
    );
    assert_eq!(deviation["displacement"]["mean_nanos"], 100.0 / 3.0);
    let text = folder.says(&format!("correct a.dbt -o b.dbt {options}"));
    assert!(
        text.contains("; explicitly, 1 of 1 receives and exits."),
        "{text}"
    );
    assert_eq!(said["pre_synchronized"]["mean_reversal_nanos"], 100.0);
    for intervals in ["event_position", "event_distance"] {
        let intervals = &deviation[intervals];
        assert_eq!(
            (&intervals["intervals"], &intervals["mean_share"]),
            (&1.into(), &(100.0 / 900.0).into())
        );
        for (above, share) in [(4, 1.0), (5, 0.0)] {
            let above = &intervals["above"][above];
            assert_eq!(
                [&above["share_of_intervals"], &above["share_of_time"]],
                [share, share]
            );
        }
    }
    // Errors of 0, 0 and -110 ns, then of 0, 0 and -10 ns.
    let truth = &said["truth"];
    assert_eq!(
        [
            &truth["pre_synchronized"]["bias_nanos"],
            &truth["corrected"]["bias_nanos"]
        ],
        [-110.0 / 3.0, -10.0 / 3.0]
    );
}

#[test]
fn a_different_trace_is_not_a_corrected_one() {
    let folder = TraceFolder::new("difference");
    folder.says("generate -o wrong.dbt --events 500");
    folder.says("correct wrong.dbt -o right.dbt");
    let changed = fs::read_to_string(folder.path("right.dbt"))
        .expect("it is there")
        .replacen(" note work", " note play", 1);
    fs::write(folder.path("changed.dbt"), &changed).expect("it can be written");
    let damaged = "its checksum is wrong: the file was damaged or edited after it was written (--no-verify accepts it)";
    for command in [
        "check changed.dbt",
        "check right.dbt --against changed.dbt",
        "correct changed.dbt -o out.dbt",
        "correct changed.dbt -o out.dbt --temporary .",
        "convert changed.dbt out.dbt",
        "convert changed.dbt out.pftrace",
    ] {
        folder.refuses(command, damaged);
        if command != "check right.dbt --against changed.dbt" {
            folder.says(&format!("{command} --no-verify"));
            let _ = fs::remove_file(folder.path(command.rsplit(' ').next().expect("a word")));
            let _ = fs::remove_file(folder.path("out.dbt"));
        }
        fs::write(folder.path("changed.dbt"), &changed).expect("it can be written");
    }
    let (why, _) = folder.fails(1, "check changed.dbt --against wrong.dbt --no-verify");
    let place = why
        .strip_prefix("changed.dbt: line ")
        .expect("the file is named");
    assert!(place.ends_with(": differs from wrong.dbt here"), "{why}");
}

#[test]
fn the_input_is_never_overwritten() {
    let folder = TraceFolder::new("same");
    folder.says("generate -o a.dbt --events 100");
    let same = "-o: a.dbt is the same file as a.dbt, which is only read";
    folder.refuses("correct a.dbt -o a.dbt", same);
    folder.refuses("correct ./a.dbt -o a.dbt", "which is only read");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.dbt", folder.path("soft.dbt")).expect("links can be made");
        fs::hard_link(folder.path("a.dbt"), folder.path("hard.dbt")).expect("links can be made");
        folder.refuses("correct a.dbt -o soft.dbt", "which is only read");
        folder.refuses("correct soft.dbt -o a.dbt", "which is only read");
        folder.refuses("correct a.dbt -o hard.dbt", "which is only read");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(".", folder.path("here")).expect("links can be made");
        let also = "is also the file of -o";
        folder.refuses("correct a.dbt -o x.html --page here/x.html", also);
        folder.refuses("generate -o x.dbt --truth here/x.dbt", also);
        folder.refuses("check a.dbt --page here/a.dbt", "which is only read");
    }
    folder.says("correct a.dbt -o b.dbt");
    folder.refuses("correct a.dbt -o b.dbt --truth b.dbt", "which is only read");
    folder.refuses(
        "generate -o c.dbt --truth c.dbt",
        "--truth: c.dbt is also the file of -o",
    );
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = TraceFolder::new("bad");
    let write =
        |name: &str, text: &str| fs::write(folder.path(name), text).expect("it can be written");
    folder.says("generate -o a.dbt --events 100");
    let good = fs::read_to_string(folder.path("a.dbt")).expect("it is there");
    let head = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n";
    write("cut.dbt", &good[..good.len() / 2]);
    write("other.dbt", &good.replace("trace 1", "trace 7"));
    write("alone.dbt", &format!("{head}0 0 send 1 0 0\nend 1\n"));
    write(
        "circle.dbt",
        &format!(
            "{head}0 0 receive 1 0 0\n0 1 send 1 0 0\n1 0 receive 0 0 0\n1 1 send 0 0 0\nend 4\n"
        ),
    );
    write(
        "latencies.toml",
        "same-process = \"1ns\"\nsame-node = \"1\"\nother-node = \"2ns\"\n",
    );
    write(
        "hundred.dbt",
        &handwritten(&good).replacen(" note work", " note play", 1),
    );
    for command in ["check", "correct -o out.dbt"] {
        folder.refuses(
            &format!("{command} nothing.dbt"),
            "nothing.dbt: No such file",
        );
        folder.refuses(
            &format!("{command} ."),
            ".: no anchor file, NAME.otf2, is in this folder",
        );
        folder.refuses(&format!("{command} cut.dbt"), ": the file is cut off here");
        folder.refuses(
            &format!("{command} other.dbt"),
            "other.dbt: line 1: version \"7\" is not known here",
        );
        folder.refuses(
            &format!("{command} a.dbt --latencies 2us,1us,1us"),
            "'--latencies <LATENCIES>': latencies must not decrease",
        );
        folder.refuses(
            &format!("{command} a.dbt --latencies NaN"),
            "NaN: No such file",
        );
        folder.refuses(
            &format!("{command} a.dbt --latencies -1us"),
            "must not be negative",
        );
        folder.refuses(
            &format!("{command} a.dbt --latencies latencies.toml"),
            "latencies.toml: same-node: a duration needs",
        );
    }
    folder.refuses(
        "correct a.dbt -o out.dbt --rewrite",
        "--rewrite: a.dbt is not an OTF2 archive; this option only applies to archives",
    );
    folder.refuses(
        "correct circle.dbt -o out.dbt",
        "circle.dbt: events wait for each other in a circle: event ",
    );
    folder.refuses(
        "correct alone.dbt -o out.dbt --pre-synchronization linear --gradient 0",
        "--gradient",
    );
    folder.refuses(
        "correct a.dbt -o out.dbt --control 1.5",
        "must be a number from 0 to 1",
    );
    folder.refuses("correct a.dbt -o out.dbt --max-passes 0", "--max-passes");
    folder.refuses("correct a.dbt -o out.dbt --threads 0", "--threads");
    folder.refuses("correct a.dbt -o out.dbt --threads 8abc", "--threads");
    folder.refuses("correct a.dbt -o out.dbt --truth cut.dbt", "cut.dbt: line ");
    folder.refuses(
        "correct a.dbt -o out.dbt --truth alone.dbt",
        "--truth: alone.dbt is not the same trace as a.dbt",
    );
    folder.refuses(
        "correct a.dbt -o no/such/out.dbt",
        "-o: no/such/out.dbt: No such file",
    );
    folder.refuses(
        "correct a.dbt -o /dev/full",
        "-o: /dev/full: it is not a file",
    );
    folder.refuses("correct a.dbt", "--output <OUT>");
    folder.refuses("generate -o out.dbt --nodes 0", "--nodes");
    folder.refuses(
        "generate -o out.dbt --sessions 2 --samples 0",
        "samples must be positive",
    );
    folder.refuses(
        "generate -o no/such/out.dbt",
        "-o: no/such/out.dbt: No such file",
    );
}

/// Recordings that are missing, of a later version, or cut.
#[test]
fn recordings_that_cannot_be_read_are_refused() {
    let folder = TraceFolder::new("recordings");
    folder.refuses(
        "merge no-recording -o new.dbt",
        "no-recording: No such file",
    );
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measure/recording/tests/golden/version-1");
    let whole = fs::read(golden.join("rank-0.dbrank")).expect("it is there");
    let later = [&whole[..7], &[99], &whole[8..]].concat();
    for (name, bytes) in [("later", &later[..]), ("cut", &whole[..20]), ("empty", &[])] {
        fs::create_dir(folder.path(name)).expect("there can be a folder");
        fs::write(folder.path(name).join("rank-0.dbrank"), bytes).expect("it can be written");
        let culprit = format!("{name}/rank-0.dbrank: ");
        folder.refuses(&format!("merge {name} -o new.dbt"), &culprit);
        folder.refuses(
            &format!("merge {name} -o {name}/rank-0.dbrank"),
            "which is only read",
        );
    }
}

/// Such a trace is corrected first, and then converted; nothing is touched.
#[test]
fn a_recording_is_not_merged_into_a_picture() {
    let folder = TraceFolder::new("merged-picture");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measure/recording/tests/golden/version-1");
    fs::create_dir_all(folder.path("run/measured")).expect("there can be a folder");
    fs::write(folder.path("run/measured/traces.otf2"), "of a user").expect("it can be written");
    for rank in ["rank-0.dbrank", "rank-1.dbrank"] {
        fs::copy(golden.join(rank), folder.path("run").join(rank)).expect("it can be written");
    }
    for picture in ["picture.pftrace", "picture.perfetto-trace"] {
        let command = format!("merge run -o {picture}");
        folder.refuses(&command, &format!("--output: {picture}: "));
        folder.refuses(&command, "downbeat trace convert writes other formats");
    }
    let kept = fs::read(folder.path("run/measured/traces.otf2")).expect("it is there");
    assert_eq!(kept, b"of a user");
    assert_eq!(
        fs::read_dir(folder.path("run"))
            .expect("it is there")
            .count(),
        3
    );
    assert_eq!(folder.names(), ["run"]);
}

/// An archive that can still be read is read, and the change is told.
#[test]
fn a_changed_archive_is_told() {
    let folder = TraceFolder::new("changed");
    folder.says("generate -o a --truth truth --nodes 2 --events 400");
    assert!(!folder.says("check truth").contains("checksum"));
    let anchor = folder.path("truth/traces.otf2");
    let bytes = fs::read(&anchor).expect("it is there");
    let at = bytes.windows(8).position(|bytes| bytes == b"Downbeat");
    let mut changed = bytes.clone();
    changed[at.expect("it names its creator")] = b'T';
    fs::write(&anchor, changed).expect("it can be written");
    let line =
        "truth/traces.otf2: its checksum is wrong: it is damaged, or another program changed it\n";
    let (why, found) = folder.fails(1, "check truth");
    assert!(found.contains(line), "{found}");
    assert!(
        why.contains("truth/traces.otf2: 1 file with wrong checksums"),
        "{why}"
    );
    let (_, found) = folder.fails(1, "check truth --json");
    assert_eq!(json(&found)["contents"]["changed"][0], "truth/traces.otf2");
    for command in [
        "correct truth -o corrected",
        "waits truth",
        "show truth -o page.html",
        "convert truth text.dbt",
    ] {
        let output = folder.call(command);
        assert!(output.status.success(), "{command}");
        assert_eq!(text(&output.stderr), line, "{command}");
        let said = text(&output.stdout);
        assert!(!said.contains("checksum"), "{command}: {said}");
    }
    let page = fs::read_to_string(folder.path("page.html")).expect("it is there");
    assert!(page.contains(line.trim_end()), "{page}");
    assert!(!folder.says("check truth --no-verify").contains("checksum"));
}

/// An output that cannot be written is refused before anything is merged.
#[test]
fn a_merged_trace_replaces_no_folder() {
    let folder = TraceFolder::new("merged");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measure/recording/tests/golden/version-1/rank-0.dbrank");
    fs::create_dir(folder.path("run")).expect("there can be a folder");
    fs::copy(golden, folder.path("run/rank-0.dbrank")).expect("it can be written");
    fs::create_dir(folder.path("archive")).expect("there can be a folder");
    folder.refuses(
        "merge run -o archive",
        "--output: archive: this already exists",
    );
    folder.refuses("merge run -o run.json", "--output: run.json: the name must");
    assert!(!folder.path("run/measured").exists());
}

/// Returns a trace of two locations.
fn of_two(body: &str) -> String {
    format!(
        "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n{body}"
    )
}

/// Events without their counterparts, as they are recorded when a program is killed.
#[test]
fn what_is_incomplete_is_counted_by_kind() {
    let folder = TraceFolder::new("left-out");
    let in_all = "collective-end 0 allreduce 0 both\n";
    for (events, [sends, receives, collectives]) in [
        ("0 0 send 1 0 0\nend 1\n", [1, 0, 0]),
        ("1 0 receive 0 0 0\nend 1\n", [0, 1, 0]),
        (&format!("0 0 collective 0\n0 1 {in_all}end 2\n"), [0, 0, 1]),
        (
            &format!("0 0 collective 0\n1 0 collective 0\n0 1 {in_all}end 3\n"),
            [0, 0, 1],
        ),
        ("0 0 collective 0\n1 0 collective 0\nend 2\n", [0, 0, 1]),
        // Requests that are never completed; no message is missing for the first one.
        ("0 0 receive-post 7\n1 0 send 0 0 0\nend 2\n", [1, 0, 0]),
        (
            "0 0 collective-start 0 7\n1 0 collective-start 0 7\nend 2\n",
            [0, 0, 1],
        ),
    ] {
        fs::write(folder.path("a.dbt"), of_two(events)).expect("it can be written");
        let counted = |number: u32, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let line = format!(
            "Left out: {} without a receive, {} without a send, {} without some members\n",
            counted(sends, "message"),
            counted(receives, "message"),
            counted(collectives, "collective operation")
        );
        for arguments in [
            "check a.dbt",
            "correct a.dbt -o out.dbt",
            "check out.dbt --against a.dbt",
            "waits a.dbt",
            "show a.dbt -o page.html",
        ] {
            let said = folder.says(arguments);
            assert!(
                said.split_inclusive('\n').any(|said| said == line),
                "{arguments}: {said}"
            );
        }
        let said = folder.says("check a.dbt --json");
        let said: Value = serde_json::from_str(&said).expect("it is JSON");
        let left_out = &said["contents"]["left_out"];
        let found = ["sends", "receives", "collectives"].map(|kind| &left_out[kind]);
        assert_eq!(found, [sends, receives, collectives], "{events}");
    }
}

/// Traces with a defect, and the errors.
#[test]
fn every_defect_is_one_error() {
    let folder = TraceFolder::new("defects");
    let defects = [
        ("0 0 note x\n0 5 note", "line 6: the file is cut off here"),
        ("0 0 note x\n", "line 6: the file is cut off here"),
        ("0 0 note x\nend 2\n", "line 6: "),
        (
            "0 5 note x\n0 4 note y\nend 2\n",
            "line 6: event 1 of location 0 is earlier than the event before it",
        ),
        (
            "0 0 collective-end 0 barrier 0 both\nend 1\n",
            "line 5: event 0 of location 0 leaves a collective operation that was not entered",
        ),
        (
            "0 0 receive 1 0 0\n0 1 send 1 0 0\n1 0 receive 0 0 0\n1 1 send 0 0 0\nend 4\n",
            "events wait for each other in a circle: event 0 of location 0 for event 1 of location 1, which is after event 0 \
             of location 1 for event 1 of location 0, which is after the first",
        ),
    ];
    for (body, error) in defects {
        let text = of_two(body);
        fs::write(folder.path("a.dbt"), &text).expect("it can be written");
        folder.refuses("correct a.dbt -o out.dbt", &format!("a.dbt: {error}"));
        assert_eq!(
            fs::read_to_string(folder.path("a.dbt")).expect("it is there"),
            text
        );
    }
}

/// A clock that was set, and one whose second session is not the first one in time.
#[test]
fn sessions_that_contradict_earlier_ones_are_counted() {
    let folder = TraceFolder::new("sessions");
    for (samples, count) in [
        ("sample 1 1 100 900\nsample 1 2 200 190\n", 2),
        ("sample 1 1 100 100\nsample 1 2 90 110\n", 1),
    ] {
        let locations = "location 0 0 0 a\nlocation 1 1 1 b\n";
        let text = format!(
            "# downbeat trace 1 without checksum\n{locations}sample 1 0 0 0\n{samples}end 0\n"
        );
        fs::write(folder.path("a.dbt"), text).expect("it can be written");
        let said = folder.says("correct a.dbt -o out.dbt");
        let line = format!("Sessions left out because they contradict earlier ones: {count}\n");
        assert!(said.contains(&line), "{said}");
    }
}

/// A limited file size is like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let folder = TraceFolder::new("full");
    folder.says("generate -o a.dbt --events 20000");
    fs::write(folder.path("out.dbt"), "before").expect("it can be written");
    let (code, said) = folder.limited("ulimit -f 8; trap '' XFSZ", "correct a.dbt -o out.dbt");
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(
        said.starts_with("downbeat: ") && said.contains("out.dbt: File too large"),
        "{said}"
    );
    assert_eq!(
        fs::read(folder.path("out.dbt")).expect("it is there"),
        b"before"
    );
    assert_eq!(folder.names(), ["a.dbt", "out.dbt"]);
}

#[test]
fn the_examples_of_the_help_work() {
    let program = Path::new(env!("CARGO_BIN_EXE_downbeat"));
    let folder = TraceFolder::new("help");
    for command in ["show", "waits", "convert"] {
        let help = folder.says(&format!("{command} --help"));
        assert!(help.contains(".json.gz"), "{help}");
    }
    for command in ["correct", "check", "convert", "generate"] {
        let help = folder.says(&format!("{command} --help"));
        let examples: String = help
            .split_once("Examples:\n")
            .expect("there are examples")
            .1
            .to_owned();
        // The help is wrapped to the width of the terminal.
        let examples = examples
            .replace("\\\n    ", "")
            .replace('\n', " ")
            .replace("  downbeat", "\ndownbeat");
        for example in examples
            .split('\n')
            .map(str::trim)
            .filter(|example| !example.is_empty())
        {
            assert!(example.starts_with("downbeat trace "), "{example}");
            let mut shell = Command::new("sh");
            shell.args(["-c", example]).current_dir(&folder.0);
            let others = std::env::var("PATH").unwrap_or_default();
            shell.env(
                "PATH",
                format!(
                    "{}:{others}",
                    program.parent().expect("it is in a folder").display()
                ),
            );
            let output = shell.output().expect("there is a shell");
            // The check of the wrong trace finds violations.
            let finds = example.ends_with("check wrong.dbt");
            assert_eq!(
                output.status.code(),
                Some(i32::from(finds)),
                "{example}: {}",
                text(&output.stderr)
            );
        }
    }
}
