//! Collective operations: the first enter of each member in a team belongs to one operation, the
//! second one to the next, and so on. An exit belongs to the first operation that was not left, or
//! to the one that was started with its request.

mod assemble;
mod outstanding;
mod summary;

use super::trace::NONE;
use super::{Array, ArrayStore, CollectiveKind, EventId, NoRoom, Pattern, TraceError};

pub(super) use assemble::Tracks;
pub(super) use outstanding::Turns;
pub(super) use summary::Summary;

/// Class of operations of a team; the operations of each class are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Track {
    Collective,
    Fork,
    Join,
}

impl Track {
    pub(super) const ALL: [Self; 3] = [Self::Collective, Self::Fork, Self::Join];
}

/// Kind and root that an exit states for its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) kind: CollectiveKind,
    pub(super) root: u32,
    pub(super) sent: bool,
    pub(super) received: bool,
}

/// Role of an event in the operations of a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Participation {
    pub(super) track: Track,
    pub(super) seat: Seat,
    /// True for an enter, false for an exit.
    pub(super) enters: bool,
    pub(super) statement: Option<Statement>,
    /// Request of a non-blocking operation.
    pub(super) request: Option<u64>,
}

/// Member of a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) team: u32,
    pub(super) rank: u32,
}

/// Operations that a member took part in, on one track.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) operations: Array<MemberOperation>,
    pub(super) turns: Turns,
}

/// Events of one member in one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberOperation {
    pub(super) location: u32,
    /// Mark of the enter and mark of the exit; [`NONE`] where no such event counts.
    pub(super) enter: u32,
    pub(super) exit: u32,
    /// True if the member has entered, and has left.
    pub(super) entered: bool,
    pub(super) left: bool,
    /// Position of the first event in the whole trace.
    pub(super) first: u64,
    /// Event that stated the kind and root of the operation, and its position.
    pub(super) stated: Option<(u64, EventId, CollectiveKind, u32)>,
}

impl Column {
    /// Returns no operations.
    pub(super) fn new(store: &ArrayStore) -> Self {
        Self {
            operations: Array::new(store.clone()),
            turns: Turns::default(),
        }
    }

    /// Enters the next operation of the member with this mark. Only a fork states the kind of the
    /// operation here.
    pub(super) fn enter(
        &mut self,
        part: Participation,
        event: EventId,
        position: u64,
        mark: u32,
    ) -> Result<(), NoRoom> {
        let index = self.turns.enter(part.request);
        let operation = self.operation(index, event, position, part.statement)?;
        (operation.location, operation.enter) = (event.location.0, mark);
        operation.entered = true;
        Ok(())
    }

    /// Leaves an operation of the member, with this mark if the member is a logical receiver.
    /// Returns the mark of its enter. A thread begin does not state the kind of the operation.
    pub(super) fn exit(
        &mut self,
        part: Participation,
        event: EventId,
        position: u64,
        mark: Option<u32>,
    ) -> Result<&mut u32, TraceError> {
        let index = self.turns.exit(part.track, part.request);
        let index = index.ok_or(TraceError::NotEntered(event))?;
        let operation = self.operation(index, event, position, part.statement)?;
        if operation.location != event.location.0 && operation.enter != NONE {
            // Another thread of the process has entered.
            return Err(TraceError::NotEntered(event));
        }
        operation.location = event.location.0;
        operation.exit = mark.unwrap_or(NONE);
        operation.left = true;
        Ok(&mut operation.enter)
    }

    /// Returns the operation with this index, which exists or is the next one.
    fn operation(
        &mut self,
        index: u32,
        event: EventId,
        position: u64,
        statement: Option<Statement>,
    ) -> Result<&mut MemberOperation, NoRoom> {
        let index = index as usize;
        if index == self.operations.len() {
            self.operations.push(MemberOperation {
                location: event.location.0,
                enter: NONE,
                exit: NONE,
                entered: false,
                left: false,
                first: position,
                stated: None,
            })?;
        }
        let operation = &mut self.operations[index];
        if let (Some(says), None) = (statement, operation.stated) {
            operation.stated = Some((position, event, says.kind, says.root));
        }
        Ok(operation)
    }
}

/// Returns an error if an exit states another kind or root than an earlier one.
fn disagreement(
    (kind, root, other): (CollectiveKind, u32, EventId),
    (stated, stated_root, event): (CollectiveKind, u32, EventId),
) -> Option<TraceError> {
    if kind != stated {
        Some(TraceError::OtherKind { event, other })
    } else if kind.has_root() && root != stated_root {
        Some(TraceError::OtherRoot { event, other })
    } else {
        None
    }
}

/// Returns true if a member of this rank is a logical sender, provided that it contributed data.
pub(super) fn sends(kind: CollectiveKind, root: u32, rank: u32) -> bool {
    Statement {
        kind,
        root,
        sent: true,
        received: true,
    }
    .role_of(rank)
    .0
}

impl Statement {
    /// Returns two flags for the member of this rank: logical sender, and logical receiver.
    pub(super) fn role_of(self, rank: u32) -> (bool, bool) {
        if self.kind == CollectiveKind::Barrier {
            return (true, true);
        }
        let is_root = rank == self.root;
        let (sends, receives) = match self.kind.pattern() {
            Pattern::FromRoot => (is_root, !is_root),
            Pattern::ToRoot => (!is_root, is_root),
            Pattern::AllToAll | Pattern::ToLater => (true, true),
        };
        (sends && self.sent, receives && self.received)
    }
}

#[cfg(test)]
mod tests;
