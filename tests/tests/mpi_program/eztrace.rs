//! Archives of EZTrace, which other readers accept with warnings: its definitions come twice and name wrong numbers of
//! events, and receives lack their sends.
//!
//! Only under Open MPI, for which EZTrace is built.

use std::process::Command;

use downbeat_launch::command::{FinishedCommand, finish};
use downbeat_launch::environment;

use crate::job::{Failure, Jobs, LIMIT, expect, test, variable};

const TRACED: &str =
    "exec eztrace -t openmpi -o DIR/out PROGRAM sync --algorithm skampi/skampi/20 --check 0";
const ANCHOR: &str = "DIR/out/downbeat-mpi_trace/eztrace_log.otf2";

#[test]
fn archives_of_eztrace_are_corrected() -> Result<(), Failure> {
    test("eztrace", |jobs| {
        let traced = finish(LIMIT, &mut jobs.mpirun_shells(2, TRACED))?;
        expect(traced.code == Some(0), &traced, "a traced program")?;
        let latencies = "--latencies 100ns";
        let correct = format!("trace correct {ANCHOR} -o DIR/to {latencies}");
        let corrected = downbeat(jobs, &correct)?;
        let says_so = ["Accepted: 1 definition given twice", "no violation is left"];
        let says_so = says_so.iter().all(|text| corrected.stdout.contains(text));
        let is_corrected = corrected.code == Some(0) && says_so;
        expect(
            is_corrected,
            &corrected,
            "a corrected archive and its mistakes",
        )?;
        for command in [
            format!("trace check DIR/to/eztrace_log.otf2 {latencies} --against {ANCHOR}"),
            format!("trace convert {ANCHOR} DIR/out.pftrace"),
        ] {
            let done = downbeat(jobs, &command)?;
            let says_so = done.stdout.contains("Accepted: 1 definition given twice");
            expect(done.code == Some(0) && says_so, &done, "the mistakes")?;
        }
        Ok(())
    })
}

/// Runs `downbeat`.
fn downbeat(jobs: &Jobs, arguments: &str) -> Result<FinishedCommand, String> {
    let mut program = Command::new(variable(environment::PROGRAM)?);
    program.args(jobs.expand(arguments).split_whitespace());
    finish(LIMIT, &mut program)
}
