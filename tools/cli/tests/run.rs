//! Command-line tests of `downbeat run`, with a small script in place of a benchmark.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "run/experiment.rs"]
mod experiment;

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use experiment::{BENCH, RunExperiment, RunOutput, eventually, is_gone, send};

#[test]
fn every_launch_has_a_record_a_log_and_a_line() {
    let experiment = RunExperiment::new("plain");
    let said = experiment.run(&["-n", "3"], &[]).succeeds();
    experiment.is_complete(3);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(
        lines.len() == 4 && lines[1].starts_with("launch-002  ") && lines[1].ends_with("(2 of 3)"),
        "{said:?}"
    );
    assert!(
        lines[3].starts_with("3 launches are complete, in "),
        "{said:?}"
    );
    let log = experiment.read("launch-002.log");
    let out = experiment.out.display();
    assert_eq!(
        log,
        format!(
            "$ {BENCH} --out {out} --launch launch-002\nlaunch-002 measures\nlaunch-002 complains\n"
        )
    );

    // First nothing is left to do, then there is more.
    let before = experiment.records();
    assert_eq!(
        experiment
            .run(&["-n", "3"], &[])
            .succeeds()
            .out
            .lines()
            .count(),
        1
    );
    assert_eq!(experiment.records(), before);
    assert_eq!(
        experiment
            .run(&["-n", "5"], &[])
            .succeeds()
            .out
            .lines()
            .count(),
        3
    );
    experiment.is_complete(5);
    assert!(
        before
            .iter()
            .all(|(path, text)| experiment.records()[path] == *text)
    );
}

#[test]
fn a_page_is_written_when_all_launches_are_made() {
    let experiment = RunExperiment::new("report");
    let page = experiment.out.with_extension("html");
    let name = page.to_str().expect("a name in UTF-8");
    let _ = fs::remove_file(&page);
    experiment
        .run(&["-n", "2", "--dry-run", "--report", name], &[])
        .succeeds();
    assert!(!page.exists());
    experiment
        .run(&["-n", "2", "--report", name], &[])
        .succeeds();
    let written = fs::read_to_string(&page).expect("a page");
    assert!(written.contains("Observations in their order"));
    fs::remove_file(&page).expect("the page was written");
    let said = experiment.run(&["-n", "3", "--report", "/nonexistent/page.html"], &[]);
    assert!(
        said.code == Some(2) && said.err.contains("--report: /nonexistent"),
        "{said:?}"
    );
    experiment.is_complete(2);
}

#[test]
fn verbose_shows_the_output_of_launches() {
    let said = RunExperiment::new("verbose").run(&["-n", "1", "--verbose"], &[]);
    assert!(
        said.err
            .ends_with("launch-001 measures\nlaunch-001 complains\n")
            && said.code == Some(0),
        "{said:?}"
    );
}

#[test]
fn variants_alternate_in_the_order_of_the_seed() {
    let words = [
        "--variant",
        "a",
        "--",
        BENCH,
        "-x",
        "--variant",
        "b",
        "--",
        "env",
        "RANKS=8",
        BENCH,
    ];
    let order = |experiment: &RunExperiment| -> Vec<String> {
        let plan: serde_json::Value =
            serde_json::from_str(&experiment.read("plan.json")).expect("a plan");
        plan["order"]
            .as_array()
            .expect("an order")
            .iter()
            .map(|label| label.as_str().unwrap().to_owned())
            .collect()
    };
    let launch = |experiment: &RunExperiment, options: &[&str]| {
        RunOutput::of(
            &experiment
                .command(options, &words)
                .output()
                .expect("the program starts"),
        )
        .succeeds()
    };
    let (one, two) = (
        RunExperiment::new("variants-1"),
        RunExperiment::new("variants-2"),
    );
    let said = launch(&one, &["-n", "6", "--seed", "7"]);
    launch(&two, &["-n", "2", "--seed", "7"]);
    launch(&two, &["-n", "6"]);
    assert_eq!(order(&one), order(&two));
    for (number, block) in (1..).zip(order(&one).chunks(2)) {
        let mut sorted = block.to_vec();
        sorted.sort();
        assert_eq!(
            sorted,
            [
                format!("a/launch-{number:03}"),
                format!("b/launch-{number:03}")
            ]
        );
    }
    // They were launched in this order, each in its own folder; factors only differ between folders.
    let launched: Vec<&str> = said
        .out
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(l, _)| l)
        .collect();
    assert_eq!(launched, order(&one));
    assert!(
        one.read("a/launch-006.csv").contains("ranks = 4\n")
            && one.read("b/launch-006.csv").contains("ranks = 8")
    );

    let dry = launch(&one, &["-n", "7", "--dry-run"]).out;
    assert_eq!(dry.lines().count(), 14);
    assert_eq!(dry.matches("# complete: ").count(), 12);
    let out = one.out.display();
    assert!(
        dry.contains(&format!("\n{BENCH} -x --out {out}/a --launch launch-007\n")),
        "{dry}"
    );
    assert_eq!(order(&one).len(), 12);
}

