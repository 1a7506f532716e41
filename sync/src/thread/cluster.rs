//! Starting the threads of a communicator.

use core::fmt;
use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use super::split::Meeting;
use super::{Departure, ThreadComm};
use crate::ClusterError;
use crate::error::MAX_THREADS;

/// As many threads as there are ranks, which run one program.
///
/// ```
/// use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
///
/// // Every rank sends its number to the next one, in a ring.
/// let received = ThreadCluster::new(3).run(|comm| {
///     let (rank, size) = (comm.rank(), comm.size());
///     block_on_ready(async {
///         comm.send((rank + 1) % size, u64::from(rank)).await?;
///         comm.recv::<u64>((rank + size - 1) % size).await
///     })
/// })?;
/// assert_eq!(received, [Ok(2), Ok(0), Ok(1)]);
/// # Ok::<(), downbeat_sync::ClusterError>(())
/// ```
pub struct ThreadCluster<'a> {
    ranks: u32,
    pin: Box<Pin<'a>>,
}

/// Puts the calling thread, which is a rank, on its core.
type Pin<'a> = dyn Fn(u32) -> Result<(), BoxedError> + Sync + 'a;

type BoxedError = Box<dyn Error + Send + Sync>;

impl fmt::Debug for ThreadCluster<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadCluster")
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}

impl<'a> ThreadCluster<'a> {
    /// The most ranks that there can be; the mailboxes between them take 40 MB.
    pub const MAX_RANKS: u32 = MAX_THREADS;

    /// A cluster of so many ranks, on whatever cores the system puts them.
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks,
            pin: Box::new(|_| Ok(())),
        }
    }

    /// Has every rank call `pin` with its number before anything else; no rank begins unless all are where they should
    /// be.
    #[must_use]
    pub fn pin<E: Into<BoxedError>>(self, pin: impl Fn(u32) -> Result<(), E> + Sync + 'a) -> Self {
        Self {
            pin: Box::new(move |rank| pin(rank).map_err(Into::into)),
            ..self
        }
    }

    /// Runs `program` on every rank, and returns what they return, in their order.
    ///
    /// # Errors
    /// When the ranks cannot be started, when one cannot be pinned, or when one panics.
    pub fn run<T: Send>(
        &self,
        program: impl Fn(&ThreadComm) -> T + Sync,
    ) -> Result<Vec<T>, ClusterError> {
        if !(1..=Self::MAX_RANKS).contains(&self.ranks) {
            return Err(ClusterError::Ranks(self.ranks));
        }
        let door = Meeting::new(self.ranks as usize);
        let (door, program) = (&door, &program);
        let ended: Vec<_> = thread::scope(|scope| {
            let start = |rank| {
                let thread = thread::Builder::new().name(format!("rank {rank}"));
                thread
                    .spawn_scoped(scope, move || self.be(rank, door, program))
                    .map_err(|why| {
                        door.leave(rank, Departure::Left);
                        ClusterError::Start {
                            rank,
                            why: why.to_string(),
                        }
                    })
            };
            // All are started before the first is waited for.
            let threads: Vec<_> = (0..self.ranks).map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread?.join().unwrap_or(Ok(None)))
                .collect()
        });
        // A rank that has nothing to show did not come to its end because of another, which says why.
        ended.into_iter().filter_map(Result::transpose).collect()
    }

    /// What the thread of one rank does. Returns nothing where another rank is to blame.
    fn be<T>(
        &self,
        rank: u32,
        door: &Meeting,
        program: impl Fn(&ThreadComm) -> T,
    ) -> Result<Option<T>, ClusterError> {
        let mut group = None;
        // Nobody looks at what a panic may have left half done.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            (self.pin)(rank).map_err(|why| ClusterError::Pin {
                rank,
                why: why.to_string(),
            })?;
            // The door opens when all ranks stand before it, with a communicator for each.
            let Ok(Some(comm)) = door.attend(rank, Some(0), 0) else {
                return Ok(None);
            };
            group = Some(Arc::clone(&comm.group));
            Ok(Some(program(&comm)))
        }));
        door.leave(rank, Departure::Left);
        ended.unwrap_or_else(
            |panic| match group.and_then(|group| group.casualty.get().copied()) {
                Some(first) if first != rank => Ok(None),
                _ => Err(ClusterError::Panicked {
                    rank,
                    message: message_of(&*panic),
                }),
            },
        )
    }
}

/// What a panic said.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
