//! Start of the threads of a communicator.

use core::fmt;
use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crate::ClusterError;
use crate::error::MAX_THREADS;
use crate::split::SplitRequest;
use crate::thread::meeting::SplitMeeting;
use crate::thread::{Departure, ThreadComm};

/// Cluster of threads, one per rank, which run one program.
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
    pin: Box<PinFunction<'a>>,
}

/// Pins the calling thread, which is a rank, to its core.
type PinFunction<'a> = dyn Fn(u32) -> Result<(), BoxedError> + Sync + 'a;

type BoxedError = Box<dyn Error + Send + Sync>;

impl fmt::Debug for ThreadCluster<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadCluster")
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}

impl<'a> ThreadCluster<'a> {
    /// Maximum number of ranks; the mailboxes between them take 40 MB.
    pub const MAX_RANKS: u32 = MAX_THREADS;

    /// Creates a cluster of threads that are not pinned.
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks,
            pin: Box::new(|_| Ok(())),
        }
    }

    /// Makes every rank call `pin` with its index before it runs the program; no rank starts unless
    /// all are pinned.
    #[must_use]
    pub fn pin<E: Into<BoxedError>>(self, pin: impl Fn(u32) -> Result<(), E> + Sync + 'a) -> Self {
        Self {
            pin: Box::new(move |rank| pin(rank).map_err(Into::into)),
            ..self
        }
    }

    /// Runs `program` on every rank, and returns the results in the order of ranks.
    ///
    /// # Errors
    /// If the number of ranks is out of range, if a thread cannot be started or pinned, or if a
    /// rank panics.
    pub fn run<T: Send>(
        &self,
        program: impl Fn(&ThreadComm) -> T + Sync,
    ) -> Result<Vec<T>, ClusterError> {
        if !(1..=Self::MAX_RANKS).contains(&self.ranks) {
            return Err(ClusterError::Ranks(self.ranks));
        }
        let meeting = SplitMeeting::new(self.ranks as usize);
        let (meeting, program) = (&meeting, &program);
        let ended: Vec<_> = thread::scope(|scope| {
            let start = |rank| {
                let thread = thread::Builder::new().name(format!("rank {rank}"));
                thread
                    .spawn_scoped(scope, move || self.run_rank(rank, meeting, program))
                    .map_err(|why| {
                        meeting.leave(rank, Departure::Left);
                        ClusterError::Start {
                            rank,
                            why: why.to_string(),
                        }
                    })
            };
            // All threads are started before the first is joined.
            let threads: Vec<_> = (0..self.ranks).map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread?.join().unwrap_or(Ok(None)))
                .collect()
        });
        // A rank without a result failed because of another rank, which has the error.
        ended.into_iter().filter_map(Result::transpose).collect()
    }

    /// Runs the thread of one rank. Returns `None` if another rank caused the failure.
    fn run_rank<T>(
        &self,
        rank: u32,
        meeting: &SplitMeeting<ThreadComm>,
        program: impl Fn(&ThreadComm) -> T,
    ) -> Result<Option<T>, ClusterError> {
        let mut group = None;
        // State that a panic may have left inconsistent is not used again.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            (self.pin)(rank).map_err(|why| ClusterError::Pin {
                rank,
                why: why.to_string(),
            })?;
            // The meeting ends when all ranks are there, with a communicator for each.
            let request = SplitRequest {
                color: Some(0),
                key: 0,
                rank,
            };
            let Ok(Some(comm)) = meeting.attend(request, ThreadComm::create_group) else {
                return Ok(None);
            };
            group = Some(Arc::clone(&comm.group));
            Ok(Some(program(&comm)))
        }));
        meeting.leave(rank, Departure::Left);
        ended.unwrap_or_else(|panic| {
            match group.and_then(|group| group.first_panic.get().copied()) {
                Some(first) if first != rank => Ok(None),
                _ => Err(ClusterError::Panicked {
                    rank,
                    message: panic_message(&*panic),
                }),
            }
        })
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
