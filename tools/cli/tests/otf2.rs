//! Command-line tests of `downbeat trace` with OTF2 archives, written by the OTF2 library.
#![expect(clippy::unwrap_used, clippy::panic, reason = "all of this is a test")]

#[path = "otf2/damage.rs"]
mod damage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Returns the program that writes archives, compiled once.
fn writer() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("otf2-archive-{}", std::process::id()));
        let flags = Command::new("otf2-config")
            .args(["--cflags", "--ldflags", "--libs"])
            .output()
            .unwrap();
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../measure/trace/tests/otf2/archive.c"
        );
        let flags = String::from_utf8(flags.stdout).unwrap();
        let mut cc = Command::new("cc");
        cc.arg("-o")
            .arg(&program)
            .arg(source)
            .args(flags.split_whitespace());
        assert!(cc.status().unwrap().success());
        program
    })
}

/// Working directory of a test.
struct ArchiveFolder(PathBuf);

impl ArchiveFolder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("trace-otf2-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Adds an archive, `NAME/traces.otf2`.
    fn with_archive(self, name: &str, ticks: u64, rounds: u32) -> Self {
        let (ticks, rounds) = (ticks.to_string(), rounds.to_string());
        let to = self.0.join(name);
        let mut program = Command::new(writer());
        assert!(
            program
                .arg(to)
                .args([&ticks, &rounds, name])
                .status()
                .unwrap()
                .success()
        );
        self
    }

    fn command(&self, arguments: &str) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        program
            .arg("trace")
            .args(arguments.split_whitespace())
            .current_dir(&self.0);
        program
    }

    /// Runs the program, with a timeout.
    fn call(&self, arguments: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                child.kill().unwrap();
                panic!("{arguments}: it does not end");
            }
            thread::sleep(Duration::from_millis(2));
        }
        child.wait_with_output().unwrap()
    }

    fn says(&self, arguments: &str) -> String {
        let output = self.call(arguments);
        assert!(
            output.status.success(),
            "{arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the line of a failure.
    fn fails(&self, code: i32, arguments: &str) -> String {
        let output = self.call(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert!(
            said.lines().count() == 1 && said.starts_with("downbeat: "),
            "{arguments}: {said}"
        );
        said
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Does the same for a folder that is not deleted.
    fn kept(self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.files();
        std::mem::forget(self);
        files
    }

    /// Returns all files and folders with their content.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = vec![];
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                let content = if path.is_dir() {
                    vec![]
                } else {
                    fs::read(&path).unwrap()
                };
                found.push((path, content));
            }
        }
        found.sort_unstable();
        found
    }
}

impl Drop for ArchiveFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const LATENCIES: &str = "--latencies 500ns";

#[test]
fn an_archive_is_corrected_and_nothing_else_of_it_changed() {
    for (variant, ticks, clock_of) in [
        ("plain", 1_000_000_000, "process"),
        // Markers, snapshots and samples of thumbnails move, too.
        ("marked", 1_000_000_000, "process"),
        ("shared", 1_000_000_000, "process"),
        ("shared", 1_000_000_000, "location"),
        ("corrected", 2_593_993_000, "process"),
        // Ticks that are longer than a nanosecond, also than the latency.
        ("plain", 1_000_000, "process"),
        ("corrected", 100_000_000, "process"),
        ("corrected", 300_000_007, "location"),
        ("shared", 1_000_000, "process"),
    ] {
        for rewrite in ["", "--rewrite"] {
            let options = format!("{LATENCIES} --clock-of {clock_of}");
            let folder = ArchiveFolder::new(&format!("{variant}{ticks}{clock_of}{rewrite}"))
                .with_archive(variant, ticks, 200);
            let before = folder.files();
            let anchor = format!("{variant}/traces.otf2");
            let why = folder.fails(1, &format!("check {anchor} {options}"));
            assert!(why.contains(" violations"), "{why}");
            let said = folder.says(&format!(
                "correct {anchor} -o to --json {options} {rewrite}"
            ));
            let said: Value = serde_json::from_str(&said).unwrap();
            assert!(
                said["as_measured"]["messages"]["violated"].as_u64() > Some(0),
                "{said}"
            );
            assert_eq!(said["corrected"]["holds"], true);
            let rewritten = said["archive"]["rewritten"].as_array().unwrap().len();
            let expected = if rewrite.is_empty() {
                // Events that a thread and its process recorded at one time move apart.
                usize::from(clock_of == "location")..4
            } else {
                4..5
            };
            assert!(expected.contains(&rewritten), "{said}");
            let knots = said["archive"]["clock_offsets"].as_u64().unwrap();
            // One location is not moved, and its files are copied.
            assert_eq!(knots == 0, rewritten >= 3, "{said}");
            // The corrected archive is read again.
            let checked = folder.says(&format!(
                "check to/traces.otf2 --against {anchor} {options}"
            ));
            assert!(
                checked.contains(&format!("\nSince {anchor}, ")),
                "{checked}"
            );
            if rewrite.is_empty() {
                // What is right already is not touched.
                let said = folder.says(&format!("correct to/traces.otf2 -o again {options}"));
                assert!(
                    said.contains(": nothing moved; no violation is left"),
                    "{said}"
                );
                for (path, content) in ArchiveFolder(folder.path("to")).kept() {
                    let again = path.strip_prefix(folder.path("to")).unwrap();
                    let again = folder.path("again").join(again);
                    assert!(
                        again.is_dir() || fs::read(&again).unwrap() == content,
                        "{path:?}"
                    );
                }
                fs::remove_dir_all(folder.path("again")).unwrap();
            }
            fs::rename(folder.path("to"), folder.path("../to-elsewhere")).unwrap();
            assert_eq!(
                folder.files(),
                before,
                "the input is as it was, and nothing is left behind"
            );
            fs::remove_dir_all(folder.path("../to-elsewhere")).unwrap();
        }
    }
}

