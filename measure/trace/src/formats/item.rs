//! What a trace says, one thing at a time.

use crate::{Action, CollectiveKind, CommunicatorId, Place};
use downbeat_clock_core::{Global, Local, Timestamp};

/// One thing that a trace says.
///
/// Locations, communicators and regions are counted from 0, each in the order in which they are in the file; what
/// names one comes later than what it names. Events of a location are in their order; those of several may be mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A location: a process with one thread, or a thread that messages are addressed to.
    Location {
        /// Where it is.
        place: Place,
        /// What it is called.
        name: &'a str,
    },
    /// Another thread of a process.
    Thread {
        /// The location that stands for the process.
        rank: u32,
        /// What it is called.
        name: &'a str,
    },
    /// A communicator, or a team of threads.
    Communicator {
        /// Its locations, in the order of their ranks.
        members: &'a [u32],
    },
    /// A part of the program that events enter and leave.
    Region {
        /// What it is called.
        name: &'a str,
    },
    /// Whose clock others were compared with; location 0, if nothing is said.
    Master {
        /// Which location.
        location: u32,
    },
    /// What the clock of a location and the master's showed at one instant.
    Sample {
        /// Whose clock.
        location: u32,
        /// In which of the location's sessions, counted from 0.
        session: u32,
        /// What it showed.
        local: Timestamp<Local>,
        /// What the master's showed.
        master: Timestamp<Global>,
    },
    /// An event.
    Event {
        /// Whose.
        location: u32,
        /// When, by that location's clock, or by one that all share after a correction.
        time: Timestamp<Global>,
        /// What it is.
        what: What<'a>,
    },
}

/// What an event is: the [`Action`]s of a trace, and what is nothing to other
/// locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A region is entered.
    Enter {
        /// Which.
        region: u32,
    },
    /// A region is left.
    Leave {
        /// Which.
        region: u32,
    },
    /// Anything else, which is carried along.
    Note(&'a str),
    /// A message sets out.
    Send {
        /// Who receives it.
        to: u32,
        /// In which communicator.
        communicator: u32,
        /// Its tag.
        tag: i32,
    },
    /// A message is there.
    Receive {
        /// Who sent it.
        from: u32,
        /// In which communicator.
        communicator: u32,
        /// Its tag.
        tag: i32,
    },
    /// A collective operation is entered.
    Collective {
        /// Of these members.
        communicator: u32,
    },
    /// A collective operation is left.
    CollectiveEnd {
        /// Of these members.
        communicator: u32,
        /// Which operation it was; neither a fork nor a join.
        kind: CollectiveKind,
        /// The root's rank in the communicator; any number, where the operation has none.
        root: u32,
        /// Whether this member gave data.
        sent: bool,
        /// Whether this member was given data.
        received: bool,
    },
    /// Threads are started.
    Fork {
        /// All of them, and the one that starts them.
        team: u32,
    },
    /// A thread begins.
    ThreadBegin {
        /// Whose member it is.
        team: u32,
    },
    /// A thread ends.
    ThreadEnd {
        /// Whose member it is.
        team: u32,
    },
    /// All threads have ended.
    Join {
        /// All of them, and the one that started them.
        team: u32,
    },
}

impl What<'_> {
    /// What an action is in a file; `None` for what is nothing to other locations.
    pub fn from_action(action: Action) -> Option<Self> {
        let number = |of: CommunicatorId| of.index() as u32;
        Some(match action {
            Action::Internal => return None,
            Action::Send {
                to,
                communicator,
                tag,
            } => Self::Send {
                to: to.index() as u32,
                communicator: number(communicator),
                tag,
            },
            Action::Receive {
                from,
                communicator,
                tag,
            } => Self::Receive {
                from: from.index() as u32,
                communicator: number(communicator),
                tag,
            },
            Action::Enter { communicator } => Self::Collective {
                communicator: number(communicator),
            },
            Action::Exit {
                communicator,
                kind,
                root,
                sent,
                received,
            } => Self::CollectiveEnd {
                communicator: number(communicator),
                kind,
                root,
                sent,
                received,
            },
            Action::Fork { team } => Self::Fork { team: number(team) },
            Action::Begin { team } => Self::ThreadBegin { team: number(team) },
            Action::End { team } => Self::ThreadEnd { team: number(team) },
            Action::Join { team } => Self::Join { team: number(team) },
        })
    }
}

/// Collective operations, by the numbers that they have in binary files.
pub(super) const KINDS: [(CollectiveKind, &str); 12] = [
    (CollectiveKind::Barrier, "barrier"),
    (CollectiveKind::Broadcast, "broadcast"),
    (CollectiveKind::Scatter, "scatter"),
    (CollectiveKind::Gather, "gather"),
    (CollectiveKind::Reduce, "reduce"),
    (CollectiveKind::Allreduce, "allreduce"),
    (CollectiveKind::Allgather, "allgather"),
    (CollectiveKind::Alltoall, "alltoall"),
    (CollectiveKind::Alltoallv, "alltoallv"),
    (CollectiveKind::ReduceScatter, "reduce_scatter"),
    (CollectiveKind::Scan, "scan"),
    (CollectiveKind::Exscan, "exscan"),
];

/// Where a kind is among [`KINDS`]; forks and joins have events of their own.
pub(super) fn kind_number(kind: CollectiveKind) -> Option<usize> {
    KINDS.iter().position(|(known, _)| *known == kind)
}

/// Which data a member of a collective operation had, `[sent, received]`, by the numbers in binary files.
pub(super) const DATA: [([bool; 2], &str); 4] = [
    ([false, false], "none"),
    ([true, false], "sent"),
    ([false, true], "received"),
    ([true, true], "both"),
];
