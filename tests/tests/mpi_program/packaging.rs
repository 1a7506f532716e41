//! Man pages and completions of `downbeat-mpi`, which one of the ranks writes; there may be no launcher.

use std::fs;
use std::process::Command;

use downbeat_launch::command::finish;

use crate::job::{Failure, LIMIT, expect, test};

const PAGES: [&str; 10] = [
    "downbeat-mpi-bench.1",
    "downbeat-mpi-drift.1",
    "downbeat-mpi-harmonize.1",
    "downbeat-mpi-imbalance.1",
    "downbeat-mpi-keep.1",
    "downbeat-mpi-nodes.1",
    "downbeat-mpi-offsets.1",
    "downbeat-mpi-sync.1",
    "downbeat-mpi-trace-correct.1",
    "downbeat-mpi.1",
];

#[test]
fn every_command_has_a_man_page() -> Result<(), Failure> {
    test("man", |jobs| {
        let job = jobs.run(&[(3, "man DIR/pages")])?;
        let is_silent = job.code == Some(0) && job.stdout.is_empty();
        expect(is_silent, &job, "no output")?;
        let entries = fs::read_dir(jobs.folder.join("pages")).map_err(|why| why.to_string())?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        expect(names == PAGES, &job, &format!("pages, not {names:?}"))?;
        let cases = [
            ("", "required arguments"),
            ("/dev/null/pages", ": /dev/null/pages: "),
        ];
        jobs.all_fail(2, "man", &cases)
    })
}

#[test]
fn completions_are_printed_once() -> Result<(), Failure> {
    test("completions", |jobs| {
        let together = jobs.run(&[(3, "completions bash")])?;
        let mut alone = Command::new(jobs.program());
        alone.args(["completions", "bash"]);
        let alone = finish(LIMIT, alone.envs(jobs.library.environment()))?;
        let is_script = alone.code == Some(0) && alone.stdout.contains("trace-correct");
        expect(is_script, &alone, "a script")?;
        let is_same = together.stdout == alone.stdout;
        expect(is_same, &together, "the same script once")?;
        jobs.all_fail(2, "completions", &[("basch", "'basch'")])
    })
}
