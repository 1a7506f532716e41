//! Ranks under valgrind, and the records of their logs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::tree::InstalledTree;

/// The faults of Open MPI, which it ships.
const OF_OPEN_MPI: &str = "/usr/share/openmpi/openmpi-valgrind.supp";

/// Libraries that all others call.
const COMMON: [&str; 3] = ["vgpreload", "libc.so", "ld-linux"];

/// Name of the library that stands between a program and MPI, so that it is on the stack
/// of all that MPI does.
const TRACER: &str = "libdownbeat_trace.so";

/// Leaks that count as errors.
#[derive(Clone, Copy)]
pub(crate) enum Leaks {
    All,
    /// Not those of memory to whose middle something points, as hash tables of Rust do,
    /// and not what it points to.
    Definite,
}

impl Leaks {
    pub(crate) fn options(self) -> [String; 3] {
        let kinds = match self {
            Self::All => "definite,possible",
            Self::Definite => "definite",
        };
        [
            "--leak-check=full".to_owned(),
            format!("--show-leak-kinds={kinds}"),
            format!("--errors-for-leak-kinds={kinds}"),
        ]
    }
}

/// Command with a log for each rank.
pub(crate) struct Valgrind {
    words: Vec<String>,
    logs: PathBuf,
}

impl Valgrind {
    /// Creates an empty folder for the logs of programs over this library.
    pub(crate) fn new(
        tree: &InstalledTree,
        library: MpiLibrary,
        programs: &str,
        leaks: Leaks,
    ) -> Result<Self, String> {
        let name = format!("valgrind-{programs}-{}", library.suffix());
        let logs = tree.built.join(name);
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir_all(&logs).map_err(|why| format!("{}: {why}", logs.display()))?;
        // Stacks of Rust are long; children are shells.
        let fixed = "--quiet --num-callers=50 --child-silent-after-fork=yes --xml=yes";
        let mut words: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
        words.push(format!("--xml-file={}/%p", logs.display()));
        words.extend(leaks.options());
        words.extend((library == OPEN_MPI).then(|| format!("--suppressions={OF_OPEN_MPI}")));
        Ok(Self { words, logs })
    }

    /// Returns the command that runs a program under valgrind.
    pub(crate) fn around(&self, program: &Command) -> Command {
        let mut valgrind = command("valgrind");
        valgrind.args(&self.words);
        shell::started_by(valgrind, program)
    }

    /// Checks the logs of this number of ranks.
    pub(crate) fn found_nothing_of_ours(&self, expected: usize) -> Outcome {
        let failed = |why| format!("{}: {why}", self.logs.display());
        let mut read = 0_usize;
        for log in fs::read_dir(&self.logs).map_err(failed)? {
            let path = log.map_err(failed)?.path();
            check_log(&path)?;
            read += 1;
        }
        if read == expected {
            Ok(())
        } else {
            Err(format!(
                "{}: {read} logs of valgrind, not {expected}",
                self.logs.display()
            ))
        }
    }
}

fn check_log(path: &Path) -> Outcome {
    let failed = |why: String| format!("{}: {why}", path.display());
    let log = fs::read_to_string(path).map_err(|why| failed(why.to_string()))?;
    if !log.trim_end().ends_with("</valgrindoutput>") {
        return Err(failed("the program was killed".to_owned()));
    }
    match record_of_ours(&log) {
        Some(found) => Err(failed(format!("valgrind found\n{found}"))),
        None => Ok(()),
    }
}

/// Returns the first record of valgrind that is ours.
fn record_of_ours(log: &str) -> Option<&str> {
    let records = log.split("<error>").skip(1);
    let records = records.filter_map(|rest| Some(rest.split_once("</error>")?.0));
    // Further stacks are those of an allocation, for example.
    let mut ours = records.filter(|record| record.split("<stack>").skip(1).any(is_ours));
    ours.next().map(str::trim)
}

/// Returns true for a stack on which a library of ours is, or on which the tracer is the
/// first that did something itself.
fn is_ours(stack: &str) -> bool {
    let objects = || {
        let frames = stack.split("<frame>").skip(1);
        // Libraries that are not loaded any more have no name.
        frames.map(|frame| element(frame, "obj").unwrap_or_default())
    };
    let of_us = |object: &str| object.contains("libdownbeat");
    let mut own = objects().filter(|object| !COMMON.iter().any(|common| object.contains(common)));
    own.next().is_some_and(of_us)
        || objects().any(|object| of_us(object) && !object.ends_with(TRACER))
}

/// Returns the text of the first element with this name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a log with one record, whose stacks are these.
    fn log(stacks: &[&[&str]]) -> String {
        let frame = |object: &&str| format!("<frame><ip>0x1</ip><obj>{object}</obj></frame>");
        let stack = |objects: &&[&str]| {
            format!(
                "<stack>{}</stack>",
                objects.iter().map(frame).collect::<String>()
            )
        };
        let stacks: String = stacks.iter().map(stack).collect();
        format!("<error><kind>InvalidRead</kind>{stacks}</error>\n</valgrindoutput>\n")
    }

    #[test]
    fn records_of_ours_are_found() {
        const MALLOC: &str = "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so";
        const MPI: &str = "/usr/lib/libmpi.so.40";
        const TRACER: &str = "/opt/lib/mpich/libdownbeat_trace.so";
        const DOWNBEAT: &str = "/opt/lib/libdownbeat_mpi.so.0";
        let found = |stacks: &[&[&str]]| record_of_ours(&log(stacks)).is_some();
        assert!(found(&[&[DOWNBEAT, "/bin/program"]]));
        assert!(found(&[&[MPI, DOWNBEAT, "/bin/program"]]));
        assert!(found(&[&[MALLOC, TRACER, "/bin/program"]]));
        // What the program or MPI does to the memory of the tracer.
        assert!(found(&[&[MPI, TRACER], &[MALLOC, TRACER, "/bin/program"]]));
        // The tracer only passes the call on.
        assert!(!found(&[&[MALLOC, MPI, TRACER, "/bin/program"]]));
        assert!(!found(&[&["/bin/program"]]));
        assert!(!found(&[]));
        let unloaded = log(&[&[MALLOC, TRACER]]).replacen("<frame>", "<frame></frame><frame>", 1);
        assert_eq!(record_of_ours(&unloaded), None);
    }
}
