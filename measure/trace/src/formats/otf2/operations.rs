//! Collective operations of archives.

use downbeat_otf2::{CollectiveOp, Event, RmaSyncLevel};

use super::exact::{ExactTrace, NO_ROOT};
use crate::CollectiveKind;

/// Kind of an event that is held back until a later event tells what it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    Collective,
    RmaCollective,
    /// Non-blocking collective operation, with its request.
    Request(u64),
    /// `MPI_Init` or `MPI_Finalize`, inside of which a collective operation may take precedence.
    Start(u32),
    Fork,
}

impl Begun {
    /// Returns the request of a non-blocking operation.
    pub(super) const fn request(self) -> Option<u64> {
        match self {
            Self::Request(request) => Some(request),
            _ => None,
        }
    }
}

/// Statement of a member about a collective operation that it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otf2Operation {
    pub(super) operation: CollectiveOp,
    pub(super) begun: Begun,
    /// Communicator, or window of an RMA operation.
    pub(super) communicator: u32,
    pub(super) root: u32,
    /// Number of bytes that the member contributed.
    pub(super) sent: u64,
    pub(super) received: bool,
}

impl Otf2Operation {
    /// Returns the operation that an event ends.
    #[inline]
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event {
            Event::MpiCollectiveEnd(end) => Self {
                operation: end.operation,
                begun: Begun::Collective,
                communicator: end.communicator.0,
                root: end.root,
                sent: end.size_sent,
                received: end.size_received > 0,
            },
            Event::NonBlockingCollectiveComplete(end) => Self {
                operation: end.operation,
                begun: Begun::Request(end.request),
                communicator: end.communicator.0,
                root: end.root,
                sent: end.size_sent,
                received: end.size_received > 0,
            },
            Event::RmaCollectiveEnd(end) => {
                let begun = Begun::RmaCollective;
                let (communicator, root) = (end.win.0, end.root);
                // Not all members of a barrier need to synchronize: the data of each member
                // of this operation decide.
                if end.operation == CollectiveOp::BARRIER {
                    let waits = end.sync_level.0 & RmaSyncLevel::PROCESS.0 != 0;
                    return Some(Self {
                        operation: CollectiveOp::ALLREDUCE,
                        begun,
                        communicator,
                        root,
                        sent: waits.into(),
                        received: waits,
                    });
                }
                Self {
                    operation: end.operation,
                    begun,
                    communicator,
                    root,
                    sent: end.bytes_sent,
                    received: end.bytes_received > 0,
                }
            }
            _ => return None,
        })
    }

    /// Returns the number of bytes that the member contributed to an operation of this kind.
    pub(super) fn bytes(self, exact: Option<ExactTrace>, kind: CollectiveKind) -> Option<u64> {
        let is_rma = self.begun == Begun::RmaCollective;
        let Some(exact) = exact else {
            return (!is_rma).then_some(self.sent);
        };
        // One byte only tells that the member has a part.
        let has_no_data = exact.is_unsized || is_rma || kind == CollectiveKind::Barrier;
        match self.sent {
            1 if has_no_data => exact.bytes_of(0),
            sent => exact.bytes_of(sent),
        }
    }

    /// Returns the root that an operation of this kind has.
    pub(super) const fn root(self, exact: Option<ExactTrace>, kind: CollectiveKind) -> u32 {
        match self.root {
            NO_ROOT if exact.is_some() && !kind.has_root() => 0,
            root => root,
        }
    }
}

/// Operations that synchronize; others create or free objects, and need not. The first one of each kind has
/// no variable lengths.
const OPERATIONS: [(CollectiveOp, CollectiveKind); 17] = [
    (CollectiveOp::BARRIER, CollectiveKind::Barrier),
    (CollectiveOp::BCAST, CollectiveKind::Broadcast),
    (CollectiveOp::GATHER, CollectiveKind::Gather),
    (CollectiveOp::GATHERV, CollectiveKind::Gather),
    (CollectiveOp::SCATTER, CollectiveKind::Scatter),
    (CollectiveOp::SCATTERV, CollectiveKind::Scatter),
    (CollectiveOp::ALLGATHER, CollectiveKind::Allgather),
    (CollectiveOp::ALLGATHERV, CollectiveKind::Allgather),
    (CollectiveOp::ALLTOALL, CollectiveKind::Alltoall),
    (CollectiveOp::ALLTOALLV, CollectiveKind::Alltoallv),
    (CollectiveOp::ALLTOALLW, CollectiveKind::Alltoallv),
    (CollectiveOp::ALLREDUCE, CollectiveKind::Allreduce),
    (CollectiveOp::REDUCE, CollectiveKind::Reduce),
    (CollectiveOp::REDUCE_SCATTER, CollectiveKind::ReduceScatter),
    (
        CollectiveOp::REDUCE_SCATTER_BLOCK,
        CollectiveKind::ReduceScatter,
    ),
    (CollectiveOp::SCAN, CollectiveKind::Scan),
    (CollectiveOp::EXSCAN, CollectiveKind::Exscan),
];

/// Returns an operation of this kind.
pub(super) fn operation_of(kind: CollectiveKind) -> CollectiveOp {
    let found = OPERATIONS.iter().find(|(_, of)| *of == kind);
    // All kinds of MPI have one.
    found.map_or(CollectiveOp::BARRIER, |(operation, _)| *operation)
}

/// Returns the kind of an operation; `None` if it need not synchronize.
pub(super) fn kind_of(operation: CollectiveOp) -> Option<CollectiveKind> {
    let found = OPERATIONS.iter().find(|(of, _)| *of == operation);
    found.map(|(_, kind)| *kind)
}
