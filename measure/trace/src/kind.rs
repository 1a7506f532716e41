//! Kinds of collective operations, and the dependences inside them.

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
    /// Fork of a team of threads by the root: [`Event::Fork`](super::Event::Fork) and
    /// [`Event::ThreadBegin`](super::Event::ThreadBegin).
    Fork,
    /// Join of a team of threads by the root: [`Event::ThreadEnd`](super::Event::ThreadEnd) and
    /// [`Event::Join`](super::Event::Join).
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

    /// Returns the name in text traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
            Self::Fork => "fork",
            Self::Join => "join",
        }
    }

    /// Returns true for operations of MPI, which are all but forks and joins.
    pub(crate) const fn is_of_mpi(self) -> bool {
        !matches!(self, Self::Fork | Self::Join)
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

/// Names of the data of a member of a collective operation.
pub(crate) const DATA_NAMES: [&str; 4] = ["none", "sent", "received", "both"];

/// Returns the index of the data of a member in [`DATA_NAMES`].
pub(crate) const fn data_index(sent: bool, received: bool) -> usize {
    sent as usize + 2 * received as usize
}
