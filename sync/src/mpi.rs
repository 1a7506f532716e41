//! Ranks that are processes of an MPI program.

mod context;
mod end;
mod error;

use core::cell::RefCell;
use core::ffi::c_int;
use core::future::{Future, ready};
use std::collections::VecDeque;

use context::Context;
pub use error::MpiError;
use mpi::ffi::MPI_Comm;
use mpi::traits::Communicator;

use crate::collective::broadcast;
use crate::comm::check_other;
use crate::payload::to_words;
use crate::{Comm, CommError, Payload, Words, block_on_ready};

/// One of several ranks that are processes of an MPI program.
///
/// It has a communicator of its own, so its messages and those of the program never meet, not even where the program
/// receives from anyone with any tag. What MPI reports is an error here, and ends no program.
///
/// ```no_run
/// use downbeat_sync::{Comm, MpiComm};
///
/// let universe = mpi::initialize().expect("MPI was not initialized before");
/// let comm = MpiComm::duplicate(&universe.world())?;
/// println!("rank {} of {}, on the node of rank {}", comm.rank(), comm.size(), comm.node()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A rank that is gone is not noticed: who waits for it does so until MPI ends the program.
///
/// The same holds for a rank that panics. What a rank sends to itself is kept here until it is received.
///
/// It stays on its thread, since MPI may be initialized for one thread only. When it is dropped, so is its
/// communicator, for which MPI may wait until all ranks drop theirs; after `MPI_Finalize` nothing happens.
///
/// ```compile_fail,E0277
/// fn take_elsewhere<T: Send>() {}
/// take_elsewhere::<downbeat_sync::MpiComm>();
/// ```
#[derive(Debug)]
pub struct MpiComm {
    context: Context,
    rank: u32,
    size: u32,
    /// Messages of this rank to itself: MPI may wait for their receiver.
    to_itself: RefCell<VecDeque<Message>>,
}

/// The words, and how many of them count.
type Message = (Words, usize);

/// Bytes of a message: MPI counts with a sign.
const LONGEST: usize = 1 << 30;

impl MpiComm {
    /// Joins the ranks of `comm`, which all call this, in a communicator of its own.
    ///
    /// # Errors
    /// When MPI is not running, when this thread may not use it, or when it fails; but what fails in the communication
    /// over `comm` itself is handled as `comm` says, and by default ends the program.
    pub fn duplicate(comm: &impl Communicator) -> Result<Self, MpiError> {
        context::check_usable()?;
        Self::new(Context::duplicate(comm)?)
    }