#[test]
fn a_command_may_contain_placeholders() {
    let experiment = RunExperiment::new("braces");
    let script = format!("exec {BENCH} --launch {{launch}} --out '{{out}}'");
    let mut command = experiment.command(&["-n", "2"], &["--", "sh", "-c", &script]);
    RunOutput::of(&command.output().expect("the program starts")).succeeds();
    experiment.is_complete(2);
}

#[test]
fn another_experiment_is_refused_in_the_same_folder() {
    let experiment = RunExperiment::new("other");
    experiment.run(&["-n", "2", "--seed", "1"], &[]).succeeds();
    let other = |options: &[&str], launched: &[&str], why: &str| {
        let said = RunOutput::of(
            &experiment
                .command(options, launched)
                .output()
                .expect("the program starts"),
        );
        assert_eq!(said.ends(2, why).err.lines().count(), 1);
    };
    other(
        &["-n", "2"],
        &["--", BENCH, "-x"],
        "word 2 of the command is missing in the plan and -x here",
    );
    other(
        &["-n", "2"],
        &["--variant", "a", "--", BENCH],
        "the variants are one command in the plan and a here",
    );
    other(
        &["-n", "1"],
        &["--", BENCH],
        "-n is 2 in the plan and 1 here",
    );
    other(
        &["-n", "2", "--seed", "2"],
        &["--", BENCH],
        "--seed is 1 in the plan and 2 here",
    );
    other(
        &["-n", "1", "--dry-run"],
        &["--", BENCH],
        "-n is 2 in the plan and 1 here",
    );
    fs::write(experiment.out.join("plan.json"), "{").unwrap();
    other(
        &["-n", "2"],
        &["--", BENCH],
        "plan.json: EOF while parsing an object at line 1",
    );
    fs::remove_file(experiment.out.join("plan.json")).unwrap();
    other(
        &["-n", "2"],
        &["--", BENCH],
        "launch-001.csv, but no plan.json",
    );
    experiment.is_complete(2);
}

#[test]
fn a_rebuilt_program_is_another_experiment() {
    let experiment = RunExperiment::new("rebuilt");
    let program = experiment.out.with_extension("sh");
    let bench = fs::read_to_string(BENCH).unwrap();
    fs::write(
        &program,
        bench + "\n[ -z \"$REBUILD\" ] || echo '# rebuilt' >>\"$0\"\n",
    )
    .unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let run = |launches, environment: &[(&str, &str)]| {
        let launched = ["--", program.to_str().expect("a name in UTF-8")];
        let mut command = experiment.command(&["-n", launches], &launched);
        let command = command.envs(environment.iter().copied());
        RunOutput::of(&command.output().expect("the program starts"))
    };

    // Between two launches of one run.
    let said = run("2", &[("REBUILD", "1")]).ends(1, "launch-002: ");
    assert!(
        said.err.contains(".sh was replaced: its checksum was "),
        "{said:?}"
    );
    experiment.is_complete(1);
    // Between two runs.
    let said = run("2", &[]).ends(2, "holds another experiment: ");
    assert!(
        said.err.contains(".sh was replaced: its checksum was "),
        "{said:?}"
    );
    experiment.is_complete(1);

    // Who knows that it does not matter can delete the checksums.
    let path = experiment.out.join("plan.json");
    let mut plan: serde_json::Value = serde_json::from_str(&experiment.read("plan.json")).unwrap();
    plan["variants"][0]
        .as_object_mut()
        .unwrap()
        .remove("programs")
        .unwrap();
    fs::write(&path, plan.to_string()).unwrap();
    run("2", &[]).ends(0, "");
    experiment.is_complete(2);
    let plan: serde_json::Value = serde_json::from_str(&experiment.read("plan.json")).unwrap();
    assert_eq!(plan["version"], 1);
    assert!(plan["variants"][0]["programs"].is_object());
}

