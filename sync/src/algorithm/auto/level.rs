//! Cube between the ranks of one level that ends at a stated time.

use downbeat_clock_core::Clock;

use super::super::cube::{
    CubeEdge, Effort, FineClock, MOST_TURNS, MeasuredDifference, greatest, learn_clock, neighbours,
    solve,
};
use super::super::local_clock::{LocalClock, RankResult};
use crate::{Comm, CommError};

/// Exchanges of a turn that shows how long an exchange takes, and such turns.
const PROBE: u32 = 4;
const PROBES: u32 = 2;
/// Fewest exchanges of a turn, and fewest turns: where messages wait for a core, few of
/// them are quick.
const LEAST_EXCHANGES: f64 = 10.0;
const LEAST_TURNS: u32 = 3;
/// Most exchanges of a turn, unless there were more turns than [`MOST_TURNS`].
const MOST_EXCHANGES: f64 = 60.0;
/// Exchanges of a pair in the closing exchange, with its other messages.
const CLOSING: f64 = 12.0;
/// Agreements and broadcasts after the turns.
const AGREEMENTS: f64 = 7.0;
/// Solutions after the turns: rates, offsets, and the exchanges around them.
const SOLUTIONS: f64 = 3.0;
/// What follows the turns can take longer than it did before them.
const MARGIN: f64 = 1.05;
/// Share of the remaining time that a batch of turns fills.
const BATCH_SHARE_OF_REST: f64 = 0.6;
/// Share of the time until the end that a batch takes at most: messages may become slow
/// during it.
const BATCH_SHARE_OF_TIME: f64 = 0.05;
/// Batches may take that many times as long as the agreement after them.
const AGREEMENTS_PER_BATCH: f64 = 50.0;
/// Effort of a solution: a second pass over all edges could take any time.
const EFFORT: Effort = Effort {
    left: 1e-5,
    tolerated: f64::INFINITY,
};

/// Level of a synchronization. Times and durations are in nanoseconds, times since the
/// begin of the synchronization.
pub(super) struct Level<'a, K> {
    pub(super) clock: &'a FineClock<'a, K>,
    /// Time when the clock shows 0.
    pub(super) at_epoch: f64,
    /// Duration of an exchange with the parent in a node, over all levels of the tree.
    pub(super) in_node: f64,
    /// Time at which all must be done, with the closing exchange.
    pub(super) end: f64,
}

/// Turns of a level, by the ranks that took longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LevelTurns {
    /// Time in turns beyond the fewest.
    pub(super) spare: f64,
    /// Mean duration of an exchange in the quickest turn, by the slowest and by the
    /// quickest pair.
    pub(super) slowest: f64,
    pub(super) quickest: f64,
    /// Time that the closing exchange and the agreements need between these ranks.
    pub(super) closing: f64,
}

/// Durations of the parts of a level before its turns.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// An exchange with each neighbour.
    exchange: f64,
    solution: f64,
    agreement: f64,
    in_node: f64,
}

impl Costs {
    /// Returns the time that everything after the turns takes.
    fn time_after_turns(self) -> f64 {
        MARGIN * SOLUTIONS * self.solution + self.closing()
    }

    /// Returns the time that the closing exchange and the agreements take.
    fn closing(self) -> f64 {
        MARGIN * (AGREEMENTS * self.agreement + CLOSING * (self.exchange + self.in_node))
    }
}

