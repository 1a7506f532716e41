//! Actions of a location, and the dependences inside a collective operation.

use super::ids::{CommunicatorId, LocationId};

/// Meaning of an event for other locations.
///
/// Communicators are groups of locations: MPI communicators and teams of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// No meaning for other locations.
    Internal,
    /// A message is sent.
    Send {
        /// Receiver.
        to: LocationId,
        /// Communicator of the message.
        communicator: CommunicatorId,
        /// Tag of the message.
        tag: i32,
    },
    /// A message is received by an operation that waits for it.
    Receive {
        /// Sender.
        from: LocationId,
        /// Communicator of the message.
        communicator: CommunicatorId,
        /// Tag of the message.
        tag: i32,
    },
    /// A receive is posted (`MPI_Irecv`, the start of a persistent receive). Messages of a channel
    /// are matched in the order in which their receives were posted, not in that of completions.
    PostReceive {
        /// Id that the completion has. A process can use it for another request after the
        /// completion.
        request: u64,
    },
    /// A posted receive is found complete. Waits for the send. Without a post in the trace, it
    /// counts as posted here.
    CompleteReceive {
        /// Sender.
        from: LocationId,
        /// Communicator of the message.
        communicator: CommunicatorId,
        /// Tag of the message.
        tag: i32,
        /// Id that the post has.
        request: u64,
    },
    /// A posted receive ends without a message.
    CancelReceive {
        /// Id that the post has.
        request: u64,
    },
    /// A collective operation is entered. `MPI_Init` and `MPI_Finalize` count as barriers of all
    /// ranks.
    Enter {
        /// Communicator of the operation.
        communicator: CommunicatorId,
    },
    /// A collective operation is left: the first one that this location entered in the communicator
    /// and has not left, apart from those that were [started](Self::Start).
    Exit {
        /// Communicator of the operation.
        communicator: CommunicatorId,
        /// Kind of operation.
        kind: CollectiveKind,
        /// Rank of the root in the communicator, if the operation has one.
        root: u32,
        /// True if this member contributed data.
        sent: bool,
        /// True if this member received data.
        received: bool,
    },
    /// A non-blocking collective operation is started. Other members wait for it as for an
    /// [`Enter`](Self::Enter). Blocking and non-blocking operations of a communicator are in one
    /// order.
    Start {
        /// Communicator of the operation.
        communicator: CommunicatorId,
        /// Id that the completion has. A member can use it for another operation after the
        /// completion.
        request: u64,
    },
    /// A non-blocking collective operation is found complete. Waits like an [`Exit`](Self::Exit);
    /// completions can have any order.
    Complete {
        /// Communicator of the operation.
        communicator: CommunicatorId,
        /// Kind of operation.
        kind: CollectiveKind,
        /// Rank of the root in the communicator, if the operation has one.
        root: u32,
        /// True if this member contributed data.
        sent: bool,
        /// True if this member received data.
        received: bool,
        /// Id that the start has.
        request: u64,
    },
    /// Something that one event of the process waits for: a thread is created or ends, a lock is
    /// released, work is given to a device. Counts as a message inside the process.
    Signal {
        /// Id that the wait has. A process can use it again after the wait.
        id: u64,
    },
    /// The end of a wait for a signal of the process: a thread begins or is joined, the lock is
    /// acquired, the work is begun. Without a signal in the trace, it waits for nothing.
    Wait {
        /// Id that the signal has.
        id: u64,
    },
    /// Threads are started, always by the same member of the team.
    Fork {
        /// Team of the new threads and of the one that starts them.
        team: CommunicatorId,
    },
    /// A thread begins, which waited for the fork of its team.
    Begin {
        /// Team of the thread.
        team: CommunicatorId,
    },
    /// A thread ends; the join of its team waits for it.
    End {
        /// Team of the thread.
        team: CommunicatorId,
    },
    /// All threads have ended; an event of the thread that started them.
    Join {
        /// Team of the threads and of the one that started them.
        team: CommunicatorId,
    },
}

/// Kind of a collective operation; variants with different amounts of data per member
/// (`MPI_Gatherv`) count as the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// `MPI_Barrier`, or a barrier of threads: no data, and every member waits for all.
    Barrier,
    /// `MPI_Bcast`.
    Broadcast,
    /// `MPI_Scatter`.
    Scatter,
    /// `MPI_Gather`.
    Gather,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Allgather`.
    Allgather,
    /// `MPI_Alltoall`.
    Alltoall,
    /// `MPI_Alltoallv` and `MPI_Alltoallw`. A trace has only the totals of each member: a member
    /// that sent data and one that received data may not have communicated. See
    /// [`Matching::skip_alltoallv`](super::Matching::skip_alltoallv).
    Alltoallv,
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Exscan`.
    Exscan,
    /// Fork of a team of threads by the root: [`Action::Fork`] and [`Action::Begin`].
    Fork,
    /// Join of a team of threads by the root: [`Action::End`] and [`Action::Join`].
    Join,
}

/// Dependences of exits on enters in a collective operation. A member's own enter is not counted as
/// a dependence of its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// All exits depend on the root's enter.
    FromRoot,
    /// The root's exit depends on all enters.
    ToRoot,
    /// All exits depend on all enters.
    AllToAll,
    /// The exit of a member depends on the enters of all members with lower ranks. A scan also
    /// depends on its own enter, which is not counted, so it equals an exscan.
    ToLater,
}

impl CollectiveKind {
    /// Operations of MPI: all but forks and joins, which have their own events.
    pub const MPI_KINDS: [Self; 12] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Scatter,
        Self::Gather,
        Self::Reduce,
        Self::Allreduce,
        Self::Allgather,
        Self::Alltoall,
        Self::Alltoallv,
        Self::ReduceScatter,
        Self::Scan,
        Self::Exscan,
    ];

    /// Returns the kind with this number.
    pub(super) fn from_number(number: u64) -> Option<Self> {
        const FORK: u64 = CollectiveKind::Fork as u64;
        const JOIN: u64 = CollectiveKind::Join as u64;
        match number {
            FORK => Some(Self::Fork),
            JOIN => Some(Self::Join),
            // They are in the order of their numbers.
            _ => Self::MPI_KINDS.get(usize::try_from(number).ok()?).copied(),
        }
    }

    /// Returns the dependences of exits on enters.
    pub const fn pattern(self) -> Pattern {
        match self {
            Self::Broadcast | Self::Scatter | Self::Fork => Pattern::FromRoot,
            Self::Gather | Self::Reduce | Self::Join => Pattern::ToRoot,
            Self::Scan | Self::Exscan => Pattern::ToLater,
            Self::Barrier
            | Self::Allreduce
            | Self::Allgather
            | Self::Alltoall
            | Self::Alltoallv
            | Self::ReduceScatter => Pattern::AllToAll,
        }
    }

    /// Returns true if the operation has a root, on which all members must agree.
    pub const fn has_root(self) -> bool {
        matches!(self.pattern(), Pattern::FromRoot | Pattern::ToRoot)
    }
}