#[test]
fn a_mistyped_command_can_be_corrected() {
    let experiment = RunExperiment::new("mended");
    let wrong = experiment
        .command(&["-n", "2"], &["--", "false"])
        .output()
        .expect("the program starts");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(experiment.read("plan.json").contains("\"false\""));
    experiment.run(&["-n", "2"], &[]).ends(0, "");
    experiment.is_complete(2);
    assert!(!experiment.read("plan.json").contains("\"false\""));
}

#[test]
fn a_launch_with_other_factors_is_moved_aside() {
    let experiment = RunExperiment::new("factors");
    experiment.run(&["-n", "2"], &[]).succeeds();
    for aside in ["launch-003.csv.differs", "launch-003.csv.differs-2"] {
        let said = experiment
            .run(&["-n", "3"], &[("RANKS", "8")])
            .ends(1, "the factor \"ranks\" is \"8\" here, ");
        for part in [
            "launch-003.csv: the factor",
            "but \"4\" in ",
            "launch-001.csv: moved to ",
            aside,
        ] {
            assert!(said.err.contains(part), "{part}: {said:?}");
        }
        assert!(experiment.read(aside).contains("\n# complete\n"));
        assert_eq!(experiment.records().len(), 2);
    }
    experiment.run(&["-n", "3"], &[]).succeeds();
    experiment.is_complete(3);
}

#[test]
fn launches_may_run_on_other_hosts_unless_that_is_refused() {
    let experiment = RunExperiment::new("hosts");
    experiment.run(&["-n", "1"], &[]).succeeds();
    let said = experiment
        .run(&["-n", "2"], &[("HOSTS", "c")])
        .ends(0, "launch-002.csv: ran on c, but ");
    assert!(said.err.contains("launch-001.csv on a b; "), "{said:?}");
    experiment
        .run(&["-n", "3", "--same-hosts"], &[])
        .ends(2, "--same-hosts is missing in the plan and given here");
    experiment.is_complete(2);

    let experiment = RunExperiment::new("same-hosts");
    let options = ["-n", "2", "--same-hosts"];
    experiment.run(&["-n", "1", "--same-hosts"], &[]).succeeds();
    let said = experiment.run(&options, &[("HOSTS", "c")]).ends(
        1,
        "launch-002.csv: ran on the hosts c, but --same-hosts demands a b: moved to ",
    );
    assert!(said.err.contains("launch-002.csv.differs; "), "{said:?}");
    experiment.run(&options, &[]).succeeds();
    experiment.is_complete(2);
}

#[test]
fn a_record_without_a_group_binds_no_other_command() {
    let experiment = RunExperiment::new("head");
    let said = experiment.run(
        &["-n", "1", "--retries", "0"],
        &[("RANKS", "8"), ("FAIL", &experiment.file("fail"))],
    );
    said.ends(1, "exit status: 3");
    assert!(experiment.read("launch-001.csv").contains("ranks = 8"));
    // Another plan takes its place, and the launches of that one may have other factors.
    let launched = ["--", "env", "RANKS=4", BENCH];
    let mut command = experiment.command(&["-n", "2", "--dry-run"], &launched);
    let said = RunOutput::of(&command.output().expect("the program starts")).succeeds();
    assert_eq!(said.out.lines().count(), 2);
}

