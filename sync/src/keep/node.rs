//! Keeper of ranks of which those of a node can read one counter: then its first rank takes part in the sessions, and the others follow.

use downbeat_clock_core::offset::OffsetInterval;
use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, FitError, Global, Local, Ticks,
};

use super::{Keeper, KeptSession, Measured};
use crate::collective::{all_equal, broadcast};
use crate::pair::answer;
use crate::payload::{payload_of_fields, to_words};
use crate::session::{OffsetSession, ROUNDING, SendMode, resolution};
use crate::{Comm, CommError, LocalClock, PlaceLevel, StableHasher, SyncError, Synchronized};

/// Keeps the global clock of a rank, as a [`Keeper`]; ranks of a node to which the synchronization gave one model, because they read one
/// counter, still have one after each session, and show the same time as exactly as before.
#[derive(Debug)]
pub struct NodeKeeper<M> {
    keeper: Keeper,
    /// Ranks that take part in the sessions, if this is one of them.
    measuring: Option<M>,
    /// Ranks of the node, of which the first takes part, if they share a model.
    node: Option<M>,
    /// Smallest and largest time by which the counter is ahead of that of the first rank of the node.
    ahead_of_first: [Duration; 2],
}

/// Exchanges of every rank with the first of its node: enough that one of them is quick.
const EXCHANGES: u64 = 10;

impl<M: Comm> NodeKeeper<M> {
    /// Creates the keeper of clocks that were synchronized over `comm`, whose ranks all call this; see [`Keeper::new`].
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn new<K: Clock>(
        me: &LocalClock<'_, K>,
        synchronized: &Synchronized,
        comm: &M,
        period: Duration,
    ) -> Result<Self, CommError> {
        let mut keeper = Keeper::new(me, synchronized, period);
        let rank = comm.rank();
        let node = comm
            .split(Some(me.placement.unit_at(PlaceLevel::Node)), rank)
            .await?;
        let (mut shared, mut ahead_of_first) = (None, [Duration::ZERO; 2]);
        if let Some(node) = node.filter(|node| node.size() > 1) {
            let model = StableHasher::hash_of(&to_words(synchronized.model));
            if all_equal(&node, model).await? {
                let found = ahead_of(me, &synchronized.model, &node).await?;
                if all_equal(&node, found.is_err().into()).await? {
                    keeper.origin = broadcast(&node, keeper.origin).await?;
                    shared = found.is_ok().then_some(node);
                    ahead_of_first = found.unwrap_or_default();
                }
            }
        }
        let measures = shared.as_ref().is_none_or(|node| node.rank() == 0);
        if !measures {
            // Its bound is that of the first rank.
            keeper.envelope = None;
        }
        Ok(Self {
            keeper,
            measuring: comm.split(measures.then_some(0), rank).await?,
            node: shared,
            ahead_of_first,
        })
    }

    /// See [`Keeper::lasting`].
    #[must_use]
    pub fn lasting(mut self, lasting: Duration) -> Self {
        self.keeper = self.keeper.lasting(lasting);
        self
    }

    /// See [`Keeper::every`].
    pub fn every(&mut self, period: Duration) {
        self.keeper.every(period);
    }

    /// See [`Keeper::due_in`].
    pub fn due_in(&self, now: Ticks) -> Duration {
        self.keeper.due_in(now)
    }

    /// See [`Keeper::keep`]. All ranks that created the keeper call this.
    ///
    /// # Errors
    /// As there.
    pub async fn keep<K: Clock>(
        &mut self,
        me: &LocalClock<'_, K>,
    ) -> Result<Option<KeptSession>, SyncError> {
        self.attend(me, false).await
    }

    /// See [`Keeper::keep_now`].
    ///
    /// # Errors
    /// As there.
    pub async fn keep_now<K: Clock>(
        &mut self,
        me: &LocalClock<'_, K>,
    ) -> Result<Option<KeptSession>, SyncError> {
        self.attend(me, true).await
    }