    /// As [`duplicate`](Self::duplicate), of a communicator that another language or library made.
    ///
    /// # Errors
    /// As [`duplicate`](Self::duplicate).
    ///
    /// # Safety
    /// If MPI is running, `comm` is a communicator of it.
    #[expect(
        unsafe_code,
        reason = "nobody can tell from a raw communicator whether it is one"
    )]
    pub unsafe fn duplicate_raw(comm: MPI_Comm) -> Result<Self, MpiError> {
        context::check_usable()?;
        // SAFETY: MPI is running, and so the caller vouches for the communicator.
        Self::new(unsafe { Context::duplicate_raw(comm) }?)
    }

    /// Its communicator, for calls of MPI that are not here. It returns its errors ([`MpiError::check`] tells them), and
    /// is freed with this one.
    ///
    /// # Errors
    /// When MPI is finalized, and nothing can be called any more.
    #[inline(always)]
    pub fn raw(&self) -> Result<MPI_Comm, MpiError> {
        self.context.raw()
    }

    fn new(context: Context) -> Result<Self, MpiError> {
        let (rank, size) = (context.rank()?, context.size()?);
        // Neither is negative.
        Ok(Self {
            context,
            rank: rank as u32,
            size: size as u32,
            to_itself: RefCell::default(),
        })
    }

    /// The lowest of the ranks that share memory with this one: equal on ranks of one node, and different on others, as
    /// [`RankPlacement::node`](crate::RankPlacement::node) wants it. All ranks must call it.
    ///
    /// # Errors
    /// When MPI fails.
    pub fn node(&self) -> Result<u32, CommError> {
        let neighbours = Self::new(self.context.split_by_node(self.rank as c_int)?)?;
        // Its ranks are in the order of those here.
        let lowest = block_on_ready(broadcast(&neighbours, u64::from(self.rank)))?;
        Ok(lowest as u32)
    }

    #[inline]
    fn check_rank(&self, rank: u32) -> Result<(), CommError> {
        if rank < self.size {
            Ok(())
        } else {
            Err(CommError::NoSuchRank {
                rank,
                size: self.size,
            })
        }
    }

    #[inline(always)]
    fn send_now<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.check_rank(to)?;
        let words = to_words(payload);
        if to == self.rank {
            self.keep(words, P::WORDS);
            return Ok(());
        }
        Ok(self.context.send(to as c_int, &words[..P::WORDS])?)
    }

    #[inline]
    fn send_sync_now<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.check_rank(to)?;
        if to == self.rank {
            return Err(CommError::WaitsForItself);
        }
        Ok(self
            .context
            .send_sync(to as c_int, &to_words(payload)[..P::WORDS])?)
    }

    #[inline(always)]
    fn recv_now<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        self.check_rank(from)?;
        let mut words = Words::default();
        let found = if from == self.rank {
            self.take_kept(&mut words)?
        } else {
            self.context.recv(from as c_int, &mut words)?
        };
        if found != P::WORDS {
            return Err(CommError::WrongLength {
                from,
                expected: P::WORDS,
                found,
            });
        }
        P::get(&words).ok_or(CommError::WrongType { from })
    }

    fn send_bytes_now(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        check_other(self, to)?;
        bytes
            .chunks(LONGEST)
            .try_for_each(|part| Ok(self.context.send_bytes(to as c_int, part)?))
    }

    fn recv_bytes_now(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        check_other(self, from)?;
        for part in bytes.chunks_mut(LONGEST) {
            let (expected, found) = (part.len(), self.context.recv_bytes(from as c_int, part)?);
            if found != expected {
                return Err(CommError::WrongLength {
                    from,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    #[cold]
    fn keep(&self, words: Words, length: usize) {
        self.to_itself.borrow_mut().push_back((words, length));
    }

    #[cold]
    fn take_kept(&self, words: &mut Words) -> Result<usize, CommError> {
        let (kept, length) = self
            .to_itself
            .borrow_mut()
            .pop_front()
            .ok_or(CommError::WaitsForItself)?;
        *words = kept;
        Ok(length)
    }

    fn split_now(&self, color: Option<u32>, key: u32) -> Result<Option<Self>, CommError> {
        let known = color
            .map(|color| c_int::try_from(color).map_err(|_| MpiError::ColorTooLarge(color)))
            .transpose();
        // A rank whose color MPI does not have takes part without one: the others wait for it.
        let group = self
            .context
            .split(known.unwrap_or_default(), in_order(key))?;
        known?;
        Ok(group.map(Self::new).transpose()?)
    }
}

/// MPI's keys have a sign: the order stays the same.
fn in_order(key: u32) -> c_int {
    (key ^ 1 << 31) as c_int
}

/// Everything is done when the future is made; to poll it only hands over the result.
impl Comm for MpiComm {
    #[inline]
    fn rank(&self) -> u32 {
        self.rank
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline(always)]
    fn send<P: Payload>(&self, to: u32, payload: P) -> impl Future<Output = Result<(), CommError>> {
        ready(self.send_now(to, payload))
    }

    #[inline]
    fn send_sync<P: Payload>(
        &self,
        to: u32,
        payload: P,
    ) -> impl Future<Output = Result<(), CommError>> {
        ready(self.send_sync_now(to, payload))
    }

    #[inline(always)]
    fn recv<P: Payload>(&self, from: u32) -> impl Future<Output = Result<P, CommError>> {
        ready(self.recv_now(from))
    }

    /// In one message.
    fn send_bytes(&self, to: u32, bytes: &[u8]) -> impl Future<Output = Result<(), CommError>> {
        ready(self.send_bytes_now(to, bytes))
    }

    fn recv_bytes(
        &self,
        from: u32,
        bytes: &mut [u8],
    ) -> impl Future<Output = Result<(), CommError>> {
        ready(self.recv_bytes_now(from, bytes))
    }

    fn split(
        &self,
        color: Option<u32>,
        key: u32,
    ) -> impl Future<Output = Result<Option<Self>, CommError>> {
        ready(self.split_now(color, key))
    }
}
