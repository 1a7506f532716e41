//! Communication between ranks.

use core::fmt;
use std::rc::Rc;

use crate::payload::Payload;
use crate::payload::{MAX_BYTES, bytes_of, words_of};

/// Communicator of one rank among `size` ranks that send each other small messages.
///
/// The functions are `async` so that a simulator can suspend a rank in the middle of an algorithm.
/// The real backends never suspend: they have done their work when they return the future, and
/// [`block_on_ready`](crate::block_on_ready) unwraps it.
///
/// Every backend guarantees:
/// - Messages from one rank to another arrive in the order in which they were sent. There are no
///   tags: the receiver must know which message it expects from which rank.
/// - The first send to a rank does not wait for the receiver. A second one may wait until the first
///   was received: an algorithm must be correct either way.
/// - A rank can send to itself.
/// - Waiting for a rank that is gone ends with an error. Over MPI, only if MPI detects that.
#[expect(
    async_fn_in_trait,
    reason = "a rank stays on one thread: no Send bound is needed"
)]
pub trait Comm: Sized {
    /// Returns the index of this rank, from 0.
    fn rank(&self) -> u32;

    /// Returns the number of ranks.
    fn size(&self) -> u32;

    /// Sends a message.
    ///
    /// # Errors
    /// If the rank does not exist or is gone.
    async fn send<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError>;

    /// Sends a message, and waits until it was received.
    ///
    /// # Errors
    /// If the rank does not exist, is gone without having received the message, or is this rank.
    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError>;

    /// Waits for the next message of a rank.
    ///
    /// # Errors
    /// If the rank does not exist, if it is gone and all its messages were received, or if the
    /// message has another type, in which case it is lost.
    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError>;

    /// Sends any number of bytes to a rank that calls [`recv_bytes`](Self::recv_bytes) for the same
    /// number of bytes. May wait until it does. An empty slice sends nothing.
    ///
    /// The provided implementation sends as many messages as the bytes need; a backend that
    /// supports longer messages overrides it.
    ///
    /// # Errors
    /// If the rank does not exist, is gone or is this rank.
    async fn send_bytes(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        check_other(self, to)?;
        for part in bytes.chunks(MAX_BYTES) {
            self.send(to, words_of(part)).await?;
        }
        Ok(())
    }

    /// Receives `bytes.len()` bytes that a rank sends by [`send_bytes`](Self::send_bytes).
    ///
    /// # Errors
    /// If the rank does not exist, is this rank, or is gone and all its messages were received; and
    /// if it sent a message of another length. The content of `bytes` is then unspecified.
    async fn recv_bytes(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        check_other(self, from)?;
        for part in bytes.chunks_mut(MAX_BYTES) {
            let words = self.recv(from).await?;
            part.copy_from_slice(&bytes_of(&words)[..part.len()]);
        }
        Ok(())
    }

    /// Splits the ranks into groups: ranks of the same `color` form a group, ordered by their keys
    /// and, where these are equal, by their ranks. A rank without a color gets `None`. All ranks
    /// must call it.
    ///
    /// # Errors
    /// If a rank is gone, or if the backend does not support the color: over MPI the maximum is
    /// 2^31 - 1.
    async fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Self>, CommError>;

    /// Splits the ranks by their nodes; `node` is equal on ranks that share a node. All
    /// ranks must call it.
    ///
    /// A backend whose splits are slow overrides it, to keep the communicators.
    ///
    /// # Errors
    /// As [`split`](Self::split), and if the backend does not split its ranks.
    async fn by_node(&self, node: u32) -> Result<Rc<NodeComms<Self>>, CommError> {
        split_by_node(self, node).await.map(Rc::new)
    }
}

/// Communicators of the ranks of a node, and of the first ranks of all nodes.
#[derive(Debug)]
pub struct NodeComms<M> {
    /// Ranks of the node of this rank.
    pub node: M,
    /// First ranks of all nodes, if this is one of them.
    pub firsts: Option<M>,
}

pub(crate) async fn split_by_node<M: Comm>(comm: &M, node: u32) -> Result<NodeComms<M>, CommError> {
    let rank = comm.rank();
    let node = comm.split(Some(node), rank).await?;
    let node = node.ok_or(CommError::NoGroups)?;
    let first = (node.rank() == 0).then_some(0);
    let firsts = comm.split(first, rank).await?;
    Ok(NodeComms { node, firsts })
}

/// Checks that the rank exists and is another one.
pub(crate) fn check_other(comm: &impl Comm, rank: u32) -> Result<(), CommError> {
    let size = comm.size();
    if rank >= size {
        return Err(CommError::NoSuchRank { rank, size });
    }
    if rank == comm.rank() {
        Err(CommError::WaitsForItself)
    } else {
        Ok(())
    }
}

/// Error of sending or receiving a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommError {
    /// The rank does not exist.
    NoSuchRank {
        /// Rank that was given.
        rank: u32,
        /// Number of ranks.
        size: u32,
    },
    /// The rank has left: it returned, or dropped its communicator.
    Left {
        /// Rank that left.
        rank: u32,
    },
    /// A rank panicked. It may be another one than the rank that was waited for, which may wait for
    /// it.
    Panicked {
        /// Rank that panicked.
        rank: u32,
    },
    /// The rank would wait for itself: for a message from itself that it did not send, or for space
    /// for a second one.
    WaitsForItself,
    /// The message has another length than expected.
    WrongLength {
        /// Rank that sent the message.
        from: u32,
        /// Expected number of words, or of bytes in [`recv_bytes`](Comm::recv_bytes).
        expected: usize,
        /// Received number of words or bytes.
        found: usize,
    },
    /// The message has the expected length, but is not a value of the expected type.
    WrongType {
        /// Rank that sent the message.
        from: u32,
    },
    /// A blocking call was made on a backend that suspends its ranks.
    NotReady,
    /// The backend does not split its ranks into groups.
    NoGroups,
    /// MPI failed.
    #[cfg(feature = "mpi")]
    Mpi(crate::MpiError),
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => write!(f, "there is no rank {rank} among {size}"),
            Self::Left { rank } => write!(f, "rank {rank} has left"),
            Self::Panicked { rank } => write!(f, "rank {rank} panicked"),
            Self::WaitsForItself => f.write_str("the rank would wait for itself"),
            Self::WrongLength {
                from,
                expected,
                found,
            } => {
                write!(
                    f,
                    "rank {from} sent a message of length {found} where one of {expected} was expected"
                )
            }
            Self::WrongType { from } => write!(
                f,
                "rank {from} sent a message of another type than expected"
            ),
            Self::NotReady => {
                f.write_str("a blocking call was made on a backend that suspends its ranks")
            }
            Self::NoGroups => f.write_str("the backend does not split its ranks into groups"),
            #[cfg(feature = "mpi")]
            Self::Mpi(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for CommError {}

#[cfg(feature = "mpi")]
impl From<crate::MpiError> for CommError {
    fn from(why: crate::MpiError) -> Self {
        Self::Mpi(why)
    }
}
