//! Cube synchronization: all ranks measure at once, along the edges of a hypercube, and least squares over all edges give their clocks.
//!
//! In the trees of the papers most ranks are idle in most rounds, and each hop adds an error. Here every rank measures in every slot, each
//! edge over the whole session, and errors are averaged around the cycles of the cube.

mod edge;
mod edge_line;
mod least_squares;

use core::num::NonZeroU32;

use downbeat_clock_core::{Clock, ClockModel, Duration, Global, Local, TickRate, Timestamp};

use super::local_clock::{Attempt, LocalClock, RankResult};
use crate::collective::{barrier, broadcast};
use crate::line::{LearnedModel, rounded};
use crate::payload::payload_of_fields;
use crate::quality::{ExplainedError, FarEdge, Quality};
use crate::session::resolution;
use crate::stated_error::{StatedError, allowance_for_few};
use crate::{Comm, CommError, SyncError};
use edge_line::EdgeLine;
use least_squares::dimensions;

use edge::scatter_at_end;
pub(crate) use edge::{CubeEdge, FineClock, TurnLimits, fit_lines};
pub(crate) use edge_line::ClockLimits;
pub(crate) use least_squares::{Effort, MeasuredDifference, Solution, exchange, greatest, solve};

/// In slot `k` of every turn, each rank exchanges messages with the rank whose number differs in bit `k`, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cube {
    /// Length of the session.
    pub length: CubeLength,
    /// Number of exchanges with each neighbour in a turn.
    pub exchanges: NonZeroU32,
}

/// Length of the session of a cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CubeLength {
    /// Number of turns over all slots.
    Turns(NonZeroU32),
    /// As many turns as take about this time, as those before show; at least one.
    Lasting(Duration),
}

/// Maximum number of turns of a session that is limited by its duration.
pub(super) const MOST_TURNS: f64 = 100_000.0;

impl Cube {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        let clock = FineClock::new(me.clock, me.base.rate());
        let edges = self.measure(&clock, comm).await?;
        learn_clock(me, comm, &clock, &edges, Effort::FULL).await
    }

    /// Plays all turns with all neighbours.
    async fn measure<K: Clock, M: Comm>(
        &self,
        clock: &FineClock<'_, K>,
        comm: &M,
    ) -> Result<Vec<CubeEdge>, CommError> {
        let mut edges: Vec<CubeEdge> = neighbours(comm.rank(), comm.size()).collect();
        let mut turns = match self.length {
            CubeLength::Turns(turns) => turns.get(),
            CubeLength::Lasting(_) => {
                // Below another level of a hierarchy, ranks wait for the ranks of that level:
                // this is no duration of a turn.
                barrier(comm).await?;
                1
            }
        };
        let (began, mut turn) = (clock.now(), 0);
        // As the first turn of a pair can take much longer, the number is determined again whenever the turns have doubled.
        while turn < turns {
            for edge in &mut edges {
                edge.play(clock, comm, turn, self.exchanges.get()).await?;
            }
            turn += 1;
            if let (CubeLength::Lasting(time), true) = (self.length, turn == turns) {
                let fit = turns_within(comm, time, (clock.now() - began) / f64::from(turn)).await?;
                turns = fit.min(2 * turn);
            }
        }
        Ok(edges)
    }
}

/// Finds the global clock of this rank by what was measured on all edges.
pub(super) async fn learn_clock<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    comm: &M,
    clock: &FineClock<'_, K>,
    edges: &[CubeEdge],
    effort: Effort,
) -> Result<RankResult, CommError> {
    let own = ClockLimits {
        rank: me.quality.rank,
        // The model of a level above can be steeper than the clock.
        drift: me.max_drift + me.quality.explained.drift,
        grain: resolution(me.clock, &me.base).as_nanos() as f64,
    };
    let limits = exchange(comm, edges.iter().map(|edge| edge.peer), own).await?;
    let (lines, fault) = fit_lines(edges, own, &limits);
    let rate = solve_rates(comm, edges, &lines, effort).await?;
    let solution = solve_offsets(comm, edges, &lines, rate, effort).await?;
    let scatter = scatter_at_end(edges, &lines);
    let first = FirstRank {
        origin: me.base.apply(clock.epoch),
        scatter,
    };
    let first = broadcast(comm, first).await?;
    let of_first = broadcast(comm, me.quality).await?;
    let explained = largest_errors(comm, &lines).await?;
    if let Some((edge, why)) = fault {
        return Ok(Err(SyncError::Fit(why).against(edges[edge].peer)));
    }
    let far_edge = solution.far.map(|(edge, residual)| FarEdge {
        ranks: [limits[edge].rank, own.rank],
        by: rounded(residual),
    });
    if comm.rank() == 0 {
        let own = me.own();
        let quality = Quality {
            far_edge,
            ..own.quality
        };
        return Ok(Ok(Attempt { quality, ..own }));
    }
    let deviations = lines.iter().map(|line| line.deviation);
    let quality = Quality {
        residual_deviation: deviations.chain([solution.disagreement]).reduce(f64::max),
        stated_error: first
            .scatter
            .zip(scatter)
            .map(|(of_first, own)| of_first.hypot(own))
            .map(|scatter| stated_error(&solution, scatter, lines.len(), comm.size())),
        explained,
        far_edge,
        ..Quality::default()
    }
    .combine(of_first);
    Ok(model(me, clock, first.origin, [rate, solution.value])
        .and_then(|model| me.learned(LearnedModel { model, quality })))
}

