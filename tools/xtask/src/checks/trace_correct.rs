//! Traces that ranks share: what `mpirun downbeat-mpi trace-correct` writes and says is what `downbeat trace correct` does,
//! to the byte, whether the trace is good or bad.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checks::job::{Jobs, LIMIT, Victim, one_line, want};
use crate::checks::mpi::{Library, MPICH};
use crate::programs::Programs;
use crate::shell::{self, Ended, command, ended};
use crate::steps::Outcome;

/// Even, odd, and more than there are processes in some of the traces.
const RANKS: [u32; 6] = [1, 2, 3, 4, 5, 8];

/// Some of everything: several processes on a node, threads, clocks that wander.
const PROGRAM: &str = "--nodes 3 --processes 2 --threads 2 --collective-every 3 --fork-every 5 --violated 40% --sessions 4";

/// Two processes that wait for each other, each before it sends.
const CIRCLE: &str = "# downbeat trace 1\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                      0 5 receive 1 0 0\n0 6 send 1 0 0\n1 5 receive 0 0 0\n1 6 send 0 0 0\nend 4\n";

/// The first mistake of the file is one that only the ranks of the first two locations look for.
const TWO_MISTAKES: &str = "# downbeat trace 1\nlocation 0 0 0 a\nlocation 1 1 1 b\nlocation 2 2 2 c\ncommunicator 0 0 1\n\
                            0 1 collective 0\n1 1 collective 0\n0 2 collective-end 0 barrier 0 none\n\
                            1 2 collective-end 0 scan 0 none\n2 9 note x\n2 8 note y\nend 6\n";

/// Runs everything, also after a failure.
pub(crate) fn check(program: &Path, library: Library, scratch: &Path) -> Outcome {
    let jobs = Jobs::new(program, library, scratch, "trace-correct")?;
    let downbeat = Programs::build(&mut command(
        "cargo build -p downbeat-cli --bin downbeat --features otf2",
    ))?;
    let alone = Alone {
        jobs: &jobs,
        program: downbeat.executable("downbeat")?,
    };
    // MPICH's launcher kills all others of a rank that dies, at once; Open MPI's, when interrupted, first wakes all up, and
    // lets them go on for a second.
    let victim = if library == MPICH {
        Victim::Launcher
    } else {
        Victim::Rank
    };
    let results = [
        ("a good trace", corrects_alike(&alone)),
        ("a good archive", corrects_archives_alike(&alone)),
        ("a bad trace", refuses_alike(&alone)),
        ("bad input", refuses_bad_input(&jobs)),
        ("an end in the middle", leaves_nothing(&alone, victim)),
    ];
    jobs.end(results)
}

/// The program without ranks.
struct Alone<'a> {
    jobs: &'a Jobs<'a>,
    program: PathBuf,
}

impl Alone<'_> {
    fn run(&self, arguments: &str) -> Result<Ended, String> {
        let folder = self.jobs.folder.to_string_lossy();
        let mut command = Command::new(&self.program);
        command.args(
            arguments
                .split_whitespace()
                .map(|word| word.replace("DIR", &folder)),
        );
        ended(LIMIT, &mut command)
    }

    /// An archive of such a kind, clock and length; its anchor file.
    fn archive(&self, kind: &str) -> Result<String, String> {
        let script = "cc -o DIR/archive measure/tests/otf2/archive.c $(otf2-config --cflags --ldflags --libs) && rm -rf DIR/$1 && \
                      DIR/archive DIR/$1 $2 $3 $1";
        let script = script.replace("DIR", &self.jobs.folder.to_string_lossy());
        shell::run(
            Command::new("sh")
                .args(["-c", &script, "sh"])
                .args(kind.split(' ')),
        )?;
        Ok(format!(
            "DIR/{}/traces.otf2",
            kind.split(' ').next().unwrap_or_default()
        ))
    }

    /// Makes an empty folder for what is written.
    fn begin(&self) -> Outcome {
        let folder = self.jobs.folder.join("made");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(|why| why.to_string())
    }

    /// All files in it, and in folders in it.
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

fn corrects_alike(alone: &Alone<'_>) -> Outcome {
    let cases = [
        (
            "in.dbtb",
            "--events 40000",
            "--json --truth DIR/truth.dbtb --page DIR/made/page.html --svg DIR/made/svg",
        ),
        (
            "in.dbt",
            "--events 3000",
            "--latencies 200ns,500ns,2us --threshold 1us --pre-synchronization linear --histograms",
        ),
        (
            "in.dbtb",
            "--events 3000",
            "--pre-synchronization none --no-backward --clock-of node --skip-alltoallv --page DIR/made/page.html",
        ),
    ];
    for (input, events, options) in cases {
        let made = alone.run(&format!(
            "trace generate {PROGRAM} {events} -o DIR/{input} --truth DIR/truth.dbtb"
        ))?;
        want(made.code == Some(0), &made, "a trace")?;
        is_alike(
            alone,
            &RANKS,
            &format!("DIR/{input} -o DIR/made/out.dbtb {options}"),
        )?;
    }
    Ok(())
}