#[test]
fn clock_offsets_become_sessions() {
    let folder = ArchiveFolder::new("sessions").with_archive("corrected", 1_000_000_000, 50);
    let method = |options: &str| {
        let said = folder.says(&format!(
            "correct corrected/traces.otf2 -o to --json {LATENCIES} {options}"
        ));
        fs::remove_dir_all(folder.path("to")).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        let violated = said["pre_synchronized"]["messages"]["violated"]
            .as_u64()
            .unwrap();
        (
            said["pre_synchronization"]["method"]
                .as_str()
                .unwrap()
                .to_owned(),
            violated,
        )
    };
    let (name, archive) = method("");
    assert_eq!(name, "archive");
    let (name, none) = method("--pre-synchronization none");
    assert_eq!(name, "none");
    let (name, linear) = method("--pre-synchronization linear");
    assert_eq!(name, "linear");
    assert!(
        none != archive && none != linear,
        "{none} {archive} {linear}"
    );
}

/// Clock offsets at one time only, and none at all, leave the rest to messages.
#[test]
fn messages_tell_what_clock_offsets_do_not() {
    let folder = ArchiveFolder::new("hulls")
        .with_archive("lonely", 1_000_000_000, 200)
        .with_archive("plain", 1_000_000_000, 200)
        .with_archive("corrected", 1_000_000_000, 100);
    for (variant, warns) in [("lonely", true), ("plain", false), ("corrected", false)] {
        let anchor = format!("{variant}/traces.otf2");
        let said = folder.says(&format!("correct {anchor} -o to-{variant} {LATENCIES}"));
        let warning = "The clock offsets of the archive cover 0 ns of ";
        assert_eq!(said.contains(warning), warns, "{said}");
        let hull =
            "(hull, by messages; if clocks drift at constant rates, their errors are at most ";
        assert_eq!(said.contains(hull), variant != "corrected", "{said}");
        folder.says(&format!("check to-{variant}/traces.otf2 {LATENCIES}"));
        fs::remove_dir_all(folder.path(&format!("to-{variant}"))).unwrap();
    }
}

