//! An experiment in a folder of its own, and what is said of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

pub(crate) const BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/bench.sh");

/// An experiment in a folder of its own.
pub(crate) struct Experiment {
    pub(crate) out: PathBuf,
}

impl Experiment {
    pub(crate) fn new(name: &str) -> Self {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&out);
        Self { out }
    }

    /// Options, then what is launched.
    pub(crate) fn command(&self, options: &[&str], launched: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        command
            .arg("run")
            .arg("--out")
            .arg(&self.out)
            .args(options)
            .args(launched);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to its end, with this environment for the script.
    pub(crate) fn run(&self, options: &[&str], environment: &[(&str, &str)]) -> Said {
        let mut command = self.command(options, &["--", BENCH]);
        Said::of(
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

    /// A file beside the folder, for the script to look at.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.out.with_extension(name);
        fs::write(&path, "").expect("it can be written");
        path.to_str().expect("a name in UTF-8").to_owned()
    }

    /// The process of the script, once there is one whose record has a head.
    pub(crate) fn launched(&self) -> Pid {
        let at_work = || {
            self.read("launch-001.csv")
                .contains("operation")
                .then(|| self.read("pid").trim().parse().ok())
                .flatten()
        };
        Pid::from_raw(eventually(at_work)).expect("a process has a number")
    }

    /// Each record, and what it has up to the end of its last whole group.
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

    /// That so many launches are there, each group of each of them once, and the partial ones gone.
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

impl Drop for Experiment {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.out);
        for name in ["fail", "die", "hold", "err", "leave"] {
            let _ = fs::remove_file(self.out.with_extension(name));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    pub(crate) fn end_of(child: Child) -> Self {
        Self::of(&child.wait_with_output().expect("it can be waited for"))
    }

    /// The exit code, and that the last line says this.
    pub(crate) fn ends(self, code: i32, says: &str) -> Self {
        let last = self.err.lines().last().unwrap_or_default();
        assert!(
            self.code == Some(code) && last.contains(says),
            "{says}: {self:?}"
        );
        self
    }

    pub(crate) fn succeeds(self) -> Self {
        assert!(self.code == Some(0) && self.err.is_empty(), "{self:?}");
        self
    }
}

/// Waits for what is sure to come.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it never came");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is there");
}

pub(crate) fn is_gone(process: Pid) -> bool {
    // Or it is a zombie, which nobody in a container may wait for.
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(process).is_err() || stat.contains(") Z ")
}
