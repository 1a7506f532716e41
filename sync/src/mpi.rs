//! Backend of ranks that are processes of an MPI program.

mod context;
mod end;
mod error;
mod launcher;
mod thread_claim;

use core::cell::RefCell;
use core::ffi::c_int;
use core::future::{Future, ready};
use std::collections::VecDeque;
use std::rc::Rc;

use context::Context;
pub use error::MpiError;
use mpi::ffi::MPI_Comm;
use mpi::traits::Communicator;

use crate::collective::{all_true, broadcast, lowest_rank_alike};
use crate::comm::{check_other, split_by_node};
use crate::payload::to_words;
use crate::payload::{Payload, Words};
use crate::{Comm, CommError, NodeComms, block_on_ready, node_identity};

/// Communicator of a rank that is a process of an MPI program.
///
/// It duplicates the communicator of the program, so its messages never mix with those of the
/// program, not even where the program receives from any rank with any tag. Failures of MPI are
/// returned as errors, and do not end the program.
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
/// If another library's launcher started the program, or `srun` without the interface of this library, each rank has a
/// `MPI_COMM_WORLD` of its own. That is refused, as the ranks would take themselves for the whole job; programs that are alone on
/// purpose use `MPI_COMM_SELF`.
///
/// A rank that is gone or panicked is not detected: others wait for it until MPI ends the program.
/// Messages of a rank to itself are kept here until they are received.
///
/// It stays on its thread, since MPI may be initialized for one thread only; with
/// `MPI_THREAD_SERIALIZED`, only one thread can have communicators at a time. When it is dropped, its
/// communicator is freed, for which MPI may wait until all ranks drop theirs; after `MPI_Finalize`
/// nothing is done.
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
    /// Messages of this rank to itself: over MPI, sending one could wait for its receiver.
    to_itself: RefCell<VecDeque<SelfMessage>>,
    /// The last communicators by nodes, with the node of this rank: a split takes longer
    /// than a synchronization may.
    by_node: RefCell<Option<(u32, Rc<NodeComms<Self>>)>>,
}

/// Words of a message and their number.
type SelfMessage = (Words, usize);

/// Maximum number of bytes of one message: MPI counts with a signed integer.
const MAX_CHUNK: usize = 1 << 30;

impl MpiComm {
    /// Joins the ranks of `comm`, which all call this, in a new communicator.
    ///
    /// # Errors
    /// If MPI is not running, if this thread may not use it, if it fails, or if the communicator is a
    /// world of one rank whose launcher started several. Failures of the
    /// communication over `comm` itself are handled by the error handler of `comm`, which by
    /// default ends the program.
    pub fn duplicate(comm: &impl Communicator) -> Result<Self, MpiError> {
        error::check_usable()?;
        Self::new(Context::duplicate(comm)?)
    }