#[test]
fn a_different_archive_is_not_a_corrected_one() {
    let folder = ArchiveFolder::new("other").with_archive("plain", 1_000_000_000, 20);
    folder.says(&format!("correct plain/traces.otf2 -o to {LATENCIES}"));
    let path = folder.path("to/traces/7.evt");
    let mut content = fs::read(&path).unwrap();
    // Change the tag of the first message.
    let at = content
        .windows(4)
        .position(|bytes| bytes == [0, 1, 7, 1])
        .unwrap();
    content[at + 2] = 8;
    fs::write(&path, content).unwrap();
    let why = folder.fails(1, "check to/traces.otf2 --against plain/traces.otf2");
    assert!(
        why.contains("to/traces/7.evt: event 3: differs from plain/traces/7.evt here"),
        "{why}"
    );
    folder.says("generate -o a.dbt --events 100");
    let why = folder.fails(2, "check to/traces.otf2 --against a.dbt");
    assert!(
        why.contains("to/traces.otf2: a.dbt has another format"),
        "{why}"
    );
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = ArchiveFolder::new("bad").with_archive("plain", 1_000_000_000, 2);
    folder.says("generate -o a.dbt --events 100");
    let before = folder.files();
    for (arguments, expected) in [
        ("check none.otf2", "none.otf2: No such file"),
        ("correct none.otf2 -o to", "none.otf2: No such file"),
        (
            "correct plain/traces.otf2 -o plain",
            "-o: plain: this already exists",
        ),
        (
            "correct plain/traces.otf2 -o to.otf2",
            "-o: to.otf2: an archive is written to a folder, not to a file",
        ),
        (
            "correct plain/traces.otf2 -o no/such",
            "-o: no/such: No such file",
        ),
        ("correct plain/traces.otf2 -o /proc/to", "-o: /proc/to: "),
        (
            "correct a.dbt -o b.dbt --rewrite",
            "--rewrite: a.dbt is not an OTF2 archive",
        ),
    ] {
        let why = folder.fails(2, arguments);
        assert!(why.contains(expected), "{arguments}: {why}");
    }
    fs::create_dir(folder.path("folder.otf2")).unwrap();
    assert!(
        folder
            .fails(2, "check folder.otf2")
            .contains("folder.otf2: no anchor file, NAME.otf2, is in this folder")
    );
    fs::remove_dir(folder.path("folder.otf2")).unwrap();
    for name in ["traces/20.evt", "traces/3.def", "traces.def"] {
        let path = folder.path("plain").join(name);
        let content = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let why = folder.fails(2, "correct plain/traces.otf2 -o to");
        assert!(
            why.contains(&format!("plain/{name}: No such file")),
            "{why}"
        );
        fs::write(&path, content).unwrap();
    }
    assert_eq!(folder.files(), before);
}

#[test]
fn truncated_archives_are_refused() {
    let folder = ArchiveFolder::new("cut").with_archive("corrected", 1_000_000_000, 1);
    for name in [
        "traces.otf2",
        "traces.def",
        "traces/7.def",
        "traces/7.evt",
        "traces/20.evt",
    ] {
        let path = folder.path("corrected").join(name);
        let content = fs::read(&path).unwrap();
        let step = if name == "traces.otf2" { 1 } else { 11 };
        for length in (0..content.len()).rev().step_by(step) {
            fs::write(&path, &content[..length]).unwrap();
            let why = folder.fails(2, "correct corrected/traces.otf2 -o to");
            assert!(
                why.contains("corrected/traces"),
                "{name}, {length} bytes: {why}"
            );
        }
        fs::write(&path, content).unwrap();
    }
    folder.says("check corrected/traces.otf2 --latencies 0 --json --against corrected/traces.otf2");
}

/// OTF2's own reader may not end if numbers are damaged.
#[test]
fn a_damaged_anchor_neither_crashes_nor_hangs() {
    let folder = ArchiveFolder::new("anchor").with_archive("plain", 1_000_000_000, 1);
    let path = folder.path("plain/traces.otf2");
    let content = fs::read(&path).unwrap();
    for at in 0..content.len() {
        for byte in [content[at] ^ 1, content[at] ^ 0x80, 0xff] {
            let mut damaged = content.clone();
            damaged[at] = byte;
            fs::write(&path, damaged).unwrap();
            let output = folder.call("check plain/traces.otf2");
            let said = String::from_utf8_lossy(&output.stderr);
            // Some bytes, such as those of the trace's number, may have any value.
            let fine =
                output.status.code().is_some_and(|code| code <= 2) && said.lines().count() <= 1;
            assert!(fine, "byte {at} is {byte}: {:?} {said}", output.status);
        }
    }
}

#[test]
fn a_signal_leaves_nothing_behind() {
    use std::os::unix::process::ExitStatusExt as _;
    let folder = ArchiveFolder::new("signal").with_archive("plain", 1_000_000_000, 4_000);
    folder.says("generate -o a.dbt --events 400000");
    for (arguments, output, trace) in [
        ("correct a.dbt -o b.dbt", "b.dbt", "b.dbt"),
        (
            "correct plain/traces.otf2 -o to --rewrite",
            "to",
            "to/traces.otf2",
        ),
    ] {
        let names = || {
            let entries = fs::read_dir(&folder.0).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort_unstable();
            names
        };
        let before = names();
        let part = || {
            names()
                .iter()
                .any(|name| name.as_encoded_bytes().ends_with(b".part"))
        };
        // The first temporary file is the one that tests whether the output can be written.
        let mut child = folder
            .command(arguments)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !(part() && begun.elapsed() > Duration::from_millis(50))
            && child.try_wait().unwrap().is_none()
        {
            thread::sleep(Duration::from_millis(1));
        }
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        let status = child.wait().unwrap();
        // It may have ended before the signal.
        if killed.success() && status.signal() == Some(2) {
            // The output may have been complete before the signal.
            let left: Vec<_> = names()
                .into_iter()
                .filter(|name| !before.contains(name))
                .collect();
            if !left.is_empty() {
                assert_eq!(left, [output], "{arguments}");
                folder.says(&format!("check {trace}"));
            }
        } else {
            assert!(status.success(), "{status}");
        }
    }
}

