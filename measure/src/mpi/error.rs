//! Failures of the operations of an MPI library.

use downbeat_sync::CommError;
use thiserror::Error;

use super::datatype::{Datatype, Reduction};
use super::kind::OperationKind;
use super::message_layout::MessageLayout;
use super::plug_in::PlugInError;
use crate::aligned::BufferError;

/// An operation that cannot be prepared, or whose result is not known to be right. All ranks learn of the failure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OperationError {
    /// MPI does not define the reduction for the datatype.
    #[error("MPI has no reduction {reduction} of {datatype}: {}", why_not(*datatype))]
    Reduction {
        /// Datatype of the elements.
        datatype: Datatype,
        /// Reduction that was asked for.
        reduction: Reduction,
    },
    /// The size of the message is not a multiple of the size of an element.
    #[error("a message of {bytes} bytes is no multiple of {datatype}, which takes {}", datatype.bytes())]
    PartialElement {
        /// Size of the message in bytes.
        bytes: u64,
        /// Datatype of the elements.
        datatype: Datatype,
    },
    /// The operation has no message, and a size was given.
    #[error("{kind} has no message: its size is 0, not {bytes} bytes")]
    NoMessage {
        /// The operation.
        kind: OperationKind,
        /// Size that was asked for.
        bytes: u64,
    },
    /// The message does not consist of whole blocks of its layout.
    #[error("a message of {elements} elements has no whole blocks of {layout}")]
    PartialBlock {
        /// Number of elements.
        elements: u64,
        /// Layout of the message.
        layout: MessageLayout,
    },
    /// The message cannot be divided into equal parts.
    #[error("a message of {elements} elements has no {partitions} equal partitions")]
    PartialPartition {
        /// Number of elements.
        elements: u64,
        /// Number of parts.
        partitions: u32,
    },
    /// MPI was not initialized for calls of several threads at once.
    #[error("MPI has no MPI_THREAD_MULTIPLE here, which several threads of a rank need")]
    NoThreads,
    /// The threads that call the operation cannot be started.
    #[error("threads cannot be started: {0}")]
    Threads(String),
    /// The operation takes no derived datatypes.
    #[error("{0} takes no derived datatypes: its messages are contiguous")]
    NotDerived(OperationKind),
    /// The message of the operation is one element.
    #[error(
        "{kind} has one element: with {datatype}, its size is {}, not {bytes} bytes",
        datatype.bytes()
    )]
    SingleElement {
        /// The operation.
        kind: OperationKind,
        /// Size that was asked for.
        bytes: u64,
        /// Datatype of the element.
        datatype: Datatype,
    },
    /// MPI compares no elements of the datatype.
    #[error("{kind} takes integers and bytes, not {datatype}")]
    NotComparable {
        /// The operation.
        kind: OperationKind,
        /// Datatype of the element.
        datatype: Datatype,
    },
    /// Memory of a plug-in cannot be that of a window which MPI allocates.
    #[error("a window that MPI allocates has no memory of a plug-in; its memory is for create")]
    HookedWindow,
    /// The operation does not support `MPI_IN_PLACE`.
    #[error("{0} cannot be done in place: {why}", why = .0.why_not_in_place())]
    NotInPlace(OperationKind),
    /// The root is not one of the ranks.
    #[error("there is no root {root} among {ranks} ranks")]
    Root {
        /// Rank that was given as the root.
        root: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// The operation needs more ranks.
    #[error("{kind} takes {} ranks or more, not {ranks}", kind.min_ranks())]
    TooFewRanks {
        /// The operation.
        kind: OperationKind,
        /// Number of ranks.
        ranks: u32,
    },
    /// The number of elements does not fit into an `int`, by which MPI counts them.
    #[error(
        "{elements} elements are more than MPI can count, which is {}",
        i32::MAX
    )]
    TooMany {
        /// Number of elements.
        elements: u64,
    },
    /// The MPI library lacks the operation.
    #[error("{kind}: this MPI library has no {function}")]
    Missing {
        /// Kind of the operation.
        kind: OperationKind,
        /// Function that the library lacks.
        function: &'static str,
    },
    /// The message of a persistent or one-sided operation cannot be moved between calls.
    #[error(
        "{0} is made for one buffer, so that its messages cannot walk through memory; \
         use cold-overwrite"
    )]
    Moved(OperationKind),
    /// Blocks of a message begin at offsets that MPI cannot state.
    #[error(
        "the blocks of a message begin up to {bytes} bytes from its begin, and MPI states offsets \
         up to {}",
        i32::MAX
    )]
    TooFar {
        /// Size of all blocks.
        bytes: u64,
    },
    /// The messages of a rank would exceed the memory limit.
    #[error(
        "the messages of a rank would take {}, which exceeds the limit of {memory}",
        bytes.map_or("2^64 bytes or more".to_owned(), |bytes| format!("{bytes} bytes"))
    )]
    TooLarge {
        /// Size of the messages; `None` if it does not fit into 64 bits.
        bytes: Option<u64>,
        /// Memory limit.
        memory: u64,
    },
    /// The buffers or the cache state cannot be set up.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Memory of a plug-in cannot be allocated or copied.
    #[error(transparent)]
    Hook(#[from] PlugInError),
    /// Another rank cannot prepare the operation.
    #[error("rank {rank} cannot prepare the operation")]
    Elsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// The ranks ask for different operations, sizes or settings.
    #[error("the ranks ask for different operations")]
    RanksDiffer,
    /// An element of this rank's result is wrong.
    #[error("rank {rank} got {found} as element {element} where {expected} is right (root {root})")]
    WrongElement {
        /// This rank.
        rank: u32,
        /// Root of the call.
        root: u32,
        /// Index of the element.
        element: usize,
        /// Expected value, as a number if the datatype is numeric.
        expected: String,
        /// Value found.
        found: String,
    },
    /// The operation wrote between the elements of this rank's result.
    #[error(
        "rank {rank} finds memory behind element {element} of its result overwritten (root {root})"
    )]
    GapOverwritten {
        /// This rank.
        rank: u32,
        /// Root of the call.
        root: u32,
        /// Index of the element before the gap.
        element: usize,
    },
    /// The operation wrote to the send buffer of this rank.
    #[error("rank {rank} finds element {element} of what it sent overwritten (root {root})")]
    Overwritten {
        /// This rank.
        rank: u32,
        /// Root of the call.
        root: u32,
        /// Index of the element.
        element: usize,
    },
    /// Another rank's result is wrong.
    #[error("rank {rank} got a wrong result")]
    WrongElsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// Communication failed, also that in which the ranks agree on the result.
    #[error(transparent)]
    Comm(#[from] CommError),
}

/// Reason why a datatype lacks a reduction.
fn why_not(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::Byte => "bytes are no numbers, and have only bits",
        Datatype::Float | Datatype::Double => {
            "floating-point numbers have no bitwise and no logical reductions"
        }
        // Integers have all reductions.
        _ => "it is not defined",
    }
}
