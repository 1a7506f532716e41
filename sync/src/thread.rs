//! Backend of ranks that are threads of one process.

mod mailbox;
pub(crate) mod meeting;
mod sleeper;

use core::cell::Cell;
use core::fmt;
use core::future::{Future, ready};
use core::marker::PhantomData;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

pub use mailbox::{Departure, Mailbox, MailboxBlocked};
use meeting::SplitMeeting;
pub use sleeper::Sleeper;

use crate::comm::check_other;
use crate::payload::Payload;
use crate::payload::{MAX_BYTES, MAX_WORDS, bytes_of, to_words, words_of};
use crate::split::SplitRequest;
use crate::{Comm, CommError};

/// Communicator of a rank that is a thread; the ranks communicate through shared cache lines.
///
/// A [`ThreadCluster`](crate::ThreadCluster) creates it. A rank that drops its communicator, by
/// returning or by a panic, has left: its messages can still be received, and waiting for more ends
/// with an error.
///
/// A rank that waits spins at first, then yields to other threads, then sleeps: there may be more
/// ranks than cores.
pub struct ThreadComm {
    rank: u32,
    /// Links to all ranks.
    links: Box<[PeerLink]>,
    pub(crate) group: Arc<ThreadGroup>,
    /// Both ends of a mailbox belong to one thread each, so only one thread at a time may use a
    /// communicator.
    not_sync: PhantomData<Cell<()>>,
}

/// Link of one rank to another, or to itself.
struct PeerLink {
    outbox: Arc<Mailbox<MAX_WORDS>>,
    inbox: Arc<Mailbox<MAX_WORDS>>,
    /// Sleeper of the other rank.
    sleeper: Arc<Sleeper>,
}

/// State that the ranks of a communicator share.
pub(crate) struct ThreadGroup {
    meeting: SplitMeeting<ThreadComm>,
    /// For each rank, long messages under way to it, with their senders.
    parcels: Box<[Parcels]>,
    /// First rank that panicked.
    pub(crate) first_panic: OnceLock<u32>,
}

/// Long messages, in the order in which they were sent.
type Parcels = Mutex<VecDeque<(u32, Vec<u8>)>>;

impl fmt::Debug for ThreadComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} threads", self.rank, self.links.len())
    }
}

impl ThreadComm {
    /// Creates the communicator of a program with a single rank.
    #[must_use]
    pub fn alone() -> Self {
        let mut group = Self::create_group(1);
        group.remove(0)
    }

    /// Creates the communicators of all ranks of a group.
    pub(crate) fn create_group(ranks: usize) -> Vec<Self> {
        let group = Arc::new(ThreadGroup {
            meeting: SplitMeeting::new(ranks),
            parcels: (0..ranks).map(|_| Mutex::default()).collect(),
            first_panic: OnceLock::new(),
        });
        let sleepers: Vec<_> = (0..ranks).map(|_| Arc::new(Sleeper::new())).collect();
        let row = |_| {
            (0..ranks)
                .map(|_| Arc::new(Mailbox::new()))
                .collect::<Vec<_>>()
        };
        let mailboxes: Vec<_> = (0..ranks).map(row).collect();
        let link = |from: usize, to: usize| PeerLink {
            outbox: Arc::clone(&mailboxes[from][to]),
            inbox: Arc::clone(&mailboxes[to][from]),
            sleeper: Arc::clone(&sleepers[to]),
        };
        let comm = |rank| Self {
            rank: rank as u32,
            links: (0..ranks).map(|peer| link(rank, peer)).collect(),
            group: Arc::clone(&group),
            not_sync: PhantomData,
        };
        (0..ranks).map(comm).collect()
    }

    #[inline]
    fn link(&self, rank: u32) -> Result<&PeerLink, CommError> {
        self.links.get(rank as usize).ok_or(CommError::NoSuchRank {
            rank,
            size: self.links.len() as u32,
        })
    }

