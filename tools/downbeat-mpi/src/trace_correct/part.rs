//! The part of a file that a rank has, and errors of parts.

use std::fmt::Display;
use std::path::Path;

use downbeat_common::Failure;
use downbeat_trace::formats::TraceFile;
use downbeat_trace::{PartError, TracePart};

/// Part of a file that a rank has.
pub(super) type FilePart = TraceFile<TracePart>;

/// The failure of the program for an error of the trace, on which all ranks agree.
pub(super) fn failure(path: &Path, why: PartError) -> Failure {
    let at_fault = |why: &dyn Display| Failure::Input(format!("{}: {why}", path.display()));
    match why {
        PartError::Trace(why) => at_fault(&why),
        PartError::Cycle(why) => at_fault(&why),
        other => Failure::run(other),
    }
}