impl<K: Clock> Level<'_, K> {
    /// Plays as many turns between the ranks as fit, and learns the clock of this rank.
    pub(super) async fn learn_clock<M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<(RankResult, Option<LevelTurns>), CommError> {
        if comm.size() == 1 {
            return Ok((Ok(me.own()), None));
        }
        let mut turns = Turns::new(self, comm);
        let (costs, now) = Box::pin(self.rehearse(&mut turns)).await?;
        let end = self.end - costs.time_after_turns();
        let spare = Box::pin(turns.play_until(end, costs, now)).await?;
        let learned = Box::pin(learn_clock(me, comm, self.clock, &turns.edges, EFFORT)).await?;
        let exchanges = || turns.edges.iter().map(|edge| edge.quickest_exchange);
        let played = LevelTurns {
            spare,
            slowest: exchanges().fold(0.0, f64::max),
            quickest: exchanges().fold(f64::INFINITY, f64::min),
            closing: costs.closing(),
        };
        Ok((learned, Some(played)))
    }

    /// Does once what follows the turns, to see how long it takes, and plays the first
    /// turns. Returns the time at the end, too.
    async fn rehearse<M: Comm>(
        &self,
        turns: &mut Turns<'_, K, M>,
    ) -> Result<(Costs, f64), CommError> {
        let comm = turns.comm;
        // Opens connections.
        for edge in &mut neighbours(comm.rank(), comm.size()).collect::<Vec<_>>() {
            edge.play(self.clock, comm, 0, 1).await?;
        }
        greatest(comm, [0.0]).await?;
        let began = self.clock.now();
        let zero = turns.edges.iter();
        let zero = zero.map(|edge| MeasuredDifference::new(comm.rank(), edge.peer, 0.0));
        solve(comm, zero.collect(), EFFORT).await?;
        let solved = self.clock.now();
        greatest(comm, [0.0]).await?;
        let agreed = self.clock.now();
        let mut exchange = f64::INFINITY;
        for _ in 0..PROBES {
            exchange = exchange.min(turns.play(1, PROBE).await? / f64::from(PROBE));
        }
        let (solution, agreement) = (solved - began, agreed - solved);
        let own = [exchange, solution, agreement, self.in_node, turns.now()];
        let [exchange, solution, agreement, in_node, now] = greatest(comm, own).await?;
        let costs = Costs {
            // A clock of coarse steps may show none.
            exchange: exchange.max(1.0),
            solution,
            agreement,
            in_node,
        };
        Ok((costs, now))
    }
}

/// Turns with all neighbours.
struct Turns<'a, K, M> {
    level: &'a Level<'a, K>,
    comm: &'a M,
    edges: Vec<CubeEdge>,
    played: u32,
}

impl<'a, K: Clock, M: Comm> Turns<'a, K, M> {
    fn new(level: &'a Level<'a, K>, comm: &'a M) -> Self {
        Self {
            level,
            comm,
            edges: neighbours(comm.rank(), comm.size()).collect(),
            played: 0,
        }
    }

    /// Returns the time since the begin of the synchronization.
    fn now(&self) -> f64 {
        self.level.at_epoch + self.level.clock.now()
    }

    /// Plays turns; returns the mean duration of one.
    async fn play(&mut self, turns: u32, exchanges: u32) -> Result<f64, CommError> {
        let began = self.now();
        for _ in 0..turns {
            for edge in &mut self.edges {
                edge.play(self.level.clock, self.comm, self.played, exchanges)
                    .await?;
            }
            self.played += 1;
        }
        Ok((self.now() - began) / f64::from(turns))
    }

    /// Plays turns until less than one is left before `end`. Returns the time of those
    /// beyond the fewest.
    async fn play_until(&mut self, end: f64, costs: Costs, began: f64) -> Result<f64, CommError> {
        // An edge has about as many turns as exchanges in a turn.
        let fit = ((end - began) / costs.exchange).max(1.0);
        let exchanges = fit
            .sqrt()
            .clamp(LEAST_EXCHANGES, MOST_EXCHANGES)
            .max(fit / MOST_TURNS) as u32;
        let longest = (BATCH_SHARE_OF_TIME * end).max(AGREEMENTS_PER_BATCH * costs.agreement);
        let (mut now, mut takes) = (began, f64::from(exchanges) * costs.exchange);
        loop {
            let fit = (end - now - costs.agreement) / takes;
            if fit < 1.0 && self.played >= PROBES + LEAST_TURNS {
                break;
            }
            let turns = if fit < 3.0 {
                fit
            } else {
                BATCH_SHARE_OF_REST * fit
            };
            let turns = turns.min(longest / takes).clamp(1.0, MOST_TURNS) as u32;
            let own = self.play(turns, exchanges).await?.max(1.0);
            [takes, now] = greatest(self.comm, [own, self.now()]).await?;
        }
        let least = f64::from(LEAST_TURNS) * LEAST_EXCHANGES * costs.exchange;
        Ok((now - began - least).max(0.0))
    }
}
