//! Records of `downbeat-mpi bench` survive the end of the job: a rank that dies, ^C, a full disk, and `kill -9`.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use downbeat_launch::command::{command, finish, shown, started_by};
use downbeat_launch::{Outcome, environment, process};

use crate::job::{Failure, Jobs, LIMIT, Victim, expect, is_long, one_line, test, variable};

#[test]
fn a_dead_rank() -> Result<(), Failure> {
    test("bench-dead-rank", |jobs| ends_by(jobs, Victim::Rank, ""))
}

#[test]
fn an_interrupt() -> Result<(), Failure> {
    test("bench-interrupt", |jobs| {
        ends_by(jobs, Victim::Launcher, "")
    })
}

#[test]
fn a_dead_rank_with_raw_observations() -> Result<(), Failure> {
    test("bench-dead-rank-raw", |jobs| {
        ends_by(jobs, Victim::Rank, "--per-node 2 --raw")
    })
}

#[test]
fn raw_observations_of_several_nodes() -> Result<(), Failure> {
    test("bench-raw", raw_of_nodes)
}

#[test]
fn bound_and_unbound_ranks_in_one_experiment() -> Result<(), Failure> {
    test("bench-binding", |jobs| {
        let launch = |name: &str| {
            let bench =
                "bench --clock monotonic --scheme ms1 --operation allreduce --sizes 8 --reps 3";
            jobs.run(&[(3, &format!("{bench} --out DIR/bound --launch {name}"))])
        };
        for unbound in ["a", "b"] {
            let job = launch(unbound)?;
            expect(job.code == Some(0), &job, "a launch of unbound ranks")?;
        }
        let job = launch("c --pin")?;
        let names = job
            .stderr
            .contains("the factor \"binding\" is \"unbound\" here, but \"0 1 ");
        expect(
            job.code == Some(2) && names,
            &job,
            "the factor that differs",
        )
    })
}

#[test]
fn a_full_disk() -> Result<(), Failure> {
    test("bench-full-disk", full_disk)
}

