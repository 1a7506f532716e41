//! Jobs of the MPI program: their start, their end, and their end by force.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use downbeat_launch::command::{FinishedCommand, finish};
pub(crate) use downbeat_launch::environment::is_long;
use downbeat_launch::mpi::MpiLibrary;
use downbeat_launch::{Outcome, environment, process};
use serde_json::Value;

/// Time limit of a job, longer than any takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// Time in which a job must end that lost a rank or was interrupted.
const END: Duration = Duration::from_secs(10);

/// Numbers of ranks, with the arguments of each.
pub(crate) type Parts<'a> = &'a [(u32, &'a str)];

/// Reason of a failed test, shown as written.
pub(crate) struct Failure(String);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Jobs of one test, under the library that the environment names.
pub(crate) struct Jobs {
    program: PathBuf,
    pub(crate) library: MpiLibrary,
    /// Library that the ranks preload to yield their core while they wait.
    yielding: Option<PathBuf>,
    /// Folder that the jobs may write to: `DIR` in their arguments.
    pub(crate) folder: PathBuf,
}

/// Process that is killed or interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    Rank,
    Launcher,
}

/// Runs a test with an empty folder of this name, and checks that no rank is left afterwards.
///
/// One test runs at a time: each looks for ranks that are left.
pub(crate) fn test(name: &str, body: impl FnOnce(&Jobs) -> Outcome) -> Result<(), Failure> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let jobs = Jobs::new(name).map_err(Failure)?;
    let failures = [body(&jobs), jobs.none_left()];
    let failures: Vec<String> = failures.into_iter().filter_map(Result::err).collect();
    let _ = fs::remove_dir_all(&jobs.folder);
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure(failures.join("; ")))
    }
}

/// Gives a program a path of its own in a folder: each test looks for the ranks that it
/// started by it, and tests of several modules may run at once.
fn link_for(program: &Path, folder: &Path) -> Result<PathBuf, String> {
    let link = folder.join("downbeat-mpi");
    let _ = fs::remove_file(&link);
    fs::create_dir_all(folder)
        .and_then(|()| fs::hard_link(program, &link))
        .and_then(|()| fs::canonicalize(&link))
        .map_err(|why| format!("{} to {}: {why}", program.display(), link.display()))
}

/// Reads a variable that `cargo xtask test` sets.
pub(crate) fn variable(name: &str) -> Result<String, String> {
    env::var(name)
        .map_err(|_| format!("{name} is not set; run: cargo xtask test --only 'MPI program'"))
}