#[test]
fn a_failed_launch_is_repeated_and_loses_nothing() {
    let experiment = RunExperiment::new("fails");
    // One launch fails, and one is killed in the middle of a group.
    let said = experiment.run(
        &["-n", "2"],
        &[
            ("FAIL", &experiment.file("fail")),
            ("DIE", &experiment.file("die")),
        ],
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in [
        "launch-001: exit status: 3; see ",
        "  | cannot go on\n",
        "launch-001: signal: 9 (SIGKILL)",
        "repeating after 0 s (2 of 3), complete groups are kept\n",
    ] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
    experiment.is_complete(2);

    let said = experiment.run(
        &["-n", "3", "--retries", "0"],
        &[("FAIL", &experiment.file("fail"))],
    );
    let said = said.ends(1, "downbeat: launch-003: exit status: 3; see ");
    assert!(
        said.err
            .contains("launch-003.log; the same command line continues"),
        "{said:?}"
    );
    // A complete launch is not repeated, even if its program failed.
    let said = experiment.run(&["-n", "3"], &[("WEARY", "1")]);
    assert!(
        said.code == Some(0)
            && said
                .err
                .ends_with("launch-003.log; its record is complete\n"),
        "{said:?}"
    );
    let said = experiment.run(&["-n", "4", "--retries", "1"], &[("LAZY", "1")]);
    said.ends(
        1,
        "launch-004: exit status: 0, but its record is not complete",
    );
    experiment.run(&["-n", "4"], &[]).succeeds();
    experiment.is_complete(4);
}

#[test]
fn a_launch_that_refuses_its_input_ends_the_run() {
    let experiment = RunExperiment::new("refuses");
    let said = experiment
        .run(&["-n", "2"], &[("REFUSE", "1")])
        .ends(2, "downbeat: launch-001: exit status: 2; see ");
    assert!(
        said.err.contains("  | downbeat-mpi: --sizes: bad\n") && !said.err.contains("repeating"),
        "{said:?}"
    );
    // The last line has the reason, whatever a launcher prints after it.
    assert!(
        said.err
            .ends_with("refuses its input: downbeat-mpi: --sizes: bad\n"),
        "{said:?}"
    );
    // Of another program, this exit code is a failure like any other.
    let mut command = experiment.command(
        &["-n", "1", "--retries", "1"],
        &["--", "sh", "-c", "exit 2"],
    );
    let said = RunOutput::of(&command.output().expect("the program starts"));
    let said = said.ends(1, "launch-001: exit status: 2; see ");
    assert!(said.err.contains("(1 of 1)"), "{said:?}");
}

#[test]
fn a_program_that_writes_no_record_is_not_repeated() {
    let experiment = RunExperiment::new("no-record");
    let mut command = experiment.command(&["-n", "1"], &["--", "true"]);
    let said = RunOutput::of(&command.output().expect("the program starts"));
    let said = said.ends(1, "launch-001: the program wrote no record; see ");
    assert!(
        said.err.contains("--out and --launch") && !said.err.contains("repeating"),
        "{said:?}"
    );
}

#[test]
fn a_signal_ends_a_pause() {
    let experiment = RunExperiment::new("pause");
    let mut command = experiment.command(&["-n", "1", "--pauses", "1000s"], &["--", "false"]);
    let mut child = command.spawn().expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    assert!(line.contains("repeating after 1000 s (1 of 3)"), "{line}");
    send(&child, Signal::TERM);
    line.clear();
    said.read_to_string(&mut line).expect("a line");
    assert!(
        line.contains("stopped by SIGTERM")
            && line.contains("only the group that it was measuring"),
        "{line}"
    );
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}

#[test]
fn a_launch_that_takes_too_long_is_ended() {
    let experiment = RunExperiment::new("late");
    let said = experiment.run(
        &["-n", "1", "--timeout", "300ms", "--retries", "1"],
        &[("PAUSE", "100")],
    );
    let said = said.ends(1, "launch-001: took longer than 0.3 s");
    assert!(
        said.err.contains("repeating after 0 s (1 of 1)"),
        "{said:?}"
    );
    // On a slow machine the script may not have written its process id.
    let launched = experiment
        .read("pid")
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw);
    assert!(launched.is_none_or(is_gone));
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_is_left_behind() {
    let experiment = RunExperiment::new("leave");
    let left = experiment.file("leave");
    experiment.run(&["-n", "1"], &[("LEAVE", &left)]).succeeds();
    let left = fs::read_to_string(left)
        .unwrap()
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw);
    assert!(left.is_some_and(is_gone));
}

