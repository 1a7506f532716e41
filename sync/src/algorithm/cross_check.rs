//! Comparison of learned clocks around cycles of ranks, after a synchronization along a
//! tree: what distorts all messages of a pair alike, the measurements of a tree cannot
//! show.
//!
//! Where there are several nodes, only their first ranks take part. So it also shows what
//! a network card did whose queue the messages of all ranks of a node filled.

use downbeat_clock_core::Clock;

use super::cube::{CubeEdge, FineClock, greatest, neighbours};
use super::local_clock::{Attempt, LocalClock};
use crate::collective::{all_reduce, all_true, broadcast};
use crate::stated_error::{StatedError, allowance_for_few};
use crate::{Comm, CommError, NodeComms};

/// Turns of the comparison, and exchanges with each neighbour in one.
const TURNS: u32 = 2;
const EXCHANGES: u32 = 20;

/// The messages of all ranks of a node fill its network card if an exchange takes this
/// multiple of what it takes the first ranks alone.
const SATURATED: f64 = 1.5;

/// Comparison of the clocks of a group of ranks.
#[derive(Clone, Copy, Debug, Default)]
struct GroupComparison {
    /// Error of a clock; 0 where nothing was compared.
    error: f64,
    /// 1 if there are cycles, around which what distorts all messages of a pair alike
    /// shows.
    has_cycles: f64,
    /// Mean duration of an exchange between the slowest pair, in nanoseconds.
    exchange: f64,
}

/// Compares the clocks that an algorithm gave, and makes what is stated about their
/// errors true, unless measurements around cycles did so: a cube of all ranks makes them
/// where it fills no cards.
///
/// Returns the multiple of its duration that an exchange took while all ranks exchanged
/// messages, if they filled the network cards.
pub(super) async fn check_around_cycles<K: Clock, M: Comm>(
    is_cube: bool,
    me: &LocalClock<'_, K>,
    attempt: &mut Attempt,
    comm: &M,
) -> Result<Option<f64>, CommError> {
    let stated = attempt.quality.stated_error;
    let is_error = stated.is_some_and(StatedError::is_error);
    if all_true(comm, is_error).await? && !is_cube {
        return Ok(None);
    }
    let split = match Box::pin(comm.by_node(me.placement.node)).await {
        Err(CommError::NoGroups) => return Ok(None),
        split => split?,
    };
    let NodeComms { node, firsts } = &*split;
    let nodes = firsts.as_ref().map_or(0, Comm::size);
    let [per_node, nodes] = greatest(comm, [node.size(), nodes].map(f64::from)).await?;
    let fills_cards = per_node > 1.0 && nodes > 1.0;
    if is_cube && !fills_cards {
        return Ok(None);
    }
    let mut together = GroupComparison::default();
    if is_cube {
        together = compare_along_cube(me, attempt, comm).await?;
    }
    let group = if nodes > 1.0 {
        firsts.as_ref()
    } else {
        Some(comm)
    };
    let is_compared = group.is_some();
    let mut alone = GroupComparison::default();
    if let Some(group) = group {
        alone = compare_along_cube(me, attempt, group).await?;
    }
    let own = [
        alone.error,
        alone.has_cycles,
        together.exchange,
        alone.exchange,
    ];
    let [error, has_cycles, together, alone] = greatest(comm, own).await?;
    let Some(scatter) = stated.or(is_compared.then_some(StatedError::NONE)) else {
        // Nothing is known of this clock.
        return Ok(None);
    };
    let error = error.max(scatter.nanos());
    if comm.rank() > 0 && has_cycles > 0.0 {
        attempt.quality.stated_error = Some(StatedError::Error(error));
    } else if comm.rank() > 0 && is_cube {
        // The cycles of its ranks do not show the queues of cards.
        attempt.quality.stated_error = Some(StatedError::Scatter(error));
    }
    Ok(Some(together / alone.max(1.0)).filter(|slower| *slower >= SATURATED))
}

/// Compares the clock of each rank of a group with its neighbours in a cube.
async fn compare_along_cube<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    attempt: &Attempt,
    comm: &M,
) -> Result<GroupComparison, CommError> {
    let model = &attempt.model;
    let origin = broadcast(comm, model.apply(me.clock.ticks())).await?;
    let clock = FineClock::of_model(me.clock, model, origin);
    let mut edges: Vec<CubeEdge> = neighbours(comm.rank(), comm.size()).collect();
    for turn in 0..TURNS {
        for edge in &mut edges {
            edge.play(&clock, comm, turn, EXCHANGES).await?;
        }
    }
    let exchanges = edges.iter().map(|edge| edge.quickest_exchange);
    let exchange = exchanges.fold(0.0, f64::max);
    let squares: f64 = edges.iter().map(|edge| edge.ahead().powi(2)).sum();
    let sums = [squares, edges.len() as f64];
    let sums = all_reduce(comm, sums, |a, b| [a[0] + b[0], a[1] + b[1]]).await?;
    // Both ranks of an edge have counted it.
    let [squares, edges] = sums.map(|sum| 0.5 * sum);
    let others = f64::from(comm.size()) - 1.0;
    let cycles = edges - others;
    let has_cycles = cycles > 0.5;
    let freedom = if has_cycles { cycles } else { edges.max(1.0) };
    let error = (squares / freedom).sqrt() * allowance_for_few(others);
    let has_cycles = f64::from(u8::from(has_cycles));
    Ok(GroupComparison {
        error,
        has_cycles,
        exchange,
    })
}
