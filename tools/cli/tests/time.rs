//! Command-line tests of `downbeat time`, and of parameters, which `downbeat run` has, too.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![expect(dead_code, reason = "helpers of other tests")]

#[path = "run/experiment.rs"]
mod experiment;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use experiment::{BENCH, RunExperiment, RunOutput, downbeat, eventually, is_gone, send};

/// A folder for the experiment and files of its commands, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("time-{name}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder can be created");
        Self(folder)
    }

    fn start(&self, command: &str, words: &[&str]) -> Child {
        let mut child = downbeat("default");
        child
            .arg(command)
            .args(words)
            .current_dir(&self.0)
            .env_remove("COLUMNS")
            .env("TMPDIR", &self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        child.spawn().expect("the program starts")
    }

    fn time(&self, words: &[&str]) -> RunOutput {
        RunOutput::end_of(self.start("time", words))
    }

    fn run(&self, words: &[&str]) -> RunOutput {
        RunOutput::end_of(self.start("run", words))
    }

    /// Returns the variants of the JSON document.
    fn document(&self, words: &[&str]) -> Vec<Value> {
        let said = self.time(&[&["--json"], words].concat()).succeeds();
        let document: Value = serde_json::from_str(&said.out).expect("a document");
        document["variants"].as_array().expect("a list").clone()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    /// Returns the names of the files and folders.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(folder)).expect("it is a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("it can be read").file_name())
            .map(|name| name.into_string().expect("a name in UTF-8"))
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        names
    }

    /// Returns the process that wrote its id into a file.
    fn process(&self, file: &str) -> Pid {
        let written = || self.read(file).strip_suffix('\n')?.parse().ok();
        Pid::from_raw(eventually(written)).expect("a valid process id")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

#[test]
fn a_command_is_timed_without_leaving_anything() {
    let scratch = Scratch::new("plain");
    let said = scratch.time(&["-n", "3", "--", "sleep", "0.05"]).succeeds();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "sleep 0.05");
    assert!(lines[2].starts_with("launches ") && lines[2].ends_with("memory"));
    assert!(said.out.contains("3 launches are too few"), "{said:?}");
    let [only] = &scratch.document(&["-n", "3", "--", "sleep", "0.05"])[..] else {
        panic!("one variant");
    };
    assert_eq!(only["launches"], 3);
    assert!(number(&only["wall"]["least_ns"]) >= 5e7, "{only}");
    assert!(number(&only["wall"]["most_ns"]) >= number(&only["wall"]["median_ns"]));
    assert!(number(&only["empty_process_ns"]) > 0.0);
    assert!(scratch.names("").is_empty());
}

#[test]
fn memory_is_that_of_the_largest_process() {
    let scratch = Scratch::new("memory");
    // The shell holds a string of 50 MB, and its child none.
    let script = "x=$(head -c 50000000 /dev/zero | tr '\\0' x); sleep 0";
    let found = scratch.document(&["-n", "1", "--", "sh", "-c", script]);
    assert!(number(&found[0]["peak_memory_bytes"]) >= 5e7, "{found:?}");
    let said = scratch.time(&["-n", "1", "--", "true"]).succeeds();
    assert!(said.out.contains("<= "), "{said:?}");
}

#[test]
fn records_are_those_that_other_commands_read() {
    let scratch = Scratch::new("records");
    let words = [
        "--out",
        "x",
        "--variant",
        "short",
        "--",
        "sleep",
        "0.01",
        "--variant",
        "long",
        "--",
        "sleep",
        "0.1",
    ];
    let said = scratch
        .time(&[&["-n", "6", "--seed", "7"], &words[..]].concat())
        .succeeds();
    let verdict = said.out.lines().next().expect("a line");
    assert!(
        verdict.starts_with("long is ") && verdict.ends_with("] slower than short"),
        "{verdict}"
    );
    assert_eq!(scratch.names("x"), ["long", "plan.json", "short"]);
    let record = scratch.read("x/long/launch-006.csv");
    for line in [
        "# factor command = sleep 0.1\n",
        "# fact exit = exit status: 0\n",
        "# fact peak_memory_bytes = ",
        "\nwall,0,1,0,valid,",
        "\nuser,0,1,0,valid,",
        "\nsystem,0,1,0,valid,",
    ] {
        assert!(record.contains(line), "{line}: {record}");
    }
    let read = |command: &str, words: &[&str]| RunOutput::end_of(scratch.start(command, words));
    let compared = read("compare", &["x/short", "x/long"]).succeeds();
    let same = verdict
        .replace("long", "x/long")
        .replace("short", "x/short");
    assert_eq!(compared.out.lines().next(), Some(same.as_str()));
    for group in ["wall", "user", "system"] {
        assert!(
            compared.out.contains(&format!("\n{group} ")),
            "{compared:?}"
        );
    }
    for (command, words) in [
        ("analyze", &["x"][..]),
        ("reproducibility", &["x/short", "x/long"]),
        ("samplesize", &["x/short"]),
        ("report", &["x", "-o", "page.html"]),
    ] {
        let said = read(command, words);
        assert_eq!(said.code, Some(0), "{command}: {said:?}");
    }
    // In the order of their names.
    assert!(scratch.read("page.html").contains("] faster than long."));

    // The experiment is extended, and its launches are kept.
    let found = scratch.document(&[&["-n", "7", "--seed", "7"], &words[..]].concat());
    assert!(found.iter().all(|variant| variant["launches"] == 7));
    assert_eq!(record, scratch.read("x/long/launch-006.csv"));
    scratch
        .time(&[&["-n", "7", "--seed", "7", "--warmup", "1"], &words[..]].concat())
        .ends(
            2,
            "holds another experiment: --warmup of short is 0 in the plan and 1 here",
        );
    scratch
        .run(&[&["-n", "7"], &words[..]].concat())
        .ends(2, "the plan is one of `downbeat time`");
}

#[test]
fn commands_before_and_after_runs_are_not_timed() {
    let scratch = Scratch::new("around");
    let found = scratch.document(&[
        "-n",
        "2",
        "--warmup",
        "1",
        "--parameter",
        "p=a,b",
        "--setup",
        "echo setup {p} >>steps",
        "--prepare",
        "echo prepare >>steps; sleep 0.2; echo {p} >>steps",
        "--cleanup",
        "echo cleanup {p} >>steps",
        "--",
        "sh",
        "-c",
        "echo run {p} >>steps",
    ]);
    let steps = scratch.read("steps");
    let steps: Vec<&str> = steps.lines().collect();
    assert_eq!(steps[..2], ["setup a", "setup b"]);
    assert_eq!(steps[steps.len() - 2..], ["cleanup a", "cleanup b"]);
    let runs: Vec<_> = steps[2..steps.len() - 2].chunks(3).collect();
    // Two variants, two launches, two runs.
    assert_eq!(runs.len(), 8);
    for run in &runs {
        assert_eq!(run[0], "prepare");
        assert_eq!(run[2], format!("run {}", run[1]));
    }
    assert!(runs.chunks(2).all(|launch| launch[0] == launch[1]));
    assert_eq!(found[1]["parameters"]["p"], "b");
}

#[test]
fn a_command_that_fails_ends_the_run_unless_failures_count() {
    let scratch = Scratch::new("fails");
    // Exit code 2 is not that of a program of ours.
    let script = "echo last words; exit 2";
    let said = scratch
        .time(&["--cleanup", "echo >cleaned", "--", "sh", "-c", script])
        .ends(1, "downbeat: launch-001: exit status: 2");
    assert!(
        said.err.starts_with("  | last words\n") && said.err.contains("--ignore-failure"),
        "{said:?}"
    );
    assert_eq!(scratch.names(""), ["cleaned"]);
    scratch
        .time(&["--", "sh", "-c", "kill -KILL $$"])
        .ends(1, "launch-001: signal: 9 (SIGKILL)");

    let script = "[ -e ran ] && exit 3; touch ran";
    let words = ["-n", "3", "--ignore-failure", "--", "sh", "-c", script];
    let said = scratch.time(&words).succeeds();
    assert!(said.out.contains("2 of 3 launches failed"), "{said:?}");
    assert_eq!(scratch.document(&words)[0]["failed"], 3);

    // What comes before is not ignored.
    for (option, text) in [
        ("--prepare", "launch-001: exit status: 1"),
        ("--setup", "--setup: exit status: 7"),
        ("--cleanup", "--cleanup: exit status: 7"),
    ] {
        let words = [
            option,
            "exit 7",
            "-n",
            "1",
            "--ignore-failure",
            "--",
            "true",
        ];
        scratch.time(&words).ends(1, text);
    }
    scratch
        .time(&["--timeout", "100ms", "--", "sleep", "1000"])
        .ends(1, "launch-001: took longer than 0.1 s");
}

#[test]
fn output_goes_to_the_log_or_nowhere() {
    let scratch = Scratch::new("output");
    let words = ["-n", "1", "--", "sh", "-c", "echo out; echo err >&2"];
    scratch
        .time(&[&["--out", "log"], &words[..]].concat())
        .succeeds();
    assert!(scratch.read("log/launch-001.log").ends_with("\nout\nerr\n"));
    scratch
        .time(&[&["--out", "none", "--discard-output"], &words[..]].concat())
        .succeeds();
    let log = scratch.read("none/launch-001.log");
    assert!(
        log.ends_with("\nerr\n") && !log.contains("\nout\n"),
        "{log}"
    );
    let said = scratch.time(&[&["--verbose"], &words[..]].concat());
    assert_eq!((said.code, said.err.as_str()), (Some(0), "out\nerr\n"));
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("the device");
    let mut child = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    child.args(["time", "-n", "1", "--", "true"]).stdout(full);
    let output = child.output().expect("the program starts");
    RunOutput::of(&output).ends(1, "cannot write to standard output");
}

#[test]
fn a_signal_ends_the_command_and_the_experiment_continues() {
    let scratch = Scratch::new("signal");
    // The second run of the command waits to be ended.
    let script = "[ -e done ] && { echo $$ >pid; sleep 1000; }; touch done";
    let words = [
        "-n",
        "2",
        "--out",
        "x",
        "--cleanup",
        "echo >cleaned",
        "--",
        "sh",
        "-c",
        script,
    ];
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let child = scratch.start("time", &words);
        let launched = scratch.process("pid");
        send(&child, signal);
        let said = RunOutput::end_of(child).ends(code, "the same command line continues");
        assert!(said.out.is_empty() && is_gone(launched), "{said:?}");
        fs::remove_file(scratch.0.join("pid")).expect("it is there");
        fs::remove_file(scratch.0.join("cleaned")).expect("it is cleaned up");
    }
    let first = scratch.read("x/launch-001.csv");
    assert!(
        first.contains("# complete\n")
            && !scratch.read("x/launch-002.csv").contains("# complete\n")
    );
    // As under `nohup`.
    let mut ignoring = downbeat("ignore");
    ignoring.arg("time").args(words).current_dir(&scratch.0);
    ignoring
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = ignoring.spawn().expect("the program starts");
    let launched = scratch.process("pid");
    send(&child, Signal::HUP);
    send(&child, Signal::TERM);
    RunOutput::end_of(child).ends(143, "stopped by SIGTERM");
    assert!(is_gone(launched));
    for file in ["pid", "done"] {
        fs::remove_file(scratch.0.join(file)).expect("it is there");
    }
    scratch.time(&words).succeeds();
    assert_eq!(first, scratch.read("x/launch-001.csv"));
    assert!(scratch.read("x/launch-002.csv").contains("# complete\n"));

    // A command may take its time, and a temporary folder is removed.
    let before = scratch.names("");
    let script =
        "trap 'sleep 0.3; echo >ended; exit 0' TERM; echo $$ >pid; while :; do sleep 0.01; done";
    let child = scratch.start("time", &["--", "sh", "-c", script]);
    let launched = scratch.process("pid");
    send(&child, Signal::TERM);
    RunOutput::end_of(child).ends(
        143,
        "stopped by SIGTERM; with --out, another run would continue",
    );
    assert!(is_gone(launched));
    assert_eq!(scratch.read("ended"), "\n");
    let mut after = scratch.names("");
    after.retain(|name| name != "ended" && name != "pid");
    assert_eq!(before, after);
}

