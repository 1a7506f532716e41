//! Automatic synchronization within a stated time: the first rank of each node takes part in a cube between the nodes, and the other ranks
//! of the node follow it.
//!
//! Where all ranks of a node exchange messages with those of other nodes, its network card is a queue that never empties, and a cube takes
//! the length of the queue for an offset. So one rank measures for all.

mod level;

use downbeat_clock_core::{Clock, Duration};

use super::cube::FineClock;
use super::local_clock::{Attempt, AutoReport, LocalClock, RankResult};
use super::prop;
use crate::collective::{all_reduce, broadcast, lowest_rank_where};
use crate::line::rounded;
use crate::{Comm, CommError, NodeComms};
use level::{Level, Played};

/// Synchronization that takes a stated time, and needs no other setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Auto {
    /// Time for everything, also for the closing exchange, from the moment at which the last rank has begun.
    pub budget: Duration,
}

/// Share of the budget for the ranks of nodes that read a counter each.
const WITHIN_NODES: f64 = 0.25;

impl Auto {
    /// `auto/100ms`, for clocks that are synchronized again or kept.
    pub const AGAIN: Self = Self {
        budget: Duration::from_millis(100),
    };
    /// `auto/300ms`, for clocks that are synchronized once.
    pub const ONCE: Self = Self {
        budget: Duration::from_millis(300),
    };

    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &mut LocalClock<'_, K>,
        comm: &M,
    ) -> Result<(RankResult, AutoReport), CommError> {
        let clock = FineClock::new(me.clock, me.base.rate());
        let split = Box::pin(comm.by_node(me.placement.node)).await?;
        let (rank, size) = (comm.rank(), comm.size());
        let split = split.ok_or(CommError::NoSuchRank { rank, size })?;
        let NodeComms { node, firsts } = &*split;
        let began = clock.now();
        let proof = Box::pin(prop::attempt(me, node)).await?;
        let shares = all_true(node, proof.is_ok()).await?;
        let in_node = (clock.now() - began) / f64::from(prop::EXCHANGES);
        let budget = self.budget.as_nanos() as f64;
        let level = Level {
            clock: &clock,
            at_epoch: 0.0,
            in_node,
            end: budget,
        };
        let mut found = Found::new(shares);
        let mut failure = None;
        if let Some(firsts) = firsts {
            let all_share = all_true(firsts, shares).await?;
            let kept = if all_share {
                0.0
            } else {
                WITHIN_NODES * budget
            };
            let between = Level {
                end: budget - kept,
                ..level
            };
            let (learned, played) = Box::pin(between.learn(me, firsts)).await?;
            found = found.add(played);
            found.nodes = f64::from(firsts.size());
            failure = me.begin_from(learned).err();
        }
        let learned = match shares {
            true => Box::pin(follow_first(me, node, proof)).await?,
            false => {
                // By the time of the level above.
                let from_here = FineClock::new(me.clock, me.base.rate());
                let within = Level {
                    clock: &from_here,
                    at_epoch: clock.now(),
                    ..level
                };
                let (learned, played) = Box::pin(within.learn(me, node)).await?;
                found = found.add(played);
                learned
            }
        };
        failure = failure.or(me.begin_from(learned).err());
        let report = found.report(self.budget, comm).await?;
        Ok((failure.map_or(Ok(me.own()), Err), report))
    }
}

/// What this rank found.
struct Found {
    nodes: f64,
    shares: bool,
    played: Option<Played>,
}

impl Found {
    fn new(shares: bool) -> Self {
        Self {
            nodes: 0.0,
            shares,
            played: None,
        }
    }

    /// Adds the turns of a level.
    fn add(self, played: Option<Played>) -> Self {
        let both = |a: Played, b: Played| Played {
            spare: a.spare + b.spare,
            slowest: a.slowest.max(b.slowest),
            quickest: a.quickest.min(b.quickest),
        };
        let all = self.played.into_iter().chain(played).reduce(both);
        Self {
            played: all,
            ..self
        }
    }

    /// Returns what all ranks found.
    async fn report<M: Comm>(self, budget: Duration, comm: &M) -> Result<AutoReport, CommError> {
        let (most, least) = (f64::INFINITY, 0.0);
        let none = Played {
            spare: most,
            slowest: least,
            quickest: most,
        };
        let own = self.played.unwrap_or(none);
        let shares = f64::from(u8::from(self.shares));
        let own = [own.spare, own.quickest, shares, -own.slowest, -self.nodes];
        let all = all_reduce(comm, own, |a, b| core::array::from_fn(|i| a[i].min(b[i]))).await?;
        let [spare, quickest, shares, slowest, nodes] = all;
        let is_known = |value: &f64| value.is_finite();
        let duration = |value: f64| rounded(Some(value).filter(is_known).unwrap_or(0.0));
        Ok(AutoReport {
            budget,
            spare: duration(spare),
            nodes: (-nodes) as u32,
            nodes_share_counters: shares > 0.0,
            slowest_exchange: duration(-slowest),
            quickest_exchange: duration(quickest),
        })
    }
}

async fn all_true<M: Comm>(comm: &M, own: bool) -> Result<bool, CommError> {
    Ok(lowest_rank_where(comm, !own).await?.is_none())
}

/// Adopts the global clock of the first rank of a node, whose counter this rank reads.
async fn follow_first<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    node: &M,
    proof: RankResult,
) -> Result<RankResult, CommError> {
    let first = me.own();
    let model = broadcast(node, first.model).await?;
    let quality = broadcast(node, first.quality).await?;
    if node.rank() == 0 {
        return Ok(Ok(first));
    }
    Ok(proof.map(|proof| Attempt {
        model,
        quality: proof.quality.combine(quality),
    }))
}
