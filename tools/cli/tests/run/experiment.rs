//! An experiment in a folder of its own, and the output of runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

pub(crate) const BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/bench.sh");

/// An experiment in a folder of its own.
pub(crate) struct RunExperiment {
    pub(crate) out: PathBuf,
}

impl RunExperiment {
    pub(crate) fn new(name: &str) -> Self {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&out);
        Self { out }
    }

    /// Command line of a run: options, then the launched command. Without the option, there are no pauses.
    pub(crate) fn command(&self, options: &[&str], launched: &[&str]) -> Command {
        let mut command = downbeat("default");
        command
            .arg("run")
            .arg("--out")
            .arg(&self.out)
            .args((!options.contains(&"--pauses")).then_some("--pauses=0s"))
            .args(options)
            .args(launched);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to the end, with this environment for the script.
    pub(crate) fn run(&self, options: &[&str], environment: &[(&str, &str)]) -> RunOutput {
        let mut command = self.command(options, &["--", BENCH]);
        RunOutput::of(
            &command
                .envs(environment.iter().copied())
                .output()
                .expect("the program starts"),
        )
    }

    pub(crate) fn start(&self, options: &[&str], environment: &[(&str, &str)]) -> Child {
        let mut command = self.command(options, &["--", BENCH]);
        command
            .envs(environment.iter().copied())
            .spawn()
            .expect("the program starts")
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.out.join(path)).unwrap_or_default()
    }

    /// Makes a file next to the folder that the script checks.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.out.with_extension(name);
        fs::write(&path, "").expect("the file can be written");
        path.to_str().expect("a name in UTF-8").to_owned()
    }

    /// Returns the process of the script, once its record has a header.
    pub(crate) fn launched(&self) -> Pid {
        let process = || {
            self.read("launch-001.csv")
                .contains("operation")
                .then(|| self.read("pid").trim().parse().ok())
                .flatten()
        };
        Pid::from_raw(eventually(process)).expect("a valid process id")
    }

    /// Returns each record, up to the end of its last complete group.
    pub(crate) fn records(&self) -> BTreeMap<PathBuf, String> {
        let whole = |text: String| {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let ends = lines
                .iter()
                .rposition(|line| line.starts_with("# end") && line.ends_with('\n'));
            lines[..ends.map_or(0, |last| last + 1)].concat()
        };
        let entries = fs::read_dir(&self.out)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let records = entries.filter(|path| path.extension().is_some_and(|ending| ending == "csv"));
        records
            .map(|path| {
                (
                    path.clone(),
                    whole(fs::read_to_string(path).unwrap_or_default()),
                )
            })
            .collect()
    }

    /// Asserts that there are this many launches, each with each group once, and no partial group.
    pub(crate) fn is_complete(&self, launches: usize) {
        assert_eq!(self.records().len(), launches);
        for i in 1..=launches {
            let text = self.read(&format!("launch-{i:03}.csv"));
            assert_eq!(text.matches("# complete\n").count(), 1, "{text}");
            for size in 1..=3 {
                assert_eq!(
                    text.matches(&format!("allreduce,{size},4,0,valid,"))
                        .count(),
                    1,
                    "{text}"
                );
                assert_eq!(
                    text.matches(&format!("# end allreduce,{size},4 valid=2 "))
                        .count(),
                    1,
                    "{text}"
                );
            }
        }
    }
}

impl Drop for RunExperiment {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.out);
        for name in ["fail", "die", "hold", "err", "leave"] {
            let _ = fs::remove_file(self.out.with_extension(name));
        }
    }
}

#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl RunOutput {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    pub(crate) fn end_of(child: Child) -> Self {
        Self::of(
            &child
                .wait_with_output()
                .expect("the process can be waited for"),
        )
    }

    /// Asserts the exit code, and that the last line contains `text`.
    pub(crate) fn ends(self, code: i32, text: &str) -> Self {
        let last = self.err.lines().last().unwrap_or_default();
        assert!(
            self.code == Some(code) && last.contains(text),
            "{text}: {self:?}"
        );
        self
    }

    pub(crate) fn succeeds(self) -> Self {
        assert!(self.code == Some(0) && self.err.is_empty(), "{self:?}");
        self
    }
}

/// Waits until `look` returns a value.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "timeout");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the process exists");
}

pub(crate) fn is_gone(process: Pid) -> bool {
    // It may be a zombie, if no process of the container waits for it.
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(process).is_err() || stat.contains(") Z ")
}

/// Returns the program, which begins with SIGHUP as `default` or to `ignore`, however the tests were started.
pub(crate) fn downbeat(hangup: &str) -> Command {
    let mut command = Command::new("env");
    command.arg(format!("--{hangup}-signal=HUP"));
    command.arg(env!("CARGO_BIN_EXE_downbeat"));
    command
}
