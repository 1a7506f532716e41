//! Recordings of programs, and their comparison with what the programs counted
//! themselves.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;

use super::counts::Counts;
use super::merged::MergedTrace;
use crate::tree::InstalledTree;

pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Returns the command of each rank, whose recording goes to a folder. The words of the
/// program follow.
pub(crate) fn record_rank(tree: &InstalledTree, folder: &Path) -> Command {
    let mut job = Command::new(tree.prefix.join("bin/downbeat"));
    job.args(["record-rank", "--out"]).arg(folder).arg("--");
    job
}

/// Merges the recordings of all ranks, beside their folder.
pub(crate) fn merge(tree: &InstalledTree, folder: &Path) -> Result<MergedTrace, String> {
    let trace = folder.with_extension("dbt");
    let mut merge = trace_command(tree, "merge", folder);
    shell::run(merge.arg("-o").arg(&trace))?;
    MergedTrace::read(&trace)
}

/// Returns a command for a trace.
pub(crate) fn trace_command(tree: &InstalledTree, name: &str, of: &Path) -> Command {
    let mut command = Command::new(tree.prefix.join("bin/downbeat"));
    command.args(["trace", name]).arg(of);
    command
}

/// Reads what a rank wrote.
pub(crate) fn written(counts: &Path, rank: u32) -> Result<String, String> {
    let path = PathBuf::from(format!("{}.{rank}", counts.display()));
    fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))
}

/// Checks that a trace has what the program counted in each rank.
pub(crate) fn has_all_counted(trace: &MergedTrace, counts: &Path, ranks: u32) -> Outcome {
    let mut wrong = vec![];
    for rank in 0..ranks {
        let text = written(counts, rank)?;
        let own = Counts::parse(&text).ok_or("the program counted nothing")?;
        let differences = own.differences(trace.of(rank));
        wrong.extend(differences.map(|line| format!("rank {rank}: {line}")));
    }
    none_differs(wrong)
}

/// Checks that each of these ranks sent and received messages.
pub(crate) fn have_messages(trace: &MergedTrace, mut ranks: Range<u32>) -> Outcome {
    let lacks = |rank: &u32| trace.of(*rank).sent.is_empty() || trace.of(*rank).received.is_empty();
    match ranks.find(lacks) {
        Some(rank) => Err(format!("rank {rank} has no messages")),
        None => Ok(()),
    }
}

/// Makes a failure of the first of these lines, if there is any.
pub(crate) fn none_differs(mut wrong: Vec<String>) -> Outcome {
    match wrong.len() {
        0 => Ok(()),
        more => {
            wrong.truncate(10);
            Err(format!("{more} numbers differ: {}", wrong.join("; ")))
        }
    }
}

/// Names of what recordings have in this folder of shared memory.
pub(crate) fn left_in(memory: &Path) -> Vec<String> {
    let entries = fs::read_dir(memory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("downbeat-trace."))
        .collect()
}
