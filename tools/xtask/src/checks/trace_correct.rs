//! Traces that ranks share: what `mpirun downbeat-mpi trace-correct` writes and says is what `downbeat trace correct` does,
//! to the byte, whether the trace is good or bad.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checks::job::{Jobs, LIMIT, one_line, want};
use crate::checks::mpi::Library;
use crate::programs::Programs;
use crate::shell::{Ended, ended};
use crate::steps::Outcome;

/// Even, odd, and more than there are processes in some of the traces.
const RANKS: [u32; 6] = [1, 2, 3, 4, 5, 8];

/// Some of everything: several processes on a node, threads, clocks that wander.
const PROGRAM: &str =
    "--nodes 3 --processes 2 --threads 2 --collective-every 3 --fork-every 5 --violated 40% --sessions 4";

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
    let alone = Alone { jobs: &jobs, program: Programs::usual()?.executable("downbeat")? };
    let results = [
        ("a good trace", corrects_alike(&alone)),
        ("a bad trace", refuses_alike(&alone)),
        ("bad input", refuses_bad_input(&jobs)),
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
        command.args(arguments.split_whitespace().map(|word| word.replace("DIR", &folder)));
        ended(LIMIT, &mut command)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        fs::read(self.jobs.folder.join(name)).map_err(|why| format!("{name}: {why}"))
    }
}

fn corrects_alike(alone: &Alone<'_>) -> Outcome {
    let cases = [
        ("in.dbtb", "--events 40000", "--json --truth DIR/truth.dbtb"),
        ("in.dbt", "--events 3000", "--latencies 200ns,500ns,2us --threshold 1us --pre-synchronization linear"),
        ("in.dbtb", "--events 3000", "--pre-synchronization none --no-backward --clock-of node --skip-alltoallv"),
    ];
    for (input, events, options) in cases {
        let made = alone.run(&format!("trace generate {PROGRAM} {events} -o DIR/{input} --truth DIR/truth.dbtb"))?;
        want(made.code == Some(0), &made, "a trace")?;
        let arguments = format!("DIR/{input} -o DIR/out.dbtb {options}");
        let expected = alone.run(&format!("trace correct {arguments}"))?;
        want(expected.code == Some(0), &expected, "a correction")?;
        let written = alone.read("out.dbtb")?;
        for ranks in RANKS {
            fs::remove_file(alone.jobs.folder.join("out.dbtb")).map_err(|why| why.to_string())?;
            let job = alone.jobs.run(&[(ranks, &format!("trace-correct {arguments}"))])?;
            want(job.code == Some(0) && job.stdout == expected.stdout, &job, &format!("\n{}", expected.stdout))?;
            if alone.read("out.dbtb")? != written {
                return Err(format!("{ranks} ranks write another file for `{arguments}`"));
            }
        }
    }
    Ok(())
}

fn refuses_alike(alone: &Alone<'_>) -> Outcome {
    let unmatched = CIRCLE.replace("1 6 send 0 0 0\n", "").replace("end 4", "end 3");
    let cut = &CIRCLE[..CIRCLE.len() - 6];
    for text in [CIRCLE, TWO_MISTAKES, &unmatched, cut, "nonsense\n"] {
        fs::write(alone.jobs.folder.join("bad.dbt"), text).map_err(|why| why.to_string())?;
        let arguments = "DIR/bad.dbt -o DIR/refused.dbt --latencies 0";
        let expected = alone.run(&format!("trace correct {arguments}"))?;
        want(expected.code == Some(2), &expected, "exit code 2")?;
        let says = expected.stderr.trim_end().trim_start_matches("downbeat: ");
        for ranks in [1, 2, 3] {
            alone.jobs.fails(&[(ranks, &format!("trace-correct {arguments}"))], 2, says)?;
        }
        if alone.jobs.folder.join("refused.dbt").exists() {
            return Err("something was written of a trace that was refused".to_owned());
        }
    }
    Ok(())
}

fn refuses_bad_input(jobs: &Jobs<'_>) -> Outcome {
    let cases = [
        ("trace-correct /nonexistent/in -o DIR/out.dbt", "/nonexistent/in"),
        ("trace-correct DIR/in.otf2 -o DIR/out.dbt", "OTF2"),
        ("trace-correct DIR/bad.dbt -o DIR/bad.dbt", "-o"),
        ("trace-correct DIR/bad.dbt -o /nonexistent/out", "-o"),
        ("trace-correct DIR/bad.dbt -o DIR/out.dbt --control 2", "--control"),
        ("trace-correct DIR/bad.dbt -o DIR/out.dbt --latencies -1us", "--latencies"),
        ("trace-correct DIR/bad.dbt", "--output"),
    ];
    for (arguments, culprit) in cases {
        jobs.fails(&[(2, arguments)], 2, culprit)?;
    }
    // One of them looks elsewhere, where there is nothing.
    let elsewhere = "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then cd /; else cd DIR; fi; \
                     exec PROGRAM trace-correct in.dbtb -o out.dbtb";
    let job = ended(LIMIT, &mut jobs.mpirun_shells(2, elsewhere))?;
    want(job.code == Some(2) && job.stdout.is_empty(), &job, "exit code 2")?;
    one_line(&job, "in.dbtb")
}