#[test]
fn a_signal_ends_the_launch_and_the_run_can_be_continued() {
    let experiment = RunExperiment::new("signal");
    for (signal, code, name) in [
        (Signal::INT, 130, "SIGINT"),
        (Signal::TERM, 143, "SIGTERM"),
        (Signal::HUP, 129, "SIGHUP"),
    ] {
        let child = experiment.start(&["-n", "2"], &[("PAUSE", "100")]);
        let launched = experiment.launched();
        send(&child, signal);
        let said = RunOutput::end_of(child).ends(
            code,
            &format!("downbeat: stopped by {name}; the results so far are in "),
        );
        assert!(
            said.err.lines().count() == 1 && said.err.contains("the same command line continues"),
            "{said:?}"
        );
        assert!(is_gone(launched));
        fs::remove_file(experiment.out.join("pid")).unwrap();
    }
    // A program that ignores the first signal is killed by the second.
    let child = experiment.start(&["-n", "2"], &[("PAUSE", "100"), ("STUBBORN", "1")]);
    let launched = experiment.launched();
    send(&child, Signal::INT);
    sleep(Duration::from_millis(100));
    send(&child, Signal::INT);
    RunOutput::end_of(child).ends(130, "stopped by SIGINT");
    assert!(is_gone(launched));
    experiment.run(&["-n", "2"], &[]).succeeds();
    experiment.is_complete(2);
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let experiment = RunExperiment::new("shared");
    let child = experiment.start(&["-n", "2"], &[("PAUSE", "100")]);
    experiment.launched();
    experiment
        .run(&["-n", "2"], &[])
        .ends(2, "another `downbeat run` is using this folder");
    send(&child, Signal::TERM);
    RunOutput::end_of(child).ends(143, "stopped by SIGTERM");
}

#[test]
fn a_program_that_outlives_its_run_is_waited_for() {
    let experiment = RunExperiment::new("orphan");
    let (hold, err) = (experiment.file("hold"), experiment.file("err"));
    let environment = [("HOLD", hold.as_str())];
    let mut child = experiment.start(&["-n", "2"], &environment);
    let orphan = experiment.launched();
    child.kill().unwrap();
    child.wait().unwrap();
    let wait = || {
        let mut command = experiment.command(&["-n", "2"], &["--", BENCH]);
        command
            .envs(environment)
            .stderr(fs::File::create(&err).unwrap());
        let child = command.spawn().expect("the program starts");
        let read = || fs::read_to_string(&err).unwrap();
        eventually(|| {
            read()
                .contains("launch-001.log: waiting for its end\n")
                .then_some(())
        });
        child
    };
    let child = wait();
    send(&child, Signal::INT);
    assert_eq!(RunOutput::end_of(child).code, Some(130));
    let child = wait();
    assert!(!is_gone(orphan));
    fs::remove_file(&hold).unwrap();
    // It finished its record, so one launch was left.
    let said = RunOutput::end_of(child);
    assert!(
        said.code == Some(0) && said.out.lines().count() == 2,
        "{said:?}"
    );
    assert_eq!(experiment.read("launch-001.log").matches("$ ").count(), 1);
    experiment.is_complete(2);
}

#[test]
fn ranks_that_outlive_their_launcher_are_waited_for() {
    let experiment = RunExperiment::new("ranks");
    experiment.run(&["-n", "1"], &[]).succeeds();
    let record = experiment.out.join("launch-001.csv");
    let whole = experiment.read("launch-001.csv");
    let end = whole.find("# complete\n").unwrap();
    fs::write(&record, &whole[..end]).unwrap();
    let rank = fs::File::open(&record).unwrap();
    flock(&rank, FlockOperation::LockExclusive).unwrap();
    let err = experiment.file("err");
    let mut command = experiment.command(&["-n", "1", "--retries", "0"], &["--", BENCH]);
    let child = command
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .expect("the program starts");
    eventually(|| {
        fs::read_to_string(&err)
            .unwrap()
            .contains("launch-001.csv: waiting for its end\n")
            .then_some(())
    });
    drop(rank);
    assert_eq!(RunOutput::end_of(child).code, Some(0));
    experiment.is_complete(1);
}

