//! Tables and help of all commands of `downbeat-mpi` fit the width that they are given.

use std::fs;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{FinishedCommand, finish};

use crate::job::{Failure, Jobs, LIMIT, expect, test};

const WIDTHS: [usize; 4] = [60, 80, 100, 140];

/// Commands whose help is examined; the first is that of the program.
const COMMANDS: [&str; 10] = [
    "",
    "nodes",
    "sync",
    "bench",
    "imbalance",
    "drift",
    "harmonize",
    "keep",
    "offsets",
    "trace-correct",
];

/// Short jobs of two ranks that print every kind of table.
const JOBS: [&str; 9] = [
    "nodes",
    "offsets --sync hca3/20/skampi/20",
    "sync --algorithm jk/10/skampi/10,hca3/10/skampi/10 --check 0,10ms --truth",
    "bench --operation allreduce,bcast --sizes 8,64Ki --scheme ms1 --reps 20",
    "imbalance --barrier tree,dissemination --reps 20 --latency --methods ms1,osu",
    "harmonize --rounds 100 --sync hca3/20/skampi/20",
    "drift --during 500ms --every 50ms --windows 200ms --check-by skampi/10",
    "keep --period 100ms --during 300ms --skew drift=20ppm --sync cube/20/20 --truth",
    "trace-correct raw.dbt -o right.dbt --pre-synchronization none",
];

/// Message that is received before it is sent.
const TRACE: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 a rank\nlocation 1 1 1 another rank\ncommunicator 0 0 1\n\
                     0 5000 send 1 0 0\n0 9000 note x\n1 4000 receive 0 0 0\n1 90000 note y\nend 4\n";

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal() -> Result<(), Failure> {
    test("widths", |jobs| {
        let trace = jobs.folder.join("raw.dbt");
        fs::write(trace, TRACE).map_err(|why| why.to_string())?;
        for arguments in JOBS {
            for width in WIDTHS {
                let mut mpirun = jobs.mpirun(&[(2, arguments)]);
                // Names without a folder, so that the place of the checkout does not
                // decide.
                mpirun.current_dir(&jobs.folder);
                let job = finish(LIMIT, mpirun.env("COLUMNS", width.to_string()))?;
                let has_table = job.code == Some(0) && job.stdout.lines().count() > 2;
                expect(has_table, &job, &format!("a table of `{arguments}`"))?;
                fits(&job, arguments, width)?;
            }
        }
        Ok(())
    })
}

/// Help needs no launcher.
#[test]
fn help_fits_the_terminal_and_breaks_no_word() -> Result<(), Failure> {
    test("help-widths", |jobs| {
        for command in COMMANDS {
            let whole = help(jobs, command, 10_000)?;
            let known: Vec<&str> = whole.stdout.split_whitespace().collect();
            for width in WIDTHS {
                let shown = help(jobs, command, width)?;
                fits(&shown, command, width)?;
                // Continued commands have backslashes.
                let mut words = shown.stdout.split_whitespace();
                let broken = words.find(|word| *word != "\\" && !known.contains(word));
                let expected = format!("no {broken:?} at {width} columns");
                expect(broken.is_none(), &shown, &expected)?;
            }
        }
        Ok(())
    })
}

fn help(jobs: &Jobs, command: &str, width: usize) -> Result<FinishedCommand, String> {
    let mut program = Command::new(jobs.program());
    program
        .args(command.split_whitespace())
        .arg("--help")
        .envs(jobs.library.environment())
        .env("COLUMNS", width.to_string());
    let shown = finish(LIMIT, &mut program)?;
    let is_help = shown.code == Some(0) && shown.stdout.contains("Usage: ");
    expect(is_help, &shown, "help")?;
    Ok(shown)
}

fn fits(shown: &FinishedCommand, arguments: &str, width: usize) -> Outcome {
    let mut lines = shown.stdout.lines();
    let too_wide = lines.find(|line| line.chars().count() > width);
    let expected = format!("at most {width} columns of `{arguments}`, not {too_wide:?}");
    expect(too_wide.is_none(), shown, &expected)
}
