//! Traces that ranks share: `mpirun downbeat-mpi trace-correct` writes and prints the same as `downbeat trace correct`,
//! to the byte, whether the trace is good or bad.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use downbeat_launch::command::{self, FinishedCommand, finish};
use downbeat_launch::mpi::MPICH;
use downbeat_launch::{Outcome, environment, process};

use crate::job::{Failure, Jobs, LIMIT, Victim, expect, one_line, test, variable};

/// Even, odd, and more than there are processes in some of the traces.
const RANKS: [u32; 6] = [1, 2, 3, 4, 5, 8];

/// Options of generated traces: several processes per node, threads, wandering clocks.
const PROGRAM: &str = "--nodes 3 --processes 2 --threads 2 --collective-every 3 --fork-every 5 --violated 40% --sessions 4";

/// Two processes that wait for each other, each before it sends.
const CIRCLE: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                      0 5 receive 1 0 0\n0 6 send 1 0 0\n1 5 receive 0 0 0\n1 6 send 0 0 0\nend 4\n";

/// The first mistake of the file is one that only the ranks of the first two locations check.
const TWO_MISTAKES: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\nlocation 2 2 2 c\ncommunicator 0 0 1\n\
                            0 1 collective 0\n1 1 collective 0\n0 2 collective-end 0 barrier 0 none\n\
                            1 2 collective-end 0 scan 0 none\n2 9 note x\n2 8 note y\nend 6\n";

/// The C program that writes archives with OTF2.
const ARCHIVE_WRITER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../measure/trace/tests/otf2/archive.c"
);

#[test]
fn good_traces() -> Result<(), Failure> {
    test_with_single_process("trace-good", corrects_alike)
}

#[test]
fn good_archives() -> Result<(), Failure> {
    test_with_single_process("trace-archives", corrects_archives_alike)
}

#[test]
fn bad_traces() -> Result<(), Failure> {
    test_with_single_process("trace-bad", refuses_alike)
}

#[test]
fn bad_input() -> Result<(), Failure> {
    test_with_single_process("trace-bad-input", refuses_bad_input)
}

#[test]
fn an_end_by_force_leaves_no_output() -> Result<(), Failure> {
    test_with_single_process("trace-cut", leaves_nothing)
}

fn test_with_single_process(
    name: &str,
    body: fn(&SingleProcess<'_>) -> Outcome,
) -> Result<(), Failure> {
    test(name, |jobs| {
        body(&SingleProcess {
            jobs,
            program: variable(environment::PROGRAM)?.into(),
        })
    })
}

/// `downbeat`, which corrects without ranks.
struct SingleProcess<'a> {
    jobs: &'a Jobs,
    program: PathBuf,
}

impl SingleProcess<'_> {
    fn run(&self, arguments: &str) -> Result<FinishedCommand, String> {
        let words = arguments.split_whitespace();
        let mut command = Command::new(&self.program);
        command.args(words.map(|word| self.jobs.expand(word)));
        finish(LIMIT, &mut command)
    }

    /// Generates a trace.
    fn generate(&self, output: &str, options: &str) -> Outcome {
        let job = self.run(&format!("trace generate {PROGRAM} {options} -o {output}"))?;
        expect(job.code == Some(0), &job, "a trace")
    }

    /// Writes an archive of this kind, clock and length; returns its anchor file.
    fn archive(&self, kind: &str) -> Result<String, String> {
        let script = "cc -o DIR/archive \"$4\" $(otf2-config --cflags --ldflags --libs) && rm -rf DIR/$1 && \
                      DIR/archive DIR/$1 $2 $3 $1";
        command::run(
            Command::new("sh")
                .args(["-c", &self.jobs.expand(script), "sh"])
                .args(kind.split(' '))
                .arg(ARCHIVE_WRITER),
        )?;
        Ok(format!(
            "DIR/{}/traces.otf2",
            kind.split(' ').next().unwrap_or_default()
        ))
    }

    /// Makes an empty folder for the output.
    fn begin(&self) -> Outcome {
        let folder = self.jobs.folder.join("made");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(|why| why.to_string())
    }

    /// Reads all files of the output, also in subfolders.
    fn made(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![self.jobs.folder.join("made")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)
                .map_err(|why| why.to_string())?
                .filter_map(Result::ok)
            {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let content =
                        fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
                    found.insert(path, content);
                }
            }
        }
        Ok(found)
    }
}