impl Jobs {
    fn new(name: &str) -> Result<Self, String> {
        let suffix = variable(environment::LIBRARY)?;
        let library = MpiLibrary::with_suffix(&suffix)
            .ok_or_else(|| format!("{}: unknown MPI library {suffix:?}", environment::LIBRARY))?;
        let program = variable(environment::MPI_PROGRAM)?;
        let of_library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(suffix);
        let program = link_for(Path::new(&program), &of_library.join("programs").join(name))?;
        let folder = of_library.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Self {
            program,
            library,
            yielding: env::var_os(environment::YIELD).map(PathBuf::from),
            folder,
        })
    }

    /// Returns the path of the MPI program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the numbers of ranks of a case: unless in a long run a third of them, so that each number is that of some case.
    pub(crate) fn ranks_of_case(
        &self,
        case: usize,
        all: &'static [u32],
    ) -> impl Iterator<Item = u32> {
        let (first, step) = if is_long() { (0, 1) } else { (case % 3, 3) };
        all.iter().copied().skip(first).step_by(step)
    }

    /// Replaces `DIR` by the folder of the jobs.
    pub(crate) fn expand(&self, text: &str) -> String {
        text.replace("DIR", &self.folder.to_string_lossy())
    }

    /// Returns `mpirun` with these parts.
    pub(crate) fn mpirun(&self, parts: Parts<'_>) -> Command {
        self.with_parts(self.library.oversubscribed_mpirun(), parts)
    }

    fn with_parts(&self, mut mpirun: Command, parts: Parts<'_>) -> Command {
        self.let_yield(&mut mpirun);
        for (i, (ranks, arguments)) in parts.iter().enumerate() {
            mpirun
                .args((i > 0).then_some(":"))
                .args(["-np", &ranks.to_string()])
                .arg(&self.program);
            mpirun.args(arguments.split_whitespace().map(|word| self.expand(word)));
        }
        mpirun
    }

    /// Returns `mpirun` of another program that preloads a library.
    pub(crate) fn mpirun_program(
        &self,
        ranks: u32,
        program: &Path,
        arguments: &str,
        library: &Path,
    ) -> Command {
        let mut mpirun = self.library.oversubscribed_mpirun();
        let libraries: Vec<PathBuf> = self
            .yielding
            .iter()
            .cloned()
            .chain([library.to_owned()])
            .collect();
        self.library.preload(&mut mpirun, &libraries);
        mpirun.args(["-np", &ranks.to_string()]).arg(program);
        mpirun.args(arguments.split_whitespace());
        mpirun
    }

    fn let_yield(&self, mpirun: &mut Command) {
        self.library.preload(mpirun, self.yielding.as_slice());
    }

    /// Returns `mpirun` of shells that each run this script; `PROGRAM` is the MPI program.
    pub(crate) fn mpirun_shells(&self, ranks: u32, script: &str) -> Command {
        let mut mpirun = self.library.oversubscribed_mpirun();
        self.let_yield(&mut mpirun);
        let script = self.expand(&script.replace("PROGRAM", &self.program.to_string_lossy()));
        mpirun.args(["-np", &ranks.to_string(), "sh", "-c", &script]);
        mpirun
    }

    pub(crate) fn run(&self, parts: Parts<'_>) -> Result<FinishedCommand, String> {
        finish(LIMIT, &mut self.mpirun(parts))
    }

    /// Runs a job that must print a report in JSON.
    pub(crate) fn report(
        &self,
        ranks: u32,
        arguments: &str,
    ) -> Result<(FinishedCommand, Value), String> {
        let job = self.run(&[(ranks, arguments)])?;
        expect(
            job.code == Some(0),
            &job,
            &format!("exit code 0 of `{arguments}`"),
        )?;
        let report =
            serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
        Ok((job, report))
    }

    /// Runs a job that must fail with this exit code and one line that contains this text, and print nothing else.
    pub(crate) fn fails(&self, parts: Parts<'_>, code: i32, text: &str) -> Outcome {
        let job = self.run(parts)?;
        expect(
            job.code == Some(code),
            &job,
            &format!("exit code {code} for `{}`", parts[0].1),
        )?;
        expect(job.stdout.is_empty(), &job, "no output")?;
        one_line(&job, text)
    }

    /// Runs a job of two ranks for each of these arguments behind `command`: each must fail with this exit code and one line
    /// that contains the text.
    pub(crate) fn all_fail(&self, code: i32, command: &str, cases: &[(&str, &str)]) -> Outcome {
        let failed = cases.iter().filter_map(|(arguments, text)| {
            let arguments = format!("{command} {arguments}");
            self.fails(&[(2, &arguments)], code, &self.expand(text))
                .err()
        });
        let failed: Vec<String> = failed.collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("; "))
        }
    }

    /// Starts a long job, and kills or interrupts it once all ranks run and `begun` is true. It must end soon.
    pub(crate) fn end_by(
        &self,
        victim: Victim,
        parts: Parts<'_>,
        begun: impl Fn() -> bool + Sync,
    ) -> Result<FinishedCommand, String> {
        let ranks = parts.iter().map(|(ranks, _)| *ranks as usize).sum();
        let mut mpirun = self.with_parts(self.library.graceful_mpirun(), parts);
        let (job, struck) = thread::scope(|scope| {
            let strike = scope.spawn(|| self.strike(victim, ranks, &begun));
            let job = finish(LIMIT, &mut mpirun);
            let panicked = || Err("the thread that ends the job panicked".to_owned());
            (job, strike.join().unwrap_or_else(|_| panicked()))
        });
        let (job, late) = (job?, struck?.elapsed());
        if late > END {
            return Err(format!("the job ran on for {:.1} s", late.as_secs_f64()));
        }
        // Some launchers report success after an interrupt.
        expect(
            job.code != Some(0) || victim == Victim::Launcher,
            &job,
            "a failure",
        )?;
        self.none_left()?;
        Ok(job)
    }

    /// Kills or interrupts the job as soon as it has begun; returns the moment.
    fn strike(
        &self,
        victim: Victim,
        count: usize,
        begun: impl Fn() -> bool,
    ) -> Result<Instant, String> {
        let deadline = Instant::now() + LIMIT / 2;
        while Instant::now() < deadline {
            let ranks = self.ranks();
            if ranks.len() == count && begun() {
                match victim {
                    Victim::Rank => process::signal("KILL", &ranks[count - 1..]),
                    // A person at a terminal interrupts the launcher, which tells the ranks.
                    Victim::Launcher => {
                        process::signal("INT", &process::topmost_ancestors(&ranks));
                    }
                }
                return Ok(Instant::now());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the job did not begin".to_owned())
    }

    /// Returns the processes of all jobs.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        process::running(&self.program)
    }

    /// Waits until all ranks are gone; kills those that stay, which is a failure.
    fn none_left(&self) -> Outcome {
        let deadline = Instant::now() + END;
        loop {
            let ranks = self.ranks();
            if ranks.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                process::signal("KILL", &ranks);
                return Err(format!("{} ranks were left behind", ranks.len()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Fails with all that the command printed unless the condition holds.
pub(crate) fn expect(holds: bool, job: &FinishedCommand, expected: &str) -> Outcome {
    if holds {
        return Ok(());
    }
    let FinishedCommand {
        code,
        stdout,
        stderr,
    } = job;
    Err(format!(
        "expected {expected}, found exit code {code:?}, standard output\n{stdout}\nand standard error\n{stderr}"
    ))
}

/// Checks that the program complained in one line that contains this text; the launcher may print more.
pub(crate) fn one_line(job: &FinishedCommand, text: &str) -> Outcome {
    let ours: Vec<&str> = job
        .stderr
        .lines()
        .filter(|line| line.contains("downbeat-mpi: "))
        .collect();
    expect(
        !job.stderr.contains("panicked") && ours.len() == 1 && ours[0].contains(text),
        job,
        &format!("one line with `{text}`"),
    )
}
