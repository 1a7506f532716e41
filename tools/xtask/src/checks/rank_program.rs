//! The rank program as its user meets it: under `mpirun`, with good input and bad, with a rank that dies and with ^C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::checks::mpi::Library;
use crate::shell::{self, Ended, ended};
use crate::steps::Outcome;

/// The binary that `mpirun` starts.
pub(crate) const NAME: &str = "downbeat-mpi";

/// Longer than any of these jobs takes.
const LIMIT: Duration = Duration::from_secs(60);

/// A job that lost a rank, or was interrupted, must not outlive that by more.
const END: Duration = Duration::from_secs(10);

/// Runs everything, also after a failure.
pub(crate) fn check(program: &Path, library: Library, scratch: &Path) -> Outcome {
    let job = Job { program, library, csv: scratch.join("rank-program.csv") };
    let results = [
        ("a good run", job.runs_well()),
        ("imbalance and drift", job.shows_imbalance_and_drift()),
        ("bad input", job.refuses_bad_input()),
        ("bad input for imbalance and drift", job.refuses_bad_input_for_imbalance_and_drift()),
        ("failures at run time", job.reports_failures()),
        ("a rank that dies", job.ends_without(Victim::Rank)),
        ("an interrupt", job.ends_without(Victim::Launcher)),
    ];
    let failed = results.into_iter().filter_map(|(what, result)| result.err().map(|why| format!("{what}: {why}")));
    let failed: Vec<String> = failed.collect();
    let _ = fs::remove_file(&job.csv);
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

struct Job<'a> {
    program: &'a Path,
    library: Library,
    csv: PathBuf,
}

/// Who is killed or interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Rank,
    Launcher,
}

