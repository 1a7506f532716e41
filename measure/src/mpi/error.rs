//! Why there is no such operation.

use core::fmt;

use downbeat_sync::CommError;

use super::{Datatype, OperationKind, Reduction};
use crate::CacheError;

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What it should be the name of.
    pub what: &'static str,
    /// The text.
    pub name: String,
    /// What there is.
    pub known: String,
}

impl UnknownName {
    /// The one of that name.
    pub(super) fn look_up<T: Copy>(
        what: &'static str,
        name: &str,
        all: impl IntoIterator<Item = T>,
        name_of: fn(T) -> &'static str,
    ) -> Result<T, Self> {
        let all: Vec<T> = all.into_iter().collect();
        all.iter()
            .copied()
            .find(|one| name_of(*one) == name)
            .ok_or_else(|| {
                let known: Vec<_> = all.iter().map(|one| name_of(*one)).collect();
                Self {
                    what,
                    name: name.to_owned(),
                    known: known.join(", "),
                }
            })
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, known } = self;
        write!(f, "there is no {what} \"{name}\"; there are {known}")
    }
}

impl core::error::Error for UnknownName {}

/// Why an operation cannot be prepared. All ranks hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationError {
    /// MPI does not combine this datatype so.
    Reduction {
        /// What is to be combined.
        datatype: Datatype,
        /// How.
        reduction: Reduction,
    },
    /// A message consists of whole elements.
    PartialElement {
        /// The size of the message.
        bytes: u64,
        /// What it is to be made of.
        datatype: Datatype,
    },
    /// The operation has no message.
    NoMessage {
        /// Which.
        kind: OperationKind,
        /// The size that was asked for.
        bytes: u64,
    },
    /// The operation has no `MPI_IN_PLACE`.
    NotInPlace(OperationKind),
    /// There is no such rank.
    Root {
        /// The one that should be the root.
        root: u32,
        /// How many there are.
        ranks: u32,
    },
    /// It takes more ranks.
    TooFewRanks {
        /// Which operation.
        kind: OperationKind,
        /// How many there are.
        ranks: u32,
    },
    /// MPI counts elements by `int`.
    TooMany {
        /// How many there would be.
        elements: u64,
    },
    /// The messages of a rank would take more than they may.
    TooLarge {
        /// What they would take; `None` if no number says it.
        bytes: Option<u64>,
        /// What they may.
        memory: u64,
    },
    /// There is not so much memory, or no cache to make cold.
    Cache(CacheError),
    /// This rank could do it, but another cannot.
    Elsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// The ranks ask for different operations, sizes or settings.
    RanksDiffer,
    /// The ranks could not agree on it.
    NotAgreed(CommError),
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reduction {
                datatype,
                reduction,
            } => {
                write!(
                    f,
                    "MPI has no reduction {reduction} of {datatype}: {}",
                    why_not(*datatype)
                )
            }
            Self::PartialElement { bytes, datatype } => {
                write!(
                    f,
                    "a message of {bytes} bytes is no multiple of {datatype}, which takes {}",
                    datatype.bytes()
                )
            }
            Self::NoMessage { kind, bytes } => {
                write!(f, "{kind} has no message: its size is 0, not {bytes} bytes")
            }
            Self::NotInPlace(kind) => write!(
                f,
                "{kind} cannot be done in place: {}",
                kind.why_not_in_place()
            ),
            Self::Root { root, ranks } => write!(f, "there is no root {root} among {ranks} ranks"),
            Self::TooFewRanks { kind, ranks } => {
                write!(
                    f,
                    "{kind} takes {} ranks or more, not {ranks}",
                    kind.least_ranks()
                )
            }
            Self::TooMany { elements } => {
                write!(
                    f,
                    "{elements} elements are more than MPI counts, which is {}",
                    i32::MAX
                )
            }
            Self::TooLarge {
                bytes: Some(bytes),
                memory,
            } => {
                write!(
                    f,
                    "the messages of a rank would take {bytes} bytes, more than the {memory} that they may"
                )
            }
            Self::TooLarge {
                bytes: None,
                memory,
            } => {
                write!(
                    f,
                    "the messages of a rank would take 2^64 bytes or more, and may take {memory}"
                )
            }
            Self::Cache(why) => why.fmt(f),
            Self::Elsewhere { rank } => write!(f, "rank {rank} cannot prepare the operation"),
            Self::RanksDiffer => f.write_str("the ranks ask for different operations"),
            Self::NotAgreed(why) => why.fmt(f),
        }
    }
}

fn why_not(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::Byte => "bytes are no numbers, and have only bits",
        Datatype::Float | Datatype::Double => "floating-point numbers have no bits and no truth",
        // These have all.
        _ => "it has none",
    }
}

impl core::error::Error for OperationError {}

impl From<CommError> for OperationError {
    fn from(why: CommError) -> Self {
        Self::NotAgreed(why)
    }
}
