//! Least squares over all edges, by messages along them: no rank knows the whole cube.

use crate::collective::{all_reduce, broadcast};
use crate::payload::Payload;
use crate::{Comm, CommError};

/// Measured difference of a value of this rank from that of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredDifference {
    peer: u32,
    difference: f64,
    /// Weight, the same at both ends.
    weight: f64,
}

impl MeasuredDifference {
    /// Creates the difference from that of the higher rank to the lower.
    pub(crate) fn new(rank: u32, peer: u32, high_minus_low: f64) -> Self {
        Self {
            peer,
            difference: if rank > peer {
                high_minus_low
            } else {
                -high_minus_low
            },
            weight: 1.0,
        }
    }
}

/// Share of the first residual at which conjugate gradients end.
const TOLERANCE: f64 = 1e-7;
/// Maximum number of iterations: more edges than that do not disagree independently.
const MOST: u32 = 200;
/// Residuals are far from consensus if they exceed the largest that is expected of that many normally distributed ones by this multiple of
/// their root mean square: a second pass takes as long as a turn, and no edge is named by chance.
const BEYOND_LARGEST: f64 = 1.3;
/// Multiple of the root mean square from which on residuals count less in a second pass.
const USUAL: f64 = 2.0;

/// Effort of a solution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Share of what edges disagree by that an iteration leaves at most, where the
    /// solution is not exact.
    pub(crate) left: f64,
    /// Where the furthest residual exceeds the largest that is expected by no more than this multiple of the usual one, the second pass is a
    /// correction of the ranks of such edges alone, which takes no longer than a broadcast.
    pub(crate) tolerated: f64,
}

impl Effort {
    /// Leaves nothing that counts, also of a millisecond.
    pub(crate) const FULL: Self = Self {
        left: 1e-7,
        tolerated: BEYOND_LARGEST,
    };
}

/// Values that fit all edges best.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solution {
    /// Value of this rank, in relation to that of rank 0.
    pub(crate) value: f64,
    /// Root mean square of what edges disagree by around cycles, over all ranks.
    pub(super) disagreement: f64,
    /// Standard error of an edge, if there are cycles that show it.
    pub(crate) edge_error: Option<f64>,
    /// Number of independent cycles.
    pub(super) cycles: f64,
    /// Place of this rank's edge furthest from consensus among its edges, if one is far from it, and the residual.
    pub(super) far: Option<(usize, f64)>,
}

/// Finds the values that fit all edges best. All ranks call this.
///
/// Edges far from consensus count less in a second pass.
pub(crate) async fn solve<M: Comm>(
    comm: &M,
    mut edges: Vec<MeasuredDifference>,
    effort: Effort,
) -> Result<Solution, CommError> {
    let value = match comm.size().is_power_of_two() {
        true => Box::pin(walsh_hadamard(comm, &edges)).await?,
        false => Box::pin(from_tree(comm, &edges, effort.left)).await?,
    };
    let Residuals {
        own: residuals,
        usual,
        furthest,
        all_edges,
    } = Box::pin(residuals(comm, &edges, value)).await?;
    // Each value but that of rank 0 takes up the error of one edge.
    let values = f64::from(comm.size()) - 1.0;
    let cycles = all_edges - values;
    let edge_error = (cycles > 0.5).then(|| usual * (all_edges / cycles).sqrt());
    let expected = (2.0 * all_edges.max(1.0).ln()).sqrt();
    let limit = |beyond: f64| (expected + beyond) * usual;
    let found = Solution {
        value,
        disagreement: usual,
        edge_error,
        cycles,
        far: None,
    };
    if usual <= 0.0 || furthest <= limit(BEYOND_LARGEST) {
        return Ok(found);
    }
    for (edge, residual) in edges.iter_mut().zip(&residuals) {
        let far = residual.abs() / (USUAL * usual);
        edge.weight = if far > 1.0 { far.powi(-4) } else { 1.0 };
    }
    let value = if furthest <= limit(effort.tolerated) {
        // A rank takes up half of the share of an error that its edge leaves to values; others hardly any.
        let share = 0.5 * values / cycles.max(1.0);
        let taken =
            |(edge, residual): (&MeasuredDifference, &f64)| (1.0 - edge.weight) * share * residual;
        let taken: f64 = edges.iter().zip(&residuals).map(taken).sum();
        from_first(comm, value - taken).await?
    } else {
        Box::pin(conjugate_gradients(comm, &edges)).await?
    };
    let far = residuals.into_iter().enumerate();
    let far = far.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    Ok(Solution {
        value,
        far: far.filter(|(_, residual)| residual.abs() > limit(BEYOND_LARGEST)),
        ..found
    })
}

/// Solves from values along a tree of edges: what edges disagree by is small, where their
/// differences are large.
async fn from_tree<M: Comm>(
    comm: &M,
    edges: &[MeasuredDifference],
    left: f64,
) -> Result<f64, CommError> {
    let start = along_tree(comm, edges).await?;
    let others = exchange(comm, peers(edges), start).await?;
    let rest = edges.iter().zip(&others);
    let rest = rest.map(|(edge, other)| MeasuredDifference {
        difference: edge.difference - (start - other),
        ..*edge
    });
    let rest: Vec<MeasuredDifference> = rest.collect();
    Ok(start + chebyshev(comm, &rest, left).await?)
}

