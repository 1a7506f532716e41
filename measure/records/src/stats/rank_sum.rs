//! Exact distribution of the rank sum of two samples with the same distribution.

/// Sample sizes below this use the exact distribution, as in R.
pub(super) const COUNTABLE: usize = 50;

/// Number of interleavings of two samples with at most a number of pairs in which the value of the
/// first is larger.
#[derive(Debug)]
pub(super) struct RankSums {
    at_most: Vec<u128>,
}

impl RankSums {
    /// Counts the interleavings. Both sizes are below [`COUNTABLE`], so that no count exceeds
    /// `choose(98, 49)`, below 2^95.
    pub(super) fn count(first: usize, second: usize) -> Self {
        debug_assert!(first < COUNTABLE && second < COUNTABLE);
        let pairs = first * second;
        // The counts are coefficients of the Gaussian binomial, the product over i of (1 -
        // q^(second + i)) / (1 - q^i). Intermediate values may be negative: they wrap, and wrap
        // back.
        let mut ways = vec![0_u128; pairs + 1];
        ways[0] = 1;
        for i in 1..=first {
            for place in (second + i..=pairs).rev() {
                ways[place] = ways[place].wrapping_sub(ways[place - second - i]);
            }
            for place in i..=pairs {
                ways[place] = ways[place].wrapping_add(ways[place - i]);
            }
        }
        let sums = ways.into_iter().scan(0_u128, |sum, ways| {
            *sum += ways;
            Some(*sum)
        });
        Self {
            at_most: sums.collect(),
        }
    }

    /// Number of pairs: the largest value of the statistic.
    fn pairs(&self) -> usize {
        self.at_most.len() - 1
    }

    /// Probability of at most this number of pairs.
    pub(super) fn at_most(&self, pairs: usize) -> f64 {
        self.at_most[pairs.min(self.pairs())] as f64 / self.at_most[self.pairs()] as f64
    }

    /// Probability of at least this number of pairs, by symmetry.
    pub(super) fn at_least(&self, pairs: usize) -> f64 {
        self.pairs()
            .checked_sub(pairs)
            .map_or(0.0, |mirrored| self.at_most(mirrored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts all choices of positions for the first sample.
    fn enumerated(first: usize, second: usize) -> Vec<u128> {
        let mut ways = vec![0; first * second + 1];
        for places in 0_u32..1 << (first + second) {
            if places.count_ones() as usize == first {
                let chosen = (0..first + second).filter(|place| places >> place & 1 == 1);
                ways[chosen
                    .enumerate()
                    .map(|(before, place)| place - before)
                    .sum::<usize>()] += 1;
            }
        }
        ways
    }

    #[test]
    fn counts_are_those_of_an_enumeration() {
        for (first, second) in (1..=7).flat_map(|first| (1..=7).map(move |second| (first, second)))
        {
            let (counted, ways) = (RankSums::count(first, second), enumerated(first, second));
            let sums: Vec<u128> = (0..ways.len())
                .map(|end| ways[..=end].iter().sum())
                .collect();
            assert_eq!(counted.at_most, sums, "{first} and {second}");
            for pairs in 0..ways.len() {
                let expected =
                    ways[pairs..].iter().sum::<u128>() as f64 / sums[sums.len() - 1] as f64;
                assert_eq!(
                    counted.at_least(pairs),
                    expected,
                    "{first} and {second}, {pairs}"
                );
            }
        }
    }

    #[test]
    fn the_largest_is_counted_without_overflow() {
        let counted = RankSums::count(COUNTABLE - 1, COUNTABLE - 1);
        let choose = (1..=49).fold(1_u128, |choose, i| choose * (49 + i) / i);
        assert_eq!(counted.at_most.last(), Some(&choose));
        assert_eq!(counted.at_most[0], 1);
    }
}
