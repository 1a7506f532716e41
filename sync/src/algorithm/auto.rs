//! Automatic synchronization within a stated time: the first rank of each node takes part
//! in a cube between the nodes, and the other ranks of the node follow it.
//!
//! Where all ranks of a node exchange messages with ranks of other nodes, its network
//! card is a queue that never empties, and a cube takes the length of the queue for an
//! offset. So one rank measures for all.

mod level;

use downbeat_clock_core::{Clock, Duration};

use super::cube::FineClock;
use super::local_clock::{Attempt, AutoReport, LocalClock, RankResult};
use super::prop;
use crate::collective::{all_reduce, all_true, broadcast};
use crate::line::rounded;
use crate::{Comm, CommError, NodeComms};
use level::{Level, LevelTurns};

/// Synchronization that takes a stated time, and needs no other setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Auto {
    /// Time for everything, also for the closing exchange, from the moment at which the
    /// last rank has begun.
    pub budget: Duration,
}

/// Share of the budget for the ranks of nodes that read a counter each.
const WITHIN_NODES: f64 = 0.25;

impl Auto {
    /// `auto/100ms`, for clocks that are synchronized again or kept.
    pub const REPEATED: Self = Self {
        budget: Duration::from_millis(100),
    };
    /// `auto/300ms`, for clocks that are synchronized once.
    pub const SINGLE: Self = Self {
        budget: Duration::from_millis(300),
    };

    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &mut LocalClock<'_, K>,
        comm: &M,
    ) -> Result<(RankResult, AutoReport), CommError> {
        let clock = FineClock::new(me.clock, me.base.rate());
        let split = Box::pin(comm.by_node(me.placement.node)).await?;
        let NodeComms { node, firsts } = &*split;
        let began = clock.now();
        let proof = Box::pin(prop::attempt(me, node)).await?;
        let shares = all_true(node, proof.is_ok()).await?;
        let in_node = (clock.now() - began) / f64::from(prop::EXCHANGES);
        let level = Level {
            clock: &clock,
            at_epoch: 0.0,
            in_node,
            end: self.budget.as_nanos() as f64,
        };
        let (mut nodes, mut between, mut failure) = (0, None, None);
        if let Some(firsts) = firsts {
            nodes = firsts.size();
            let learned;
            (learned, between) = Box::pin(learn_between(&level, me, firsts, shares)).await?;
            failure = me.begin_from(learned).err();
        }
        let (learned, within) = match shares {
            true => (Box::pin(follow_first(me, node, proof)).await?, None),
            false => Box::pin(learn_within(&level, me, node, between)).await?,
        };
        failure = failure.or(me.begin_from(learned).err());
        let between = Box::pin(LevelReport::of_all(comm, between, nodes)).await?;
        let apart = u32::from(!shares);
        let within = Box::pin(LevelReport::of_all(comm, within, apart)).await?;
        let report = AutoReport {
            budget: self.budget,
            spare: rounded(between.spare + within.spare),
            nodes: between.largest,
            nodes_share_counters: within.largest == 0,
            slowest_exchange: rounded(between.slowest.max(within.slowest)),
            slowest_to_quickest: between.slower.max(within.slower),
        };
        Ok((failure.map_or(Ok(me.own()), Err), report))
    }
}

/// Plays a cube between the first ranks of all nodes. Where ranks of a node read a counter
/// each, they get a share of the time.
async fn learn_between<K: Clock, M: Comm>(
    level: &Level<'_, K>,
    me: &LocalClock<'_, K>,
    firsts: &M,
    shares: bool,
) -> Result<(RankResult, Option<LevelTurns>), CommError> {
    let used = match all_true(firsts, shares).await? {
        true => 1.0,
        false => 1.0 - WITHIN_NODES,
    };
    let level = Level {
        end: used * level.end,
        ..*level
    };
    level.learn_clock(me, firsts).await
}

/// Plays a cube between the ranks of a node, which begins with the clock that its first
/// rank learned `between` the nodes.
async fn learn_within<K: Clock, M: Comm>(
    level: &Level<'_, K>,
    me: &LocalClock<'_, K>,
    node: &M,
    between: Option<LevelTurns>,
) -> Result<(RankResult, Option<LevelTurns>), CommError> {
    // The closing exchange crosses nodes, too.
    let closing = between.map_or(0.0, |between| between.closing);
    let closing = broadcast(node, closing).await?;
    // The rate of the first rank has changed.
    let clock = FineClock::new(me.clock, me.base.rate());
    let level = Level {
        clock: &clock,
        at_epoch: level.clock.now(),
        end: level.end - closing,
        ..*level
    };
    level.learn_clock(me, node).await
}

/// Turns of all ranks at one level; 0 where no rank measured.
struct LevelReport {
    spare: f64,
    slowest: f64,
    slower: f64,
    /// Largest of the numbers that ranks gave.
    largest: u32,
}

impl LevelReport {
    /// Combines the turns of all ranks at a level, and a number of each.
    async fn of_all<M: Comm>(
        comm: &M,
        played: Option<LevelTurns>,
        number: u32,
    ) -> Result<Self, CommError> {
        let least = |value: fn(&LevelTurns) -> f64| played.as_ref().map_or(f64::INFINITY, value);
        let own = [
            least(|played| played.spare),
            least(|played| played.quickest),
            least(|played| -played.slowest),
            -f64::from(number),
        ];
        let all = all_reduce(comm, own, |a, b| core::array::from_fn(|i| a[i].min(b[i]))).await?;
        let [spare, quickest, slowest, largest] = all;
        let is_measured = spare.is_finite();
        let value = |value: f64| if is_measured { value } else { 0.0 };
        Ok(Self {
            spare: value(spare),
            slowest: value(-slowest),
            slower: value(-slowest / quickest.max(1.0)),
            largest: -largest as u32,
        })
    }
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
