//! A job of the rank program: as its user starts it, how it ends, and how it is ended from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::checks::mpi::Library;
use crate::shell::{self, Ended, ended};
use crate::steps::Outcome;

/// Longer than any of these jobs takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A job that lost a rank, or was interrupted, must not outlive that by more.
pub(crate) const END: Duration = Duration::from_secs(10);

/// So many ranks with these arguments, and others with others.
pub(crate) type Parts<'a> = &'a [(u32, &'a str)];

/// How all jobs of a check are started.
pub(crate) struct Jobs<'a> {
    program: &'a Path,
    pub(crate) library: Library,
    /// Where they may write: `DIR` in their arguments.
    pub(crate) folder: PathBuf,
}

/// Who is killed or interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    Rank,
    Launcher,
}

impl<'a> Jobs<'a> {
    /// With an empty folder of this name.
    pub(crate) fn new(
        program: &'a Path,
        library: Library,
        scratch: &Path,
        name: &str,
    ) -> Result<Self, String> {
        let folder = scratch.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Self {
            program,
            library,
            folder,
        })
    }

    /// What a check found, with nothing left of it.
    pub(crate) fn end(self, results: impl IntoIterator<Item = (&'static str, Outcome)>) -> Outcome {
        let failed = results
            .into_iter()
            .filter_map(|(what, result)| result.err().map(|why| format!("{what}: {why}")));
        let failed: Vec<String> = failed.chain(self.none_left().err()).collect();
        let _ = fs::remove_dir_all(&self.folder);
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("; "))
        }
    }

    /// `mpirun` with these parts.
    pub(crate) fn mpirun(&self, parts: Parts<'_>) -> Command {
        self.with_parts(self.library.crowded_mpirun(), parts)
    }

    fn with_parts(&self, mut mpirun: Command, parts: Parts<'_>) -> Command {
        for (i, (ranks, arguments)) in parts.iter().enumerate() {
            mpirun
                .args((i > 0).then_some(":"))
                .args(["-np", &ranks.to_string()])
                .arg(self.program);
            mpirun.args(self.words(arguments));
        }
        mpirun
    }

    /// `mpirun` of so many shells, each of which does this; `PROGRAM` is the program.
    pub(crate) fn mpirun_shells(&self, ranks: u32, script: &str) -> Command {
        let mut mpirun = self.library.crowded_mpirun();
        let script = script.replace("PROGRAM", &self.program.to_string_lossy());
        mpirun.args([
            "-np",
            &ranks.to_string(),
            "sh",
            "-c",
            &script.replace("DIR", &self.folder.to_string_lossy()),
        ]);
        mpirun
    }

    fn words(&self, arguments: &str) -> Vec<String> {
        arguments
            .split_whitespace()
            .map(|word| word.replace("DIR", &self.folder.to_string_lossy()))
            .collect()
    }

    pub(crate) fn run(&self, parts: Parts<'_>) -> Result<Ended, String> {
        ended(LIMIT, &mut self.mpirun(parts))
    }

    /// Wants it to fail with this exit code and one line that says this, and nothing else.
    pub(crate) fn fails(&self, parts: Parts<'_>, code: i32, says: &str) -> Outcome {
        let job = self.run(parts)?;
        want(
            job.code == Some(code),
            &job,
            &format!("exit code {code} for `{}`", parts[0].1),
        )?;
        want(job.stdout.is_empty(), &job, "no output")?;
        one_line(&job, says)
    }

    /// Starts a job that would go on for long, and ends it the hard way once so many ranks are there and it has `begun`.
    /// It must end soon.
    pub(crate) fn ended_by(
        &self,
        victim: Victim,
        parts: Parts<'_>,
        begun: impl Fn() -> bool + Sync,
    ) -> Result<Ended, String> {
        let ranks = parts.iter().map(|(ranks, _)| *ranks as usize).sum();
        let mut mpirun = self.with_parts(self.library.patient_mpirun(), parts);
        let (job, struck) = thread::scope(|scope| {
            let strike = scope.spawn(|| self.strike(victim, ranks, &begun));
            let job = ended(LIMIT, &mut mpirun);
            (
                job,
                strike
                    .join()
                    .unwrap_or(Err("the thread that strikes panicked".to_owned())),
            )
        });
        let (job, late) = (job?, struck?.elapsed());
        if late > END {
            return Err(format!("the job went on for {:.1} s", late.as_secs_f64()));
        }
        // Some launchers call it a success that they were interrupted.
        want(
            job.code != Some(0) || victim == Victim::Launcher,
            &job,
            "a failure",
        )?;
        self.none_left()?;
        Ok(job)
    }

    /// Waits until the job is on its way; tells when it struck.
    fn strike(
        &self,
        victim: Victim,
        count: usize,
        begun: impl Fn() -> bool,
    ) -> Result<Instant, String> {
        let deadline = Instant::now() + LIMIT / 2;
        while Instant::now() < deadline {
            let ranks = self.ranks()?;
            if ranks.len() == count && begun() {
                match victim {
                    Victim::Rank => shell::signal("KILL", &ranks[count - 1..]),
                    // A person at a terminal interrupts the launcher; it tells the ranks.
                    Victim::Launcher => shell::signal("INT", &shell::parents_of(&ranks)),
                }
                return Ok(Instant::now());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the job did not get going".to_owned())
    }

    /// The processes of all jobs that there are now.
    pub(crate) fn ranks(&self) -> Result<Vec<u32>, String> {
        let program = fs::canonicalize(self.program).map_err(|why| why.to_string())?;
        Ok(shell::processes_of(&program))
    }

    /// Wants all ranks to be gone, or to go soon. Ends those that do not.
    pub(crate) fn none_left(&self) -> Outcome {
        let deadline = Instant::now() + END;
        loop {
            let left = self.ranks()?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                shell::signal("KILL", &left);
                return Err(format!("{} ranks were left behind", left.len()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn want(holds: bool, job: &Ended, what: &str) -> Outcome {
    if holds {
        return Ok(());
    }
    let Ended {
        code,
        stdout,
        stderr,
    } = job;
    Err(format!(
        "wanted {what}, found exit code {code:?}, standard output\n{stdout}\nand standard error\n{stderr}"
    ))
}

/// That the program complained in one line; the launcher may say more.
pub(crate) fn one_line(job: &Ended, says: &str) -> Outcome {
    let ours: Vec<&str> = job
        .stderr
        .lines()
        .filter(|line| line.contains("downbeat-mpi: "))
        .collect();
    want(
        !job.stderr.contains("panicked") && ours.len() == 1 && ours[0].contains(says),
        job,
        &format!("one line with `{says}`"),
    )
}