#[test]
fn kill_9_at_random_moments() -> Result<(), Failure> {
    test("bench-killed", |jobs| {
        let seed = env::var("DOWNBEAT_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 32);
        println!("   random moments: DOWNBEAT_SEED={seed}");
        let experiment = Experiment {
            jobs,
            downbeat: downbeat()?,
            out: jobs.folder.join("experiment"),
        };
        experiment.survives(&mut fastrand::Rng::with_seed(seed))
    })
}

/// Returns the path of `downbeat`.
fn downbeat() -> Result<PathBuf, String> {
    variable(environment::PROGRAM).map(PathBuf::from)
}

/// Arguments of a job that runs longer than the test lets it.
const LONG: &str = "bench --clock monotonic --scheme ms1 --sizes 1..4Ki+1 --time-slice 50ms --max-reps 20 --launch a";

/// Starts a long job, and ends it by force after its first group.
fn ends_by(jobs: &Jobs, victim: Victim, option: &str) -> Outcome {
    let folder = jobs.folder.join("cut");
    let whole = || whole_pieces(&read(&folder.join("a.csv"))).to_owned();
    jobs.end_by(
        victim,
        &[(3, &format!("{LONG} {option} --out DIR/cut"))],
        || whole().contains("# end"),
    )?;
    is_readable(&downbeat()?, &folder)
}

/// Records the times of ranks on three nodes, interrupts the launch as if by force, and continues it.
fn raw_of_nodes(jobs: &Jobs) -> Outcome {
    const BENCH: &str = "bench --clock monotonic --scheme ms1 --operation allreduce --sizes 8,64 --ranks 2,5 --reps 30 \
                         --per-node 2 --raw --launch a --out DIR/raw";
    let folder = jobs.folder.join("raw");
    let launch = || {
        let job = jobs.run(&[(5, BENCH)])?;
        expect(job.code == Some(0), &job, "a record of five ranks")
    };
    launch()?;
    let names = ["a.raw.csv", "a.node1.raw.csv", "a.node2.raw.csv"];
    // Numbers of rows of each rank in the two groups of two ranks and of five.
    let check = || {
        for (name, ranks) in names.into_iter().zip([[0, 1], [2, 3], [4, 5]]) {
            let text = read(&folder.join(name));
            let text = without_checksums(&text);
            for (bytes, size) in [(8, 2), (8, 5), (64, 2), (64, 5)] {
                for rank in ranks {
                    let is_of_rank = |line: &&str| {
                        let cells: Vec<&str> = line.split(',').collect();
                        line.starts_with(&format!("allreduce,{bytes},{size},"))
                            && cells.get(5) == Some(&&*rank.to_string())
                    };
                    let rows = text.lines().filter(is_of_rank).count();
                    let expected = if rank < size { 30 } else { 0 };
                    if rows != expected {
                        return Err(format!(
                            "{name}: {rows} rows of rank {rank} of {size}: {text}"
                        ));
                    }
                }
                let end = format!("\n# end allreduce,{bytes},{size} ");
                if text.matches(&end).count() != 1 {
                    return Err(format!(
                        "{name}: not one group of {bytes} and {size}: {text}"
                    ));
                }
            }
            if !text.ends_with(COMPLETE) {
                return Err(format!("{name} is not complete: {text}"));
            }
        }
        Ok(())
    };
    check()?;
    // The record lost its last group, which the files of the nodes have.
    let record = folder.join("a.csv");
    let whole = read(&record);
    let groups: Vec<&str> = whole.split_inclusive("# end ").collect();
    let kept = format!("{}\n", groups[..3].concat());
    fs::write(&record, whole_pieces(&kept)).map_err(|why| why.to_string())?;
    launch()?;
    check()?;
    fs::write(&record, whole_pieces(&kept)).map_err(|why| why.to_string())?;
    fs::remove_file(folder.join("a.node2.raw.csv")).map_err(|why| why.to_string())?;
    let why = "a.node2.raw.csv: the file is missing, but the record has groups";
    jobs.fails(&[(5, BENCH)], 2, why)
}

/// Measures to a small disk that no other process sees.
fn full_disk(jobs: &Jobs) -> Outcome {
    let [disk, kept] = ["disk", "kept"].map(|name| jobs.folder.join(name));
    for folder in [&disk, &kept] {
        fs::create_dir(folder).map_err(|why| why.to_string())?;
    }
    // The disk is unmounted with the last process that sees it.
    let script = "mount -t tmpfs -o size=64k none \"$1\" || exit 77; disk=$1; kept=$2; shift 2; \
                  \"$@\"; code=$?; cp \"$disk\"/* \"$kept\"; exit $code";
    let mut alone = command("unshare --mount sh -c");
    alone.args([script, "sh"]).args([&disk, &kept]);
    let job = finish(
        LIMIT,
        &mut started_by(
            alone,
            &jobs.mpirun(&[(2, &format!("{LONG} --out DIR/disk"))]),
        ),
    )?;
    expect(
        job.code == Some(1),
        &job,
        "exit code 1 on a full disk, which takes root",
    )?;
    one_line(&job, "a.csv: No space left on device")?;
    expect(
        job.stdout.contains("allreduce"),
        &job,
        "what was measured before",
    )?;
    let record = read(&kept.join("a.csv"));
    if whole_pieces(&record) != record {
        return Err(format!("a part of a group was left behind: {record}"));
    }
    is_readable(&downbeat()?, &kept)
}

/// Checks that the records can be analyzed.
fn is_readable(downbeat: &Path, folder: &Path) -> Outcome {
    let mut analyze = Command::new(downbeat);
    let job = finish(LIMIT, analyze.arg("analyze").arg(folder))?;
    expect(
        job.code == Some(0) && job.stdout.contains("allreduce"),
        &job,
        "an analysis of what was measured",
    )
}

/// Numbers of kills, in a long run and else.
const TRIES: [u64; 2] = [20, 12];

/// Groups of 20 ms each.
const GROUPS: [(&str, [u64; 6]); 2] = [
    ("allreduce", [8, 16, 32, 64, 128, 256]),
    ("bcast", [8, 16, 32, 64, 128, 256]),
];
const SHORT: &str = "bench --clock monotonic --scheme ms2 --calls 50 --processing ps7 --operation allreduce,bcast \
                     --sizes 2^3..2^8*2 --time-slice 20ms";

/// An experiment whose launches are killed at random moments.
struct Experiment<'a> {
    jobs: &'a Jobs,
    downbeat: PathBuf,
    out: PathBuf,
}

/// A running `downbeat run`; ended with all its children on drop.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            process::end(self.0.id());
            let _ = self.0.wait();
        }
    }
}

