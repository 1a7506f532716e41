//! Pictures and tables of the mini application over hosts with wrong clocks, whose true
//! times are known.

use std::fs;
use std::path::Path;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::hosts::Hosts;
use downbeat_launch::mpi::OPEN_MPI;

use super::programs::Compilers;
use super::recording::{record_rank, trace_command};
use crate::checks::installed::tree::InstalledTree;

const HOSTS: u32 = 4;
const LIMIT: Duration = Duration::from_secs(400);
/// Points per side, most iterations, and times that all is solved, so that clocks wander
/// meanwhile.
const SOLVED: [&str; 3] = ["16", "100", "100"];
/// Errors of clocks that nothing synchronizes, and of clocks that NTP does.
const RAW: &str = "offset=1s,drift=20ppm,wander=10ppm,per=node";
const BY_NTP: &str = "offset=200us,drift=1ppm,seed=5,per=node";
/// Call in the picture, in the middle of the run.
const CALL: &str = "MPI_Allreduce:8300";

/// Records the mini application on four hosts, gives its clocks errors, corrects them,
/// and draws one call by each of the clocks.
///
/// The hosts share a counter, which has the true times. Pictures go to a folder whose
/// name is printed.
pub(in crate::checks::installed) fn pictures(tree: &InstalledTree<'_>) -> Outcome {
    let program = Compilers::new(tree, OPEN_MPI, "")?.mini_application("poisson.c")?;
    let folder = tree.built.join("tracer/pictures");
    // What an earlier run left.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let recorded = folder.join("recorded");
    {
        let hosts = Hosts::set_up(HOSTS, &tree.built)?;
        let mut record = record_rank(tree, &recorded);
        record.arg(program).args(SOLVED);
        shell::show_and_read(LIMIT, &mut shell::started_by(hosts.mpirun(1), &record))?;
    }
    let [truth, raw, by_ntp, corrected] =
        ["truth", "raw", "ntp", "corrected"].map(|name| folder.join(name).with_extension("dbtb"));
    let merge = |to: &Path, clocks: &[&str]| {
        let mut merge = trace_command(tree, "merge", &recorded);
        shell::run(merge.arg("-o").arg(to).args(clocks))
    };
    merge(&truth, &["--one-counter"])?;
    merge(&raw, &["--skew", RAW])?;
    merge(&by_ntp, &["--skew", BY_NTP])?;

    // The tables of the paper on the controlled logical clock, after linear interpolation
    // as there.
    let mut correct = trace_command(tree, "correct", &raw);
    correct.args([
        "--pre-synchronization",
        "linear",
        "--latencies",
        "0ns,0ns,0ns",
    ]);
    correct.arg("--truth").arg(&truth).arg("-o").arg(&corrected);
    correct.arg("--svg").arg(&folder).arg("--page");
    let said = shell::show_and_read(LIMIT, correct.arg(folder.join("correction.html")))?;
    if !said.contains("no violation is left") {
        return Err("a violation is left".to_owned());
    }
    let mut check = trace_command(tree, "check", &raw);
    if shell::finish(LIMIT, &mut check)?.code != Some(1) {
        return Err("raw clocks violate nothing".to_owned());
    }
    let picture = folder.join("allreduce.svg");
    let mut show = trace_command(tree, "show", &corrected);
    show.args(["--call", CALL, "--label", "global clock", "--own-axes"]);
    for (label, of) in [("clocks set by NTP", &by_ntp), ("raw clocks", &raw)] {
        show.args(["--beside", &format!("{label}={}", of.display())]);
    }
    show.arg("-o").arg(folder.join("allreduce.html"));
    shell::run(show.arg("--svg").arg(&picture))?;
    is_complete(&picture)
}

/// Checks that the picture has a row for each rank by each clock.
fn is_complete(picture: &Path) -> Outcome {
    let failed = |why: std::io::Error| format!("{}: {why}", picture.display());
    let drawn = fs::read_to_string(picture).map_err(failed)?;
    let rows = drawn.matches(">rank 3<").count();
    let clocks = ["global clock", "clocks set by NTP", "raw clocks"];
    match clocks.iter().find(|clock| !drawn.contains(**clock)) {
        Some(clock) => Err(format!("{}: no {clock}", picture.display())),
        None if rows != clocks.len() => {
            Err(format!("{}: {rows} rows of rank 3", picture.display()))
        }
        None => Ok(()),
    }
}