fn corrects_alike(single: &SingleProcess<'_>) -> Outcome {
    let cases = [
        (
            "in.dbt",
            "--events 40000 --asynchronous",
            "--json --truth DIR/truth.dbt --page DIR/made/page.html --svg DIR/made/svg",
        ),
        (
            "in.dbt",
            "--events 3000 --asynchronous",
            "--json --pre-synchronization hull",
        ),
        (
            "in.dbt",
            "--events 3000",
            "--latencies 200ns,500ns,2us --threshold 1us --pre-synchronization linear",
        ),
        (
            "in.dbt",
            "--events 3000",
            "--pre-synchronization none --no-backward --clock-of node --skip-alltoallv --page DIR/made/page.html",
        ),
    ];
    for (case, (input, events, options)) in cases.into_iter().enumerate() {
        let truth = format!("{events} --truth DIR/truth.dbt");
        single.generate(&format!("DIR/{input}"), &truth)?;
        is_alike(
            single,
            single.jobs.ranks_of_case(case, &RANKS),
            &format!("DIR/{input} -o DIR/made/out.dbt {options}"),
        )?;
    }
    Ok(())
}

/// Corrects archives of three ranks and a thread that OTF2 wrote.
fn corrects_archives_alike(single: &SingleProcess<'_>) -> Outcome {
    let cases = [
        ("plain 1000000000 100", "--page DIR/made/page.html"),
        ("requests 1000000000 100", "--clock-of location"),
        ("marked 1000000000 100", "--pre-synchronization none"),
        (
            "plain 1000000000 100",
            "--json --rewrite --truth DIR/plain/traces.otf2",
        ),
        ("corrected 2693000000 30", "--json"),
        (
            "corrected 1000000000 30",
            "--pre-synchronization linear --latencies 1us",
        ),
        ("shared 1000000000 30", ""),
        ("unmatched 1000000000 3", "--json"),
        ("unended 1000000000 1", ""),
        ("unbegun 1000000000 1", ""),
        ("stranger 1000000000 1", "--json"),
        ("loose 1000000000 3", ""),
    ];
    for (case, (archive, options)) in cases.into_iter().enumerate() {
        let input = single.archive(archive)?;
        is_alike(
            single,
            single.jobs.ranks_of_case(case, &RANKS[..4]),
            &format!("{input} -o DIR/made/out {options}"),
        )?;
    }
    Ok(())
}

/// Compares the output of ranks with that of a single process, to the byte.
fn is_alike(
    single: &SingleProcess<'_>,
    ranks: impl Iterator<Item = u32>,
    arguments: &str,
) -> Outcome {
    single.begin()?;
    let expected = single.run(&format!("trace correct {arguments}"))?;
    expect(expected.code == Some(0), &expected, "a correction")?;
    let written = single.made()?;
    for ranks in ranks {
        single.begin()?;
        let job = single
            .jobs
            .run(&[(ranks, &format!("trace-correct {arguments}"))])?;
        expect(
            job.code == Some(0) && job.stdout == expected.stdout,
            &job,
            &format!("\n{}", expected.stdout),
        )?;
        let made = single.made()?;
        let other = written
            .keys()
            .chain(made.keys())
            .find(|name| written.get(*name) != made.get(*name));
        if let Some(other) = other {
            return Err(format!(
                "{ranks} ranks write another {other:?} for `{arguments}`"
            ));
        }
    }
    Ok(())
}