/// Returns the value of this rank by a tree of edges: each rank has its parent where its
/// highest bit is missing.
async fn along_tree<M: Comm>(comm: &M, edges: &[MeasuredDifference]) -> Result<f64, CommError> {
    let rank = comm.rank();
    let parent_of = |rank: u32| rank.checked_ilog2().map(|highest| rank ^ 1 << highest);
    let to_parent = edges.iter().find(|edge| Some(edge.peer) == parent_of(rank));
    let mut value = 0.0;
    if let Some(edge) = to_parent {
        let of_parent: f64 = comm.recv(edge.peer).await?;
        value = of_parent + edge.difference;
    }
    for child in peers(edges).filter(|peer| parent_of(*peer) == Some(rank)) {
        comm.send(child, value).await?;
    }
    Ok(value)
}

/// Sends a value to these ranks; returns theirs.
pub(crate) async fn exchange<M: Comm, P: Payload>(
    comm: &M,
    peers: impl Iterator<Item = u32> + Clone,
    own: P,
) -> Result<Vec<P>, CommError> {
    for peer in peers.clone() {
        comm.send(peer, own).await?;
    }
    let mut all = Vec::with_capacity(peers.size_hint().0);
    for peer in peers {
        all.push(comm.recv(peer).await?);
    }
    Ok(all)
}

/// Ranks at the other ends of edges.
fn peers(edges: &[MeasuredDifference]) -> impl Iterator<Item = u32> + Clone {
    edges.iter().map(|edge| edge.peer)
}

/// Returns the sum of a value over all ranks.
async fn sum<M: Comm>(comm: &M, own: f64) -> Result<f64, CommError> {
    all_reduce(comm, own, |a, b| a + b).await
}

/// Returns the greatest of values over all ranks.
pub(crate) async fn greatest<M: Comm, const N: usize>(
    comm: &M,
    own: [f64; N],
) -> Result<[f64; N], CommError> {
    all_reduce(comm, own, |a, b| core::array::from_fn(|i| a[i].max(b[i]))).await
}

/// Returns the value in relation to that of rank 0.
async fn from_first<M: Comm>(comm: &M, value: f64) -> Result<f64, CommError> {
    let first = broadcast(comm, value).await?;
    Ok(value - first)
}

/// Differences of what edges measured from what all edges together give.
struct Residuals {
    /// Those of this rank's edges.
    own: Vec<f64>,
    /// Root mean square of all, the greatest, and their number: the same on all ranks, which decide alike.
    usual: f64,
    furthest: f64,
    all_edges: f64,
}

async fn residuals<M: Comm>(
    comm: &M,
    edges: &[MeasuredDifference],
    value: f64,
) -> Result<Residuals, CommError> {
    let others = exchange(comm, peers(edges), value).await?;
    let residual = |(edge, other): (&MeasuredDifference, &f64)| edge.difference - (value - other);
    let own: Vec<f64> = edges.iter().zip(&others).map(residual).collect();
    let squares: f64 = own.iter().map(|residual| residual.powi(2)).sum();
    let furthest = own.iter().map(|residual| residual.abs());
    let mine = [squares, own.len() as f64, furthest.fold(0.0, f64::max)];
    let combine = |a: [f64; 3], b: [f64; 3]| [a[0] + b[0], a[1] + b[1], a[2].max(b[2])];
    let [squares, count, furthest] = all_reduce(comm, mine, combine).await?;
    Ok(Residuals {
        own,
        usual: (squares / count.max(1.0)).sqrt(),
        furthest,
        // Both ranks of an edge have counted it.
        all_edges: 0.5 * count,
    })
}

/// Returns the number of dimensions of the cube of this many ranks, complete or not.
pub(super) fn dimensions(ranks: u32) -> u32 {
    u32::BITS - ranks.saturating_sub(1).leading_zeros()
}

/// Solves by a Walsh-Hadamard transform there and back, which is exact for a whole cube whose edges have equal weights.
async fn walsh_hadamard<M: Comm>(comm: &M, edges: &[MeasuredDifference]) -> Result<f64, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut value: f64 = edges.iter().map(|edge| edge.difference).sum();
    for there in [true, false] {
        for dimension in 0..size.ilog2() {
            let peer = rank ^ 1 << dimension;
            comm.send(peer, value).await?;
            let theirs: f64 = comm.recv(peer).await?;
            value = if rank < peer {
                value + theirs
            } else {
                theirs - value
            };
        }
        if there {
            // Eigenvalues of the cube are twice the numbers of bits.
            value = match rank {
                0 => 0.0,
                _ => value / (2.0 * f64::from(rank.count_ones())),
            };
        }
    }
    from_first(comm, value / f64::from(size)).await
}