#[test]
fn a_killed_run_continues_where_it_stopped() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let experiment = RunExperiment::new(&format!("killed-{seed}"));
        let mut child = experiment.start(&["-n", "3"], &[("PAUSE", "0.02")]);
        sleep(Duration::from_millis(random.u64(0..400)));
        let (kill_run, kill_launched) =
            [(true, false), (false, true), (true, true)][seed as usize % 3];
        if kill_run {
            child.kill().unwrap();
        }
        if kill_launched {
            // It may not have begun, or may have just ended.
            let process = experiment
                .read("pid")
                .trim()
                .parse()
                .ok()
                .and_then(Pid::from_raw);
            process.map(|process| kill_process(process, Signal::KILL));
        }
        let before = experiment.records();
        let mut said = RunOutput::end_of(child);
        if kill_run {
            said = experiment.run(&["-n", "3"], &[("PAUSE", "0.02")]);
        }
        assert_eq!(said.code, Some(0), "{seed}: {said:?}");
        experiment.is_complete(3);
        let after = experiment.records();
        for (path, text) in before {
            assert!(
                after[&path].starts_with(&text),
                "{seed}: {text} became {}",
                after[&path]
            );
        }
    }
}

/// Asserts that bad input gives one line, exit code 2, and no plan.
fn refuses(options: &[&str], launched: &[&str], culprit: &str) {
    let experiment = RunExperiment::new("refused");
    let said = RunOutput::of(
        &experiment
            .command(options, launched)
            .output()
            .expect("the program starts"),
    );
    let said = said.ends(2, culprit);
    assert!(
        said.err.starts_with("downbeat: ") && said.err.lines().count() == 1 && said.out.is_empty(),
        "{said:?}"
    );
    assert!(!experiment.out.exists(), "{said:?}");
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_it() {
    for n in ["0", "-1", "8abc", "NaN", "1.5", "", "10001", "99999999999"] {
        refuses(&["-n", n], &["--", BENCH], "--launches");
    }
    for seed in ["-1", "x", "99999999999999999999"] {
        refuses(&["--seed", seed], &["--", BENCH], "--seed");
    }
    for pauses in ["-1s", "1s,x", "1s,,2s", ""] {
        refuses(&["--pauses", pauses], &["--", BENCH], "--pauses");
    }
    for retries in ["-1", "x", "99999999999"] {
        refuses(&["--retries", retries], &["--", BENCH], "--retries");
    }
    for time in ["0", "-5s", "8abc", "NaN", "10", ""] {
        refuses(&["--timeout", time], &["--", BENCH], "--timeout");
    }
    refuses(&[], &[], "COMMAND: no command after --");
    refuses(&[], &["--"], "COMMAND: no command after --");
    refuses(&[], &[BENCH], "bench.sh");
    refuses(
        &[],
        &["--", "no-such-program"],
        "COMMAND: no-such-program: program not found",
    );
    refuses(
        &[],
        &["--", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
        "program not found",
    );
    refuses(&[], &["--", BENCH, "{out}"], "{out} but not {launch}");
    for name in ["", "a/b", "..", "-a", "a b", "é"] {
        refuses(&["--variant", name], &["--", BENCH], "--variant");
    }
    refuses(
        &["--variant", "a"],
        &["--", BENCH, "--variant", "a", "--", BENCH],
        "--variant: a: this name is given twice",
    );
    refuses(
        &["--variant", "a"],
        &["--", BENCH, "--variant", "b", BENCH],
        "--variant: must be followed by a name, -- and a command",
    );
    refuses(
        &["--variant", "a"],
        &["--", BENCH, "--variant", "b", "--"],
        "--variant: b: no command after --",
    );
    refuses(
        &[],
        &["--", BENCH, "--variant", "b", "--", BENCH],
        "--variant: the command before b has no name",
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    for out in ["/proc/downbeat", "/dev/null", "/dev/null/x", ""] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        let said = RunOutput::of(
            &command
                .args(["run", "--out", out, "--", BENCH])
                .output()
                .expect("the program starts"),
        );
        let said = said.ends(2, "--out");
        assert!(
            said.err.lines().count() == 1 && said.err.contains(out),
            "{said:?}"
        );
    }
    assert!(!Path::new("/proc/downbeat").exists());
}