#[test]
fn every_combination_of_parameters_is_launched() {
    let scratch = Scratch::new("combinations");
    let words = [
        "-n",
        "2",
        "--out",
        "x",
        "--seed",
        "1",
        "--parameter",
        "size=1..4*2",
        "--parameter",
        "kind=u,v",
        "--variant",
        "a",
        "--",
        BENCH,
        "{kind}{size}",
        "--variant",
        "b",
        "--",
        BENCH,
        "-{size}",
        "{kind}",
    ];
    let said = scratch.run(&words).succeeds();
    let mut launched: Vec<&str> = said
        .out
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(label, _)| label)
        .collect();
    assert_eq!(launched.len(), 24);
    // Each is launched once before any is launched again.
    let (first, second) = launched.split_at_mut(12);
    for (block, number) in [(first, 1), (second, 2)] {
        assert!(!block.is_sorted(), "{block:?}");
        block.sort_unstable();
        let all = ["a", "b"].iter().flat_map(|variant| {
            ["1", "2", "4"].map(|size| {
                ["u", "v"]
                    .map(|kind| format!("{variant},size={size},kind={kind}/launch-{number:03}"))
            })
        });
        assert!(
            block.iter().eq(all.flatten().collect::<Vec<_>>().iter()),
            "{block:?}"
        );
    }
    let log = scratch.read("x/b,size=4,kind=u/launch-002.log");
    assert!(
        log.contains(" -4 u --out 'x/b,size=4,kind=u' --launch launch-002\n"),
        "{log}"
    );
    let plan: Value = serde_json::from_str(&scratch.read("x/plan.json")).expect("a plan");
    assert_eq!(plan["variants"][11]["name"], "b,size=4,kind=v");
    assert_eq!(plan["variants"][11]["parameters"]["size"], "4");
    // The order of the plan is kept, and other values are another experiment.
    scratch.run(&words).succeeds();
    let mut other = words;
    other[7] = "size=1,2";
    scratch.run(&other).ends(
        2,
        "holds another experiment: the variants are a,size=1,kind=u, ",
    );

    // They are read in the order of their values, and state them.
    let words = [
        "-n",
        "1",
        "--out",
        "y",
        "--parameter",
        "n=10,9,1",
        "--",
        "sh",
        "-c",
        "exit $((0*{n}))",
    ];
    scratch.time(&words).succeeds();
    let said = RunOutput::end_of(scratch.start("analyze", &["y"])).succeeds();
    let found: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.starts_with("y/"))
        .collect();
    assert_eq!(
        found,
        ["y/n=1: 1 launch", "y/n=9: 1 launch", "y/n=10: 1 launch"]
    );
    assert!(
        scratch
            .read("y/n=9/launch-001.csv")
            .contains("# factor parameter n = 9\n")
    );
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_it() {
    let scratch = Scratch::new("refused");
    for command in ["run", "time"] {
        for (words, why) in [
            (
                &["--", "no-such-program"][..],
                "COMMAND: no-such-program: program not found",
            ),
            (&["--"], "COMMAND: no command after --"),
            (
                &["--parameter", "n=1", "--", "sleep", "1"],
                "--parameter: n: no word of the command contains {n}",
            ),
            (
                &["--parameter", "size=1", "--", "echo", "{sizes}"],
                "there is no parameter for {sizes}; did you mean {size}?",
            ),
            (
                &[
                    "--parameter",
                    "n=1",
                    "--parameter",
                    "n=2",
                    "--",
                    "echo",
                    "{n}",
                ],
                "--parameter: n is given twice",
            ),
            (
                &["--parameter", "n=1,1", "--", "echo", "{n}"],
                "n: the value 1 is given twice",
            ),
            (
                &["--parameter", "n=", "--", "echo", "{n}"],
                "n: a value is empty",
            ),
            (
                &["--parameter", "out=1", "--", "echo", "{out}"],
                "{out} has a meaning already",
            ),
            (
                &["--parameter", "launch=1", "--", "echo", "{launch}"],
                "{launch} has a meaning already",
            ),
            (
                &["--parameter", "n=../x", "--", "echo", "{n}"],
                "--parameter",
            ),
            (
                &["--parameter", "p=none", "--", "no-such-{p}"],
                "COMMAND: no-such-none: program not found",
            ),
            (&["-n", "0", "--", "true"], "--launches"),
        ] {
            let words = [&["--out", "x"], words].concat();
            let said = RunOutput::end_of(scratch.start(command, &words)).ends(2, why);
            assert_eq!(said.err.lines().count(), 1, "{said:?}");
        }
    }
    for out in ["/proc/downbeat", "/dev/null", ""] {
        scratch.time(&["--out", out, "--", "true"]).ends(2, "--out");
    }
    assert!(scratch.names("").is_empty());
    let said = scratch.time(&[
        "--dry-run",
        "--parameter",
        "n=1,2",
        "-n",
        "1",
        "--",
        "echo",
        "{n}",
    ]);
    let mut lines: Vec<String> = said.succeeds().out.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["echo 1", "echo 2"]);
}

#[test]
fn a_plan_without_parameters_is_continued() {
    let experiment = RunExperiment::new("no-parameters");
    fs::create_dir_all(&experiment.out).expect("the folder can be created");
    let plan = format!(
        r#"{{"schema": "downbeat.run", "version": 1, "n": 1, "seed": 5, "same_hosts": false,
            "variants": [{{"command": ["{BENCH}"]}}], "order": ["launch-001"]}}"#
    );
    fs::write(experiment.out.join("plan.json"), plan).expect("the plan can be written");
    experiment.run(&["-n", "2"], &[]).succeeds();
    experiment.is_complete(2);
    let plan: Value = serde_json::from_str(&experiment.read("plan.json")).expect("a plan");
    assert_eq!((&plan["version"], &plan["seed"]), (&1.into(), &5.into()));
}
