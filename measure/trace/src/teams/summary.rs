//! Summary of the known events of one operation; summaries of different members can be merged in
//! any order.

use super::{MemberOperation, disagreement};
use crate::trace::Instance;
use crate::{CollectiveKind, EventId, TraceError};

/// Statement of a kind and root: the position of its event in the whole trace, the event, the kind
/// and the root.
pub(crate) type Stated = (u64, EventId, CollectiveKind, u32);

/// Summary of the events of some members in one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Position of the first event in the whole trace.
    pub(crate) first: u64,
    /// First statement of the kind and root.
    pub(crate) stated: Option<Stated>,
    /// First statement that disagrees with it.
    pub(crate) conflict: Option<Stated>,
    pub(crate) enters: u32,
    pub(crate) exits: u32,
}

impl Summary {
    /// Returns the summary for one member.
    pub(super) fn of_member(part: &MemberOperation) -> Self {
        Self {
            first: part.first,
            stated: part.stated,
            conflict: None,
            enters: u32::from(part.entered),
            exits: u32::from(part.left),
        }
    }

    /// Adds the events of other members.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.enters += other.enters;
        self.exits += other.exits;
        let (first, second, conflicts) = match (self.stated, other.stated) {
            (Some(one), Some(two)) if two.0 < one.0 => (two, one, [other.conflict, self.conflict]),
            (Some(one), Some(two)) => (one, two, [self.conflict, other.conflict]),
            (one, two) => {
                self.stated = one.or(two);
                self.conflict = self.conflict.or(other.conflict);
                return;
            }
        };
        self.stated = Some(first);
        let second = if disagree(first, second).is_some() {
            Some(second)
        } else {
            conflicts[1]
        };
        self.conflict = [conflicts[0], second]
            .into_iter()
            .flatten()
            .min_by_key(|stated| stated.0);
    }

    /// Returns the position of the first statement that disagrees with an earlier one, and the
    /// error.
    pub(super) fn disagreement(&self) -> Option<(u64, TraceError)> {
        let (stated, conflict) = self.stated.zip(self.conflict)?;
        Some((conflict.0, disagree(stated, conflict)?))
    }

    /// Returns true if all members of a team of this size entered and left the operation.
    pub(super) fn is_complete(&self, members: u32) -> bool {
        match self.stated {
            None => false,
            // Any number of threads may take part.
            Some((.., CollectiveKind::Fork | CollectiveKind::Join, _)) => true,
            Some(_) => self.enters == members && self.exits == members,
        }
    }

    /// Returns the operation of a team with this number of members.
    pub(super) fn instance(&self, team: u32, members: u32) -> Instance {
        let (kind, root) = self
            .stated
            .map_or((CollectiveKind::Barrier, 0), |(.., kind, root)| {
                (kind, root)
            });
        Instance {
            kind,
            root,
            team,
            first: 0,
            members,
        }
    }
}

fn disagree(
    (_, other, kind, root): Stated,
    (_, event, stated, stated_root): Stated,
) -> Option<TraceError> {
    disagreement((kind, root, other), (stated, stated_root, event))
}