#[test]
fn an_archive_is_converted() {
    let folder = ArchiveFolder::new("convert").with_archive("corrected", 1_000_000_000, 30);
    let before = folder.files();
    let said = folder.says("convert corrected/traces.otf2 a.dbt");
    assert!(
        said.starts_with("a.dbt: 4 locations, ")
            && said.contains("\nLeft out, of unsupported kinds: ")
            && said.contains("Parameter"),
        "{said}"
    );
    folder.says("convert corrected/traces.otf2 raw.dbt --as-recorded");
    let [added, raw] =
        ["a.dbt", "raw.dbt"].map(|name| fs::read_to_string(folder.path(name)).unwrap());
    let lines = |text: &str, what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        (lines(&added, "sample "), lines(&added, "region ")),
        (0, lines(&raw, "region "))
    );
    assert!(
        lines(&raw, "sample ") >= 6
            && lines(&raw, " send ") == lines(&added, " send ")
            && lines(&raw, " send ") > 30
    );
    // Events are in the order of time.
    let is_event = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    let events = added.lines().filter(is_event);
    let times = events.map(|line| line.split(' ').nth(1).unwrap().parse::<i64>().unwrap());
    assert!(times.clone().count() > 300 && times.is_sorted());
    // The number of events, before the checksum.
    assert_eq!(added.lines().nth_back(1), raw.lines().nth_back(1));

    let [archive, file] = ["corrected/traces.otf2", "a.dbt"]
        .map(|name| {
            folder
                .call(&format!("check {name} --latencies 500ns --json"))
                .stdout
        })
        .map(|said| serde_json::from_slice::<Value>(&said).unwrap());
    assert_eq!(
        archive["violations"]["faults"].as_array().unwrap().len(),
        file["violations"]["faults"].as_array().unwrap().len()
    );
    assert_eq!(
        archive["contents"]["messages"],
        file["contents"]["messages"]
    );
    folder.says("convert corrected/traces.otf2 a.pftrace");
    let shown = fs::read(folder.path("a.pftrace")).unwrap();
    assert!(
        ["!$omp barrier", "MPI_Init_thread", "location 3"]
            .iter()
            .all(|name| {
                shown
                    .windows(name.len())
                    .any(|bytes| bytes == name.as_bytes())
            })
    );
    let after: Vec<_> = folder
        .files()
        .into_iter()
        .filter(|(path, _)| path.starts_with(folder.path("corrected")))
        .collect();
    assert!(
        before
            .iter()
            .filter(|(path, _)| path.starts_with(folder.path("corrected")))
            .eq(&after)
    );

    // A damaged archive gives one line.
    let cut = folder.path("corrected/traces/20.evt");
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    assert!(
        folder
            .fails(2, "convert corrected/traces.otf2 b.pftrace")
            .contains("traces/20.evt: ")
    );
    assert!(!folder.path("b.pftrace").exists());
}

/// Returns the contents of all files in a folder, by their names.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(contents(&path)),
            false => all.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn an_archive_corrected_in_a_file_equals_one_in_memory() {
    for (name, ticks) in [
        ("plain", 1_000_000_000),
        ("requests", 2_600_000_000),
        ("kinds", 100_000_000),
        ("marked", 1_000_000),
        ("corrected", 1_000_000_000),
        ("flushed", 1_000_000_000),
        ("shared", 1_000_000_000),
    ] {
        let folder = ArchiveFolder::new(&format!("in-file-{name}")).with_archive(name, ticks, 60);
        for options in [
            "",
            "--rewrite --clock-of location",
            "--pre-synchronization hull",
            "--pre-synchronization linear --no-backward",
            "--latencies 200ns,500ns,2us",
        ] {
            let results = ["", "--temporary ."].map(|place| {
                let said = folder.says(&format!(
                    "correct {name}/traces.otf2 -o out {options} --json {place}"
                ));
                let mut said: Value = serde_json::from_str(&said).unwrap();
                assert_eq!(said["in_file"].take(), !place.is_empty());
                let files = contents(&folder.0.join("out"));
                fs::remove_dir_all(folder.0.join("out")).unwrap();
                (said, files)
            });
            let [memory, file] = results;
            assert_eq!(memory.0, file.0, "{name} {options}");
            assert!(memory.1 == file.1, "{name} {options}");
        }
    }
}

