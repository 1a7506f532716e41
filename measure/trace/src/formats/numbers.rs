//! Conversion of numbers in a file to ids of a trace.

use super::item::What;
use crate::{Action, CommunicatorId, LocationId};

/// Ids in a trace of the numbers in a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileNumbers {
    pub(super) locations: Vec<LocationId>,
    pub(super) communicators: Vec<CommunicatorId>,
}

impl FileNumbers {
    /// Returns the location of an event and its action; `None` if it refers to something undefined.
    #[inline]
    pub(super) fn of(&self, location: u32, what: What<'_>) -> Option<(LocationId, Action)> {
        let location_of = |number: u32| self.locations.get(number as usize).copied();
        let communicator = |number: u32| self.communicators.get(number as usize).copied();
        let action = match what {
            What::Enter { .. } | What::Leave { .. } | What::Note(_) | What::CompleteSend { .. } => {
                Action::Internal
            }
            What::Access {
                target,
                communicator: within,
                ..
            } => {
                location_of(target)?;
                communicator(within)?;
                Action::Internal
            }
            What::AccessComplete {
                communicator: within,
                ..
            } => {
                communicator(within)?;
                Action::Internal
            }
            What::Send {
                to,
                communicator: within,
                tag,
                ..
            } => Action::Send {
                to: location_of(to)?,
                communicator: communicator(within)?,
                tag,
            },
            What::Receive {
                from,
                communicator: within,
                tag,
                ..
            } => Action::Receive {
                from: location_of(from)?,
                communicator: communicator(within)?,
                tag,
            },
            What::Collective {
                communicator: within,
            } => Action::Enter {
                communicator: communicator(within)?,
            },
            What::CollectiveEnd {
                communicator: within,
                kind,
                root,
                sent,
                received,
                ..
            } => Action::Exit {
                communicator: communicator(within)?,
                kind,
                root,
                sent,
                received,
            },
            What::PostReceive { request } => Action::PostReceive { request },
            What::CompleteReceive {
                from,
                communicator: within,
                tag,
                request,
                ..
            } => Action::CompleteReceive {
                from: location_of(from)?,
                communicator: communicator(within)?,
                tag,
                request,
            },
            What::CancelReceive { request } => Action::CancelReceive { request },
            What::CollectiveStart {
                communicator: within,
                request,
            } => Action::Start {
                communicator: communicator(within)?,
                request,
            },
            What::CollectiveComplete {
                communicator: within,
                kind,
                root,
                sent,
                received,
                request,
                ..
            } => Action::Complete {
                communicator: communicator(within)?,
                kind,
                root,
                sent,
                received,
                request,
            },
            What::Signal { id } => Action::Signal { id },
            What::Wait { id } => Action::Wait { id },
            What::Fork { team } => Action::Fork {
                team: communicator(team)?,
            },
            What::ThreadBegin { team } => Action::Begin {
                team: communicator(team)?,
            },
            What::ThreadEnd { team } => Action::End {
                team: communicator(team)?,
            },
            What::Join { team } => Action::Join {
                team: communicator(team)?,
            },
        };
        Some((location_of(location)?, action))
    }
}
