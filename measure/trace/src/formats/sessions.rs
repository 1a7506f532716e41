//! Sessions in which clocks were compared.

use std::path::Path;

use downbeat_clock_core::spline::Knot;
use downbeat_clock_core::{Global, Local};
use downbeat_files::FileError;

pub use crate::presync::Sessions;

/// Adds a sample to a session of a location, which exists or is the next one.
pub(super) fn add_sample(
    sessions: &mut Vec<Vec<Knot<Local, Global>>>,
    session: u32,
    sample: Knot<Local, Global>,
) {
    if sessions.len() <= session as usize {
        sessions.push(vec![]);
    }
    sessions[session as usize].push(sample);
}

/// Returns the samples of every location, in their order.
pub(super) fn samples_of(
    sessions: &Sessions,
) -> Vec<impl Iterator<Item = &Knot<Local, Global>> + '_> {
    sessions
        .iter()
        .map(|sessions| sessions.iter().flatten())
        .collect()
}

/// Returns the error of a file that has changed since it was read.
pub(super) fn changed(path: &Path) -> FileError {
    FileError::content(path, "it is no longer what it was when it was read first")
}