impl Experiment<'_> {
    fn survives(&self, random: &mut fastrand::Rng) -> Outcome {
        let began = Instant::now();
        let mut launches = 1;
        self.complete(launches)?;
        let longest = began.elapsed();
        let (mut run, mut partial) = (None, 0);
        let mut snapshots = Vec::new();
        let tries = TRIES[usize::from(!is_long())];
        let mut number = 0;
        // On a loaded machine most of a launch is its start.
        while number < tries || (partial == 0 && number < 10 * tries) {
            let mut at_work = run.take().map_or_else(|| self.start(launches), Ok)?;
            // Sometimes the run ends before the kill.
            while self.over_after(&mut at_work, longest.mul_f64(random.f64()))? {
                launches += 1;
                at_work = self.start(launches)?;
            }
            let ended = self.kill(&mut at_work, number);
            number += 1;
            let records = self.records()?;
            partial += usize::from(
                records
                    .values()
                    .any(|record| record.contains("# end") && !record.contains(COMPLETE)),
            );
            snapshots.push(records);
            if !ended {
                run = Some(at_work);
            }
        }
        let mut last = run.map_or_else(|| self.start(launches), Ok)?;
        let status = wait(&mut last.0)?;
        if !status.success() {
            return Err(format!(
                "the run ended with {status}: {}",
                read(&self.log())
            ));
        }
        println!(
            "   {launches} launches in {:.1} s, {partial} of {number} times in the middle of one",
            began.elapsed().as_secs_f64()
        );
        if partial == 0 {
            return Err("nothing was killed while it measured".to_owned());
        }
        self.is_whole(launches, &snapshots)
    }

    /// Runs until this number of launches is complete.
    fn complete(&self, launches: usize) -> Outcome {
        let status = wait(&mut self.start(launches)?.0)?;
        if status.success() {
            Ok(())
        } else {
            Err(format!(
                "the run ended with {status}: {}",
                read(&self.log())
            ))
        }
    }

    fn log(&self) -> PathBuf {
        self.jobs.folder.join("log")
    }

    fn start(&self, launches: usize) -> Result<Run, String> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .map_err(|why| why.to_string())?;
        let mut run = Command::new(&self.downbeat);
        run.args([
            "run",
            "--retries",
            "1000",
            "--pauses",
            "0s",
            "-n",
            &launches.to_string(),
            "--out",
        ])
        .arg(&self.out)
        .arg("--");
        let mut run = started_by(run, &self.jobs.mpirun(&[(2, SHORT)]));
        println!("   {}", shown(&run));
        let run = run
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        run.map(Run)
            .map_err(|why| format!("cannot run downbeat: {why}"))
    }

    /// Waits for the run to launch a job, then for `moment`; returns true if the run has ended.
    fn over_after(&self, run: &mut Run, moment: Duration) -> Result<bool, String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let launchers = process::children_of(run.0.id());
            if !launchers.is_empty() {
                sleep(moment);
                break;
            }
            match run.0.try_wait().map_err(|why| why.to_string())? {
                Some(status) if status.success() => return Ok(true),
                Some(status) => {
                    return Err(format!(
                        "the run ended with {status}: {}",
                        read(&self.log())
                    ));
                }
                None if Instant::now() > deadline => {
                    return Err("the run launches nothing".to_owned());
                }
                None => sleep(Duration::from_millis(1)),
            }
        }
        match run.0.try_wait().map_err(|why| why.to_string())? {
            Some(status) if status.success() => Ok(true),
            Some(status) => Err(format!(
                "the run ended with {status}: {}",
                read(&self.log())
            )),
            None => Ok(false),
        }
    }

    /// Kills the launcher, the run or both; returns true if the run was killed.
    fn kill(&self, run: &mut Run, number: u64) -> bool {
        let launchers = process::children_of(run.0.id());
        let (of_run, of_launcher) =
            [(false, true), (true, true), (false, true), (true, false)][number as usize % 4];
        if of_run {
            let _ = run.0.kill();
            let _ = run.0.wait();
        }
        if of_launcher {
            process::signal("KILL", &launchers);
        }
        of_run
    }

    /// Reads the complete groups of each record.
    fn records(&self) -> Result<BTreeMap<PathBuf, String>, String> {
        let entries = fs::read_dir(&self.out).map_err(|why| why.to_string())?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let paths = paths.filter(|path| path.extension().is_some_and(|ending| ending == "csv"));
        Ok(paths
            .map(|path| (path.clone(), whole_pieces(&read(&path)).to_owned()))
            .collect())
    }

    /// Checks that all launches are complete, have each group once, and kept all groups that were read before.
    fn is_whole(&self, launches: usize, snapshots: &[BTreeMap<PathBuf, String>]) -> Outcome {
        let records = self.records()?;
        let names: BTreeSet<PathBuf> = (1..=launches)
            .map(|i| self.out.join(format!("launch-{i:03}.csv")))
            .collect();
        if !records.keys().eq(&names) {
            return Err(format!(
                "there are {:?} instead of {launches} launches",
                records.keys()
            ));
        }
        for (path, record) in &records {
            each_group_once(&without_checksums(&read(path)))
                .map_err(|why| format!("{}: {why}:\n{}", path.display(), read(path)))?;
            let before = snapshots.iter().filter_map(|snapshot| snapshot.get(path));
            // A record without a group is begun again.
            for before in before.filter(|before| before.contains("\n# end ")) {
                if !record.starts_with(before) {
                    return Err(format!(
                        "{}: groups were lost: {before}\nbecame {record}",
                        path.display()
                    ));
                }
            }
        }
        is_readable(&self.downbeat, &self.out)
    }
}