/// Returns the number of turns that fit into a time, on which all ranks agree, if one takes this rank that many nanoseconds.
async fn turns_within<M: Comm>(comm: &M, time: Duration, takes: f64) -> Result<u32, CommError> {
    let [longest] = greatest(comm, [takes.max(1.0)]).await?;
    let turns = time.as_nanos() as f64 / longest;
    Ok(turns.clamp(1.0, MOST_TURNS) as u32)
}

/// Returns the edges of a rank in the incomplete hypercube of any number of ranks, in the order of their dimensions.
pub(crate) fn neighbours(rank: u32, size: u32) -> impl Iterator<Item = CubeEdge> {
    (0..dimensions(size))
        .map(move |dimension| CubeEdge::new(rank, dimension))
        .filter(move |edge| edge.peer < size)
}

/// Finds the rate of each rank in relation to rank 0, as a logarithm: these add up along a path.
async fn solve_rates<M: Comm>(
    comm: &M,
    edges: &[CubeEdge],
    lines: &[EdgeLine],
    effort: Effort,
) -> Result<f64, CommError> {
    let rates = edges
        .iter()
        .zip(lines)
        .map(|(edge, line)| MeasuredDifference::new(comm.rank(), edge.peer, line.slope.ln_1p()));
    Ok(solve(comm, rates.collect(), effort).await?.value)
}

/// Finds the global times at which the clocks were 0, in relation to rank 0.
async fn solve_offsets<M: Comm>(
    comm: &M,
    edges: &[CubeEdge],
    lines: &[EdgeLine],
    rate: f64,
    effort: Effort,
) -> Result<Solution, CommError> {
    let rates = exchange(comm, edges.iter().map(|edge| edge.peer), rate).await?;
    let offset = |((edge, line), theirs): ((&CubeEdge, &EdgeLine), f64)| {
        let [low, high] = edge.low_first(rate, theirs);
        // Without the loss of digits of a difference of large numbers.
        let difference =
            line.at * (-low).exp_m1() - (line.at + line.ahead) * (-high).exp_m1() - line.ahead;
        MeasuredDifference::new(comm.rank(), edge.peer, difference)
    };
    let offsets = edges.iter().zip(lines).zip(rates).map(offset);
    solve(comm, offsets.collect(), effort).await
}

/// Returns the error of a clock that the measurements explain: a path has at most one edge of each dimension.
async fn largest_errors<M: Comm>(
    comm: &M,
    lines: &[EdgeLine],
) -> Result<ExplainedError, CommError> {
    let largest = |value: fn(&EdgeLine) -> f64| lines.iter().map(value).fold(0.0, f64::max);
    let own = [largest(|line| line.error), largest(|line| line.drift_error)];
    let [error, drift] = greatest(comm, own).await?;
    let hops = f64::from(u32::BITS - comm.size().leading_zeros());
    Ok(ExplainedError {
        offset: rounded(hops * error),
        drift: hops * drift,
    })
}

/// Figures that rank 0 tells all others.
#[derive(Clone, Copy, Debug)]
struct FirstRank {
    /// Its time when its clock showed 0.
    origin: Timestamp<Local>,
    scatter: Option<f64>,
}

payload_of_fields!([] FirstRank { origin, scatter });

/// Returns the error of a clock in relation to rank 0, given the scatter of both. Where
/// there are cycles, the edges of both ranks are side by side, and what is between them
/// has many paths, so that it hardly counts.
fn stated_error(solution: &Solution, scatter: f64, edges: usize, ranks: u32) -> StatedError {
    match solution.edge_error {
        Some(error) => {
            let error = error * error_by_edges(edges, ranks);
            StatedError::Error(scatter.hypot(error * allowance_for_few(solution.cycles)))
        }
        None => StatedError::Scatter(scatter),
    }
}

/// Returns the standard error of a rank with this number of edges in relation to rank 0, as a multiple of that of an edge.
pub(crate) fn error_by_edges(edges: usize, ranks: u32) -> f64 {
    let of_first = dimensions(ranks);
    (1.0 / f64::from(of_first) + 1.0 / edges as f64).sqrt()
}

/// Returns the model of a clock whose rate, as a logarithm, and global time at its epoch since that of rank 0 are known.
fn model<K: Clock>(
    me: &LocalClock<'_, K>,
    clock: &FineClock<'_, K>,
    origin: Timestamp<Local>,
    [rate, offset]: [f64; 2],
) -> Result<ClockModel<Local, Global>, SyncError> {
    let global =
        Timestamp::from_nanos(origin.as_nanos().saturating_add(rounded(offset).as_nanos()));
    let rate = TickRate::NANOSECOND.with_drift((-rate).exp_m1())?;
    Ok(ClockModel::through(
        me.base.apply(clock.epoch),
        global,
        rate,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_mutual_and_connect_all_ranks() {
        for size in [1_u32, 2, 3, 5, 8, 17, 100, 257] {
            let mut reached = vec![false; size as usize];
            reached[0] = true;
            for rank in 0..size {
                for edge in neighbours(rank, size) {
                    let back = neighbours(edge.peer, size).find(|back| back.peer == rank);
                    assert_eq!(back.unwrap().dimension, edge.dimension);
                }
                // A rank is connected to the one without its highest bit.
                if let Some(lower) = neighbours(rank, size).find(|edge| edge.peer < rank) {
                    reached[rank as usize] = reached[lower.peer as usize];
                }
            }
            assert!(reached.into_iter().all(|reached| reached), "{size}");
        }
    }
}
