//! Default algorithms: what is used where none is named, and what labels without parameters mean.
//!
//! | ranks | between nodes | within a node |
//! |---|---|---|
//! | MPI processes, threads and simulated ranks, on any number of nodes | `cube/1000/100` | `prop` |
//!
//! One row is enough: with as many messages, the cube is nowhere found less accurate than HCA3. Between two processes its true error is
//! 0.50 times that of HCA3 right after (95 % interval 0.32 to 0.80, 40 pairs of runs), and 0.86 times (0.47 to 1.59) ten seconds later;
//! on three nodes and more it is more accurate by far. `downbeat-mpi sync` compares them between processes, the benchmark `cube` on
//! simulated clusters.

use core::num::NonZeroU32;

use super::{Algorithm, Cube, CubeLength, FlatAlgorithm, Hierarchy};
use crate::line::LineFit;
use crate::{OffsetAlgorithm, PlaceLevel};

const HUNDRED: NonZeroU32 = NonZeroU32::new(100).unwrap();
const THOUSAND: NonZeroU32 = NonZeroU32::new(1000).unwrap();

impl Default for LineFit {
    /// Returns `1000/skampi/100`.
    fn default() -> Self {
        Self {
            fit_points: THOUSAND,
            offset: OffsetAlgorithm::default(),
            recompute: false,
            weighted: false,
        }
    }
}

impl Default for Cube {
    /// Returns `cube/1000/100`: as many messages of a pair as by `hca3/1000/skampi/100`.
    fn default() -> Self {
        Self {
            length: CubeLength::Turns(THOUSAND),
            exchanges: HUNDRED,
        }
    }
}

impl Default for Hierarchy {
    /// Returns `h2hca(cube/1000/100,prop)`: a cube between nodes, whose ranks share a clock.
    fn default() -> Self {
        let nodes = FlatAlgorithm::Cube(Cube::default());
        Self::new(PlaceLevel::Node, nodes, FlatAlgorithm::Prop)
    }
}

impl Hierarchy {
    /// Returns `h3hca(cube/1000/100,cube/1000/100,prop)`, for nodes whose sockets do not share a clock.
    pub(super) fn three_levels() -> Self {
        let sockets = FlatAlgorithm::Cube(Cube::default());
        Self::default().between(PlaceLevel::Socket, sockets)
    }
}

impl Default for Algorithm {
    /// Returns `h2hca(cube/1000/100,prop)`.
    fn default() -> Self {
        Self::Hierarchy(Hierarchy::default())
    }
}

impl Algorithm {
    /// Returns the default algorithm for ranks of which those on one node share a clock, or
    /// `cube/1000/100` for ranks with a clock each, as under artificial errors per rank.
    pub fn default_for(ranks_share_clocks: bool) -> Self {
        if ranks_share_clocks {
            Self::default()
        } else {
            Self::FlatAlgorithm(FlatAlgorithm::Cube(Cube::default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_a_clock_each_propagate_none() {
        let labels = [true, false].map(|shared| Algorithm::default_for(shared).to_string());
        assert_eq!(labels, ["h2hca(cube/1000/100,prop)", "cube/1000/100"]);
    }
}