/// Solves by Chebyshev polynomials, which need no sums over all ranks, for edges of equal weights.
///
/// Relative to the diagonal, the eigenvalues of a cube of `d` dimensions are the even multiples of `1 / d` up to 2. Those of an incomplete one
/// are 2 at most, and at least `1 / d` but for 0: numerically, for all numbers of ranks up to 128 and many to 1,000, at least `1.05 / d`.
async fn chebyshev<M: Comm>(
    comm: &M,
    edges: &[MeasuredDifference],
    left: f64,
) -> Result<f64, CommError> {
    let [least, most] = [1.0 / f64::from(dimensions(comm.size())), 2.0];
    let (middle, half) = (f64::midpoint(least, most), 0.5 * (most - least));
    // The error shrinks by this in each iteration.
    let roots = (most / least).sqrt();
    let shrinking = (roots + 1.0) / (roots - 1.0);
    let iterations = ((2.0 / left).ln() / shrinking.ln()).ceil() as u32;
    let diagonal = edges.len().max(1) as f64;
    let mut residual = edges.iter().map(|edge| edge.difference).sum::<f64>() / diagonal;
    let (mut value, mut change, mut ratio) = (0.0, residual / middle, half / middle);
    for _ in 0..iterations {
        value += change;
        let others = exchange(comm, peers(edges), change).await?;
        residual -= others.iter().map(|other| change - other).sum::<f64>() / diagonal;
        let next = 1.0 / (2.0 * middle / half - ratio);
        change = next * ratio * change + 2.0 * next / half * residual;
        ratio = next;
    }
    from_first(comm, value).await
}

/// Solves by conjugate gradients with the diagonal as preconditioner, for edges of any weights.
async fn conjugate_gradients<M: Comm>(
    comm: &M,
    edges: &[MeasuredDifference],
) -> Result<f64, CommError> {
    let diagonal: f64 = edges.iter().map(|edge| edge.weight).sum();
    let scaled = |residual: f64| {
        if diagonal > 0.0 {
            residual / diagonal
        } else {
            0.0
        }
    };
    let mut value = 0.0;
    let mut residual: f64 = edges.iter().map(|edge| edge.weight * edge.difference).sum();
    let mut direction = scaled(residual);
    let mut norm = sum(comm, residual * direction).await?;
    let enough = norm * TOLERANCE * TOLERANCE;
    for _ in 0..MOST {
        // Both are equal on all ranks.
        if norm <= enough || norm <= 0.0 {
            break;
        }
        let others = exchange(comm, peers(edges), direction).await?;
        let terms = edges.iter().zip(&others);
        let applied: f64 = terms
            .map(|(edge, other)| edge.weight * (direction - other))
            .sum();
        let curvature = sum(comm, direction * applied).await?;
        if curvature <= 0.0 {
            break;
        }
        let step = norm / curvature;
        value += step * direction;
        residual -= step * applied;
        let next = sum(comm, residual * scaled(residual)).await?;
        direction = scaled(residual) + next / norm * direction;
        norm = next;
    }
    from_first(comm, value).await
}

#[cfg(test)]
mod tests {
    use super::super::neighbours;
    use super::*;
    use crate::{ThreadCluster, ThreadComm, block_on_ready};

    /// Value of a rank, of which neighbours measure the difference.
    fn truth(rank: u32) -> f64 {
        f64::from(rank * rank % 17) * 3.5 - f64::from(rank % 3)
    }

    fn solved(ranks: u32, error: impl Fn(u32, u32) -> f64 + Sync) -> Vec<f64> {
        let program = |comm: &ThreadComm| {
            let rank = comm.rank();
            let edges = neighbours(rank, ranks).map(|edge| {
                let [low, high] = [rank.min(edge.peer), rank.max(edge.peer)];
                let measured = truth(high) - truth(low) + error(low, high);
                MeasuredDifference::new(rank, edge.peer, measured)
            });
            block_on_ready(solve(comm, edges.collect(), Effort::FULL))
                .unwrap()
                .value
        };
        ThreadCluster::new(ranks).run(program).unwrap()
    }

    #[test]
    fn consistent_differences_are_solved_exactly() {
        for ranks in [1, 2, 3, 5, 8, 13, 37] {
            for (rank, found) in (0..).zip(solved(ranks, |_, _| 0.0)) {
                let expected = truth(rank) - truth(0);
                assert!(
                    (found - expected).abs() < 1e-7,
                    "{rank} of {ranks}: {found}"
                );
            }
        }
    }

    #[test]
    fn an_edge_far_from_consensus_hardly_counts() {
        let is_wrong = |low, high| (low, high) == (2, 3);
        let noise = |low: u32, high: u32| if (low + high) % 2 == 0 { 0.01 } else { -0.01 };
        let error = |low, high| {
            if is_wrong(low, high) {
                1_000.0
            } else {
                noise(low, high)
            }
        };
        let found = solved(16, error);
        for (rank, found) in (0..).zip(found) {
            let expected = truth(rank) - truth(0);
            // Hundreds would remain with equal weights.
            assert!(
                (found - expected).abs() < 40.0,
                "{rank}: {found} {expected}"
            );
        }
    }
}
