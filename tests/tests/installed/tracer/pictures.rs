//! Pictures and tables of the mini application over hosts with wrong clocks, whose true
//! times are known.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::hosts::Hosts;
use downbeat_launch::mpi::OPEN_MPI;

use super::programs::Compilers;
use super::recording::{record_rank, trace_command};
use crate::tree::{InstalledTree, Launcher};

const HOSTS: u32 = 4;
const LIMIT: Duration = Duration::from_secs(400);
/// Points per side, most iterations, and times that all is solved, so that clocks wander
/// meanwhile.
const SOLVED: [&str; 3] = ["16", "100", "100"];
/// Errors of clocks that nothing synchronizes, and of clocks that NTP does.
const RAW: &str = "offset=1s,drift=20ppm,wander=10ppm,per=node";
const RAW_BY_RANK: &str = "offset=1s,drift=20ppm,per=rank";
const BY_NTP: &str = "offset=200us,drift=1ppm,seed=5,per=rank";
/// Call in the picture, in the middle of the run.
const CALL: &str = "MPI_Allreduce:8300";

/// Records the mini application and draws its pictures, in a folder whose name is
/// printed.
pub(crate) fn pictures(tree: &InstalledTree) -> Outcome {
    let program = Compilers::new(tree, OPEN_MPI, "")?.mini_application("poisson.c")?;
    let folder = tree.built.join("tracer/pictures");
    // What an earlier run left.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut solve = Command::new(program);
    solve.args(SOLVED);
    one_call(tree, &folder, &solve)?;
    correction(tree, &folder, &solve)
}

/// Merges a recording by these clocks.
fn merge_by(tree: &InstalledTree, recorded: &Path, to: &Path, clocks: &[&str]) -> Outcome {
    let mut merge = trace_command(tree, "merge", recorded);
    shell::run(merge.arg("-o").arg(to).args(clocks))
}

/// Records on four hosts, gives their clocks errors, and corrects them. The hosts share a
/// counter, which has the true times.
fn correction(tree: &InstalledTree, folder: &Path, solve: &Command) -> Outcome {
    let recorded = folder.join("recorded");
    {
        let hosts = Hosts::set_up(HOSTS, &tree.built)?;
        let record = shell::started_by(record_rank(tree, &recorded), solve);
        shell::show_and_read(LIMIT, &mut shell::started_by(hosts.mpirun(1), &record))?;
    }
    let [truth, raw, corrected] =
        ["truth", "raw", "corrected"].map(|name| folder.join(name).with_extension("dbt"));
    merge_by(tree, &recorded, &truth, &["--one-counter"])?;
    merge_by(tree, &recorded, &raw, &["--skew", RAW])?;

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
    correct.arg("--svg").arg(folder).arg("--page");
    let said = shell::show_and_read(LIMIT, correct.arg(folder.join("correction.html")))?;
    if !said.contains("no violation is left") {
        return Err("a violation is left".to_owned());
    }
    let mut check = trace_command(tree, "check", &raw);
    match shell::finish(LIMIT, &mut check)?.code {
        Some(1) => Ok(()),
        _ => Err("raw clocks violate nothing".to_owned()),
    }
}

/// Records ranks whose clocks have errors, and draws one call by the clock that was
/// synchronized when the program began, by clocks that NTP sets, and by raw clocks.
/// Nothing is corrected afterwards.
fn one_call(tree: &InstalledTree, folder: &Path, solve: &Command) -> Outcome {
    let recorded = folder.join("skewed");
    let record = shell::started_by(record_rank(tree, &recorded), solve);
    let launcher = Launcher::new(OPEN_MPI)?;
    let mut mpirun = shell::started_by(launcher.mpirun(HOSTS), &record);
    // Each rank has a clock of its own. Where four ranks share two cores, a second is too
    // short for a microsecond at the end of the run.
    mpirun.envs([
        ("DOWNBEAT_SKEW", RAW_BY_RANK),
        ("DOWNBEAT_ALGORITHM", "cube/5s"),
    ]);
    shell::show_and_read(LIMIT, &mut mpirun)?;
    let [live, by_ntp, raw] =
        ["live", "ntp", "raw-of-ranks"].map(|name| folder.join(name).with_extension("dbt"));
    merge_by(tree, &recorded, &live, &["--live"])?;
    merge_by(tree, &recorded, &by_ntp, &["--skew", BY_NTP])?;
    merge_by(tree, &recorded, &raw, &["--skew", RAW_BY_RANK])?;
    let mut shares = [0.0; 2];
    for (share, trace) in shares.iter_mut().zip([&live, &by_ntp]) {
        let [overlapping, calls] = overlapping(trace)?;
        let shown = trace.display();
        println!("   {shown}: {overlapping} of {calls} calls of MPI_Allreduce overlap");
        *share = overlapping as f64 / calls as f64;
    }
    // By a clock that is right, all do, if the cores are idle while it is synchronized: a
    // microsecond decides.
    let [by_live, by_ntp_share] = shares;
    if by_live < 0.99 || by_ntp_share > 0.1 {
        return Err("calls overlap by clocks that are wrong, or do not by the live one".to_owned());
    }
    let picture = folder.join("allreduce.svg");
    let mut show = trace_command(tree, "show", &live);
    show.args(["--call", CALL, "--label", "global clock", "--own-axes"]);
    for (label, of) in [("clocks set by NTP", &by_ntp), ("raw clocks", &raw)] {
        show.args(["--beside", &format!("{label}={}", of.display())]);
    }
    show.arg("-o").arg(folder.join("allreduce.html"));
    shell::run(show.arg("--svg").arg(&picture))?;
    is_complete(&picture)
}

/// Counts the calls of `MPI_Allreduce` of a trace as text that all ranks are in at one
/// time, and all.
fn overlapping(trace: &Path) -> Result<[usize; 2], String> {
    let text = fs::read_to_string(trace).map_err(|why| format!("{}: {why}", trace.display()))?;
    let regions = text.lines().filter_map(|line| line.strip_prefix("region "));
    let allreduce = regions
        .map(|name| name.split(' ').next_back())
        .position(|name| name == Some("MPI_Allreduce"));
    let allreduce = allreduce.ok_or("there is no MPI_Allreduce")?.to_string();
    // Enters and leaves of each rank.
    let mut times: [BTreeMap<&str, Vec<i64>>; 2] = Default::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let [location, time, what @ ("enter" | "leave"), region] = words[..]
            && region == allreduce
        {
            let time = time.parse().map_err(|_| format!("{line}: no time"))?;
            let of = &mut times[usize::from(what == "leave")];
            of.entry(location).or_default().push(time);
        }
    }
    let calls = times[0].values().map(Vec::len).max().unwrap_or(0);
    let [enters, leaves] = &times;
    let overlap = |call: &usize| {
        let last = enters.values().filter_map(|times| times.get(*call)).max();
        let first = leaves.values().filter_map(|times| times.get(*call)).min();
        last < first
    };
    Ok([(0..calls).filter(overlap).count(), calls])
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
