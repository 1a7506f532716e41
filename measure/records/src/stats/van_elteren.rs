//! Van Elteren's stratified test: Wilcoxon's test of two samples that are divided into blocks, each of which is compared by itself.

use super::mann_whitney::RankedSamples;
use super::normal::{normal_above, normal_quantile};
use super::{Confidence, Interval, MannWhitney, PValues, Sample};

/// Test whether the values of one sample tend to be less than those of another, where both
/// are divided into blocks that differ from each other, such as rounds of launches in turns.
/// Values of different blocks are never compared.
///
/// The statistic is the sum of the Mann-Whitney statistics of the blocks, each divided by the number of its values plus 1, which is the
/// most powerful choice if the effect is the same in all blocks (van Elteren 1960).
///
/// ```
/// use downbeat_records::stats::{Confidence, Sample, VanElteren};
///
/// // Latencies in a fast hour and in a slow one: the second is 1.1 times as slow.
/// let mut values = [[100.0, 101.0, 102.0, 103.0], [110.0, 111.1, 112.2, 113.3], [200.0, 202.0, 204.0, 206.0], [220.0, 222.2, 224.4, 226.6]];
/// let [a, b, c, d] = values.each_mut().map(|values| Sample::new(values));
/// let test = VanElteren::new(&[[a?, b?], [c?, d?]], Confidence::USUAL).ok_or("no block")?;
/// assert!(test.p.less < 0.001);
/// let ratio = test.ratio.ok_or("no ratio")?;
/// assert!((ratio.times - 1.0 / 1.1).abs() < 0.01);
/// assert!(ratio.interval.high < 1.0);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VanElteren {
    /// Number of blocks.
    pub blocks: usize,
    /// p values. Those of a single block are those of [`MannWhitney`].
    pub p: PValues,
    /// Ratio of the first sample to the second in equal blocks; `None` if a value is not positive.
    pub ratio: Option<BlockedRatio>,
}

/// Ratio of two samples in equal blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedRatio {
    /// Weighted median of the ratios of all pairs of values of one block: a Hodges-Lehmann estimate of logarithms, aligned by blocks.
    pub times: f64,
    /// Its confidence interval, by the normal approximation.
    pub interval: Interval,
}