impl Job<'_> {
    /// `mpirun` of so many ranks with these arguments; the second part may differ from the first.
    fn mpirun(&self, parts: &[(u32, &str)]) -> Command {
        let mut mpirun = self.library.crowded_mpirun();
        for (i, (ranks, arguments)) in parts.iter().enumerate() {
            mpirun.args((i > 0).then_some(":")).args(["-np", &ranks.to_string()]).arg(self.program);
            mpirun.args(arguments.split_whitespace().map(|word| word.replace("CSV", &self.csv.to_string_lossy())));
        }
        mpirun
    }

    fn run(&self, parts: &[(u32, &str)]) -> Result<Ended, String> {
        ended(LIMIT, &mut self.mpirun(parts))
    }

    fn runs_well(&self) -> Outcome {
        let two_algorithms = "sync --algorithm hca3-offset/skampi/20,h2hca(skampi/skampi/20,prop) --check 0,10ms \
                              --repeat 2 --truth --json --csv CSV";
        let job = self.run(&[(3, two_algorithms)])?;
        want(job.code == Some(0), &job, "exit code 0")?;
        let report: Value = serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
        let runs = report["runs"].as_array().ok_or("no runs")?;
        want(report["schema"] == "downbeat.sync_runs" && report["factors"]["ranks"] == "3", &job, "a schema")?;
        want(runs.len() == 4, &job, "four runs")?;
        for check in runs.iter().flat_map(|run| run["checks"].as_array().into_iter().flatten()) {
            want(check["looked_at"] == 2 && check["largest_error"]["ns"].is_i64(), &job, "two ranks, and the truth")?;
        }
        let lines = fs::read_to_string(&self.csv).map_err(|why| why.to_string())?;
        let rows = lines.lines().filter(|line| !line.starts_with('#')).count();
        if rows != 1 + 4 * 2 {
            return Err(format!("wanted a heading and eight lines in:\n{lines}"));
        }
        let table = self.run(&[(2, "sync --algorithm skampi/skampi/20 --check 0 --clock wtime --pin")])?;
        want(table.code == Some(0) && table.stdout.starts_with("2 ranks on 1 node, clock wtime"), &table, "a table")?;
        let levels =
            "sync --algorithm h3hca(skampi/skampi/9,skampi/skampi/9,prop) --per-node 2 --per-socket 1 --check 0";
        let by_hand = self.run(&[(3, levels)])?;
        want(by_hand.code == Some(0) && by_hand.stdout.starts_with("3 ranks on 2 nodes"), &by_hand, "levels by hand")
    }

    fn refuses_bad_input(&self) -> Outcome {
        let cases = [
            ("sync --algorithm hca4/1/skampi/1", "--algorithm"),
            ("sync --algorithm hca3/0/skampi/10", "--algorithm"),
            ("sync --algorithm hca3/8abc/skampi/10", "--algorithm"),
            ("sync --algorithm hca3/10/mean-rtt/10/weighted", "--algorithm"),
            ("sync --clock sundial", "--clock"),
            ("sync --check -1s", "--check"),
            ("sync --check NaN", "--check"),
            ("sync --repeat 0", "--repeat"),
            ("sync --sample 0", "--sample"),
            ("sync --sample NaN", "--sample"),
            ("sync --check-by skampi/0", "--check-by"),
            ("sync --per-node 0", "--per-node"),
            ("sync --skew drift=NaNppm", "--skew"),
            ("sync --csv /nonexistent/file", "--csv: /nonexistent/file"),
            ("sync --calibration /nonexistent/file", "--calibration: /nonexistent/file"),
            ("sink", "sink"),
            ("", "downbeat-mpi"),
        ];
        for (arguments, culprit) in cases {
            let job = self.run(&[(2, arguments)])?;
            want(job.code == Some(2), &job, &format!("exit code 2 for `{arguments}`"))?;
            one_line(&job, culprit)?;
        }
        let job = self.run(&[(1, "sync --clock tsc"), (2, "sync --clock raw")])?;
        want(job.code == Some(2), &job, "exit code 2 for ranks with different options")?;
        one_line(&job, "different options")
    }

    /// Two ranks, and a method that has no late calls: on crowded cores no round may be valid.
    fn shows_imbalance_and_drift(&self) -> Outcome {
        let job = self.run(&[(2, "imbalance --reps 50 --latency --methods osu,ms2,round-time --json")])?;
        want(job.code == Some(0), &job, "exit code 0")?;
        let report: Value = serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
        let of = |part: &str| report[part].as_array().map_or(0, Vec::len);
        want(report["schema"] == "downbeat.imbalance" && of("barriers") == 4, &job, "all barriers")?;
        want(of("latencies") == 3 * 4, &job, "three methods behind each barrier")?;
        let table = self.run(&[(2, "imbalance --barrier tree,dissemination --reps 50 --latency --methods ms1")])?;
        want(table.code == Some(0) && table.stdout.contains("leaves last"), &table, "a table")?;

        let drift = "drift --during 1s --every 100ms --windows 500ms --check-by skampi/20 --skew offset=1s,drift=2000ppm \
                     --json --csv CSV";
        let job = self.run(&[(2, drift)])?;
        want(job.code == Some(0), &job, "exit code 0")?;
        let report: Value = serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
        let rank = &report["ranks"][0];
        let drift = rank["whole"]["drift_ppm"].as_f64().unwrap_or(0.0);
        // The clock of rank 1 loses 1,801 ppm of what it shows; on busy cores offsets can be off by some of that.
        want(
            report["schema"] == "downbeat.drift" && (-2_500.0..-1_000.0).contains(&drift),
            &job,
            "the drift of rank 1",
        )?;
        want(report["latency"]["message_ns"].as_f64() > Some(0.0), &job, "the latency of a message")?;
        let lines = fs::read_to_string(&self.csv).map_err(|why| why.to_string())?;
        let rows = lines.lines().filter(|line| !line.starts_with('#')).count() as u64;
        let seen = rank["offsets"].as_u64().unwrap_or(0) + rank["contradictory"].as_u64().unwrap_or(0);
        want(rows == 1 + seen, &job, &format!("a line for each offset in\n{lines}"))
    }

    fn refuses_bad_input_for_imbalance_and_drift(&self) -> Outcome {
        let cases = [
            ("imbalance --barrier linear", "--barrier"),
            ("imbalance --reps 0", "--reps"),
            ("imbalance --time-slice -1s", "--time-slice"),
            ("imbalance --methods osu", "--latency"),
            ("imbalance --latency --methods ms9", "--methods"),
            ("imbalance --latency --size 8,16", "--size"),
            ("imbalance --out /proc/nonexistent/x", "--out: /proc/nonexistent/x"),
            ("drift --during 0s", "--during"),
            ("drift --during NaN", "--during"),
            ("drift --every -1s", "--every"),
            ("drift --every 3min", "--every"),
            ("drift --windows 1h", "--windows: 3600.000 s is longer than the whole run"),
            ("drift --windows 1s", "--windows"),
            ("drift --csv /nonexistent/file", "--csv: /nonexistent/file"),
        ];
        for (arguments, culprit) in cases {
            self.refuses(2, arguments, culprit)?;
        }
        self.refuses(1, "imbalance", "there is only one")?;
        self.refuses(1, "drift", "there is only one")
    }

    fn refuses(&self, ranks: u32, arguments: &str, culprit: &str) -> Outcome {
        let job = self.run(&[(ranks, arguments)])?;
        want(job.code == Some(2), &job, &format!("exit code 2 for `{arguments}`"))?;
        one_line(&job, culprit)
    }

    fn reports_failures(&self) -> Outcome {
        let cases = [
            // Every rank but the first is set back in the middle of it: in an exchange, or between two.
            ("sync --skew step=-1s@15ms --algorithm jk/400/skampi/100", "rank 1: "),
            ("sync --skew offset=1s --algorithm prop", "the ranks do not share a source of time"),
            ("sync --algorithm skampi/skampi/10 --csv /dev/full", "cannot write to /dev/full"),
        ];
        for (arguments, says) in cases {
            // No more ranks than cores: those of some libraries never yield.
            let job = self.run(&[(2, arguments)])?;
            want(job.code == Some(1), &job, &format!("exit code 1 for `{arguments}`"))?;
            one_line(&job, says)?;
        }
        Ok(())
    }

    /// Starts a job that would go on for long, and ends it the hard way in the middle.
    fn ends_without(&self, victim: Victim) -> Outcome {
        let _ = fs::remove_file(&self.csv);
        let mut mpirun = self.mpirun(&[(3, "sync --algorithm skampi/skampi/10 --check 0,1h --repeat 2 --csv CSV")]);
        let job = thread::scope(|scope| {
            let strike = scope.spawn(|| self.strike(victim));
            let job = ended(LIMIT, &mut mpirun);
            let struck = strike.join().unwrap_or(Err("the thread that strikes panicked".to_owned()))?;
            want_within(struck)?;
            job
        })?;
        // Some launchers call it a success that they were interrupted.
        want(job.code != Some(0) || victim == Victim::Launcher, &job, "a failure")?;
        let lines = fs::read_to_string(&self.csv).map_err(|why| why.to_string())?;
        if lines.starts_with("# program = ") { Ok(()) } else { Err(format!("what was written is gone: {lines}")) }
    }

    /// Waits until the job is on its way; tells when it struck.
    fn strike(&self, victim: Victim) -> Result<Instant, String> {
        let deadline = Instant::now() + LIMIT / 2;
        let program = fs::canonicalize(self.program).map_err(|why| why.to_string())?;
        while Instant::now() < deadline {
            let ranks = shell::processes_of(&program);
            // The file is begun when all ranks have come so far.
            if ranks.len() == 3 && fs::metadata(&self.csv).is_ok_and(|file| file.len() > 0) {
                match victim {
                    Victim::Rank => shell::signal("KILL", &ranks[2..]),
                    // A person at a terminal interrupts the launcher; it tells the ranks.
                    Victim::Launcher => shell::signal("INT", &shell::parents_of(&ranks)),
                }
                return Ok(Instant::now());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the job did not get going".to_owned())
    }
}

fn want_within(struck: Instant) -> Outcome {
    let late = struck.elapsed();
    if late <= END { Ok(()) } else { Err(format!("the job went on for {:.1} s", late.as_secs_f64())) }
}

fn want(holds: bool, job: &Ended, what: &str) -> Outcome {
    if holds {
        return Ok(());
    }
    let Ended { code, stdout, stderr } = job;
    Err(format!("wanted {what}, found exit code {code:?}, standard output\n{stdout}\nand standard error\n{stderr}"))
}

/// That the program said one thing; the launcher may say more.
fn one_line(job: &Ended, says: &str) -> Outcome {
    let ours: Vec<&str> = job.stderr.lines().filter(|line| line.contains("downbeat-mpi: ")).collect();
    let clean = !job.stderr.contains("panicked") && job.stdout.is_empty();
    want(clean && ours.len() == 1 && ours[0].contains(says), job, &format!("one line with `{says}`"))
}