    /// Same as [`duplicate`](Self::duplicate), of a communicator that another language or library
    /// created.
    ///
    /// # Errors
    /// Same as [`duplicate`](Self::duplicate).
    ///
    /// # Safety
    /// If MPI is running, `comm` must be a valid communicator.
    #[expect(
        unsafe_code,
        reason = "a raw communicator cannot be checked for validity"
    )]
    pub unsafe fn duplicate_raw(comm: MPI_Comm) -> Result<Self, MpiError> {
        error::check_usable()?;
        // SAFETY: MPI is running, so the caller guarantees a valid communicator.
        Self::new(unsafe { Context::duplicate_raw(comm) }?)
    }

    /// Returns the raw communicator, for other MPI calls. They return their errors, which
    /// [`MpiError::check`] converts; the communicator is freed with this one.
    ///
    /// # Errors
    /// If MPI is finalized.
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
            by_node: RefCell::default(),
        })
    }

    /// Returns the lowest of the ranks on the node of this one: equal on ranks of one
    /// node and different on others, as
    /// [`RankPlacement::node`](crate::RankPlacement::node) requires. All ranks must call
    /// it.
    ///
    /// A node is as [`node_identity`] says; where it does not tell, ranks of one node
    /// share memory.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn node(&self) -> Result<u32, CommError> {
        let identity = node_identity();
        block_on_ready(async {
            let is_told = all_true(self, identity.is_some()).await?;
            match identity.filter(|_| is_told) {
                Some(identity) => lowest_rank_alike(self, identity).await,
                None => broadcast(&self.sharing_memory()?, self.rank).await,
            }
        })
    }

    /// Returns a communicator of the ranks that share memory with this one, in their order. All ranks must call it.
    fn sharing_memory(&self) -> Result<Self, CommError> {
        let context = self.context.split_by_node(self.rank as c_int)?;
        Ok(Self::new(context)?)
    }

    /// Returns a communicator of the same ranks, in their order, with a distributed graph as its topology, in which this rank receives
    /// from `sources` and sends to `destinations` in neighborhood collectives. All ranks must call it, with lists that agree.
    ///
    /// # Errors
    /// If a neighbour does not exist, or MPI fails. The other ranks may be waiting then.
    pub fn with_neighbours(
        &self,
        sources: &[u32],
        destinations: &[u32],
    ) -> Result<Self, CommError> {
        for rank in sources.iter().chain(destinations) {
            self.check_rank(*rank)?;
        }
        let numbers = |ranks: &[u32]| ranks.iter().map(|rank| *rank as c_int).collect::<Vec<_>>();
        let (sources, destinations) = (numbers(sources), numbers(destinations));
        let context = self.context.with_neighbours(&sources, &destinations)?;
        Ok(Self::new(context)?)
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
            self.push_to_itself(words, P::WORDS);
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
            self.pop_to_itself(&mut words)?
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
            .chunks(MAX_CHUNK)
            .try_for_each(|part| Ok(self.context.send(to as c_int, part)?))
    }

    fn recv_bytes_now(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        check_other(self, from)?;
        for part in bytes.chunks_mut(MAX_CHUNK) {
            let (expected, found) = (part.len(), self.context.recv(from as c_int, part)?);
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
    fn push_to_itself(&self, words: Words, length: usize) {
        self.to_itself.borrow_mut().push_back((words, length));
    }

    #[cold]
    fn pop_to_itself(&self, words: &mut Words) -> Result<usize, CommError> {
        let (message, length) = self
            .to_itself
            .borrow_mut()
            .pop_front()
            .ok_or(CommError::WaitsForItself)?;
        *words = message;
        Ok(length)
    }

    fn split_now(&self, color: Option<u32>, key: u32) -> Result<Option<Self>, CommError> {
        let mpi_color = color
            .map(|color| c_int::try_from(color).map_err(|_| MpiError::ColorTooLarge(color)))
            .transpose();
        // A rank with a color that MPI does not support takes part without one: the others wait for
        // it.
        let group = self
            .context
            .split(mpi_color.unwrap_or_default(), ordered_key(key))?;
        mpi_color?;
        Ok(group.map(Self::new).transpose()?)
    }
}

impl MpiComm {
    /// Splits by nodes, unless all ranks have done so before.
    fn by_node_now(&self, node: u32) -> Result<Rc<NodeComms<Self>>, CommError> {
        let known = self.by_node.borrow().clone();
        let known = known.filter(|(of_node, _)| *of_node == node);
        let all_know = block_on_ready(all_true(self, known.is_some()))?;
        if let (Some((_, known)), true) = (known, all_know) {
            return Ok(known);
        }
        let comms = Rc::new(block_on_ready(split_by_node(self, node))?);
        *self.by_node.borrow_mut() = Some((node, Rc::clone(&comms)));
        Ok(comms)
    }
}

/// Converts a key to the signed one of MPI, in the same order.
fn ordered_key(key: u32) -> c_int {
    (key ^ 1 << 31) as c_int
}

/// All work is done when the future is created; polling it returns the result.
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

    /// Sent in one message.
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

    fn by_node(&self, node: u32) -> impl Future<Output = Result<Rc<NodeComms<Self>>, CommError>> {
        ready(self.by_node_now(node))
    }
}