    async fn attend<K: Clock>(
        &mut self,
        me: &LocalClock<'_, K>,
        at_once: bool,
    ) -> Result<Option<KeptSession>, SyncError> {
        let session = match &self.measuring {
            Some(measuring) => self.keeper.attend(me, measuring, at_once).await,
            None => Ok(None),
        };
        self.follow(me, session).await
    }

    /// Passes a session on within the node.
    async fn follow<K: Clock>(
        &mut self,
        me: &LocalClock<'_, K>,
        session: Result<Option<KeptSession>, SyncError>,
    ) -> Result<Option<KeptSession>, SyncError> {
        if let Err(SyncError::Comm(why)) = session {
            return Err(why.into());
        }
        let Some(node) = &self.node else {
            return session;
        };
        let outcome = match session {
            Ok(None) => Outcome::NONE,
            Ok(Some(kept)) => Outcome::KEPT | u64::from(kept.exchanges),
            Err(SyncError::OtherRank(rank)) => Outcome::FAILED | u64::from(rank),
            Err(_) => Outcome::FAILED | u64::from(self.keeper.rank),
        };
        let outcome = Outcome(broadcast(node, outcome).await?);
        let is_first = node.rank() == 0;
        if !outcome.is(Outcome::KEPT) {
            let failed = !is_first && outcome.is(Outcome::FAILED);
            return match failed {
                true => Err(SyncError::OtherRank(outcome.number())),
                false => session,
            };
        }
        let mine = self.keeper.measured.unwrap_or_default();
        let measured = broadcast(node, mine).await?;
        let of_first: ErrorBound<Global> = broadcast(node, self.keeper.bound).await?;
        if is_first {
            return session;
        }
        self.keeper.schedule.exchanges = outcome.number();
        // It cannot fail where it did not on the first rank.
        let kept = self.keeper.learn(me, &measured, ErrorBound::UNKNOWN)?;
        // The line is that of the first rank.
        let bound = of_first.ahead_by(self.ahead_of_first);
        self.keeper.bound = bound;
        Ok(Some(KeptSession { bound, ..kept }))
    }

    /// See [`Keeper::past`].
    pub fn past(&self, base: &ClockModel<Counter, Local>) -> Vec<SplineKnot<Local, Global>> {
        self.keeper.past(base)
    }

    /// See [`Keeper::allan_deviation`].
    pub fn allan_deviation(&self) -> Vec<(Duration, f64)> {
        self.keeper.allan_deviation()
    }
}

/// Message of the first rank of a node to the others: in the upper bits if there was a session, and in the lower ones its number of
/// exchanges or the rank that failed.
#[derive(Clone, Copy)]
struct Outcome(u64);

impl Outcome {
    const NONE: u64 = 0;
    const KEPT: u64 = 1 << 32;
    const FAILED: u64 = 2 << 32;

    fn is(self, kind: u64) -> bool {
        self.0 >> 32 == kind >> 32
    }

    fn number(self) -> u32 {
        self.0 as u32
    }
}

payload_of_fields!([] Measured { mark, ahead, noise, took, exchange });

/// Returns by how much the counter of this rank can be ahead of that of the first: the same for ever, if it is one counter.
async fn ahead_of<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    model: &ClockModel<Counter, Global>,
    node: &M,
) -> Result<Result<[Duration; 2], FitError>, CommError> {
    if node.rank() == 0 {
        for client in 1..node.size() {
            answer(me.clock, model, node, client).await?;
        }
        return Ok(Ok([Duration::ZERO; 2]));
    }
    let of_first: Duration = node.recv(0).await?;
    let error = resolution(me.clock, model) + of_first + ROUNDING;
    let mut interval = OffsetInterval::<Global, Global>::new(0.0, error);
    let session = OffsetSession {
        clock: me.clock,
        base: model,
        comm: node,
        reference: 0,
    };
    let run = session.run_exchanges(SendMode::Standard, 0..EXCHANGES, |exchange| {
        interval.push(exchange).map(|()| false)
    });
    match run.await {
        Err(SyncError::Comm(why)) => return Err(why),
        Err(SyncError::Fit(why)) => return Ok(Err(why)),
        _ => {}
    }
    Ok(interval.limits_at(model.apply(me.clock.ticks())))
}
