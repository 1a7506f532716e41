//! Summary of the known events of one operation. Members can be added in any order.

use super::MemberOperation;
use crate::encoding::encoded;
use crate::{CollectiveKind, EventId, TraceError};

/// Statement of the kind and root of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stated {
    /// Position of the event in the whole trace.
    pub(crate) position: u64,
    pub(crate) event: EventId,
    pub(crate) kind: CollectiveKind,
    pub(crate) root: u32,
}

encoded! { Stated { position, event, kind, root } }

/// Summary of the events of some members in one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    /// Position of the first event in the whole trace.
    pub(super) first: u64,
    /// First statement of the kind and root.
    pub(super) stated: Option<Stated>,
    /// First statement that disagrees with it.
    conflict: Option<Stated>,
    enters: u32,
    exits: u32,
}

impl Stated {
    /// Returns the error of a later statement of another kind or root.
    fn disagreement(&self, later: &Self) -> Option<TraceError> {
        let (event, other) = (later.event, self.event);
        if self.kind != later.kind {
            Some(TraceError::OtherKind { event, other })
        } else if self.kind.has_root() && self.root != later.root {
            Some(TraceError::OtherRoot { event, other })
        } else {
            None
        }
    }
}

impl Summary {
    /// Summary without members.
    pub(super) const NONE: Self = Self {
        first: u64::MAX,
        stated: None,
        conflict: None,
        enters: 0,
        exits: 0,
    };

    /// Adds the events of a member.
    pub(super) fn add(&mut self, part: &MemberOperation) {
        self.first = self.first.min(part.first);
        self.enters += u32::from(part.entered);
        self.exits += u32::from(part.left);
        let Some(other) = part.stated else { return };
        let known = *self.stated.get_or_insert(other);
        let (first, second) = match other.position < known.position {
            true => (other, known),
            false => (known, other),
        };
        self.stated = Some(first);
        // What disagreed with the first statement so far comes after both.
        if first.disagreement(&second).is_some() {
            let both = self.conflict.into_iter().chain([second]);
            self.conflict = both.min_by_key(|stated| stated.position);
        }
    }

    /// Returns the position of the first statement that disagrees with an earlier one, and the
    /// error.
    pub(super) fn disagreement(&self) -> Option<(u64, TraceError)> {
        let (stated, conflict) = self.stated.zip(self.conflict)?;
        Some((conflict.position, stated.disagreement(&conflict)?))
    }

    /// Returns true if all members of a team of this size entered and left the operation.
    pub(super) fn is_complete(&self, members: u32) -> bool {
        self.stated.is_some_and(|stated| match stated.kind {
            // Any number of threads may take part.
            CollectiveKind::Fork | CollectiveKind::Join => true,
            _ => self.enters == members && self.exits == members,
        })
    }
}
