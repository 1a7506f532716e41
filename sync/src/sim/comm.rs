//! Communicator of a simulated rank.

use core::fmt;
use core::future::{poll_fn, ready};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::rc::Rc;

use downbeat_clock_core::{Duration, ModelError, Timestamp};

use super::clock::SimClock;
use super::engine::MessageRoute;
use super::group::{SimGroup, SimWorld};
use super::messages::MessageKind;
use super::node_clock::VirtualTime;
use crate::RankPlacement;
use crate::comm::check_other;
use crate::payload::{Payload, Words, to_words};
use crate::{Comm, CommError, LocalClock};

/// Communicator of a rank of a [`SimCluster`](super::SimCluster), or of a group of its ranks.
///
/// Sending never waits for the receiver to free space. Messages take the time that the
/// [`Network`](super::Network) defines; [`split`](Comm::split) ends for all ranks at the same time,
/// after the time of an agreement up and down a tree.
///
/// A rank executes one operation after the other: it must not wait for two calls at once.
pub struct SimComm {
    world: Rc<SimWorld>,
    group: Rc<SimGroup>,
    rank: u32,
}

impl fmt::Debug for SimComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rank {} of {} simulated ones",
            self.rank,
            self.group.size()
        )
    }
}

impl SimComm {
    pub(super) fn new(world: &Rc<SimWorld>, group: &Rc<SimGroup>, rank: u32) -> Self {
        Self {
            world: Rc::clone(world),
            group: Rc::clone(group),
            rank,
        }
    }

    /// Returns the clock of this rank.
    pub fn clock(&self) -> SimClock {
        SimClock {
            world: Rc::clone(&self.world),
            rank: self.me(),
        }
    }

    /// Returns the node and socket of this rank.
    pub fn placement(&self) -> RankPlacement {
        self.world.engine.borrow().placement(self.me())
    }

    /// Returns the local clock of this rank for a synchronization: its clock, the nominal model of
    /// it, the placement of the rank, and the node as the time source.
    ///
    /// # Errors
    /// Same as [`SimClock::nominal_model`].
    pub fn local_clock<'a>(
        &self,
        clock: &'a SimClock,
    ) -> Result<LocalClock<'a, SimClock>, ModelError> {
        let placement = self.placement();
        Ok(LocalClock::new(clock, SimClock::nominal_model()?)
            .source(placement.node.into())
            .placement(placement))
    }

    /// Returns the true time of this rank. The call takes no time.
    pub fn true_now(&self) -> Timestamp<VirtualTime> {
        Timestamp::from_nanos(self.world.engine.borrow().now(self.me()) as i64)
    }

    /// Advances the time of this rank; does nothing if the duration is negative.
    pub fn pause(&self, span: Duration) {
        self.world
            .engine
            .borrow_mut()
            .advance(self.me(), span.as_nanos().max(0) as u64);
    }

    /// Rank in the whole cluster.
    #[inline]
    fn me(&self) -> u32 {
        self.group.member(self.rank).unwrap_or_default()
    }

    #[inline]
    fn member(&self, rank: u32) -> Result<u32, CommError> {
        self.group.member(rank).ok_or(CommError::NoSuchRank {
            rank,
            size: self.group.size(),
        })
    }

    fn has_left(&self, rank: u32, member: u32) -> bool {
        self.group.has_left(rank) || self.world.engine.borrow().is_gone(member)
    }

    /// Returns the route of a message to another rank, or with `own` also to this one.
    #[inline]
    fn route_to(&self, to: u32, own: bool) -> Result<MessageRoute, CommError> {
        let member = self.member(to)?;
        if to == self.rank && !own {
            return Err(CommError::WaitsForItself);
        }
        if self.has_left(to, member) {
            return Err(CommError::Left { rank: to });
        }
        Ok(MessageRoute {
            group: self.group.id,
            from: self.me(),
            to: member,
        })
    }

    #[inline]
    fn send_now<P: Payload>(
        &self,
        to: u32,
        payload: P,
        kind: MessageKind,
    ) -> Result<(), CommError> {
        let route = self.route_to(to, kind == MessageKind::Plain)?;
        let words = to_words(payload);
        let mut engine = self.world.engine.borrow_mut();
        engine.send(route, &words, P::WORDS, kind);
        Ok(())
    }

    fn send_bytes_now(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        let route = self.route_to(to, false)?;
        if !bytes.is_empty() {
            self.world.engine.borrow_mut().send_parcel(route, bytes);
        }
        Ok(())
    }

    /// Returns the words of the next message of a rank, and their number.
    fn poll_receive(&self, from: u32) -> Poll<Result<(Words, usize), CommError>> {
        let member = self.member(from)?;
        let route = MessageRoute {
            group: self.group.id,
            from: member,
            to: self.me(),
        };
        let received = self.world.engine.borrow_mut().receive(route);
        match received {
            Some(received) => received.map(Ok),
            None => self.await_message(route, from),
        }
    }

    /// Waits for a message that was not sent yet, if it still can be.
    fn await_message<T>(&self, route: MessageRoute, from: u32) -> Poll<Result<T, CommError>> {
        if from == self.rank {
            return Poll::Ready(Err(CommError::WaitsForItself));
        }
        if self.has_left(from, route.from) {
            self.world
                .engine
                .borrow_mut()
                .advance_to_end_of(route.to, route.from);
            return Poll::Ready(Err(CommError::Left { rank: from }));
        }
        self.world.engine.borrow_mut().await_message(route);
        Poll::Pending
    }
}

