//! Failures of the operations of an MPI library.

use core::fmt;

use downbeat_sync::CommError;

use super::datatype::{Datatype, Reduction};
use super::kind::OperationKind;
use super::message_layout::MessageLayout;
use super::plug_in::PlugInError;
use crate::aligned::BufferError;

/// An operation that cannot be prepared, or whose result is not known to be right. All ranks learn of the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationError {
    /// MPI does not define the reduction for the datatype.
    Reduction {
        /// Datatype of the elements.
        datatype: Datatype,
        /// Reduction that was asked for.
        reduction: Reduction,
    },
    /// The size of the message is not a multiple of the size of an element.
    PartialElement {
        /// Size of the message in bytes.
        bytes: u64,
        /// Datatype of the elements.
        datatype: Datatype,
    },
    /// The operation has no message, and a size was given.
    NoMessage {
        /// The operation.
        kind: OperationKind,
        /// Size that was asked for.
        bytes: u64,
    },
    /// The message does not consist of whole blocks of its layout.
    PartialBlock {
        /// Number of elements.
        elements: u64,
        /// Layout of the message.
        layout: MessageLayout,
    },
    /// The message cannot be divided into equal parts.
    PartialPartition {
        /// Number of elements.
        elements: u64,
        /// Number of parts.
        partitions: u32,
    },
    /// MPI was not initialized for calls of several threads at once.
    NoThreads,
    /// The threads that call the operation cannot be started.
    Threads(String),
    /// The operation takes no derived datatypes.
    NotDerived(OperationKind),
    /// The message of the operation is one element.
    SingleElement {
        /// The operation.
        kind: OperationKind,
        /// Size that was asked for.
        bytes: u64,
        /// Datatype of the element.
        datatype: Datatype,
    },
    /// MPI compares no elements of the datatype.
    NotComparable {
        /// The operation.
        kind: OperationKind,
        /// Datatype of the element.
        datatype: Datatype,
    },
    /// Memory of a plug-in cannot be that of a window which MPI allocates.
    HookedWindow,
    /// The operation does not support `MPI_IN_PLACE`.
    NotInPlace(OperationKind),
    /// The root is not one of the ranks.
    Root {
        /// Rank that was given as the root.
        root: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// The operation needs more ranks.
    TooFewRanks {
        /// The operation.
        kind: OperationKind,
        /// Number of ranks.
        ranks: u32,
    },
    /// The number of elements does not fit into an `int`, by which MPI counts them.
    TooMany {
        /// Number of elements.
        elements: u64,
    },
    /// The MPI library lacks the operation.
    Missing {
        /// Kind of the operation.
        kind: OperationKind,
        /// Function that the library lacks.
        function: &'static str,
    },
    /// The message of a persistent or one-sided operation cannot be moved between calls.
    Moved(OperationKind),
    /// Blocks of a message begin at offsets that MPI cannot state.
    TooFar {
        /// Size of all blocks.
        bytes: u64,
    },
    /// The messages of a rank would exceed the memory limit.
    TooLarge {
        /// Size of the messages; `None` if it does not fit into 64 bits.
        bytes: Option<u64>,
        /// Memory limit.
        memory: u64,
    },
    /// The buffers or the cache state cannot be set up.
    Buffer(BufferError),
    /// Memory of a plug-in cannot be allocated or copied.
    Hook(PlugInError),
    /// Another rank cannot prepare the operation.
    Elsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// The ranks ask for different operations, sizes or settings.
    RanksDiffer,
    /// An element of this rank's result is wrong.
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
    GapOverwritten {
        /// This rank.
        rank: u32,
        /// Root of the call.
        root: u32,
        /// Index of the element before the gap.
        element: usize,
    },
    /// The operation wrote to the send buffer of this rank.
    Overwritten {
        /// This rank.
        rank: u32,
        /// Root of the call.
        root: u32,
        /// Index of the element.
        element: usize,
    },
    /// Another rank's result is wrong.
    WrongElsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// Communication failed, also that in which the ranks agree on the result.
    Comm(CommError),
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reduction {
                datatype,
                reduction,
            } => {
                let why = why_not(*datatype);
                write!(f, "MPI has no reduction {reduction} of {datatype}: {why}")
            }
            Self::PartialElement { bytes, datatype } => {
                let width = datatype.bytes();
                write!(
                    f,
                    "a message of {bytes} bytes is no multiple of {datatype}, which takes {width}"
                )
            }
            Self::NoMessage { kind, bytes } => {
                write!(f, "{kind} has no message: its size is 0, not {bytes} bytes")
            }
            Self::PartialBlock { elements, layout } => write!(
                f,
                "a message of {elements} elements has no whole blocks of {layout}"
            ),
            Self::PartialPartition {
                elements,
                partitions,
            } => write!(
                f,
                "a message of {elements} elements has no {partitions} equal partitions"
            ),
            Self::NoThreads => f.write_str(
                "MPI has no MPI_THREAD_MULTIPLE here, which several threads of a rank need",
            ),
            Self::Threads(why) => write!(f, "threads cannot be started: {why}"),
            Self::NotDerived(kind) => write!(
                f,
                "{kind} takes no derived datatypes: its messages are contiguous"
            ),
            Self::SingleElement {
                kind,
                bytes,
                datatype,
            } => {
                let width = datatype.bytes();
                write!(
                    f,
                    "{kind} has one element: with {datatype}, its size is {width}, not {bytes} bytes"
                )
            }
            Self::NotComparable { kind, datatype } => {
                write!(f, "{kind} takes integers and bytes, not {datatype}")
            }
            Self::HookedWindow => f.write_str(
                "a window that MPI allocates has no memory of a plug-in; its memory is for create",
            ),
            Self::NotInPlace(kind) => {
                let why = kind.why_not_in_place();
                write!(f, "{kind} cannot be done in place: {why}")
            }
            Self::Root { root, ranks } => write!(f, "there is no root {root} among {ranks} ranks"),
            Self::TooFewRanks { kind, ranks } => {
                let least = kind.min_ranks();
                write!(f, "{kind} takes {least} ranks or more, not {ranks}")
            }
            Self::TooMany { elements } => {
                let most = i32::MAX;
                write!(
                    f,
                    "{elements} elements are more than MPI can count, which is {most}"
                )
            }
            Self::Missing { kind, function } => {
                write!(f, "{kind}: this MPI library has no {function}")
            }
            Self::Moved(kind) => write!(
                f,
                "{kind} is made for one buffer, so that its messages cannot walk through memory; use cold-overwrite"
            ),
            Self::TooFar { bytes } => write!(
                f,
                "the blocks of a message begin up to {bytes} bytes from its begin, and MPI states offsets up to {}",
                i32::MAX
            ),
            Self::TooLarge {
                bytes: Some(bytes),
                memory,
            } => write!(
                f,
                "the messages of a rank would take {bytes} bytes, which exceeds the limit of {memory}"
            ),
            Self::TooLarge {
                bytes: None,
                memory,
            } => write!(
                f,
                "the messages of a rank would take 2^64 bytes or more, which exceeds the limit of {memory}"
            ),
            Self::Buffer(why) => why.fmt(f),
            Self::Hook(why) => why.fmt(f),
            Self::Elsewhere { rank } => write!(f, "rank {rank} cannot prepare the operation"),
            Self::RanksDiffer => f.write_str("the ranks ask for different operations"),
            Self::WrongElement {
                rank,
                root,
                element,
                expected,
                found,
            } => write!(
                f,
                "rank {rank} got {found} as element {element} where {expected} is right (root {root})"
            ),
            Self::GapOverwritten {
                rank,
                root,
                element,
            } => write!(
                f,
                "rank {rank} finds memory behind element {element} of its result overwritten (root {root})"
            ),
            Self::Overwritten {
                rank,
                root,
                element,
            } => write!(
                f,
                "rank {rank} finds element {element} of what it sent overwritten (root {root})"
            ),
            Self::WrongElsewhere { rank } => write!(f, "rank {rank} got a wrong result"),
            Self::Comm(why) => why.fmt(f),
        }
    }
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

impl core::error::Error for OperationError {}

impl From<CommError> for OperationError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

impl From<BufferError> for OperationError {
    fn from(why: BufferError) -> Self {
        Self::Buffer(why)
    }
}

impl From<PlugInError> for OperationError {
    fn from(why: PlugInError) -> Self {
        Self::Hook(why)
    }
}
