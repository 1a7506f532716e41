//! Pairs of clients and references in a logarithmic number of rounds.
//!
//! The ranks below the largest power of two form a binomial tree with rank 0 at its root. Each remaining rank is a client
//! of one of them. In a round all pairs work at the same time.

/// The role of a rank in one step of a synchronization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PairRole {
    /// The rank is the reference of this client.
    ReferenceOf(u32),
    /// The rank is a client of this reference.
    ClientOf(u32),
}

/// A binomial tree of ranks.
///
/// ```
/// use downbeat_clock_core::tree::{BinomialTree, PairRole};
///
/// // Six ranks: 0 to 3 are the tree, 4 and 5 are clients of 0 and 1.
/// let tree = BinomialTree::new(6);
/// assert!(tree.downwards(0).eq([PairRole::ReferenceOf(2), PairRole::ReferenceOf(1)]));
/// assert!(tree.downwards(2).eq([PairRole::ClientOf(0), PairRole::ReferenceOf(3)]));
/// assert!(tree.upwards(2).eq([PairRole::ReferenceOf(3), PairRole::ClientOf(0)]));
/// assert_eq!(tree.beyond(1), Some(PairRole::ReferenceOf(5)));
/// assert_eq!(tree.beyond(5), Some(PairRole::ClientOf(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinomialTree {
    ranks: u32,
    /// Binary logarithm of the number of ranks in the tree.
    rounds: u32,
}

impl BinomialTree {
    /// The tree of `ranks` ranks; without ranks, it has no roles.
    pub const fn new(ranks: u32) -> Self {
        Self {
            ranks,
            rounds: if ranks == 0 { 0 } else { ranks.ilog2() },
        }
    }

    /// Roles of a rank from the root to the leaves: first a client, then a reference.
    pub fn downwards(self, rank: u32) -> impl Iterator<Item = PairRole> {
        (0..self.rounds)
            .rev()
            .filter_map(move |round| self.role(rank, round))
    }

    /// Roles of a rank from the leaves to the root: first a reference, then a client.
    pub fn upwards(self, rank: u32) -> impl Iterator<Item = PairRole> {
        (0..self.rounds).filter_map(move |round| self.role(rank, round))
    }

    /// Role of a rank in the step outside the tree: the ranks beyond the tree are clients of those in it.
    pub fn beyond(self, rank: u32) -> Option<PairRole> {
        let inside = 1 << self.rounds;
        if rank >= inside {
            return (rank < self.ranks).then(|| PairRole::ClientOf(rank - inside));
        }
        // Both are below 2^31, otherwise no rank is beyond the tree.
        rank.checked_add(inside)
            .filter(|client| *client < self.ranks)
            .map(PairRole::ReferenceOf)
    }

    /// Roles of a rank when all ranks get something from rank 0, in order.
    pub fn roles_from_root(self, rank: u32) -> impl Iterator<Item = PairRole> {
        self.downwards(rank).chain(self.beyond(rank))
    }

    /// Roles of a rank when all ranks give something to rank 0, in order.
    pub fn roles_to_root(self, rank: u32) -> impl Iterator<Item = PairRole> {
        self.beyond(rank).into_iter().chain(self.upwards(rank))
    }

    /// Role in round `i`: multiples of `2^(i + 1)` are references of the ranks `2^i` after them.
    fn role(self, rank: u32, round: u32) -> Option<PairRole> {
        let apart = 1 << round;
        if rank >> self.rounds != 0 || rank % apart != 0 {
            return None;
        }
        Some(if rank & apart == 0 {
            PairRole::ReferenceOf(rank + apart)
        } else {
            PairRole::ClientOf(rank - apart)
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn all_ranks_except_the_root_are_clients_once_and_pairs_agree() {
        for ranks in 0..70 {
            let tree = BinomialTree::new(ranks);
            let roles = |rank| {
                tree.downwards(rank)
                    .chain(tree.beyond(rank))
                    .collect::<Vec<_>>()
            };
            for rank in 0..ranks {
                let references: Vec<_> = roles(rank)
                    .into_iter()
                    .filter(|r| matches!(r, PairRole::ClientOf(_)))
                    .collect();
                assert_eq!(
                    references.len(),
                    usize::from(rank != 0),
                    "rank {rank} of {ranks}"
                );
                for role in roles(rank) {
                    let (other, mirrored) = match role {
                        PairRole::ReferenceOf(client) => (client, PairRole::ClientOf(rank)),
                        PairRole::ClientOf(reference) => (reference, PairRole::ReferenceOf(rank)),
                    };
                    assert!(
                        other < ranks && roles(other).contains(&mirrored),
                        "{rank} and {other} of {ranks}"
                    );
                }
            }
        }
    }

    #[test]
    fn downwards_a_rank_is_a_client_first_and_upwards_last() {
        let tree = BinomialTree::new(64);
        for rank in 1..64 {
            assert!(matches!(
                tree.downwards(rank).next(),
                Some(PairRole::ClientOf(_))
            ));
            assert!(matches!(
                tree.upwards(rank).last(),
                Some(PairRole::ClientOf(_))
            ));
        }
    }

    #[test]
    fn upwards_is_downwards_reversed() {
        for ranks in 1..40 {
            let tree = BinomialTree::new(ranks);
            for rank in 0..ranks {
                let mut down: Vec<_> = tree.downwards(rank).collect();
                down.reverse();
                assert_eq!(tree.upwards(rank).collect::<Vec<_>>(), down);
            }
        }
    }

    #[test]
    fn the_largest_number_of_ranks_does_not_overflow() {
        let tree = BinomialTree::new(u32::MAX);
        assert_eq!(tree.beyond(0), Some(PairRole::ReferenceOf(1 << 31)));
        assert_eq!(
            tree.beyond(u32::MAX - 1),
            Some(PairRole::ClientOf((1 << 31) - 2))
        );
        assert_eq!(tree.beyond((1 << 31) - 1), None);
        assert_eq!(
            tree.downwards(0).next(),
            Some(PairRole::ReferenceOf(1 << 30))
        );
    }
}