/// Ends the wait of ranks for one that drops a communicator.
impl Drop for SimComm {
    fn drop(&mut self) {
        self.group.leave(self.rank, &self.world);
    }
}

/// Future of a message. Small, because a million ranks may wait.
struct Receive<'a, P> {
    comm: &'a SimComm,
    from: u32,
    payload: core::marker::PhantomData<fn() -> P>,
}

impl<P: Payload> Future for Receive<'_, P> {
    type Output = Result<P, CommError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let from = self.from;
        let payload = |(words, found): (Words, usize)| match P::WORDS {
            expected if expected != found => Err(CommError::WrongLength {
                from,
                expected,
                found,
            }),
            _ => P::get(&words).ok_or(CommError::WrongType { from }),
        };
        let received = self.comm.poll_receive(from);
        received.map(|received| received.and_then(payload))
    }
}

impl Comm for SimComm {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.group.size()
    }

    fn send<P: Payload>(&self, to: u32, payload: P) -> impl Future<Output = Result<(), CommError>> {
        ready(self.send_now(to, payload, MessageKind::Plain))
    }

    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.send_now(to, payload, MessageKind::Synchronous)?;
        let delivered = poll_fn(|_| self.world.engine.borrow_mut().delivery(self.me())).await;
        if delivered {
            Ok(())
        } else {
            Err(CommError::Left { rank: to })
        }
    }

    fn recv<P: Payload>(&self, from: u32) -> impl Future<Output = Result<P, CommError>> {
        Receive {
            comm: self,
            from,
            payload: core::marker::PhantomData,
        }
    }

    fn send_bytes(&self, to: u32, bytes: &[u8]) -> impl Future<Output = Result<(), CommError>> {
        ready(self.send_bytes_now(to, bytes))
    }

    async fn recv_bytes(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        check_other(self, from)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (words, found) = poll_fn(|_| self.poll_receive(from)).await?;
        let parcel = self.world.engine.borrow_mut().take_parcel(&words);
        match parcel.filter(|parcel| parcel.len() == bytes.len()) {
            Some(parcel) => {
                bytes.copy_from_slice(&parcel);
                Ok(())
            }
            None => Err(CommError::WrongLength {
                from,
                expected: bytes.len(),
                found: found * size_of::<u64>(),
            }),
        }
    }

    async fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Self>, CommError> {
        // Arrives at the first poll, and takes its result at the second.
        let mut arrived = false;
        let result = poll_fn(|_| {
            if core::mem::replace(&mut arrived, true) {
                return self.group.take_result(self.rank);
            }
            self.group.arrive(self.rank, color, key, &self.world)
        })
        .await?;
        Ok(result.map(|(group, rank)| Self {
            world: Rc::clone(&self.world),
            group,
            rank,
        }))
    }
}
