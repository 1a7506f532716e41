//! Comparison of two traces apart from times.

use thiserror::Error;

use super::super::{EventId, LocationId, Trace};

/// First difference between two traces, apart from their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceDifference {
    /// Different numbers of locations.
    #[error("the traces have different numbers of locations")]
    Locations,
    /// A location is on another node or in another process.
    #[error("location {} is on another node or in another process", .0.index())]
    Place(LocationId),
    /// A location has a different number of events.
    #[error("location {} has a different number of events", .0.index())]
    Events(LocationId),
    /// An event receives another message, or only one of the two receives any.
    #[error("{0} does not receive the same message")]
    Message(EventId),
    /// Different numbers of collective operations, or the operation with this index differs.
    #[error("collective operation {0} is not the same")]
    Collective(usize),
}

impl Trace {
    /// Returns the first difference between this trace and another one, apart from times; `None` if
    /// there is none.
    pub fn difference(&self, other: &Self) -> Option<TraceDifference> {
        if self.locations().len() != other.locations().len() {
            return Some(TraceDifference::Locations);
        }
        for ((location, ours), theirs) in self.ids().zip(self.locations()).zip(other.locations()) {
            if ours.place() != theirs.place() {
                return Some(TraceDifference::Place(location));
            }
            if ours.times().len() != theirs.times().len() {
                return Some(TraceDifference::Events(location));
            }
        }
        if let Some((_, ends)) = first_difference(self.messages(), other.messages()) {
            let receives = ends.into_iter().flatten().map(|message| message.receive);
            return receives.min().map(TraceDifference::Message);
        }
        let [ours, theirs] = [self, other].map(|trace| {
            let operations = trace.collectives();
            operations.map(|of| (of.kind(), of.root(), of.members().collect::<Vec<_>>()))
        });
        let found = first_difference(ours, theirs);
        found.map(|(number, _)| TraceDifference::Collective(number))
    }
}

/// Returns the index of the first items that differ, and these.
fn first_difference<T: PartialEq>(
    mut ours: impl Iterator<Item = T>,
    mut theirs: impl Iterator<Item = T>,
) -> Option<(usize, [Option<T>; 2])> {
    for number in 0.. {
        match [ours.next(), theirs.next()] {
            [None, None] => break,
            [ours, theirs] if ours == theirs => {}
            differing => return Some((number, differing)),
        }
    }
    None
}