#[test]
fn bad_archives_are_refused_as_in_memory() {
    let folder = ArchiveFolder::new("in-file-bad").with_archive("repeated", 1_000_000_000, 20);
    let lines = ["", "--temporary ."]
        .map(|place| folder.fails(2, &format!("correct repeated/traces.otf2 -o out {place}")));
    assert_eq!(lines[0], lines[1]);
    assert!(!folder.0.join("out").exists());
}

/// All commands count, in the same words, what is incomplete, and mistakes that other
/// readers accept.
#[test]
fn incomplete_archives_are_read_by_all_commands() {
    for (name, counted) in [
        (
            "unmatched",
            "Left out: 1 message without a receive, 0 messages without a send, 0 collective operations ",
        ),
        (
            "unended",
            "Left out: 0 messages without a receive, 0 messages without a send, 1 collective operation ",
        ),
        (
            "unbegun",
            "Not examined, collective operations that were not begun: 1\n",
        ),
        (
            "stranger",
            "Not examined, messages and operations with an undefined peer or communicator: 1\n",
        ),
        (
            "loose",
            "Accepted: 1 definition given twice, 4 locations with another number of events than defined\n",
        ),
        (
            "kinds",
            "Not examined, non-blocking collective operations that were not completed: 1\n",
        ),
    ] {
        let folder = ArchiveFolder::new(&format!("incomplete-{name}"));
        // Further rounds would be matched with those before, against their order.
        let is_short = ["unended", "unbegun", "stranger"].contains(&name);
        let rounds = if is_short { 1 } else { 20 };
        let folder = folder.with_archive(name, 1_000_000_000, rounds);
        let waits = folder.says(&format!("waits {name}/traces.otf2"));
        let shown = folder.says(&format!("show {name}/traces.otf2 -o page.html"));
        let corrected = folder.says(&format!("correct {name}/traces.otf2 -o out"));
        // Times that were wrong are violations.
        let output = folder.call(&format!("check {name}/traces.otf2"));
        let checked = String::from_utf8_lossy(&output.stdout);
        for said in [&*waits, &*shown, &*corrected, &*checked] {
            assert!(said.contains(counted), "{name}: {said}");
        }
        let against = format!("check out/traces.otf2 --against {name}/traces.otf2");
        assert!(folder.says(&against).contains(counted), "{name}");
        let converted = folder.says(&format!("convert {name}/traces.otf2 out.dbt"));
        assert_eq!(converted.contains(counted), name == "loose", "{converted}");
        if !name.starts_with("un") {
            // All collective operations are complete, those of teams of threads, too.
            assert!(
                !waits.contains("Left out: ") || name == "stranger",
                "{waits}"
            );
        }
        assert!(waits.contains("\nwait at "), "{waits}");
        let said = folder.says(&format!("waits {name}/traces.otf2 --json"));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["schema"], "downbeat.trace_waits");
    }
}

