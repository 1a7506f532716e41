//! Kinds of collective operations, and the dependences inside them.

use super::named::named;

named! {
    /// Kind of a collective operation; variants with different amounts of data per member
    /// (`MPI_Gatherv`) count as the plain one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum CollectiveKind {
        /// `MPI_Barrier`, or a barrier of threads: no data, and every member waits for
        /// all.
        Barrier = "barrier",
        /// `MPI_Bcast`.
        Broadcast = "broadcast",
        /// `MPI_Scatter`.
        Scatter = "scatter",
        /// `MPI_Gather`.
        Gather = "gather",
        /// `MPI_Reduce`.
        Reduce = "reduce",
        /// `MPI_Allreduce`.
        Allreduce = "allreduce",
        /// `MPI_Allgather`.
        Allgather = "allgather",
        /// `MPI_Alltoall`.
        Alltoall = "alltoall",
        /// `MPI_Alltoallv` and `MPI_Alltoallw`. A trace has only the totals of each
        /// member: a member that sent data and one that received data may not have
        /// communicated. See
        /// [`Matching::skip_alltoallv`](super::Matching::skip_alltoallv).
        Alltoallv = "alltoallv",
        /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
        ReduceScatter = "reduce_scatter",
        /// `MPI_Scan`.
        Scan = "scan",
        /// `MPI_Exscan`.
        Exscan = "exscan",
        /// Fork of a team of threads by the root: [`Event::Fork`](super::Event::Fork) and
        /// [`Event::ThreadBegin`](super::Event::ThreadBegin).
        Fork = "fork",
        /// Join of a team of threads by the root:
        /// [`Event::ThreadEnd`](super::Event::ThreadEnd) and
        /// [`Event::Join`](super::Event::Join).
        Join = "join",
    }

    /// Returns the name in text traces.
    fn name
}

/// Dependences of exits on enters in a collective operation. A member's own enter is not counted as
/// a dependence of its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependencePattern {
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
    pub const MPI_KINDS: [Self; 12] = {
        let [of_mpi @ .., _fork, _join] = Self::ALL;
        of_mpi
    };

    /// Returns true for operations of MPI, which are all but forks and joins.
    pub(crate) const fn is_of_mpi(self) -> bool {
        !matches!(self, Self::Fork | Self::Join)
    }

    /// Returns the dependences of exits on enters.
    pub const fn pattern(self) -> DependencePattern {
        match self {
            Self::Broadcast | Self::Scatter | Self::Fork => DependencePattern::FromRoot,
            Self::Gather | Self::Reduce | Self::Join => DependencePattern::ToRoot,
            Self::Scan | Self::Exscan => DependencePattern::ToLater,
            Self::Barrier
            | Self::Allreduce
            | Self::Allgather
            | Self::Alltoall
            | Self::Alltoallv
            | Self::ReduceScatter => DependencePattern::AllToAll,
        }
    }

    /// Returns two flags for the member of this rank: logical sender, and logical
    /// receiver.
    pub(super) const fn roles(self, root: u32, rank: u32) -> [bool; 2] {
        let is_root = rank == root;
        match self.pattern() {
            DependencePattern::FromRoot => [is_root, !is_root],
            DependencePattern::ToRoot => [!is_root, is_root],
            DependencePattern::AllToAll | DependencePattern::ToLater => [true; 2],
        }
    }

    /// Returns true if the operation has a root, on which all members must agree.
    pub const fn has_root(self) -> bool {
        matches!(
            self.pattern(),
            DependencePattern::FromRoot | DependencePattern::ToRoot
        )
    }
}

/// Names of the data of a member of a collective operation.
pub(crate) const DATA_NAMES: [&str; 4] = ["none", "sent", "received", "both"];

/// Returns the index of the data of a member in [`DATA_NAMES`].
pub(crate) const fn data_index(sent: bool, received: bool) -> usize {
    sent as usize + 2 * received as usize
}
