//! Part of a trace file that one rank holds, and its errors.

use std::fmt::Display;
use std::path::Path;

use downbeat_common::Failure;
use downbeat_trace::formats::TraceFile;
use downbeat_trace::{PartError, TracePart};

/// Trace file with the events of the locations of one rank.
pub(super) type FilePart = TraceFile<TracePart>;

/// Returns the failure of the program for an error on which all ranks agree.
pub(super) fn failure(path: &Path, why: PartError) -> Failure {
    let at_fault = |why: &dyn Display| Failure::Input(format!("{}: {why}", path.display()));
    match why {
        PartError::Trace(why) => at_fault(&why),
        PartError::Cycle(why) => at_fault(&why),
        other => Failure::run(other),
    }
}
