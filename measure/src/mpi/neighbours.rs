//! Neighbours of ranks on a ring, for neighborhood collectives.

/// Ranks from which a rank receives, and to which it sends, in the order of the blocks: a block is received by the neighbour on one side
/// as what comes from the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neighbours {
    pub(super) sources: Vec<u32>,
    pub(super) destinations: Vec<u32>,
}

impl Neighbours {
    /// Returns the neighbours at distances up to `radius` on both sides.
    pub(super) fn of(rank: u32, ranks: u32, radius: u32) -> Self {
        let at = |distance: i64| (i64::from(rank) + distance).rem_euclid(ranks.into()) as u32;
        let distances = (1..=i64::from(radius)).flat_map(|distance| [-distance, distance]);
        Self {
            sources: distances.clone().map(at).collect(),
            destinations: distances.map(|distance| at(-distance)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_arrives_where_the_neighbour_expects_it() {
        for (ranks, radius) in [(1, 1), (2, 1), (3, 1), (5, 2), (3, 4)] {
            let of = |rank| Neighbours::of(rank, ranks, radius);
            for rank in 0..ranks {
                assert_eq!(of(rank).sources.len() as u32, 2 * radius);
                for (block, to) in of(rank).destinations.into_iter().enumerate() {
                    assert_eq!(of(to).sources[block], rank, "{rank} of {ranks}, {radius}");
                }
            }
        }
        assert_eq!(Neighbours::of(0, 7, 2).sources, [6, 1, 5, 2]);
        assert_eq!(Neighbours::of(0, 7, 2).destinations, [1, 6, 2, 5]);
    }
}