    #[inline]
    fn send_now<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        let link = self.link(to)?;
        // By value: a reference to the payload would keep it out of registers, even if there is no
        // wait.
        let put = move || link.outbox.try_put(&to_words(payload), P::WORDS);
        if put().is_err() {
            self.wait_for(to, put)?;
        }
        link.sleeper.nudge();
        Ok(())
    }

    fn send_sync_now<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        if to == self.rank {
            return Err(CommError::WaitsForItself);
        }
        self.send_now(to, payload)?;
        let link = self.link(to)?;
        self.wait_for(to, || link.outbox.check_taken())
    }

    #[inline]
    fn recv_now<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        let link = self.link(from)?;
        let (words, found) = match link.inbox.try_take(P::WORDS) {
            Ok(message) => message,
            Err(_) => self.wait_for(from, || link.inbox.try_take(P::WORDS))?,
        };
        // The sender may wait for the mailbox to be empty.
        link.sleeper.nudge();
        if found != P::WORDS {
            return Err(CommError::WrongLength {
                from,
                expected: P::WORDS,
                found,
            });
        }
        P::get(&words).ok_or(CommError::WrongType { from })
    }

    /// Hands a long message over as one buffer, announced by its length.
    fn send_parcel(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        self.link(to)?;
        let parcel = (self.rank, bytes.to_vec());
        self.parcels(to).push_back(parcel);
        self.send_now(to, bytes.len() as u64)
    }

    fn recv_parcel(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        let length: u64 = self.recv_now(from)?;
        let mut parcels = self.parcels(self.rank);
        // It was there before its length was sent.
        let index = parcels.iter().position(|(sender, _)| *sender == from);
        let parcel = index.and_then(|index| parcels.remove(index));
        match parcel.filter(|_| length == bytes.len() as u64) {
            Some((_, parcel)) => {
                bytes.copy_from_slice(&parcel);
                Ok(())
            }
            None => Err(CommError::WrongLength {
                from,
                expected: bytes.len().div_ceil(8),
                found: (length as usize).div_ceil(8),
            }),
        }
    }

    fn parcels(&self, rank: u32) -> MutexGuard<'_, VecDeque<(u32, Vec<u8>)>> {
        // A queue is whole whenever its lock is released.
        let parcels = self.group.parcels[rank as usize].lock();
        parcels.unwrap_or_else(PoisonError::into_inner)
    }

    /// Retries until the operation succeeds or can never succeed.
    #[cold]
    fn wait_for<T>(
        &self,
        peer: u32,
        mut attempt: impl FnMut() -> Result<T, MailboxBlocked>,
    ) -> Result<T, CommError> {
        self.links[self.rank as usize]
            .sleeper
            .wait_until(|| match attempt() {
                Ok(done) => Some(Ok(done)),
                Err(MailboxBlocked::Gone(Departure::Left)) => {
                    Some(Err(CommError::Left { rank: peer }))
                }
                // It may have panicked only because another rank did.
                Err(MailboxBlocked::Gone(Departure::Panicked)) => Some(Err(CommError::Panicked {
                    rank: *self.group.first_panic.get().unwrap_or(&peer),
                })),
                Err(MailboxBlocked::NotYet) if peer == self.rank => {
                    Some(Err(CommError::WaitsForItself))
                }
                Err(MailboxBlocked::NotYet) => self
                    .group
                    .first_panic
                    .get()
                    .map(|rank| Err(CommError::Panicked { rank: *rank })),
            })
    }
}

/// Tells all other ranks that this rank is gone, and wakes those that sleep.
impl Drop for ThreadComm {
    fn drop(&mut self) {
        let how = if thread::panicking() {
            Departure::Panicked
        } else {
            Departure::Left
        };
        if how == Departure::Panicked {
            // Fails if another rank panicked first.
            let _ = self.group.first_panic.set(self.rank);
        }
        // Leaves the meeting first, which records only the first rank to leave: ranks that are
        // released here may panic, too.
        self.group.meeting.leave(self.rank, how);
        for link in &self.links {
            link.outbox.end_sending(how);
            link.inbox.end_receiving(how);
        }
        self.links.iter().for_each(|link| link.sleeper.wake());
    }
}

/// All work is done when the future is created; polling it returns the result.
impl Comm for ThreadComm {
    #[inline]
    fn rank(&self) -> u32 {
        self.rank
    }

    #[inline]
    fn size(&self) -> u32 {
        self.links.len() as u32
    }

    #[inline]
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

    #[inline]
    fn recv<P: Payload>(&self, from: u32) -> impl Future<Output = Result<P, CommError>> {
        ready(self.recv_now(from))
    }

    async fn send_bytes(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        check_other(self, to)?;
        if bytes.len() > MAX_BYTES {
            return self.send_parcel(to, bytes);
        }
        match bytes {
            [] => Ok(()),
            bytes => self.send_now(to, words_of(bytes)),
        }
    }

    async fn recv_bytes(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        check_other(self, from)?;
        if bytes.len() > MAX_BYTES {
            return self.recv_parcel(from, bytes);
        }
        if !bytes.is_empty() {
            bytes.copy_from_slice(&bytes_of(&self.recv_now(from)?)[..bytes.len()]);
        }
        Ok(())
    }

    fn split(
        &self,
        color: Option<u32>,
        key: u32,
    ) -> impl Future<Output = Result<Option<Self>, CommError>> {
        let request = SplitRequest {
            color,
            key,
            rank: self.rank,
        };
        ready(self.group.meeting.attend(request, Self::create_group))
    }
}
