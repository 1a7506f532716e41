//! Exact distributions of sums of ranks: of one of two samples with the same distribution, and of one sign.

/// Sample sizes below this use the exact distribution.
pub(super) const COUNTABLE: usize = 50;

/// Number of divisions of the values into two samples, or of choices of signs, by the largest value of the statistic.
#[derive(Debug)]
pub(super) struct RankSums {
    at_most: Vec<u128>,
}

impl RankSums {
    /// Counts the divisions of different values, by the number of pairs in which the value of the first
    /// sample is larger. Both sizes are below [`COUNTABLE`], so that no count exceeds `choose(98, 49)`,
    /// below 2^95.
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
        Self::cumulated(ways)
    }

    /// Counts the divisions of values that occur `groups` times each, in ascending order, by the number
    /// of half pairs: two for each pair in which the value of the first sample is larger, one for a tie.
    pub(super) fn count_tied(first: usize, groups: &[usize]) -> Self {
        let all: usize = groups.iter().sum();
        debug_assert!(first < COUNTABLE && all - first < COUNTABLE);
        let most = 2 * first * (all - first);
        // By the number of values that are in the first sample so far.
        let mut ways = vec![vec![0_u128; most + 1]; first + 1];
        ways[0][0] = 1;
        let mut below = 0;
        for &group in groups {
            // Larger numbers first: they depend on smaller ones of before this group.
            for chosen in (1..=first.min(below + group)).rev() {
                let (before, here) = ways.split_at_mut(chosen);
                for of_group in 1..=group.min(chosen) {
                    let had = chosen - of_group;
                    if had > below {
                        continue;
                    }
                    let half_pairs = of_group * (2 * (below - had) + group - of_group);
                    let divisions = choose(group, of_group);
                    for (to, from) in here[0].iter_mut().skip(half_pairs).zip(&before[had]) {
                        *to += divisions * from;
                    }
                }
            }
            below += group;
        }
        Self::cumulated(ways.swap_remove(first))
    }

    /// Counts the choices of signs, by the sum of the ranks of positive ones. There are fewer than [`COUNTABLE`] ranks.
    pub(super) fn count_signs(ranks: &[usize]) -> Self {
        debug_assert!(ranks.len() < COUNTABLE);
        let most = ranks.iter().sum();
        let mut ways = vec![0_u128; most + 1];
        ways[0] = 1;
        for &rank in ranks {
            for sum in (rank..=most).rev() {
                ways[sum] += ways[sum - rank];
            }
        }
        Self::cumulated(ways)
    }

    fn cumulated(ways: Vec<u128>) -> Self {
        let sums = ways.into_iter().scan(0_u128, |sum, ways| {
            *sum += ways;
            Some(*sum)
        });
        Self {
            at_most: sums.collect(),
        }
    }

    /// Probability that the statistic is at most this.
    pub(super) fn at_most(&self, statistic: usize) -> f64 {
        let last = self.at_most.len() - 1;
        self.at_most[statistic.min(last)] as f64 / self.at_most[last] as f64
    }

    /// Probability that the statistic is at least this.
    pub(super) fn at_least(&self, statistic: usize) -> f64 {
        let last = self.at_most.len() - 1;
        let below = statistic.checked_sub(1);
        let below = below.map_or(0, |below| self.at_most[below.min(last)]);
        (self.at_most[last] - below) as f64 / self.at_most[last] as f64
    }
}

/// Number of choices of `some` of `all`, below 2^95.
fn choose(all: usize, some: usize) -> u128 {
    (1..=some as u128).fold(1, |choices, i| choices * (all as u128 - i + 1) / i)
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
    fn half_pairs_of_different_values_are_twice_the_pairs() {
        for (first, second) in [(1, 1), (3, 5), (7, 4), (20, 30), (49, 49)] {
            let (pairs, half) = (
                RankSums::count(first, second),
                RankSums::count_tied(first, &vec![1; first + second]),
            );
            assert!(pairs.at_most.iter().eq(half.at_most.iter().step_by(2)));
            assert!(
                half.at_most[1..].iter().step_by(2).eq(half
                    .at_most
                    .iter()
                    .step_by(2)
                    .take(first * second))
            );
        }
    }

    #[test]
    fn equal_values_have_one_statistic() {
        let half = RankSums::count_tied(49, &[98]);
        assert_eq!(
            (half.at_most(49 * 49 - 1), half.at_most(49 * 49)),
            (0.0, 1.0)
        );
        assert_eq!(
            (half.at_least(49 * 49), half.at_least(49 * 49 + 1)),
            (1.0, 0.0)
        );
    }

    #[test]
    fn the_largest_is_counted_without_overflow() {
        let counted = RankSums::count(COUNTABLE - 1, COUNTABLE - 1);
        assert_eq!(counted.at_most.last(), Some(&choose(98, 49)));
        assert_eq!(counted.at_most[0], 1);
    }
}
