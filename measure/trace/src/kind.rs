//! What a location does, and which enters of a collective operation its exits wait for.

use super::{CommunicatorId, LocationId};

/// What an event is to other locations.
///
/// Communicators are teams of locations: those of MPI, and those of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing.
    Internal,
    /// A message sets out.
    Send {
        /// Who receives it.
        to: LocationId,
        /// In which communicator.
        communicator: CommunicatorId,
        /// Its tag.
        tag: i32,
    },
    /// A message is there: where a receive does not block, the event at which it was found complete.
    Receive {
        /// Who sent it.
        from: LocationId,
        /// In which communicator.
        communicator: CommunicatorId,
        /// Its tag.
        tag: i32,
    },
    /// A collective operation is entered. `MPI_Init` and `MPI_Finalize` are barriers of all.
    Enter {
        /// Of these members.
        communicator: CommunicatorId,
    },
    /// A collective operation is left: the first one that this location entered in the communicator and has not left.
    Exit {
        /// Of these members.
        communicator: CommunicatorId,
        /// Which operation it was.
        kind: CollectiveKind,
        /// The root's rank in the communicator, where the operation has one.
        root: u32,
        /// Whether this member gave data.
        sent: bool,
        /// Whether this member was given data.
        received: bool,
    },
    /// Threads are started, always by the same one of the team.
    Fork {
        /// All of them, and the one that starts them.
        team: CommunicatorId,
    },
    /// A thread begins, which waited for the fork of its team.
    Begin {
        /// Whose member it is.
        team: CommunicatorId,
    },
    /// A thread ends, for which the join of its team waits.
    End {
        /// Whose member it is.
        team: CommunicatorId,
    },
    /// All threads have ended, for the one who started them.
    Join {
        /// All of them, and the one that started them.
        team: CommunicatorId,
    },
}

/// A collective operation; one with different amounts of data for every member (`MPI_Gatherv`) counts as the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// `MPI_Barrier`, and a barrier of threads: nobody has data, and all count.
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
    /// `MPI_Alltoallv` and `MPI_Alltoallw`. A trace has only the totals of a member: who gave any data and who was given
    /// any may have had nothing to do with each other. See [`Matching::skip_alltoallv`](super::Matching::skip_alltoallv).
    Alltoallv,
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Exscan`.
    Exscan,
    /// The fork of a team of threads, which is the root's: [`Action::Fork`] and [`Action::Begin`].
    Fork,
    /// The join of a team of threads, which is the root's: [`Action::End`] and [`Action::Join`].
    Join,
}

/// Whose enter must come before whose exit. Never a member's own: that its exit comes later is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The root's enter before all exits.
    FromRoot,
    /// All enters before the root's exit.
    ToRoot,
    /// All enters before all exits.
    AllToAll,
    /// A member's enter before the exits of all members after it. A scan has its own enter beside that, which is no
    /// message: so it does not differ from an exscan.
    ToLater,
}

impl CollectiveKind {
    /// The operations of MPI: all but forks and joins, which have events of their own.
    pub const OF_MPI: [Self; 12] = [
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

    /// The kind of this number.
    pub(super) fn from_number(number: u64) -> Option<Self> {
        Self::OF_MPI
            .into_iter()
            .chain([Self::Fork, Self::Join])
            .find(|kind| *kind as u64 == number)
    }

    /// Whose enter must come before whose exit.
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

    /// Whether the operation has a root, so that all members must name the same.
    pub const fn has_root(self) -> bool {
        matches!(self.pattern(), Pattern::FromRoot | Pattern::ToRoot)
    }
}
