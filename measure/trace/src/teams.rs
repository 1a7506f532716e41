//! Collective operations: the first enter of each member in a team belongs to one operation, the
//! second one to the next, and so on, in the order of their times where several threads of a
//! process enter. An exit belongs to the first operation that its thread did not leave, or to the
//! one that was started with its request.

mod assemble;
mod outstanding;
mod summary;

use super::encoding::encode_as;
use super::trace::NONE;
use super::{Array, ArrayStore, CollectiveKind, EventId, LocationId, TraceError};

pub(super) use assemble::Tracks;
pub(super) use outstanding::Turns;
pub(super) use summary::Stated;

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

encode_as! {
    Track as u8: |track| track as u8, |number| Self::ALL.get(usize::from(number)).copied();
}

/// Role of an event in the operations of a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Participation {
    pub(super) track: Track,
    pub(super) team: u32,
    /// Rank of the member in the team.
    pub(super) rank: u32,
    /// True for an enter, false for an exit.
    pub(super) enters: bool,
    /// Kind and root of the operation; a thread begin states none, an enter only that of
    /// a fork.
    pub(super) stated: Option<(CollectiveKind, u32)>,
    /// Of an exit: true if the member is a logical sender, and if it is a logical
    /// receiver.
    pub(super) roles: [bool; 2],
    /// Request of a non-blocking operation.
    pub(super) request: Option<u64>,
}

/// Operations that a member took part in, on one track.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) operations: Array<MemberOperation>,
    turns: Turns,
    /// Exits with a request with which their location did not enter an operation, in the order of
    /// their positions; once the threads are sorted, those that no other thread explains.
    unentered: Vec<(u64, EventId)>,
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
    /// Time of the first event, and its position in the whole trace.
    pub(super) time: i64,
    pub(super) first: u64,
    /// First statement of the kind and root of the operation.
    pub(super) stated: Option<Stated>,
}

impl Column {
    /// Returns no operations.
    pub(super) fn new(store: &ArrayStore) -> Self {
        Self {
            operations: Array::new(store.clone()),
            turns: Turns::default(),
            unentered: vec![],
        }
    }

    /// Adds an event of the member, and returns its operation: an enter begins the next one.
    /// Returns `None` for an exit that completes an operation of another thread, which counts as
    /// one that the member did not leave.
    pub(super) fn add(
        &mut self,
        part: &Participation,
        event: EventId,
        (time, position): (i64, u64),
    ) -> Result<Option<&mut MemberOperation>, TraceError> {
        let LocationId(location) = event.location;
        let index = match part.enters {
            true => Some(self.turns.enter(part.track, location, part.request)),
            false => self.turns.exit(part.track, location, part.request),
        };
        let index = match (index, part.request) {
            (Some(index), _) => index as usize,
            (None, Some(_)) => {
                self.unentered.push((position, event));
                return Ok(None);
            }
            (None, None) => return Err(TraceError::NotEntered(event)),
        };
        if index == self.operations.len() {
            self.operations.push(MemberOperation {
                location,
                enter: NONE,
                exit: NONE,
                entered: false,
                left: false,
                time,
                first: position,
                stated: None,
            })?;
        }
        let operation = &mut self.operations[index];
        let has_entered = !part.enters && operation.enter != NONE;
        if has_entered && operation.location != location {
            // Another thread of the process has entered.
            return Err(TraceError::NotEntered(event));
        }
        operation.location = location;
        if let (Some((kind, root)), None) = (part.stated, operation.stated) {
            operation.stated = Some(Stated {
                position,
                event,
                kind,
                root,
            });
        }
        Ok(Some(operation))
    }

    /// Puts the operations in the order of their times, if several threads of a process take part:
    /// an archive has all events of a thread before all events of the next thread. Drops exits of
    /// operations that other threads did not leave.
    pub(super) fn sort_threads(&mut self) {
        if !self.unentered.is_empty() {
            let open = self.operations.iter().filter(|operation| !operation.left);
            let mut open = open.map(|operation| operation.location);
            let first = open.next();
            let has_several = open.any(|location| Some(location) != first);
            self.unentered.retain(|(_, event)| {
                let is_other = first.is_some_and(|first| first != event.location.0);
                !is_other && !has_several
            });
        }
        let are_of_one_thread = self
            .operations
            .windows(2)
            .all(|pair| pair[0].location == pair[1].location);
        if !are_of_one_thread {
            self.operations
                .sort_unstable_by_key(|operation| (operation.time, operation.first));
        }
    }

    /// Returns the position and the error of the first exit from an operation that no thread
    /// entered.
    fn first_error(&self) -> Option<(u64, TraceError)> {
        let (position, event) = *self.unentered.first()?;
        Some((position, TraceError::NotEntered(event)))
    }
}

#[cfg(test)]
mod tests;
