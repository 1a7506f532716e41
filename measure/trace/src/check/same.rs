//! Whether two traces differ in more than time.

use core::fmt;

use super::super::{EventId, LocationId, Trace};

/// The first thing in which two traces differ, besides their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// They have not as many locations.
    Locations,
    /// A location is somewhere else.
    Place(LocationId),
    /// A location has not as many events.
    Events(LocationId),
    /// An event receives another message, or only one of them receives any.
    Message(EventId),
    /// They have not as many collective operations, or what was one, counted from 0, is another.
    Collective(usize),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locations => f.write_str("the traces have not as many locations"),
            Self::Place(location) => write!(f, "location {} is somewhere else", location.index()),
            Self::Events(location) => {
                write!(f, "location {} has not as many events", location.index())
            }
            Self::Message(event) => write!(f, "{event} does not receive the same message"),
            Self::Collective(number) => write!(f, "collective operation {number} is not the same"),
        }
    }
}

impl Trace {
    /// In what this trace differs from another one, besides times; `None` if in nothing.
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
        let collectives =
            |trace| Trace::collectives(trace).map(|of| (of.kind(), of.root(), of.members()));
        first_difference(
            collectives(self)
                .map(|(kind, root, members)| (kind, root, members.collect::<Vec<_>>())),
            collectives(other).map(|(kind, root, members)| (kind, root, members.collect())),
        )
        .map(|(number, ..)| Difference::Collective(number))
    }
}

/// The number of the first items that differ, and these.
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
