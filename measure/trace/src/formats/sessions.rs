//! Sessions in which clocks were compared.

use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{Global, Local};

pub use crate::presync::Sessions;

/// Adds a sample to a session of a location, which exists or is the next one.
pub(super) fn add_sample(
    sessions: &mut Vec<Vec<SplineKnot<Local, Global>>>,
    session: u32,
    sample: SplineKnot<Local, Global>,
) {
    if sessions.len() <= session as usize {
        sessions.push(vec![]);
    }
    sessions[session as usize].push(sample);
}