/// Gives a property in a file another name of the same length.
fn rename_property(path: &Path, from: &str, to: &str) {
    let mut bytes = fs::read(path).unwrap();
    let mut places = bytes.windows(from.len());
    let at = places.position(|found| found == from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    fs::write(path, bytes).unwrap();
}

/// The end of an operation tells what its begin is: the events between them do not wait
/// for it.
#[cfg(target_os = "linux")]
#[test]
fn an_operation_that_never_ends_takes_no_memory() {
    let folder = ArchiveFolder::new("endless");
    let head = "# downbeat trace 1 without checksum\nlocation 0 0 0 rank 0\nlocation 1 1 1 rank 1\ncommunicator 0 0 1\n\
                region 0 work\n0 1 collective-start 0 7\n1 1 collective-start 0 8\n";
    let calls = 100_000;
    let call = |number: i64| {
        let at = 10 * number;
        format!("0 {at} enter 0\n0 {} leave 0\n", at + 5)
    };
    let body: String = (1..=calls).map(call).collect();
    let end = 10 * calls + 10;
    let completed = format!(
        "0 {end} collective-complete 0 barrier 0 both 7\n1 {end} collective-complete 0 barrier 0 both 8\n"
    );
    let (start, note) = (
        "0 1 collective-start 0 7\n",
        "0 1 note non-blocking collective operation\n",
    );
    // Only archives of traces state what begins where nothing ends.
    for (tail, property, begin, operations) in [
        ("", "DOWNBEAT::EVENTS", start, 1),
        (&completed, "DOWNBEAT::EVENTS", start, 1),
        ("", "STRANGER::EVENTS", note, 0),
        (&completed, "STRANGER::EVENTS", start, 1),
    ] {
        let events = 2 * calls as usize + 2 + tail.lines().count();
        let text = format!("{head}{body}{tail}end {events}\n");
        fs::write(folder.path("a.dbt"), text).unwrap();
        folder.says("convert a.dbt archive");
        let anchor = "archive/traces.otf2";
        rename_property(&folder.path(anchor), "DOWNBEAT::EVENTS", property);
        for arguments in [format!("waits {anchor}"), format!("convert {anchor} b.dbt")] {
            let program = env!("CARGO_BIN_EXE_downbeat");
            let script = format!("ulimit -d 12000; exec {program} trace {arguments}");
            let mut shell = Command::new("sh");
            let output = shell.args(["-c", &script]).current_dir(&folder.0).output();
            let output = output.unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments}: {said}");
        }
        let back = fs::read_to_string(folder.path("b.dbt")).unwrap();
        assert!(back.contains(begin), "{property}");
        assert!(back.contains(&format!("\nend {events}\n")));
        let said = folder.says(&format!("check {anchor} --json --no-verify"));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["contents"]["collectives"], operations, "{property}");
        fs::remove_dir_all(folder.path("archive")).unwrap();
    }
}