fn refuses_alike(single: &SingleProcess<'_>) -> Outcome {
    let cut = &CIRCLE[..CIRCLE.len() - 6];
    let mut bad = vec![];
    for (number, text) in [CIRCLE, TWO_MISTAKES, cut, "nonsense\n"].iter().enumerate() {
        fs::write(single.jobs.folder.join(format!("bad{number}.dbt")), text)
            .map_err(|why| why.to_string())?;
        bad.push(format!("DIR/bad{number}.dbt"));
    }
    // Rounds after the incomplete one contradict its order.
    for archive in [
        "unended 1000000000 3",
        "unbegun 1000000000 3",
        "stranger 1000000000 3",
    ] {
        bad.push(single.archive(archive)?);
    }
    for (case, bad) in bad.into_iter().enumerate() {
        let arguments = format!("{bad} -o DIR/refused.dbt --latencies 0");
        let expected = single.run(&format!("trace correct {arguments}"))?;
        expect(expected.code == Some(2), &expected, "exit code 2")?;
        let says = expected.stderr.trim_end().trim_start_matches("downbeat: ");
        for ranks in single.jobs.ranks_of_case(case, &RANKS[..3]) {
            single
                .jobs
                .fails(&[(ranks, &format!("trace-correct {arguments}"))], 2, says)?;
        }
        if single.jobs.folder.join("refused.dbt").exists() {
            return Err("something was written of a trace that was refused".to_owned());
        }
    }
    Ok(())
}

fn refuses_bad_input(single: &SingleProcess<'_>) -> Outcome {
    let jobs = single.jobs;
    fs::write(jobs.folder.join("bad0.dbt"), CIRCLE).map_err(|why| why.to_string())?;
    single.archive("plain 1000000000 100")?;
    single.generate("DIR/in.dbt", "--events 3000")?;
    let cases = [
        (
            "trace-correct /nonexistent/in -o DIR/out.dbt",
            "/nonexistent/in",
        ),
        ("trace-correct DIR/in.otf2 -o DIR/none", "in.otf2"),
        ("trace-correct DIR/bad0.dbt -o DIR/plain", "-o"),
        ("trace-correct DIR/plain/traces.otf2 -o DIR/plain", "-o"),
        ("trace-correct DIR/bad0.dbt -o DIR/bad0.dbt", "-o"),
        ("trace-correct DIR/bad0.dbt -o /nonexistent/out", "-o"),
        (
            "trace-correct DIR/bad0.dbt -o DIR/out.dbt --page /nonexistent/page",
            "--page: /nonexistent/page",
        ),
        (
            "trace-correct DIR/bad0.dbt -o DIR/out.dbt --page DIR/out.dbt",
            "is also the file of -o",
        ),
        (
            "trace-correct DIR/bad0.dbt -o DIR/out.dbt --svg DIR/svg",
            "--page",
        ),
        (
            "trace-correct DIR/bad0.dbt -o DIR/out.dbt --control 2",
            "--control",
        ),
        (
            "trace-correct DIR/bad0.dbt -o DIR/out.dbt --latencies -1us",
            "--latencies",
        ),
        ("trace-correct DIR/bad0.dbt", "--output"),
    ];
    jobs.all_fail(2, "", &cases)?;
    // Without the trace.
    fails_with_one_rank_in(jobs, "/", "in.dbt", 2, "in.dbt")?;
    // With a stack of this size, the system starts no thread.
    let alone = "RUST_MIN_STACK=100000000000000 exec PROGRAM trace-correct DIR/in.dbt -o DIR/out";
    fails_in_shells(jobs, alone, 1, "no thread can wait for signals")?;
    let not_utf8 = "exec PROGRAM trace-correct \"$(printf '/nonexistent/\\377')\" -o DIR/out";
    fails_in_shells(jobs, not_utf8, 2, "/nonexistent/\u{fffd}: No such file")?;
    let not_utf8 = "exec PROGRAM sync --algorithm \"$(printf 'hca3\\377')\"";
    fails_in_shells(
        jobs,
        not_utf8,
        2,
        "--algorithm: \"hca3\u{fffd}\" is not UTF-8",
    )?;
    refuses_another_trace(single)
}