impl VanElteren {
    /// Compares two samples, of which each block has a part; `None` without a block.
    pub fn new(blocks: &[[Sample<'_>; 2]], confidence: Confidence) -> Option<Self> {
        let (mut above_mean, mut variance) = (0.0, 0.0);
        // No p value can be below the probability of the most extreme division of all blocks.
        let mut least = [1.0; 2];
        for [first, second] in blocks {
            let (ranks, weight) = (RankedSamples::new(first, second), weight(first, second));
            above_mean += weight * ranks.above_mean();
            variance += (weight * ranks.deviation()).powi(2);
            for (least, of_block) in least.iter_mut().zip(ranks.least_tails()) {
                *least *= of_block;
            }
        }
        let deviation: f64 = variance.sqrt();
        let p = match blocks {
            [] => return None,
            [[first, second]] => MannWhitney::new(first, second).p,
            _ if deviation > 0.0 => {
                let z = above_mean / deviation;
                PValues::from_tails(
                    normal_above(-z).max(least[0]),
                    normal_above(z).max(least[1]),
                )
            }
            _ => PValues::NO_EVIDENCE,
        };
        Some(Self {
            blocks: blocks.len(),
            p,
            ratio: BlockedRatio::new(blocks, confidence),
        })
    }
}

/// Weight of the statistic of a block.
fn weight(first: &Sample<'_>, second: &Sample<'_>) -> f64 {
    1.0 / (first.len() + second.len() + 1) as f64
}

impl BlockedRatio {
    fn new(blocks: &[[Sample<'_>; 2]], confidence: Confidence) -> Option<Self> {
        let mut pairs = Vec::new();
        let mut variance = 0.0;
        for [first, second] in blocks {
            let weight = weight(first, second);
            for x in first.values() {
                for y in second.values() {
                    pairs.push((x / y, weight));
                }
            }
            let (m, n) = (first.len() as f64, second.len() as f64);
            // Without ties: at other ratios there are none.
            variance += weight * weight * m * n * (m + n + 1.0) / 12.0;
        }
        let positive =
            |sample: &Sample<'_>| sample.values().first().is_some_and(|least| *least > 0.0);
        if pairs.is_empty() || !blocks.iter().flatten().all(positive) {
            return None;
        }
        pairs.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let all: f64 = pairs.iter().map(|(_, weight)| weight).sum();
        let width = normal_quantile(0.5 + 0.5 * confidence.share()) * variance.sqrt();
        Some(Self {
            times: quantile(&pairs, 0.5 * all),
            interval: Interval {
                low: quantile(&pairs, 0.5 * all - width),
                high: quantile(&pairs, 0.5 * all + width),
            },
        })
    }
}

/// Returns the value up to which sorted values have this weight.
fn quantile(pairs: &[(f64, f64)], weight: f64) -> f64 {
    let mut below = 0.0;
    let mut reached = pairs.iter().filter(|(_, of_pair)| {
        below += of_pair;
        below >= weight
    });
    let found = reached.next().or(pairs.last());
    found.map_or(f64::NAN, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Block = [Vec<f64>; 2];

    fn test(mut blocks: Vec<Block>) -> Option<VanElteren> {
        let blocks = blocks
            .iter_mut()
            .map(|block| block.each_mut().map(|one| Sample::new(one).unwrap()));
        VanElteren::new(&blocks.collect::<Vec<_>>(), Confidence::USUAL)
    }

    /// Values without a pattern.
    fn values(count: usize, seed: u64) -> Vec<f64> {
        let next = |state: &mut u64| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            Some((*state >> 40) as f64 / 16_777_216.0 + 1.0)
        };
        std::iter::successors(Some(seed), |_| None)
            .flat_map(|mut state| (0..count).map(move |_| next(&mut state).unwrap()))
            .collect()
    }

    /// Probability of a sum of weighted statistics at most that of the blocks, over all divisions of each.
    fn exactly_less(blocks: &[Block]) -> f64 {
        let statistic = |first: &[f64], second: &[f64]| -> f64 {
            let above = |x: &f64| second.iter().filter(|y| x > *y).count() as f64;
            first.iter().map(above).sum::<f64>() / (first.len() + second.len() + 1) as f64
        };
        let divisions = |[first, second]: &Block| -> Vec<f64> {
            let all = [first.as_slice(), second].concat();
            let chosen =
                (0..1_u32 << all.len()).filter(|bits| bits.count_ones() as usize == first.len());
            let part = |bits: u32, of: u32| -> Vec<f64> {
                let is_in = |i: &usize| bits >> i & 1 == of;
                (0..all.len()).filter(is_in).map(|i| all[i]).collect()
            };
            chosen
                .map(|bits| statistic(&part(bits, 1), &part(bits, 0)))
                .collect()
        };
        let observed: f64 = blocks
            .iter()
            .map(|[first, second]| statistic(first, second))
            .sum();
        let sums = blocks.iter().map(divisions).fold(vec![0.0], |sums, block| {
            sums.iter()
                .flat_map(|sum| block.iter().map(move |one| sum + one))
                .collect()
        });
        sums.iter().filter(|sum| **sum <= observed + 1e-9).count() as f64 / sums.len() as f64
    }

    #[test]
    fn p_values_are_near_those_of_all_divisions() {
        for seed in 0..20 {
            let blocks = vec![
                [values(4, seed), values(5, seed + 100)],
                [values(5, seed + 200), values(3, seed + 300)],
            ];
            let (found, exact) = (test(blocks.clone()).unwrap().p.less, exactly_less(&blocks));
            assert!(
                (found - exact).abs() < 0.05,
                "seed {seed}: {found} instead of {exact}"
            );
        }
    }

    #[test]
    fn no_p_value_is_below_that_of_the_most_extreme_division() {
        let apart = |factor: f64| {
            [
                vec![factor, 1.1 * factor],
                vec![2.0 * factor, 2.1 * factor, 2.2 * factor],
            ]
        };
        let blocks = vec![apart(1.0), apart(10.0)];
        let found = test(blocks.clone()).unwrap();
        assert!(
            found.p.less >= 0.01 - 1e-12 && found.p.less < 0.05,
            "{found:?}"
        );
        assert!((exactly_less(&blocks) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn one_block_is_compared_by_the_exact_test() {
        let block = [values(6, 1), values(7, 2)];
        let [mut first, mut second] = block.clone();
        let expected = MannWhitney::new(
            &Sample::new(&mut first).unwrap(),
            &Sample::new(&mut second).unwrap(),
        );
        assert_eq!(test(vec![block]).unwrap().p, expected.p);
        assert_eq!(test(vec![]), None);
    }

    /// A state in which all is slow, and in which only the second sample was often, does not look like a difference.
    #[test]
    fn differences_between_blocks_do_not_count() {
        let scaled =
            |values: Vec<f64>, by: f64| values.iter().map(|value| value * by).collect::<Vec<_>>();
        let blocks = vec![
            [values(20, 1), values(4, 2)],
            [scaled(values(4, 3), 10.0), scaled(values(20, 4), 10.0)],
        ];
        let found = test(blocks.clone()).unwrap();
        assert!(found.p.two_sided > 0.05, "{found:?}");
        let ratio = found.ratio.unwrap();
        assert!(
            ratio.interval.low < 1.0 && ratio.interval.high > 1.0,
            "{ratio:?}"
        );
        let [first, second] = [0, 1].map(|i| [blocks[0][i].clone(), blocks[1][i].clone()].concat());
        assert!(test(vec![[first, second]]).unwrap().p.two_sided < 0.001);
    }

    #[test]
    fn a_common_ratio_is_found_in_blocks_of_any_level() {
        let scaled =
            |values: Vec<f64>, by: f64| values.iter().map(|value| value * by).collect::<Vec<_>>();
        let blocks = [1.0, 3.0, 100.0].map(|level| {
            [
                scaled(values(9, 5), 1.5 * level),
                scaled(values(9, 5), level),
            ]
        });
        let found = test(blocks.to_vec()).unwrap().ratio.unwrap();
        assert!((found.times - 1.5).abs() < 1e-9, "{found:?}");
        let negative = vec![[vec![-1.0, 1.0], vec![1.0, 2.0]]];
        assert_eq!(test(negative).unwrap().ratio, None);
    }

    #[test]
    fn equal_values_show_nothing() {
        let equal = || [vec![1.0; 3], vec![1.0; 4]];
        assert_eq!(
            test(vec![equal(), equal()]).unwrap().p,
            PValues::NO_EVIDENCE
        );
    }
}