/// Archives of three ranks and a thread that OTF2 wrote.
fn corrects_archives_alike(alone: &Alone<'_>) -> Outcome {
    let cases = [
        ("plain 1000000000 100", "--page DIR/made/page.html"),
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
    ];
    for (archive, options) in cases {
        let input = alone.archive(archive)?;
        is_alike(
            alone,
            &RANKS[..4],
            &format!("{input} -o DIR/made/out {options}"),
        )?;
    }
    Ok(())
}

/// The same with ranks as alone, to the byte.
fn is_alike(alone: &Alone<'_>, ranks: &[u32], arguments: &str) -> Outcome {
    alone.begin()?;
    let expected = alone.run(&format!("trace correct {arguments}"))?;
    want(expected.code == Some(0), &expected, "a correction")?;
    let written = alone.made()?;
    for ranks in ranks {
        alone.begin()?;
        let job = alone
            .jobs
            .run(&[(*ranks, &format!("trace-correct {arguments}"))])?;
        want(
            job.code == Some(0) && job.stdout == expected.stdout,
            &job,
            &format!("\n{}", expected.stdout),
        )?;
        let made = alone.made()?;
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

fn refuses_alike(alone: &Alone<'_>) -> Outcome {
    let unmatched = CIRCLE
        .replace("1 6 send 0 0 0\n", "")
        .replace("end 4", "end 3");
    let cut = &CIRCLE[..CIRCLE.len() - 6];
    let mut bad = vec![];
    for (number, text) in [CIRCLE, TWO_MISTAKES, &unmatched, cut, "nonsense\n"]
        .iter()
        .enumerate()
    {
        fs::write(alone.jobs.folder.join(format!("bad{number}.dbt")), text)
            .map_err(|why| why.to_string())?;
        bad.push(format!("DIR/bad{number}.dbt"));
    }
    for archive in [
        "unmatched 1000000000 3",
        "unended 1000000000 3",
        "unbegun 1000000000 3",
        "stranger 1000000000 3",
    ] {
        bad.push(alone.archive(archive)?);
    }
    for bad in bad {
        let arguments = format!("{bad} -o DIR/refused.dbt --latencies 0");
        let expected = alone.run(&format!("trace correct {arguments}"))?;
        want(expected.code == Some(2), &expected, "exit code 2")?;
        let says = expected.stderr.trim_end().trim_start_matches("downbeat: ");
        for ranks in [1, 2, 3] {
            alone
                .jobs
                .fails(&[(ranks, &format!("trace-correct {arguments}"))], 2, says)?;
        }
        if alone.jobs.folder.join("refused.dbt").exists() {
            return Err("something was written of a trace that was refused".to_owned());
        }
    }
    Ok(())
}

fn refuses_bad_input(jobs: &Jobs<'_>) -> Outcome {
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
            "is a trace",
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
    for (arguments, culprit) in cases {
        jobs.fails(&[(2, arguments)], 2, culprit)?;
    }
    // One of them looks elsewhere, where there is nothing.
    let elsewhere = "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then cd /; else cd DIR; fi; \
                     exec PROGRAM trace-correct in.dbtb -o out.dbtb";
    let job = ended(LIMIT, &mut jobs.mpirun_shells(2, elsewhere))?;
    want(
        job.code == Some(2) && job.stdout.is_empty(),
        &job,
        "exit code 2",
    )?;
    one_line(&job, "in.dbtb")
}

/// Ends a job in the middle of writing: of what it began, nothing is left, and what was there before is.
fn leaves_nothing(alone: &Alone<'_>, victim: Victim) -> Outcome {
    let folder = alone.jobs.folder.join("cut");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).map_err(|why| why.to_string())?;
    let made = alone.run(&format!(
        "trace generate {PROGRAM} --events 400000 -o DIR/cut/in.dbtb"
    ))?;
    want(made.code == Some(0), &made, "a trace")?;
    let old = b"what was there before";
    let output = folder.join("out.dbtb");
    fs::write(&output, old).map_err(|why| why.to_string())?;
    let entries = || {
        fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
    };
    let is_part = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().ends_with(b".part");
    // Without the other rank, the first one does not get to the end.
    let begun = || {
        let begun = entries()
            .any(|entry| is_part(&entry) && entry.metadata().is_ok_and(|part| part.len() > 0));
        let ranks = alone.jobs.ranks().unwrap_or_default();
        ranks
            .last()
            .filter(|_| begun)
            .inspect(|rank| shell::signal("STOP", &[**rank]))
            .is_some()
    };
    let arguments = "trace-correct DIR/cut/in.dbtb -o DIR/cut/out.dbtb --latencies 0 --no-backward";
    let job = alone.jobs.ended_by(victim, &[(2, arguments)], begun)?;
    let left: Vec<_> = entries().map(|entry| entry.file_name()).collect();
    want(
        left.len() == 2 && fs::read(&output).is_ok_and(|found| found == old),
        &job,
        &format!("no more than before in {left:?}"),
    )
}
