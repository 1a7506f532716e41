//! Comparison of two traces apart from times.

use core::fmt;

use super::super::{EventId, LocationId, Trace};

/// First difference between two traces, apart from their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Different numbers of locations.
    Locations,
    /// A location is on another node or in another process.
    Place(LocationId),
    /// A location has a different number of events.
    Events(LocationId),
    /// An event receives another message, or only one of the two receives any.
    Message(EventId),
    /// Different numbers of collective operations, or the operation with this index differs.
    Collective(usize),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locations => f.write_str("the traces have different numbers of locations"),
            Self::Place(location) => write!(
                f,
                "location {} is on another node or in another process",
                location.index()
            ),
            Self::Events(location) => {
                write!(
                    f,
                    "location {} has a different number of events",
                    location.index()
                )
            }
            Self::Message(event) => write!(f, "{event} does not receive the same message"),
            Self::Collective(number) => write!(f, "collective operation {number} is not the same"),
        }
    }
}

impl Trace {
    /// Returns the first difference between this trace and another one, apart from times; `None` if
    /// there is none.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if self.locations().len() != other.locations().len() {
            return Some(Difference::Locations);
        }
        for ((location, ours), theirs) in self.ids().zip(self.locations()).zip(other.locations()) {
            if ours.place() != theirs.place() {
                return Some(Difference::Place(location));
            }
            if ours.times().len() != theirs.times().len() {
                return Some(Difference::Events(location));
            }
        }
        let message = first_difference(self.messages(), other.messages());
        if let Some((_, ours, theirs)) = message {
            let receives = [ours, theirs]
                .into_iter()
                .flatten()
                .map(|message| message.receive);
            return receives.min().map(Difference::Message);
        }
        let collectives = |trace| {
            Trace::collectives(trace).map(|found| (found.kind(), found.root(), found.members()))
        };
        first_difference(
            collectives(self)
                .map(|(kind, root, members)| (kind, root, members.collect::<Vec<_>>())),
            collectives(other).map(|(kind, root, members)| (kind, root, members.collect())),
        )
        .map(|(number, ..)| Difference::Collective(number))
    }
}

/// Returns the index of the first items that differ, and these.
fn first_difference<T: PartialEq>(
    ours: impl IntoIterator<Item = T>,
    theirs: impl IntoIterator<Item = T>,
) -> Option<(usize, Option<T>, Option<T>)> {
    let (mut ours, mut theirs) = (ours.into_iter(), theirs.into_iter());
    for number in 0.. {
        let (ours, theirs) = (ours.next(), theirs.next());
        if ours != theirs {
            return Some((number, ours, theirs));
        }
        if ours.is_none() {
            break;
        }
    }
    None
}
