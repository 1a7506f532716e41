//! All commands in hostile environments: outputs that cannot be written, and limits of the process. Each ends with a
//! documented exit code and one line, and leaves no incomplete file.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, id};

const PROGRAM: &str = env!("CARGO_BIN_EXE_downbeat");

/// Commands, in a folder with experiments `e/a` and `e/b`, traces and a report of regions.
const COMMANDS: [&str; 27] = [
    "clocks",
    "clocks --json",
    "calibrate --duration 10ms",
    "calibrate --duration 10ms --json --save new.calibration",
    "sync --ranks 2 --algorithm hca3/20/skampi/10 --check 0",
    "sync --ranks 2 --algorithm skampi/skampi/10 --check 0 --json",
    "simulate --ranks 8 --algorithm hca3/20/skampi/10 --check 0",
    "simulate --ranks 40 --threads 2 --algorithm hca3/5/skampi/5 --check 0",
    "simulate --ranks 8 --algorithm hca3/20/skampi/10 --check 0 --json --csv grows.csv",
    "bench --operation allreduce --ranks 2 --scheme ms1 --max-reps 20",
    "bench --operation allreduce --ranks 2 --scheme ms1 --max-reps 20 --json --out grows --launch a",
    "run -n 1 --retries 0 --out grows -- true",
    "analyze e/a",
    "analyze --json e/a",
    "compare e/a e/b",
    "compare --json e/a e/b",
    "reproducibility e/a e/b",
    "samplesize e/a",
    "report e/a -o new.html",
    "regions show report.json",
    "regions show report.json -o new.html",
    "regions diff report.json report.json",
    "trace generate --nodes 2 --events 2000 -o new.dbt",
    "trace correct a.dbt -o new.dbt --page new.html --json",
    "trace check a.dbt",
    "trace convert a.dbt new.dbt",
    "trace convert a.dbt new.pftrace",
];

/// Folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder with the inputs of all commands.
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a test may write here");
        let scratch = Self(folder);
        for prepare in [
            "bench --operation allreduce --ranks 2 --scheme ms1 --reps 20 --out e/a --launch 1",
            "bench --operation allreduce --ranks 2 --scheme ms1 --reps 20 --out e/b --launch 2",
            "trace generate --nodes 2 --events 2000 -o a.dbt",
        ] {
            let done = scratch.run(&format!("exec {PROGRAM} {prepare}"));
            assert_eq!(done.status.code(), Some(0), "{prepare}: {done:?}");
        }
        let seed = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/fuzz/corpus/regions/stencil"
        );
        fs::copy(seed, scratch.0.join("report.json")).expect("a report of regions");
        scratch
    }

    fn run(&self, script: &str) -> Output {
        Command::new("sh")
            .args(["-c", script])
            .env_remove("RUST_BACKTRACE")
            .current_dir(&self.0)
            .output()
            .expect("there is a shell")
    }

    /// Returns the files, without those that grow in place.
    fn files(&self) -> BTreeSet<PathBuf> {
        let names = fs::read_dir(&self.0).expect("a folder");
        names
            .map(|entry| entry.expect("a name").path())
            .filter(|path| !path.ends_with("grows") && !path.ends_with("grows.csv"))
            .collect()
    }

    /// Runs all commands, each by this script with the command in place of `COMMAND`, and gives their output to `check`.
    fn all(&self, script: &str, check: impl Fn(&str, i32, &str)) {
        let before = self.files();
        for command in COMMANDS {
            let script = script.replace("COMMAND", &format!("{PROGRAM} {command}"));
            let ended = self.run(&script);
            let said = String::from_utf8_lossy(&ended.stderr);
            let code = ended.status.code().unwrap_or(-1);
            assert!((0..=2).contains(&code), "{script}: {ended:?}");
            check(command, code, &said);
            let is_new = |path: &Path| path.file_stem().is_some_and(|stem| stem == "new");
            for path in self.files().difference(&before) {
                let size = fs::metadata(path).expect("a file").len();
                assert!(is_new(path) && size > 0, "{script} left {}", path.display());
                fs::remove_file(path).expect("a file of this test");
            }
            let grown = self.0.join("grows");
            let _ = (
                fs::remove_dir_all(&grown),
                fs::remove_file(self.0.join("grows.csv")),
            );
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit code without any obstacle.
fn usual(command: &str) -> i32 {
    let finds_violations = command.starts_with("trace check");
    // Its program writes no record.
    i32::from(finds_violations || command.starts_with("run"))
}

fn one_line(command: &str, said: &str) {
    let is_line = said.starts_with("downbeat: ") && said.lines().count() == 1;
    assert!(is_line, "{command}: {said}");
}

#[test]
fn without_obstacles_all_commands_do_their_work() {
    Scratch::new("plain").all("exec COMMAND", |command, code, said| {
        assert_eq!(code, usual(command), "{command}: {said}");
        if code != 0 {
            one_line(command, said);
        }
    });
}

#[test]
fn messages_without_a_place_change_no_exit_code() {
    for (name, script) in [
        ("stderr-full", "exec COMMAND 2>/dev/full"),
        ("stderr-closed", "exec COMMAND 2>&-"),
        ("all-closed", "exec COMMAND 2>&- >&- <&-"),
    ] {
        Scratch::new(name).all(script, |command, code, _| {
            assert_eq!(code, usual(command), "{name}: {command}");
        });
    }
}

#[test]
fn results_without_a_place_are_a_failure() {
    Scratch::new("stdout-full").all("exec COMMAND >/dev/full", |command, code, said| {
        let prints = !command.contains(" -o new.html") || command.contains("--json");
        assert_eq!(code, i32::from(prints), "{command}: {said}");
        if code != 0 {
            one_line(command, said);
        }
    });
}

/// A limit that some commands do not reach; the others end with one line.
fn limited(name: &str, script: &str, expected: &str) {
    Scratch::new(name).all(script, |command, code, said| {
        if code != usual(command) {
            one_line(command, said);
            assert!(said.contains(expected), "{command}: {said}");
        }
    });
}

#[test]
fn a_limit_of_open_files_is_a_failure() {
    // Files that the caller of the tests has open count, too.
    let script = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4; exec COMMAND";
    limited("open-files", script, "Too many open files");
}

#[test]
fn a_limit_of_file_sizes_is_a_failure() {
    limited("no-size", "ulimit -f 0; exec COMMAND", "File too large");
    limited("size", "ulimit -f 8; exec COMMAND", "File too large");
}

#[test]
fn a_lack_of_threads_is_a_failure() {
    // The system starts no thread with a stack of this size.
    let script = "RUST_MIN_STACK=100000000000000 exec COMMAND";
    limited("threads", script, "unavailable");
}

#[test]
fn a_limit_of_memory_is_a_failure() {
    let scratch = Scratch::new("memory");
    let made = scratch.run(&format!(
        "exec {PROGRAM} trace generate --nodes 4 --events 2500000 -o big.dbt"
    ));
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let before = scratch.files();
    let ended = scratch.run(&format!(
        "ulimit -v 60000; exec {PROGRAM} trace correct big.dbt -o new.dbt"
    ));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    // Of the events, or of anything else.
    let is_lack = said.starts_with("memory allocation of ") || said.contains("not enough memory");
    assert!(is_lack && said.lines().count() == 1, "{said}");
    assert_eq!(scratch.files(), before);
}