/// One rank finds a trace of the same shape in its own folder, with one other timestamp.
fn refuses_another_trace(single: &SingleProcess<'_>) -> Outcome {
    let jobs = single.jobs;
    let io = |why: std::io::Error| why.to_string();
    single.generate("DIR/alike.dbt", "--events 3000")?;
    let text = fs::read_to_string(jobs.folder.join("alike.dbt")).map_err(io)?;
    // Without checksums, only the comparison of the ranks can find a changed timestamp.
    let text = text.replacen("trace 1", "trace 1 without checksum", 1);
    let lines = text.lines().filter(|line| !line.starts_with("crc32 "));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    fs::write(jobs.folder.join("alike.dbt"), lines.join("\n") + "\n").map_err(io)?;
    let middle = lines.len() / 2;
    let event: Vec<_> = lines[middle].splitn(3, ' ').collect();
    let &[location, nanos, what] = &*event else {
        return Err(format!("no event: {}", lines[middle]));
    };
    let nanos: u64 = nanos.parse().map_err(|_| "a time")?;
    lines[middle] = format!("{location} {} {what}", nanos + 1);
    fs::create_dir(jobs.folder.join("other")).map_err(io)?;
    fs::write(jobs.folder.join("other/alike.dbt"), lines.join("\n") + "\n").map_err(io)?;
    let says = "alike.dbt: the ranks read different content";
    fails_with_one_rank_in(jobs, "DIR/other", "alike.dbt", 1, says)
}

/// Corrects a trace with one rank in another folder, where the trace is missing or another one: the
/// job fails with one line.
fn fails_with_one_rank_in(
    jobs: &Jobs,
    folder: &str,
    input: &str,
    code: i32,
    says: &str,
) -> Outcome {
    let command = format!(
        "if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 1 ]; then cd {folder}; else cd DIR; fi; \
         exec PROGRAM trace-correct {input} -o out.dbt"
    );
    fails_in_shells(jobs, &command, code, says)
}

/// Runs a job of two shells with this script: it fails with one line.
fn fails_in_shells(jobs: &Jobs, script: &str, code: i32, says: &str) -> Outcome {
    let job = finish(LIMIT, &mut jobs.mpirun_shells(2, script))?;
    expect(
        job.code == Some(code) && job.stdout.is_empty(),
        &job,
        &format!("exit code {code}"),
    )?;
    one_line(&job, says)
}

/// Ends a job in the middle of writing: none of its files is left, and the old output is kept.
fn leaves_nothing(single: &SingleProcess<'_>) -> Outcome {
    // MPICH's launcher kills all other ranks at once when one dies. Open MPI's, when interrupted, first wakes up the
    // stopped rank, and lets all run on for a second.
    let victim = if single.jobs.library == MPICH {
        Victim::Launcher
    } else {
        Victim::Rank
    };
    let folder = single.jobs.folder.join("cut");
    fs::create_dir(&folder).map_err(|why| why.to_string())?;
    single.generate("DIR/cut/in.dbt", "--events 400000")?;
    let old = b"what was there before";
    // Text, which is written event by event: chunks would be written before the job can be ended.
    let output = folder.join("out.dbt");
    fs::write(&output, old).map_err(|why| why.to_string())?;
    let entries = || {
        fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
    };
    let is_part = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().ends_with(b".part");
    // Without the other rank, the first one cannot finish.
    let begun = || {
        let begun = entries()
            .any(|entry| is_part(&entry) && entry.metadata().is_ok_and(|part| part.len() > 0));
        let ranks = single.jobs.ranks();
        ranks
            .last()
            .filter(|_| begun)
            .inspect(|rank| process::signal("STOP", &[**rank]))
            .is_some()
    };
    let arguments = "trace-correct DIR/cut/in.dbt -o DIR/cut/out.dbt --latencies 0 --no-backward";
    let job = single.jobs.end_by(victim, &[(2, arguments)], begun)?;
    let left: Vec<_> = entries().map(|entry| entry.file_name()).collect();
    expect(
        left.len() == 2 && fs::read(&output).is_ok_and(|found| found == old),
        &job,
        &format!("no more than before in {left:?}"),
    )
}