const COMPLETE: &str = "# complete\n";

/// Checks that a record is complete, with the number of rows that its groups declare, and each group once.
fn each_group_once(record: &str) -> Outcome {
    if record.matches(COMPLETE).count() != 1 || !record.ends_with(COMPLETE) {
        return Err("it is not complete, or more than once".to_owned());
    }
    for (operation, sizes) in GROUPS {
        for bytes in sizes {
            let key = format!("{operation},{bytes},2");
            let ends: Vec<&str> = record
                .lines()
                .filter_map(|line| line.strip_prefix(&format!("# end {key} valid=")))
                .collect();
            let [end] = ends.as_slice() else {
                return Err(format!("{key} is there {} times", ends.len()));
            };
            let valid = end
                .split(' ')
                .next()
                .and_then(|count| count.parse::<usize>().ok());
            let rows = record
                .lines()
                .filter(|line| line.starts_with(&format!("{key},")))
                .count();
            if valid != Some(rows) {
                return Err(format!("{key} has {rows} rows, and says {valid:?}"));
            }
        }
    }
    Ok(())
}

const CHECKSUM: &str = "# crc32 ";

fn without_checksums(record: &str) -> String {
    let lines = record.split_inclusive('\n');
    lines.filter(|line| !line.starts_with(CHECKSUM)).collect()
}

/// Returns the record up to its last checksum, which ends what was written at once.
fn whole_pieces(record: &str) -> &str {
    let ends = |(at, _): &(usize, &str)| record[..*at].ends_with('\n');
    let ends = record
        .match_indices(CHECKSUM)
        .filter(ends)
        .filter_map(|(at, _)| Some(at + record[at..].find('\n')? + 1));
    &record[..ends.last().unwrap_or(0)]
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Waits for the end of a process, with a time limit.
fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(|why| why.to_string())? {
            return Ok(status);
        }
        sleep(Duration::from_millis(10));
    }
    Err(format!("it took more than {} s", LIMIT.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pieces_end_with_a_checksum() {
        let whole =
            "# downbeat launch 1\n# crc32 1\na,1,2,0,valid,5\n# end a,1,2 valid=1\n# crc32 2\n";
        for rest in [
            "",
            "a,2,2,0,valid,5\n",
            "# end a,2,2 val",
            "# complete\n",
            "# crc32 3",
        ] {
            assert_eq!(whole_pieces(&format!("{whole}{rest}")), whole);
        }
        assert_eq!(
            whole_pieces("# downbeat launch 1\n# fact a = # crc32 \n"),
            ""
        );
        let without = whole.replace("# crc32 1\n", "").replace("# crc32 2\n", "");
        assert_eq!(without_checksums(whole), without);
    }

    #[test]
    fn groups_that_are_missing_or_double_or_cut_are_noticed() {
        let group = |name: &str, bytes: u64| {
            format!("{name},{bytes},2,0,valid,5\n# end {name},{bytes},2 valid=1 late=0\n")
        };
        let groups = GROUPS
            .iter()
            .flat_map(|(name, sizes)| sizes.iter().map(move |bytes| group(name, *bytes)));
        let record = groups.collect::<String>() + COMPLETE;
        assert_eq!(each_group_once(&record), Ok(()));
        let one = group("bcast", 64);
        for other in [
            "",
            &one.repeat(2),
            &one.replacen("bcast,64,2,0,valid,5\n", "", 1),
        ] {
            assert!(each_group_once(&record.replace(&one, other)).is_err());
        }
        assert!(each_group_once(record.trim_end_matches(COMPLETE)).is_err());
        assert!(each_group_once(&format!("{record}{one}")).is_err());
    }
}
