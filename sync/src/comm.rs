//! How ranks talk to one another.

use core::fmt;

use crate::Payload;
use crate::payload::{MAX_BYTES, bytes_of, words_of};

/// One rank's place among `size` ranks that send each other small messages.
///
/// The functions are `async` so that a simulator can suspend a rank in the middle of an algorithm. The real backends
/// never suspend: they have done their work when they return the future, and [`block_on_ready`](crate::block_on_ready)
/// unwraps it.
///
/// What holds for every backend:
/// - Messages from one rank to another arrive in the order in which they were sent. There are no tags: the receiver
///   must know from whom it wants what.
/// - The first send to a rank does not wait for the receiver. A second one may, until the first was received: an
///   algorithm must be right either way.
/// - A rank can send to itself.
/// - Nobody waits for a rank that is gone: who would, gets an error. Over MPI, only as far as MPI notices.
#[expect(
    async_fn_in_trait,
    reason = "a rank stays on its thread, or on the simulator's one: no Send bound is wanted"
)]
pub trait Comm: Sized {
    /// Which of the ranks this is, from 0.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Sends a message.
    ///
    /// # Errors
    /// When there is no such rank, or it is gone.
    async fn send<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError>;

    /// Sends a message and waits until it was received.
    ///
    /// # Errors
    /// When there is no such rank, or it is gone and did not receive the message, or it is this rank.
    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError>;

    /// Waits for the next message of a rank.
    ///
    /// # Errors
    /// When there is no such rank, when it is gone and all its messages were received, or when it sent something else,
    /// which is lost then.
    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError>;

    /// Sends more than a message holds, to a rank that knows how much: it calls [`recv_bytes`](Self::recv_bytes) for as
    /// many bytes. May wait until it does. No bytes are no message.
    ///
    /// As provided, they go in as many messages as they need. A backend that has longer ones says so.
    ///
    /// # Errors
    /// When there is no such rank, or it is gone, or it is this rank.
    async fn send_bytes(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        check_other(self, to)?;
        for part in bytes.chunks(MAX_BYTES) {
            self.send(to, words_of(part)).await?;
        }
        Ok(())
    }

    /// Waits for the bytes that a rank sends by [`send_bytes`](Self::send_bytes), as many as there is room for.
    ///
    /// # Errors
    /// When there is no such rank, or it is this rank, or it is gone and all its messages were received; and when it sent
    /// something else, as far as that can be told from its length. What is in `bytes` then, is not said.
    async fn recv_bytes(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        check_other(self, from)?;
        for part in bytes.chunks_mut(MAX_BYTES) {
            let words = self.recv(from).await?;
            part.copy_from_slice(&bytes_of(&words)[..part.len()]);
        }
        Ok(())
    }

    /// Parts the ranks into groups: those of one `color` come together, in the order of their keys and, where these
    /// are equal, of their ranks. Who has no color gets `None`. All ranks must call it.
    ///
    /// # Errors
    /// When a rank is gone, or when the backend has no such color: over MPI they end at 2^31 - 1.
    async fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Self>, CommError>;
}

/// That there is this rank, and that it is another.
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

/// Why a message did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommError {
    /// There are not so many ranks.
    NoSuchRank {
        /// The one that was named.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// The rank has left: it returned, or dropped its communicator.
    Left {
        /// Which.
        rank: u32,
    },
    /// A rank panicked: perhaps another than the one that was waited for, but that one may be waiting for it.
    Panicked {
        /// Which.
        rank: u32,
    },
    /// The rank waits for what only it can do: for a message from itself that it did not send, or for room for a
    /// second one.
    WaitsForItself,
    /// The message has another length than what was to be received.
    WrongLength {
        /// Who sent it.
        from: u32,
        /// Words that were to be received, or bytes where it was to be bytes.
        expected: usize,
        /// As many came.
        found: usize,
    },
    /// The message has the right length, but is no value of the type that was to be received.
    WrongType {
        /// Who sent it.
        from: u32,
    },
    /// A call that must not suspend was made on a backend that does.
    NotReady,
    /// MPI did not do it.
    #[cfg(feature = "mpi")]
    Mpi(crate::MpiError),
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => write!(f, "there is no rank {rank} among {size}"),
            Self::Left { rank } => write!(f, "rank {rank} has left"),
            Self::Panicked { rank } => write!(f, "rank {rank} panicked"),
            Self::WaitsForItself => f.write_str("the rank would wait for itself for ever"),
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
            Self::WrongType { from } => write!(f, "rank {from} sent something else than expected"),
            Self::NotReady => {
                f.write_str("a blocking call was made on a backend that suspends its ranks")
            }
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