/// Returns what OTF2's own program prints about an archive, without warnings.
fn printed(folder: &ArchiveFolder, arguments: &[&str]) -> String {
    let output = Command::new("otf2-print")
        .args(arguments)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn any_trace_becomes_an_archive() {
    let folder = ArchiveFolder::new("create").with_archive("requests", 1_000_000_000, 20);
    folder.says(
        "generate -o plain.dbt --nodes 2 --processes 2 --threads 2 --fork-every 3 --events 4000",
    );
    folder.says("generate -o requests.dbt --nodes 3 --asynchronous --sessions 0 --events 4000");
    for (input, new) in [
        ("plain.dbt", "a"),
        ("requests.dbt", "b"),
        ("requests/traces.otf2", "c"),
    ] {
        let said = folder.says(&format!("convert {input} {new}"));
        assert!(said.starts_with(&format!("{new}/traces.otf2: ")), "{said}");
        let anchor = format!("{new}/traces.otf2");
        let lines = printed(&folder, &[&anchor]);
        let kinds = |kind: &str| lines.lines().filter(|line| line.starts_with(kind)).count();
        assert!(
            kinds("MPI_SEND") > 20 && lines.contains("Receiver: "),
            "{new}"
        );
        assert!(printed(&folder, &["-G", &anchor]).contains("COMM_LOCATIONS"));
        // The same relations, with the same violations.
        let [before, after] = [input, &anchor].map(|name| {
            let options = "--latencies 200ns,500ns,2us --json";
            let said = folder.call(&format!("check {name} {options}")).stdout;
            serde_json::from_slice::<Value>(&said).unwrap()
        });
        for count in ["messages", "collectives"] {
            for part in ["contents", "violations"] {
                assert_eq!(after[part][count], before[part][count], "{new}");
            }
        }
        let format = format!("correct {anchor} --latencies 200ns,500ns,2us -o {new}2");
        folder.says(&format);
    }
    let lines = printed(&folder, &["a/traces.otf2"]);
    let count = |kind: &str| lines.lines().filter(|line| line.starts_with(kind)).count();
    assert!(count("THREAD_FORK") > 0 && count("THREAD_FORK") == count("THREAD_JOIN"));
    assert_eq!(count("THREAD_TEAM_BEGIN"), 2 * count("THREAD_FORK"));
    assert_eq!(count("THREAD_TEAM_END"), 2 * count("THREAD_FORK"));
    assert!(printed(&folder, &["-G", "a/traces.otf2"]).contains("\"MPI Rank 3\""));

    let exists = folder.fails(2, "convert plain.dbt a");
    assert!(exists.contains("OUT: a: this already exists"), "{exists}");
    let file = folder.fails(2, "convert plain.dbt x.otf2");
    assert!(file.contains("x.otf2: an archive is written to a folder, not to a file"));
    assert!(!folder.path("x.otf2").exists());
}

/// The first event was recorded by a clock that was ahead of the master's.
#[test]
fn corrected_times_may_be_before_all_recorded_ones() {
    let folder = ArchiveFolder::new("early");
    let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 rank 0\nlocation 1 1 1 rank 1\n\
                location 2 2 2 rank 2\ncommunicator 0 0 1 2\n\
                sample 1 0 -2000 -9000\nsample 1 1 8000 1000\n\
                1 -2000 note first\n0 -500 send 2 0 8\n2 -400 receive 0 0 8\n\
                1 7000 note last\nend 4\n";
    fs::write(folder.path("a.dbt"), text).unwrap();
    folder.says("convert a.dbt a");
    folder.says("correct a.dbt -o text.dbt");
    let text = fs::read_to_string(folder.path("text.dbt")).unwrap();
    assert!(text.contains("\n1 -9000 note first\n"), "{text}");
    let times = |text: &str| -> Vec<i64> {
        let events = text
            .lines()
            .filter(|line| line.contains(" note ") || line.contains(" 8"));
        let time = |line: &str| line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut times: Vec<i64> = events.map(time).collect();
        times.sort_unstable();
        times
    };
    for (output, options, most) in [("b", "", 1), ("c", "--rewrite", 0), ("d", "--threads 2", 1)] {
        folder.says(&format!("correct a -o {output} {options}"));
        folder.says(&format!("convert {output} {output}.dbt"));
        let found = fs::read_to_string(folder.path(&format!("{output}.dbt"))).unwrap();
        let (found, expected) = (times(&found), times(&text));
        assert_eq!((found[0], found.len()), (-9000, expected.len()));
        // Offsets between two events are rounded.
        let differences = found
            .iter()
            .zip(&expected)
            .map(|(one, other)| one.abs_diff(*other));
        assert!(
            differences.max() <= Some(most),
            "{options}: {found:?}, not {expected:?}"
        );
        folder.says(&format!("check {output} --against a"));
        // Other readers find times from 0 on.
        let events = printed(&folder, &[&format!("{output}/traces.otf2")]);
        let event = events
            .lines()
            .find(|line| line.starts_with("PARAMETER_STRING"));
        let fields: Vec<_> = event.unwrap().split_whitespace().collect();
        assert_eq!(fields[1..3], ["1", "0"], "{events}");
    }
}

#[test]
fn completions_of_sends_survive_an_archive() {
    let folder = ArchiveFolder::new("completions");
    let events = "0 100 enter 0\n0 101 send-start 1 0 7 5 64\n0 102 leave 0\n0 120 enter 1\n0 158 send-complete 5\n\
                  0 159 leave 1\n1 150 enter 2\n1 155 receive 0 0 7 64\n1 160 leave 2\n";
    let definitions = "location 0 0 0 rank 0\nlocation 1 0 1 rank 1\ncommunicator 0 0 1\n\
                       region 0 MPI_Isend\nregion 1 MPI_Wait\nregion 2 MPI_Recv\n";
    let text = format!("# downbeat trace 1 without checksum\n{definitions}{events}end 9\n");
    fs::write(folder.path("a.dbt"), text).unwrap();
    let said = folder.says("convert a.dbt archive");
    assert!(!said.contains("eft out"), "{said}");
    let lines = printed(&folder, &["archive/traces.otf2"]);
    let count = |kind: &str| lines.lines().filter(|line| line.starts_with(kind)).count();
    assert_eq!(
        ["MPI_ISEND ", "MPI_ISEND_COMPLETE "].map(count),
        [1, 1],
        "{lines}"
    );
    folder.says("convert archive/traces.otf2 b.dbt");
    let back = fs::read_to_string(folder.path("b.dbt")).unwrap();
    for line in events.lines() {
        assert!(back.contains(&format!("{line}\n")), "{line}: {back}");
    }
    for input in ["a.dbt", "archive/traces.otf2"] {
        let said = folder.says(&format!("waits {input}"));
        assert!(said.contains("\nlate receiver      1  30 ns"), "{said}");
    }
}

/// OTF2's own program reads what stands beside its records, and corrects times by
/// sessions.
#[test]
fn an_archive_of_everything_is_one_of_otf2() {
    let golden = "../../measure/trace/src/formats/golden/all-1.dbt";
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    let folder = ArchiveFolder::new("everything");
    fs::copy(golden, folder.path("a.dbt")).unwrap();
    let said = folder.says("convert a.dbt archive");
    // The first session is before all events.
    let expected = "archive/traces.otf2: 3 locations, 54 events\n\
                    All timestamps were shifted by 490 ns, so that none is negative\n";
    assert_eq!(said, expected);
    let lines = printed(&folder, &["archive/traces.otf2"]);
    let fields = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let events: Vec<Vec<String>> = lines.lines().map(fields).collect();
    let has = |expected: [&str; 3]| {
        events
            .iter()
            .any(|event| event.starts_with(&expected.map(str::to_owned)))
    };
    // By the clock offset of its session, 900 ns, at least.
    assert!(
        has(["ENTER", "0", "460"]) && has(["ENTER", "1", "1370"]),
        "{lines}"
    );
    for expected in [
        "Parameter: \"note\" <0>, Value: \"counter 3 = 1.5e9\"",
        "Lock: 9, Acquisition Order: 1",
        "\"DOWNBEAT::EVENT\" <0>; STRING; \"fork 1\"",
    ] {
        assert!(lines.contains(expected), "{expected} is not in {lines}");
    }
    let definitions = printed(&folder, &["-G", "archive/traces.otf2"]);
    assert!(
        definitions.contains("\"0 -500 900;0 20 1;1 9000000480 49\""),
        "{definitions}"
    );
    folder.says("convert archive/traces.otf2 b.dbt");
    folder.says("convert b.dbt again");
    folder.says("convert again/traces.otf2 c.dbt");
    let [b, c] = ["b.dbt", "c.dbt"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(b == c);
}

/// Events of a window: a fence that synchronizes and one that does not, accesses of all kinds, and an operation with data.
const WINDOW: &str = "0 100 collective 1\n0 110 collective-end 1 allreduce 0 none\n0 120 put 1 1 0 4096\n0 130 get 0 1 1 0\n\
                      0 140 atomic 1 1 2 8\n0 150 collective 1\n0 160 access-complete 1 0\n0 160 access-complete 1 2\n\
                      0 160 access-complete 1 1\n0 160 collective-end 1 allreduce 0 both\n0 170 collective 1\n\
                      0 180 collective-end 1 gather 1 sent\n0 190 send 1 1 0 0\n1 100 collective 1\n\
                      1 110 collective-end 1 allreduce 0 none\n1 150 collective 1\n1 160 collective-end 1 allreduce 0 both\n\
                      1 170 collective 1\n1 180 collective-end 1 gather 1 received\n1 200 receive 0 1 0 0\n";

#[test]
fn accesses_survive_an_archive() {
    let folder = ArchiveFolder::new("accesses");
    let definitions =
        "location 0 0 0 rank 0\nlocation 1 0 1 rank 1\ncommunicator 0 0 1\ncommunicator 1 0 1\n";
    let events = WINDOW.lines().count();
    let text = format!("# downbeat trace 1 without checksum\n{definitions}{WINDOW}end {events}\n");
    fs::write(folder.path("a.dbt"), text).unwrap();
    let said = folder.says("convert a.dbt archive");
    assert!(!said.contains("eft out"), "{said}");
    let lines = printed(&folder, &["archive/traces.otf2"]);
    let count = |kind: &str| lines.lines().filter(|line| line.starts_with(kind)).count();
    let kinds = [
        "RMA_PUT",
        "RMA_GET",
        "RMA_ATOMIC",
        "RMA_OP_COMPLETE_NON_BLOCKING",
    ];
    assert_eq!(kinds.map(count), [1, 1, 1, 3], "{lines}");
    assert_eq!(
        ["RMA_COLLECTIVE_BEGIN", "RMA_COLLECTIVE_END"].map(count),
        [6; 2],
        "{lines}"
    );
    assert!(printed(&folder, &["-G", "archive/traces.otf2"]).contains("RMA_WIN"));

    // They are the same events in the order of time.
    folder.says("convert archive/traces.otf2 b.dbt");
    let back = fs::read_to_string(folder.path("b.dbt")).unwrap();
    for line in WINDOW.lines() {
        assert!(
            back.contains(&format!("\n{line}\n")),
            "{line} is not in\n{back}"
        );
    }
    let read = back
        .lines()
        .filter(|line| !line.starts_with(['#', 'c', 'l', 'e']));
    assert_eq!(read.count(), events);
}
