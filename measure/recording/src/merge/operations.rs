//! Collective operations of a member as events.
//!
//! One between two groups is two operations of all members in the trace: what the first group sends the other one, and the reverse. No
//! member waits for others of its own group. A member takes part in both at the same time, so they have requests of their own.

use downbeat_trace::CollectiveKind;
use downbeat_trace::formats::What;

use super::definitions::Communicator;
use crate::Operation;

/// Request of a blocking operation between two groups. The ids of requests begin with the number of a thread, which leaves the first bits.
const BLOCKING: u64 = 1 << 61;

fn requests(request: Option<u64>) -> [u64; 2] {
    let request = request.unwrap_or(BLOCKING);
    [request | 1 << 63, request | 1 << 62]
}

/// Returns the events of a member that begins a blocking operation, or starts the one with this request.
pub(super) fn starts(
    of: &Communicator,
    request: Option<u64>,
) -> impl Iterator<Item = What<'static>> + use<> {
    let communicator = of.index;
    let start = move |request| What::CollectiveStart {
        communicator,
        request,
    };
    let events = match (of.side, request) {
        (None, None) => [Some(What::Collective { communicator }), None],
        (None, Some(request)) => [Some(start(request)), None],
        (Some(_), request) => requests(request).map(|request| Some(start(request))),
    };
    events.into_iter().flatten()
}

/// Returns the events of a member that ends a blocking operation, or completes the one with this request.
pub(super) fn ends(
    of: &Communicator,
    operation: Operation,
    request: Option<u64>,
) -> impl Iterator<Item = What<'static>> + use<> {
    let events = match of.side {
        None => [Some(end(of, operation, request)), None],
        Some(side) => {
            let requests = requests(request);
            [0, 1].map(|sender| {
                let part = direction(operation, side, sender);
                Some(end(of, part, Some(requests[sender])))
            })
        }
    };
    events.into_iter().flatten()
}

/// Returns the part of an operation in which one group sends, for a member of the first or second group.
fn direction(operation: Operation, side: usize, sender: usize) -> Operation {
    let sends = side == sender;
    // The data of each member decide, in kinds without a root.
    let kind = match operation.kind {
        CollectiveKind::Allgather
        | CollectiveKind::Alltoall
        | CollectiveKind::Alltoallv
        | CollectiveKind::ReduceScatter => operation.kind,
        _ => CollectiveKind::Allreduce,
    };
    Operation {
        kind,
        root: 0,
        sent: operation.sent && sends,
        received: operation.received && !sends,
        bytes: operation.bytes.map(|bytes| if sends { bytes } else { 0 }),
        ..operation
    }
}

fn end(of: &Communicator, operation: Operation, request: Option<u64>) -> What<'static> {
    let communicator = of.index;
    let Operation {
        kind,
        root,
        sent,
        received,
        bytes,
        ..
    } = operation;
    match request {
        None => What::CollectiveEnd {
            communicator,
            kind,
            root,
            sent,
            received,
            bytes,
        },
        Some(request) => What::CollectiveComplete {
            communicator,
            kind,
            root,
            sent,
            received,
            request,
            bytes,
        },
    }
}
