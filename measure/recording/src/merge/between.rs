//! Collective operations between two groups.
//!
//! One is two operations of all members in the trace: what the first group sends the other one, and the reverse. No member waits for
//! others of its own group. A member takes part in both at the same time, so they have requests of their own.

use downbeat_trace::CollectiveKind;
use downbeat_trace::formats::What;

use crate::Operation;

/// Request of a blocking operation. The ids of requests begin with the number of a thread, which leaves the first bits.
const BLOCKING: u64 = 1 << 61;

fn requests(request: Option<u64>) -> [u64; 2] {
    let request = request.unwrap_or(BLOCKING);
    [request | 1 << 63, request | 1 << 62]
}

/// Returns the events of a member that starts an operation.
pub(super) fn starts(communicator: u32, request: Option<u64>) -> [What<'static>; 2] {
    requests(request).map(|request| What::CollectiveStart {
        communicator,
        request,
    })
}

/// Returns the events of a member of the first or second group that completes an operation.
pub(super) fn ends(
    communicator: u32,
    side: usize,
    operation: Operation,
    request: Option<u64>,
) -> [What<'static>; 2] {
    // The data of each member decide, in kinds without a root.
    let kind = match operation.kind {
        CollectiveKind::Allgather
        | CollectiveKind::Alltoall
        | CollectiveKind::Alltoallv
        | CollectiveKind::ReduceScatter => operation.kind,
        _ => CollectiveKind::Allreduce,
    };
    let requests = requests(request);
    [0, 1].map(|sender| What::CollectiveComplete {
        communicator,
        kind,
        root: 0,
        sent: operation.sent && side == sender,
        received: operation.received && side != sender,
        request: requests[sender],
        bytes: operation
            .bytes
            .map(|bytes| if side == sender { bytes } else { 0 }),
    })
}
