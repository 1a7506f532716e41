//! Command-line tests: output, refused input, exit codes.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn downbeat(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_downbeat"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = downbeat(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    text(&output.stdout).to_owned()
}

/// Path of a file of this test, which does not exist before it.
fn scratch(name: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// Asserts that bad input gives one line that names `culprit`, exit code 2 and no output.
fn refuses(arguments: &[&str], culprit: &str) {
    let output = downbeat(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(
        said.starts_with("downbeat: ") && said.ends_with('\n'),
        "{arguments:?}: {said}"
    );
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    assert!(said.contains(culprit), "{arguments:?}: {said}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
}

#[test]
fn without_a_command_it_demonstrates_a_global_clock_and_measures_with_it() {
    let folder = scratch("demonstration");
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    let output = command
        .env("TMPDIR", &folder)
        .output()
        .expect("the program starts");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        text(&output.stderr)
    );
    let shown = text(&output.stdout);
    assert!(shown.lines().count() < 50, "{shown}");
    for what in [
        "rank  its clock is ahead by",
        "offsets only ",
        "lines, with patience ",
        "downbeat simulate",
    ] {
        assert!(shown.contains(what), "no {what} in:\n{shown}");
    }
    let kept: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // If threads must share cores, nothing is measured or left behind.
    if let [kept] = &kept[..] {
        let kept = kept.to_str().unwrap();
        assert!(
            shown.contains("\nallreduce ")
                && shown.contains(&format!("cd {kept} && downbeat compare")),
            "{shown}"
        );
        let compared = stdout_of(&[
            "compare",
            &format!("{kept}/ms1"),
            &format!("{kept}/round-time"),
        ]);
        assert!(
            compared.contains("5 launches\n") && compared.contains("Factors that differ: scheme"),
            "{compared}"
        );
    } else {
        assert!(
            shown.contains("needs a core of its own") && kept.is_empty(),
            "{kept:?}, {shown}"
        );
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_clocks_are_shown_as_a_table_with_a_recommendation() {
    let shown = stdout_of(&["clocks"]);
    for name in [
        "TSC, rdtscp",
        "CLOCK_MONOTONIC_RAW",
        "gettimeofday",
        "MPI_Wtime: not available",
        "System time: ",
        "Clock source of the kernel: ",
        "PTP clocks: ",
        "Recommended: ",
    ] {
        assert!(shown.contains(name), "no {name} in:\n{shown}");
    }
    // Bars are only printed to terminals.
    assert!(shown.is_ascii(), "{shown}");
}

/// Returns the output and the reasons of a command that fails because clocks do not meet requirements.
fn gate(arguments: &[&str]) -> (String, String) {
    let output = downbeat(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let said = text(&output.stderr).to_owned();
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    (text(&output.stdout).to_owned(), said)
}

#[test]
fn clocks_that_do_not_meet_requirements_fail_with_the_reason() {
    let health = |arguments: &[&str]| -> Value {
        serde_json::from_str::<Value>(&stdout_of(arguments)).unwrap()["health"].clone()
    };
    let found = health(&["clocks", "--json"]);
    assert!(found["system_time"]["synchronized"].is_boolean(), "{found}");
    for (requirement, met) in [
        ("synchronized", found["system_time"]["synchronized"] == true),
        ("bare-metal", found["hypervisor"].is_null()),
        ("invariant", found["counter"]["invariant"] == true),
        (
            "ptp",
            found["ptp"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["readable"] == true)),
        ),
    ] {
        for command in ["clocks", "calibrate"] {
            let arguments = [command, "--require", requirement];
            if met {
                stdout_of(&arguments);
            } else {
                let (shown, said) = gate(&arguments);
                assert!(shown.contains("System time: "), "{shown}");
                assert!(
                    said.starts_with(&format!("downbeat: {requirement} is required: ")),
                    "{said}"
                );
            }
        }
    }
    // CLOCK_MONOTONIC_RAW is computed from the counter, so that its rate shows nothing.
    if found["counter"]["independent"].is_null() {
        for command in ["clocks", "calibrate"] {
            refuses(&[command, "--max-ppm", "1e9"], "independent of the counter");
        }
    } else {
        // No calibration of 10 ms is certain to this.
        let (_, said) = gate(&["calibrate", "--repeat", "1", "--max-ppm", "0.001"]);
        let exceeded = "--max-ppm 0.001 is exceeded: the frequency of the counter is certain to";
        assert!(said.contains(exceeded), "{said}");
        stdout_of(&["calibrate", "--max-ppm", "1e9"]);
    }
    refuses(
        &["clocks", "--require", "ptp,sinchronized"],
        "did you mean synchronized?",
    );
    for number in ["0", "-1", "nan", "inf", "x"] {
        refuses(&["clocks", "--max-ppm", number], "--max-ppm");
    }
    let warned = stdout_of(&["calibrate", "--against", "monotonic"])
        .contains("CLOCK_MONOTONIC is not synchronized");
    assert_eq!(warned, found["system_time"]["synchronized"] == false);
}

#[test]
fn clocks_are_watched_and_logged() {
    let path = scratch("clocks.csv");
    let file = path.to_str().unwrap();
    let shown = stdout_of(&["clocks", "--watch", "10ms", "--samples", "3"]);
    let lines: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        (lines.len(), lines[0][..3].to_vec()),
        (4, vec!["time", "host", "ticks_per_second"])
    );
    assert!(
        lines.iter().all(|line| line.len() == lines[0].len()),
        "{shown}"
    );
    for launch in 1..=2 {
        assert_eq!(
            stdout_of(&["clocks", "--watch", "10ms", "--samples", "2", "--log", file]),
            ""
        );
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            1 + 2 * launch
        );
    }
    let metrics = [
        "clocks",
        "--watch",
        "10ms",
        "--samples",
        "1",
        "--log-form",
        "openmetrics",
    ];
    refuses(
        &[&metrics[..], &["--log", file]].concat(),
        "is not a log of this form",
    );
    fs::remove_file(&path).unwrap();
    stdout_of(&[&metrics[..], &["--log", file]].concat());
    let written = fs::read_to_string(&path).unwrap();
    assert!(
        written.starts_with("# TYPE downbeat_ticks_per_second gauge\n")
            && written.ends_with("# EOF\n"),
        "{written}"
    );
    fs::remove_file(&path).unwrap();
    // A pipe, which another program reads.
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let mut reader = Command::new("cat");
    let reader = reader.arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    stdout_of(&["clocks", "--watch", "10ms", "--samples", "2", "--log", file]);
    let read = reader.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8(read).unwrap().lines().count(), 3);
    fs::remove_file(&path).unwrap();
    for (arguments, culprit) in [
        (&["--watch", "0s"][..], "--watch"),
        (&["--watch", "1s", "--json"], "--json"),
        (&["--watch", "1s", "--format", "csv"], "--format"),
        (&["--samples", "2"], "--watch"),
        (&["--log", "x"], "--watch"),
        (&["--watch", "1s", "--samples", "0"], "--samples"),
        (&["--watch", "1s", "--log", "/nonexistent/log"], "--log"),
        (&["--watch", "1s", "--log", "/"], "--log"),
    ] {
        refuses(&[&["clocks"], arguments].concat(), culprit);
    }
}

#[test]
fn the_clocks_as_json_are_one_document_with_a_schema() {
    let report: Value = serde_json::from_str(&stdout_of(&["clocks", "--json"])).unwrap();
    assert_eq!(report["schema"], "downbeat.clocks");
    assert_eq!(report["version"], 1);
    let sources = report["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 12);
    for source in sources {
        // Either there is a reason, or all properties.
        assert_ne!(
            source["unavailable"].is_null(),
            source["found"].is_null(),
            "{source}"
        );
        if let Some(found) = source["found"].as_object() {
            assert!(
                found["read_cost_median_ns"].as_f64().unwrap() > 0.0,
                "{source}"
            );
            assert!(
                found["read_cost_p99_ns"].as_f64() >= found["read_cost_median_ns"].as_f64(),
                "{source}"
            );
            assert!(found["grain_ns"].as_f64().unwrap() > 0.0, "{source}");
        }
    }
    let names: Vec<&Value> = sources.iter().map(|source| &source["name"]).collect();
    assert!(
        names.contains(&&report["recommended"]["source"])
            || report["recommended"]["source"] == "none"
    );
}

#[test]
fn a_calibration_as_json_holds_every_repeat() {
    let report = stdout_of(&[
        "calibrate",
        "--duration",
        "2ms",
        "--repeat",
        "3",
        "--against",
        "MONOTONIC",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["schema"], "downbeat.calibration");
    assert_eq!(report["reference"], "CLOCK_MONOTONIC");
    let repeats = report["repeats"].as_array().unwrap();
    assert_eq!(repeats.len(), 3);
    let rate = report["ticks_per_second"].as_f64().unwrap();
    for repeat in repeats {
        let ppm = (repeat["ticks_per_second"].as_f64().unwrap() / rate - 1.0).abs() * 1e6;
        let certain =
            repeat["certain_ppm"].as_f64().unwrap() + report["certain_ppm"].as_f64().unwrap();
        // The kernel may adjust CLOCK_MONOTONIC by 500 ppm, but not between one millisecond and the next.
        assert!(ppm <= certain + 10.0, "{repeat}");
    }
}

#[test]
fn a_saved_calibration_is_valid_on_this_machine_until_the_next_reboot() {
    let path = scratch("saved");
    let name = path.to_str().unwrap();
    let saved = stdout_of(&["calibrate", "--duration", "2ms", "--save", name]);
    assert!(saved.contains(&format!("Saved        {name}")), "{saved}");
    assert!(stdout_of(&["clocks", "--calibration", name]).contains(&format!("by {name}")));
    stdout_of(&[
        "sync",
        "--calibration",
        name,
        "--algorithm",
        "skampi/skampi/20",
        "--skew",
        "offset=1s",
    ]);

    let written = fs::read_to_string(&path).unwrap();
    let damage = |from: &str, to: &str, culprit: &str| {
        let line = written.lines().find(|line| line.starts_with(from)).unwrap();
        fs::write(&path, written.replace(line, to)).unwrap();
        refuses(&["clocks", "--calibration", name], culprit);
        refuses(&["sync", "--calibration", name], culprit);
    };
    damage(
        "boot_id",
        "boot_id = \"0\"",
        "line 9: its checksum is wrong",
    );
    damage("version", "version = 9", "line 2: ");
    let edited = written.replacen("certain", "sure", 1);
    fs::write(&path, edited).unwrap();
    stdout_of(&["clocks", "--calibration", name, "--no-verify"]);
    refuses(&["clocks", "--no-verify"], "--calibration");
    // What an earlier program wrote called itself version 1, too.
    let written = &written[..written.rfind("crc32").unwrap()];
    fs::write(&path, written).unwrap();
    refuses(
        &["clocks", "--calibration", name],
        "line 9: its checksum is missing: the file was damaged or edited after it was written (--no-verify accepts it)",
    );
    let damage = |from: &str, to: &str, culprit: &str| {
        let line = written.lines().find(|line| line.starts_with(from)).unwrap();
        fs::write(&path, written.replace(line, to)).unwrap();
        refuses(&["clocks", "--calibration", name, "--no-verify"], culprit);
    };
    damage("boot_id", "boot_id = \"0\"", "last reboot");
    damage("cpu_model", "cpu_model = \"Z80\"", "\"Z80\"");
    damage("end", "end = [1, 2]", "line 8: ");
    fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    refuses(&["clocks", "--calibration", name], "--calibration");
    fs::remove_file(&path).unwrap();
    refuses(&["clocks", "--calibration", name], "--calibration");
}

/// Sizes that need more memory than the process may have.
#[cfg(target_os = "linux")]
#[test]
fn sizes_beyond_the_memory_are_refused() {
    for (arguments, option) in [
        ("simulate --ranks 67108864", "--ranks"),
        (
            "trace generate --samples 4294967295 -o /nonexistent/a.dbt",
            "--samples",
        ),
    ] {
        let limited = format!(
            "ulimit -v 4000000; exec {} {arguments}",
            env!("CARGO_BIN_EXE_downbeat")
        );
        let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let why = format!("downbeat: {option}: this takes ");
        assert!(said.starts_with(&why), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn an_existing_calibration_survives_a_failed_one() {
    let path = scratch("kept");
    fs::write(&path, "precious").unwrap();
    refuses(
        &[
            "calibrate",
            "--core",
            "4000000",
            "--save",
            path.to_str().unwrap(),
        ],
        "--core",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    refuses(
        &["calibrate", "--save", path.to_str().unwrap()],
        "exists and is not a calibration",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_synchronization_as_json_holds_every_rank_and_check() {
    // Without drift and fits, it succeeds on a busy machine, too.
    let sync = [
        "sync",
        "--algorithm",
        "hca3-offset/skampi/20",
        "--skew",
        "offset=1s",
        "--ranks",
        "3",
    ];
    let report = stdout_of(&[&sync[..], &["--check", "0,1s", "--json"]].concat());
    let report: Value = serde_json::from_str(&report).unwrap();
    let run = &report["runs"][0];
    assert_eq!(
        (&report["schema"], &run["algorithm"]),
        (&"downbeat.sync_runs".into(), &sync[2].into())
    );
    let (checks, clocks) = (
        run["checks"].as_array().unwrap(),
        run["clocks"].as_array().unwrap(),
    );
    assert_eq!((checks.len(), clocks.len()), (2, 3));
    assert_eq!(clocks[0]["errors_ns"], serde_json::json!([0, 0]));
    for clock in &clocks[1..] {
        // Even on a busy machine, the clocks are closer to each other than before.
        let (before, after) = (
            clock["offset_ns"].as_i64().unwrap(),
            clock["errors_ns"][0].as_i64().unwrap(),
        );
        assert!(after.abs() < before.abs(), "{clock}");
    }
    let shown = stdout_of(&[&sync[..], &["--check", "0,5s"]].concat());
    for part in ["largest true error", "error after 0 s / 5 s, ns"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn threads_read_any_clock_of_the_machine_and_try_several_algorithms() {
    let labels = "skampi/skampi/9,hca3-offset/skampi/20";
    for clock in ["recommended", "monotonic", "raw", "realtime", "tai"] {
        let sync = ["sync", "--algorithm", labels, "--clock", clock];
        let options = [
            "--skew",
            "offset=1s",
            "--check",
            "0",
            "--repeat",
            "2",
            "--json",
        ];
        let report = stdout_of(&[&sync[..], &options[..]].concat());
        let report: Value = serde_json::from_str(&report).unwrap();
        let runs = report["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 4, "{report}");
        for run in runs {
            let error = run["clocks"][1]["errors_ns"][0].as_i64().unwrap();
            assert!(error.abs() < 100_000_000, "{run}");
        }
        let factors = report["factors"].as_object().unwrap();
        assert!(
            clock == "recommended" || factors["clock"] == clock,
            "{report}"
        );
        // Nothing is measured by messages.
        assert!(!factors.contains_key("check"), "{report}");
    }
    refuses(&["sync", "--clock", "wtime"], "--clock");
    let missing = match cfg!(target_arch = "aarch64") {
        true => "tsc",
        false => "cntvct",
    };
    let why = format!("--clock: {missing} on rank 0: ");
    refuses(&["sync", "--clock", missing], &why);
    // The errors are computed, so that nothing is measured by messages.
    for option in [
        "--truth",
        "--predict",
        "--check-by=skampi/9",
        "--sample=0.5",
        "--seed=2",
    ] {
        refuses(&["sync", option], option.split('=').next().unwrap());
    }
}

#[test]
fn a_clock_that_does_not_fit_an_algorithm_is_a_failure_reported_by_one_rank() {
    let fails = |arguments: &[&str], says: &str| {
        let output = downbeat(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.lines().count() == 1 && said.contains(says),
            "{arguments:?}: {said}"
        );
    };
    // Ranks whose clocks differ cannot adopt one model. With a drift, a busy machine would make another failure of it.
    fails(
        &[
            "sync",
            "--ranks",
            "4",
            "--skew",
            "offset=1s",
            "--algorithm",
            "prop",
        ],
        "rank 1: prop: the ranks do not share a source of time",
    );
    fails(
        &[
            "simulate",
            "--ranks",
            "4",
            "--per-node",
            "1",
            "--algorithm",
            "prop",
        ],
        "the ranks do not share a source",
    );
    // The clock steps back during the synchronization: ranks have started by then, and ten million messages take longer.
    fails(
        &[
            "sync",
            "--skew",
            "step=-1s@1s",
            "--algorithm",
            "jk/10000/skampi/500",
        ],
        "rank 1: ",
    );
}

/// A small simulation, which takes little time.
const SIMULATE: [&str; 7] = [
    "simulate",
    "--ranks",
    "40",
    "--algorithm",
    "hca3/5/skampi/5,h2hca(hca3/5/skampi/5,prop)",
    "--check",
    "0,1s",
];

/// Nothing runs backward, bounds hold, and little more remains than the wander alone leaves.
#[test]
fn kept_clocks_are_simulated() {
    fn keep(ranks: &str) -> Vec<&str> {
        let options =
            "simulate --cluster wandering --algorithm cube/10/40 --keep 10s --lasting 5min --ranks";
        options.split(' ').chain([ranks]).collect()
    }
    let json: Value =
        serde_json::from_str(&stdout_of(&[&keep("16")[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["schema"], "downbeat.kept_clocks");
    let run = &json["runs"][0];
    assert_eq!(
        [&run["backward"], &run["beyond_bound"], &run["sessions"]],
        [0, 0, 34]
    );
    let ever = |name: &str| run[name]["ever_ns"].as_f64().unwrap();
    let usual = |name: &str| run[name]["median_ns"].as_f64().unwrap();
    assert!(ever("after_session") < 60.0, "{run}");
    assert!(
        usual("before_session") < 2.0 * usual("wander_alone"),
        "{run}"
    );
    assert!(ever("past") < 0.5 * ever("shown"), "{run}");
    assert!(run["longest_session_s"].as_f64().unwrap() < 0.001, "{run}");
    let text = stdout_of(&keep("3"));
    assert!(
        text.contains("Allan deviation") && text.contains("one before: 0."),
        "{text}"
    );
    // Ranks that read the counter of rank 0 have nothing to learn.
    for ranks in ["8", "20"] {
        let node = "simulate --algorithm h2hca(cube/10/40,prop) --keep 1s --lasting 1min --ranks";
        let text = stdout_of(&node.split(' ').chain([ranks]).collect::<Vec<_>>());
        assert_eq!(text.contains("Allan"), ranks == "20", "{text}");
    }
    // One rank has nothing to learn.
    assert!(stdout_of(&keep("1")).contains("0.000 ns"));
    let on_threads = |threads| {
        let node =
            "simulate --cluster wandering --algorithm cube/9/9 --keep 1s --lasting 10s --json";
        let threads = ["--ranks", "9", "--threads", threads];
        stdout_of(&node.split(' ').chain(threads).collect::<Vec<_>>())
    };
    assert_eq!(on_threads("1"), on_threads("4"));
    for (value, of) in [
        ("0", "--keep"),
        ("-1s", "--keep"),
        ("10", "--keep"),
        ("6min", "--lasting"),
    ] {
        refuses(&["simulate", "--keep", value], of);
    }
    refuses(&["simulate", "--keep", "1s", "--lasting", "0"], "--lasting");
    refuses(
        &["simulate", "--keep", "1ns", "--lasting", "1h"],
        "--lasting",
    );
    refuses(&["simulate", "--lasting", "1h"], "--keep");
    for option in ["--max-drift", "--max-wander"] {
        for share in ["0", "-1ppm", "2", "fast", "nan"] {
            refuses(&["simulate", "--keep", "1s", option, share], option);
        }
    }
    // A rate that is known from many sessions narrows what is certain; one that changes by more than declared is an error.
    let declared = |wander| -> Value {
        let options = ["--json", "--max-drift", "100ppm", "--max-wander", wander];
        serde_json::from_str(&stdout_of(&[&keep("16")[..], &options].concat())).unwrap()
    };
    let certain = |json: &Value| json["runs"][0]["certain"]["median_ns"].as_f64().unwrap();
    let [drift, wander] = ["50ppm", "200ppb"].map(|wander| certain(&declared(wander)));
    assert!(wander < 30e3 && 4.0 * wander < drift, "{wander} {drift}");
    let failed = downbeat(&[&keep("16")[..], &["--max-wander", "0.1ppb"]].concat());
    let why = String::from_utf8_lossy(&failed.stderr);
    assert!(
        failed.status.code() == Some(1) && why.contains("drifts more than declared"),
        "{why}"
    );
    refuses(&["simulate", "--keep", "1s", "--check", "0"], "--check");
    let page = stdout_of(&[&keep("3")[..], &["-o", "-"]].concat());
    for part in [
        "kept: at most ",
        "wander alone: at most ",
        "Allan deviation from rank 0",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
}

#[cfg(unix)]
#[test]
fn a_program_that_cannot_be_recorded_as_asked_is_not_started() {
    let folder = scratch("not-recorded");
    for (variable, value) in [
        ("DOWNBEAT_TRACE_MEMORY", "0"),
        #[cfg(target_os = "linux")]
        ("DOWNBEAT_TRACE_MEMORY", "99999999999999999"),
        ("DOWNBEAT_TRACE_SKIP", "all"),
        ("DOWNBEAT_ALGORITHM", "x"),
        ("DOWNBEAT_CLOCK", "x"),
        ("DOWNBEAT_SKEW", "20ppm"),
        ("DOWNBEAT_SKEW", "step=1ms@-3s"),
        ("DOWNBEAT_MAX_DRIFT", "2"),
        ("DOWNBEAT_MAX_WANDER", "0"),
        ("DOWNBEAT_SYNC_MAX_MESSAGES", "0"),
        ("DOWNBEAT_SYNC_RULE", "highest"),
        ("DOWNBEAT_SYNC_MAX_DURATION", "60"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        command.args(["record-rank", "--out"]).arg(&folder);
        command.args(["--", "touch"]).arg(&folder);
        let output = command.env(variable, value).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{variable}: {said}");
        assert!(
            said.contains(variable) && said.lines().count() == 1,
            "{said}"
        );
        assert!(!folder.exists(), "{variable}");
    }
}

#[test]
fn a_simulation_as_a_page_shows_every_run() {
    let folder = scratch("simulated-pages");
    let pictures = folder.join("pictures");
    let (page, pictures) = (folder.join("page.html"), pictures.to_str().unwrap());
    fs::create_dir_all(&folder).unwrap();
    let file = page.to_str().unwrap();
    let options = ["--repeat", "2", "-o", file, "--svg", pictures];
    assert_eq!(stdout_of(&[&SIMULATE[..], &options].concat()), "");
    let html = fs::read_to_string(&page).unwrap();
    // Two checks, of offsets and of true errors: two runs of two algorithms, which are also in the legend.
    for colour in ["c0", "c1"] {
        let markers = html.matches(&format!("class=\"m {colour}\"")).count();
        assert_eq!(markers, 2 * 2 * (2 + 1), "{colour} in {html}");
    }
    assert!(html.contains("hca3/5/skampi/5, run 2: took "));
    let written = fs::read_dir(pictures).unwrap().count();
    assert_eq!(written, 2 * 2);
    fs::remove_dir_all(&folder).unwrap();
    refuses(
        &[&SIMULATE[..], &["-o", "/nonexistent/file"]].concat(),
        "-o: /nonexistent/file",
    );
}

#[test]
fn a_simulation_as_json_holds_every_run_and_only_depends_on_its_seed() {
    let path = scratch("simulated.csv");
    let csv = path.to_str().unwrap();
    let simulate = |seed: &str, csv: &str, threads: &str| {
        let options = ["--repeat", "2", "--json", "--seed", seed, "--csv", csv];
        let threads = ["--threads", threads];
        stdout_of(&[&SIMULATE[..], &options, &threads].concat())
    };
    let text = simulate("7", csv, "1");
    for threads in ["1", "2", "3", "1024"] {
        assert_eq!(text, simulate("7", csv, threads));
    }
    assert_ne!(text, simulate("8", "/dev/null", "1"));

    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&report["schema"], &report["factors"]["ranks"]),
        (&"downbeat.sync_runs".into(), &"40".into())
    );
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert!(
            run["duration_s"].as_f64() > run["closing_s"].as_f64(),
            "{run}"
        );
        // Of 39 ranks: ten exchanges, and four more messages.
        assert_eq!(run["closing_messages"], 39 * 24, "{run}");
        for check in run["checks"].as_array().unwrap() {
            assert_eq!(check["looked_at"], 39, "{check}");
            assert_eq!(check["beyond_bound"], 0, "{check}");
            // The clocks differed by some hundred milliseconds.
            for largest in [&check["largest_offset"], &check["largest_error"]] {
                assert!(
                    largest["ns"].as_i64().unwrap().abs() < 10_000_000,
                    "{check}"
                );
            }
        }
    }
    let lines = fs::read_to_string(&path).unwrap();
    assert_eq!(
        lines.lines().filter(|line| !line.starts_with('#')).count(),
        1 + 2 * 2 * 2,
        "{lines}"
    );
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_cluster_comes_by_name_or_from_a_file() {
    for name in [
        "typical",
        "wandering",
        "jupiter",
        "hydra",
        "titan",
        "tcp",
        "cloud",
    ] {
        let shown = stdout_of(&[&SIMULATE[..], &["--cluster", name, "--per-node", "8"]].concat());
        assert!(shown.starts_with(&format!(
            "40 ranks on 5 nodes of a simulated cluster ({name}), 1 run of each"
        )));
    }
    let path = scratch("cluster.toml");
    let name = path.to_str().unwrap();
    let cluster = "name = \"mine\"\nranks_per_node = 4\n[network]\nsocket = { latency = \"1us\" }\n\
                   node = { latency = \"1us\" }\nswitch = { latency = \"2us\" }\n";
    fs::write(&path, cluster).unwrap();
    assert!(
        stdout_of(&[&SIMULATE[..], &["--cluster", name]].concat())
            .contains("10 nodes of a simulated cluster (mine)")
    );
    refuses(
        &[&SIMULATE[..], &["--cluster", name, "--csv", name]].concat(),
        "--csv: ",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), cluster);
    for (from, to, culprit) in [
        ("= 4", "= 0", "ranks_per_node"),
        ("2us", "-2us", "switch.latency"),
        ("2us", "2", "line 6"),
    ] {
        fs::write(&path, cluster.replace(from, to)).unwrap();
        refuses(&[&SIMULATE[..], &["--cluster", name]].concat(), culprit);
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_it() {
    for duration in [
        "0",
        "0ms",
        "-5ms",
        "8abc",
        "NaN",
        "inf",
        "",
        "10",
        "1e3s",
        "0.1ns",
        "999999999h",
    ] {
        refuses(&["calibrate", "--duration", duration], "--duration");
    }
    for repeat in ["0", "-1", "8abc", "1.5", "NaN", "99999999999"] {
        refuses(&["calibrate", "--repeat", repeat], "--repeat");
    }
    for core in ["4000000", "-1", "x", "", "99999999999999"] {
        refuses(&["calibrate", "--core", core], "--core");
        refuses(&["clocks", "--cores", core], "--cores");
    }
    refuses(&["calibrate", "--against", "utc"], "--against");
    refuses(
        &["calibrate", "--save", "/nonexistent/file"],
        "/nonexistent/file",
    );
    refuses(&["calibrate", "--save", "/"], "--save");
    refuses(
        &["clocks", "--calibration", "/nonexistent/file"],
        "/nonexistent/file",
    );
    refuses(&["clocks", "--calibration", "/"], "--calibration");
    refuses(&["clocks", "--calibration"], "--calibration");
    for label in [
        "hca4/1/skampi/1",
        "hca3/0/skampi/10",
        "hca3/8abc/skampi/10",
        "jk/10/skampi/0",
        "h2hca(prop)",
        "",
        "NaN",
    ] {
        refuses(&["sync", "--algorithm", label], "--algorithm");
    }
    for command in ["sync", "simulate"] {
        let twice = [command, "--algorithm", "jk/9/skampi/9,none,jk/9/skampi/9"];
        refuses(&twice, "jk/9/skampi/9 is given twice");
    }
    refuses(
        &["simulate", "--ranks", "2", "--sample", "1e-9"],
        "--sample: 0.000000001 with --seed 1 selects no rank",
    );
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let refused = [
        &["bench", "--out", file][..],
        &["man", file],
        #[cfg(unix)]
        &["run", "--out", file, "--", "true"],
        #[cfg(unix)]
        &["record", "--launcher", "true", "-o", file, "--", "true"],
    ];
    for arguments in refused {
        refuses(arguments, "Cargo.toml: it is not a folder");
    }
    for (option, text, accepted) in [
        ("--repeat", "x", "expected a whole number"),
        ("--skew", "seed=x", "seed: \"x\" is not a whole number"),
        ("--ranks", "99999999999999999999", "the number is too large"),
        (
            "--check",
            "1e300s",
            "a decimal number and a unit, such as 10ms",
        ),
        ("--algorithm", "", "the algorithms are auto, none, skampi, "),
    ] {
        refuses(&["sync", option, text], option);
        refuses(&["sync", option, text], accepted);
    }
    for ranks in ["0", "-1", "8abc", "99999"] {
        refuses(&["sync", "--ranks", ranks], "--ranks");
    }
    for skew in [
        "drift=NaNppm",
        "offset=8abc",
        "speed=1",
        "drift=999999999ppm",
    ] {
        refuses(&["sync", "--skew", skew], "--skew");
    }
    for check in ["-1s", "8abc", "NaN", "1"] {
        refuses(&["sync", "--check", check], "--check");
    }
    for ranks in ["0", "-1", "8abc", "99999999999"] {
        refuses(&["simulate", "--ranks", ranks], "--ranks");
        refuses(&["simulate", "--per-node", ranks], "--per-node");
        refuses(&["simulate", "--threads", ranks], "--threads");
        refuses(&["simulate", "--system-noise", ranks], "--system-noise");
    }
    for share in ["0", "-0.1", "1.5", "NaN", "some"] {
        refuses(&["simulate", "--sample", share], "--sample");
    }
    refuses(
        &["simulate", "--cluster", "/nonexistent/file"],
        "/nonexistent/file",
    );
    refuses(
        &["simulate", "--cluster", "/dev/null"],
        "--cluster: /dev/null: ",
    );
    refuses(
        &["simulate", "--csv", "/nonexistent/file"],
        "--csv: /nonexistent/file",
    );
    refuses(
        &["simulate", "--algorithm", "none,hca9/1/skampi/1"],
        "--algorithm",
    );
    refuses(&["simulate", "--check-by", "skampi/0"], "--check-by");
    for noise in [
        "1ms/2ms/1us",
        "0s/0s/0s",
        "1ms/1us",
        "1ms/-1us/1us",
        "1ms/1us/x",
    ] {
        refuses(&["simulate", "--system-noise", noise], "--system-noise");
    }
    refuses(&["bogus"], "bogus");
    refuses(&["--bogus"], "--bogus");
    refuses(&["clocks", "extra"], "extra");
}

#[test]
fn help_goes_to_standard_output_and_shows_an_example() {
    let all = [
        &["--help"][..],
        &["clocks", "--help"],
        &["calibrate", "--help"],
        &["sync", "--help"],
    ];
    for arguments in all.into_iter().chain([
        &["simulate", "--help"][..],
        &["bench", "--help"],
        &["run", "--help"],
    ]) {
        assert!(stdout_of(arguments).contains("Example"), "{arguments:?}");
    }
    assert!(stdout_of(&["--version"]).starts_with("downbeat "));
}

#[test]
fn output_that_cannot_be_written_is_a_failure_in_one_line() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    let output = command
        .arg("clocks")
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr).lines().count(),
        1,
        "{}",
        text(&output.stderr)
    );
    assert!(text(&output.stderr).contains("standard output"));
}

#[test]
fn a_closed_pipe_ends_the_program_silently() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_downbeat"))
        .arg("clocks")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    // As a program of C that is ended by SIGPIPE.
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(141), "")
    );
}

/// Without a place for the message, the exit code still tells bad input from a failure.
#[test]
fn a_message_that_cannot_be_written_is_not_a_crash() {
    for (arguments, code) in [
        (&["calibrate", "--repeat", "0"][..], 2),
        (&["trace", "check", "/nonexistent/file"], 2),
        (&["report", ".", "-o", "-"], 2),
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let status = Command::new(env!("CARGO_BIN_EXE_downbeat"))
            .args(arguments)
            .stderr(full)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

/// A file that grows beyond the limit of the process is removed, and named in one line.
#[test]
fn a_file_size_limit_is_an_error_like_any_other() {
    let folder = scratch("limited");
    fs::create_dir_all(&folder).unwrap();
    let program = env!("CARGO_BIN_EXE_downbeat");
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -f 8; exec \"$0\" trace generate -o big.dbt --events 100000",
        ])
        .arg(program)
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.lines().count() == 1 && said.contains("big.dbt: File too large"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir_all(&folder).unwrap();
}

/// A size that no machine has is refused before the work, with the memory that it would take.
#[test]
fn the_name_that_was_meant_is_suggested() {
    for (arguments, name) in [
        (&["clcoks"][..], "clocks"),
        (&["recor"], "record"),
        (&["clocks", "--jsn"], "--json"),
        (&["sync", "--algorithm", "hac3/100/skampi/10"], "hca3"),
        (&["sync", "--algorithm", "hca3/100/skamp/10"], "skampi"),
        (&["bench", "--operation", "alreduce"], "allreduce"),
        (&["bench", "--scheme", "round-tme"], "round-time"),
        (&["bench", "--as", "osuu"], "osu"),
        (&["simulate", "--cluster", "titann"], "titan"),
    ] {
        refuses(arguments, &format!("; did you mean {name}?\n"));
    }
}

/// Runs `downbeat record` with a launcher that ignores the program, in the place of one
/// whose program fails; returns its status, and whether its folder is there afterwards.
#[cfg(unix)]
fn record_by(launcher: &str, out: &Path) -> (std::process::ExitStatus, bool) {
    let _ = fs::remove_dir_all(out);
    let folder = out.to_str().expect("a path in UTF-8");
    let output = downbeat(&["record", "--launcher", launcher, "-o", folder, "--", "true"]);
    (output.status, out.exists())
}

#[cfg(unix)]
#[test]
fn record_ends_like_its_launcher_and_leaves_no_empty_folder() {
    use std::os::unix::process::ExitStatusExt as _;

    let out = scratch("recorded");
    for code in [3, 7, 42, 137] {
        let (status, is_left) = record_by(&format!("sh -c 'exit {code}'"), &out);
        assert_eq!((status.code(), is_left), (Some(code), false));
    }
    let (status, is_left) = record_by("sh -c 'kill -TERM $$'", &out);
    assert_eq!((status.signal(), is_left), (Some(15), false));
    for refused in ["", "/nonexistent/mpirun"] {
        let (status, is_left) = record_by(refused, &out);
        assert_eq!((status.code(), is_left), (Some(2), false), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn record_passes_signals_on_to_its_launcher() {
    let out = scratch("signalled");
    for signal in ["INT", "TERM", "HUP", "USR1", "USR2"] {
        // The launcher signals its parent, and waits until the signal comes back.
        let launcher = format!(
            "sh -c 'trap \"exit 9\" {signal}; kill -{signal} $PPID; i=0; \
             while [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done'"
        );
        let (status, _) = record_by(&launcher, &out);
        assert_eq!(status.code(), Some(9), "{signal}: {status}");
    }
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let samples = ["--samples", "4294967295", "--sessions", "4000000000"];
    let generate = ["trace", "generate", "-o", "/nonexistent/x.dbt"];
    refuses(
        &[&generate[..], &samples].concat(),
        "--samples: this takes ",
    );
}

/// A pipe or a device might never end.
#[test]
fn what_is_not_a_file_is_refused() {
    let not_a_file = "/dev/zero: it is not a file";
    for arguments in [
        &["regions", "show", "/dev/zero"][..],
        &["trace", "check", "/dev/zero"],
        &["simulate", "--cluster", "/dev/zero"],
        &["trace", "check", "x.dbt", "--latencies", "/dev/zero"],
    ] {
        refuses(arguments, not_a_file);
    }
    refuses(
        &["clocks", "--calibration", "/dev/zero"],
        "it is not a file",
    );
}

/// A message is one line, whatever the name of a file is.
#[test]
fn control_characters_in_messages_are_escaped() {
    refuses(
        &["trace", "check", "/nonexistent/a\nb\u{1b}[31m"],
        "/nonexistent/a\\nb\\u{1b}[31m: No such file",
    );
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_utf8_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    // The output may be any path.
    let output = Command::new(env!("CARGO_BIN_EXE_downbeat"))
        .args(["simulate", "--csv"])
        .arg(OsStr::from_bytes(b"/nonexistent/\xff"))
        .arg("--cluster")
        .arg(OsStr::from_bytes(b"r\xffng"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "downbeat: --cluster: \"r\u{fffd}ng\" is not UTF-8\n"
    );
}

/// Names of the commands that a help lists.
fn commands_of(help: &str) -> Vec<&str> {
    let list = help
        .split_once("\nCommands:\n")
        .map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        // Descriptions go on in lines that are indented further.
        .filter(|name| !name.is_empty() && *name != "help")
        .collect()
}

/// Checks the man page of a command and those of its commands; adds the names of their files.
fn check_pages(folder: &Path, command: &[&str], files: &mut Vec<String>) {
    let help = stdout_of(&[command, &["--help"]].concat());
    let file = format!("{}.1", [&["downbeat"], command].concat().join("-"));
    let page = fs::read_to_string(folder.join(&file)).expect(&file);
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
        assert!(
            page.contains(&format!("\n.SH {section}\n")),
            "{file}: {section}"
        );
    }
    let page = page.replace("\\-", "-").replace("\\(aq", "'");
    let page = page.replace("\\(ga", "`").replace("\\\\", "\\");
    let examples = help
        .split_once("Example")
        .map_or("", |(_, examples)| examples);
    // Prose between them is filled differently.
    for line in examples.lines().filter(|line| line.starts_with("  ")) {
        assert!(page.lines().any(|found| found == line), "{file}: {line}");
    }
    files.push(file);
    for inner in commands_of(&help) {
        check_pages(folder, &[command, &[inner]].concat(), files);
    }
}

#[test]
fn every_command_has_a_man_page() {
    let folder = scratch("man");
    assert_eq!(stdout_of(&["man", folder.to_str().unwrap()]), "");
    let mut expected = vec![];
    check_pages(&folder, &[], &mut expected);
    let entries = fs::read_dir(&folder).unwrap();
    let mut found: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    assert!(found.contains(&"downbeat-trace-correct.1".to_owned()));
    // Those names belong to the pages of the MPI program.
    assert!(!found.iter().any(|file| file.starts_with("downbeat-mpi")));
    fs::remove_dir_all(&folder).unwrap();
    refuses(&["man"], "<DIR>");
    refuses(&["man", "/dev/null/pages"], "DIR: /dev/null/pages: ");
}

#[test]
fn shells_accept_the_completions() {
    for (shell, needed) in [("bash", true), ("zsh", false), ("fish", false)] {
        let script = stdout_of(&["completions", shell]);
        assert!(script.contains("alltoallv") && !script.contains("completions"));
        let path = scratch(&format!("completions-{shell}"));
        fs::write(&path, script).unwrap();
        match Command::new(shell).arg("-n").arg(&path).output() {
            Ok(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
            Err(why) => assert!(!needed, "{shell}: {why}"),
        }
        fs::remove_file(&path).unwrap();
    }
    refuses(&["completions", "basch"], "'basch'");
}
