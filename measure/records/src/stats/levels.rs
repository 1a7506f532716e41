//! Levels of a sequence that stays near one of a few values for a while, and then near another.
//!
//! The logarithm of each value is that of a level, plus noise. Neighbours differ by noise alone, except at changes, and so state how much
//! there is. A value costs its squared distance from its level in units of the noise, up to a limit that keeps outliers from being levels;
//! each change and each level costs more the longer the sequence is. For a number of levels, two steps take turns: the levels of all
//! values with the least cost (Viterbi's algorithm), and for each level the median of its values. The number of levels with the least cost
//! wins.

use std::collections::BTreeMap;

use super::Sample;

/// Levels of a sequence of positive values, as of latencies that depend on the state of a machine.
///
/// ```
/// use downbeat_records::stats::Levels;
///
/// let mut latencies = vec![70.0, 72.0, 69.0, 71.0, 490.0, 68.0, 70.0, 71.0];
/// latencies.extend([121.0, 119.0, 124.0, 118.0, 120.0, 122.0]);
/// let levels = Levels::find(&latencies);
/// // 490 is an outlier.
/// assert_eq!(levels.values().len(), 2);
/// assert_eq!(levels.of_each(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    values: Vec<f64>,
    of_each: Vec<usize>,
}

impl Levels {
    /// Greatest number of levels.
    pub const MOST: usize = 6;

    /// Least ratio of a level to the next lower one.
    pub const LEAST_RATIO: f64 = 1.25;

    /// Finds the levels of a sequence. Values that are not positive and finite count as outliers; if there are no others, there is no
    /// level.
    pub fn find(values: &[f64]) -> Self {
        let logs: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
        let mut sorted = finite(logs.iter().copied());
        let Ok(all) = Sample::new(&mut sorted) else {
            return Self::default();
        };
        let sequence = LogSequence::new(&logs);
        let clusters = Clusters::new(&smoothed(&logs));
        let mut best = sequence.fit(vec![all.median()]);
        for number in 2..=Self::MOST {
            let found = sequence.fit(clusters.centers(number));
            if found.are_distinct() && found.cost < best.cost {
                best = found;
            }
        }
        Self {
            values: best.levels.iter().map(|level| libm::exp(*level)).collect(),
            of_each: best.of_each,
        }
    }

    /// Levels, in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Index of the level of each value. Empty if there is no level.
    pub fn of_each(&self) -> &[usize] {
        &self.of_each
    }
}

fn finite(logs: impl Iterator<Item = f64>) -> Vec<f64> {
    logs.filter(|log| log.is_finite()).collect()
}

/// Returns the finite medians of five neighbours each, which lack single outliers.
fn smoothed(logs: &[f64]) -> Vec<f64> {
    let median = |around: &[f64]| {
        let mut around = finite(around.iter().copied());
        Sample::new(&mut around).map(|around| around.median()).ok()
    };
    logs.windows(logs.len().min(5)).filter_map(median).collect()
}

/// Logarithms of the values, with the costs of levels.
struct LogSequence<'a> {
    logs: &'a [f64],
    noise: f64,
    /// Cost of a change, and of a level.
    change: f64,
}

/// Levels of a sequence, and their cost.
struct Fit {
    levels: Vec<f64>,
    of_each: Vec<usize>,
    cost: f64,
}

impl Fit {
    fn are_distinct(&self) -> bool {
        let least = libm::log(Levels::LEAST_RATIO);
        self.levels
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= least)
    }
}

impl<'a> LogSequence<'a> {
    /// Count below which the noise is too uncertain for changes to cost less.
    const LEAST_COUNT: f64 = 200.0;
    /// Least noise: latencies are multiples of the clock's step.
    const LEAST_NOISE: f64 = 0.02;
    /// Greatest cost of a value, at three standard deviations.
    const OUTLIER: f64 = 4.5;

    fn new(logs: &'a [f64]) -> Self {
        let distances = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let mut distances = finite(distances);
        let median = Sample::new(&mut distances).map_or(0.0, |all| all.median());
        // Of normal noise, the median distance between two values is 0.6745 times the standard deviation of their difference.
        let noise = median / (0.6745 * core::f64::consts::SQRT_2);
        Self {
            logs,
            noise: noise.max(Self::LEAST_NOISE),
            change: 2.0 * libm::log((logs.len() as f64).max(Self::LEAST_COUNT)),
        }
    }

    /// Improves levels until they are those of their values.
    fn fit(&self, mut levels: Vec<f64>) -> Fit {
        const MOST_TURNS: usize = 50;
        let mut last = self.assigned(&levels);
        for _ in 0..MOST_TURNS {
            levels = self.medians(&last.0, levels.len());
            let next = self.assigned(&levels);
            if next.0 == last.0 {
                break;
            }
            last = next;
        }
        let (of_each, cost) = last;
        Fit {
            cost: cost + self.change * levels.len() as f64,
            levels,
            of_each,
        }
    }

    /// Returns the medians of the values of each level that has some, in ascending order.
    fn medians(&self, of_each: &[usize], number: usize) -> Vec<f64> {
        let mut members = vec![Vec::new(); number];
        for (log, level) in self.logs.iter().zip(of_each) {
            if log.is_finite() {
                members[*level].push(*log);
            }
        }
        let median = |all: &mut Vec<f64>| Sample::new(all).map(|all| all.median()).ok();
        let mut medians: Vec<f64> = members.iter_mut().filter_map(median).collect();
        medians.sort_by(f64::total_cmp);
        medians
    }

    /// Returns the level of each value by which all cost least, and that cost.
    fn assigned(&self, levels: &[f64]) -> (Vec<usize>, f64) {
        let mut costs = vec![0.0; levels.len()];
        // For each value and level, the level of the value before.
        let mut before = Vec::with_capacity(self.logs.len() * levels.len());
        for log in self.logs {
            let cheapest = cheapest(&costs);
            let changed = costs[cheapest] + self.change;
            for (level, cost) in costs.iter_mut().enumerate() {
                before.push(if *cost <= changed { level } else { cheapest });
                let distance = (log - levels[level]) / self.noise;
                // NaN costs the limit, too.
                *cost = cost.min(changed) + (0.5 * distance * distance).min(Self::OUTLIER);
            }
        }
        let mut level = cheapest(&costs);
        let cost = costs[level];
        let mut of_each = Vec::with_capacity(self.logs.len());
        for before in before.chunks(levels.len()).rev() {
            of_each.push(level);
            level = before[level];
        }
        of_each.reverse();
        (of_each, cost)
    }
}

fn cheapest(costs: &[f64]) -> usize {
    let least = costs.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    least.map_or(0, |(level, _)| level)
}

/// Division of the bins of a histogram among clusters, for every number of them: that with the least sum of squared distances from the
/// clusters' means, by dynamic programming over the ends of clusters.
struct Clusters {
    /// Sums of counts, values and squares before each bin, and of all.
    sums: Vec<[f64; 3]>,
    /// First bin of each cluster but the first one, for each bin behind its end.
    begins: Vec<Vec<usize>>,
}

impl Clusters {
    const WIDTH: f64 = 0.02;
    const MOST_BINS: f64 = 500.0;

    fn new(logs: &[f64]) -> Self {
        let sums = Self::sums_of_bins(logs);
        let spread = |from, to| {
            let [counts, values, squares] = between(&sums, from, to);
            squares - values * values / counts
        };
        let bins = sums.len() - 1;
        let mut costs: Vec<f64> = (0..=bins)
            .map(|to| if to == 0 { 0.0 } else { spread(0, to) })
            .collect();
        let mut begins = Vec::new();
        for cluster in 1..Levels::MOST {
            let best = |to: usize| {
                let all = (cluster..to).map(|from| (from, costs[from] + spread(from, to)));
                all.min_by(|a, b| a.1.total_cmp(&b.1))
                    .unwrap_or((to, f64::INFINITY))
            };
            let (of_cluster, of_all) = (0..=bins).map(best).unzip();
            begins.push(of_cluster);
            costs = of_all;
        }
        Self { sums, begins }
    }

    fn sums_of_bins(logs: &[f64]) -> Vec<[f64; 3]> {
        let ends = logs
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |ends, log| {
                (ends.0.min(*log), ends.1.max(*log))
            });
        let width = ((ends.1 - ends.0) / Self::MOST_BINS).max(Self::WIDTH);
        let mut bins = BTreeMap::new();
        for log in logs {
            *bins.entry(((log - ends.0) / width) as u32).or_insert(0_u32) += 1;
        }
        let mut sum = [0.0; 3];
        let mut sums = vec![sum];
        for (bin, count) in bins {
            let (middle, count) = (ends.0 + (f64::from(bin) + 0.5) * width, f64::from(count));
            sum = [
                sum[0] + count,
                sum[1] + count * middle,
                sum[2] + count * middle * middle,
            ];
            sums.push(sum);
        }
        sums
    }

    /// Returns the means of this number of clusters, or of fewer if there are not enough bins.
    fn centers(&self, number: usize) -> Vec<f64> {
        let mut to = self.sums.len() - 1;
        let number = number.min(to);
        let mut centers = Vec::with_capacity(number);
        for cluster in (0..number).rev() {
            let from = match cluster {
                0 => 0,
                later => self.begins[later - 1][to],
            };
            let [counts, values, _] = between(&self.sums, from, to);
            centers.push(values / counts);
            to = from;
        }
        centers.reverse();
        centers
    }
}

/// Returns the sums over some bins.
fn between(sums: &[[f64; 3]], from: usize, to: usize) -> [f64; 3] {
    [0, 1, 2].map(|sum| sums[to][sum] - sums[from][sum])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Normal noise by the method of Box and Muller.
    fn normal(random: &mut fastrand::Rng) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.f64()));
        radius * libm::cos(core::f64::consts::TAU * random.f64())
    }

    /// Makes a sequence that changes between levels after dwell times of 0.2 to 5 s, of values every `every` seconds, with 15 % of noise
    /// and a share of outliers. Returns the values and their levels.
    fn sequence(
        seed: u64,
        levels: &[f64],
        seconds: f64,
        every: f64,
        outliers: f64,
    ) -> (Vec<f64>, Vec<usize>) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut values, mut of_each) = (Vec::new(), Vec::new());
        let (mut level, mut until) = (random.usize(..levels.len()), 0.0);
        for number in 0..(seconds / every) as u32 {
            let now = f64::from(number) * every;
            if now >= until {
                until = now + 0.2 + 4.8 * random.f64();
                if levels.len() > 1 {
                    level = (level + random.usize(1..levels.len())) % levels.len();
                }
            }
            let outlier = if random.f64() < outliers {
                1.0 + 50.0 * random.f64()
            } else {
                1.0
            };
            values.push(levels[level] * (1.0 + 0.15 * normal(&mut random)).max(0.3) * outlier);
            of_each.push(level);
        }
        (values, of_each)
    }

    /// Returns the share of values whose level was found.
    fn recognized(levels: &Levels, expected: &[usize]) -> f64 {
        let same = levels
            .of_each()
            .iter()
            .zip(expected)
            .filter(|(a, b)| a == b);
        same.count() as f64 / expected.len() as f64
    }

    #[test]
    fn levels_of_a_virtual_machine_are_recognized() {
        for seed in 0..if cfg!(debug_assertions) { 5 } else { 50 } {
            for outliers in [0.0, 0.02] {
                let (values, expected) =
                    sequence(seed, &[70.0, 120.0, 490.0], 60.0, 0.01, outliers);
                let found = Levels::find(&values);
                assert_eq!(found.values().len(), 3, "{seed}: {:?}", found.values());
                let share = recognized(&found, &expected);
                assert!(share >= 0.99, "{seed}, {outliers}: {share}");
            }
        }
    }

    #[test]
    fn noise_alone_has_one_level() {
        for seed in 0..if cfg!(debug_assertions) { 20 } else { 250 } {
            for (seconds, outliers) in [(0.1, 0.0), (1.0, 0.05), (60.0, 0.0), (60.0, 0.05)] {
                let (values, _) = sequence(seed, &[120.0], seconds, 0.01, outliers);
                let found = Levels::find(&values);
                assert_eq!(
                    found.values().len(),
                    1,
                    "{seed}, {seconds}, {outliers}: {:?}",
                    found.values()
                );
            }
        }
    }

    #[test]
    fn two_values_in_turn_are_one_level() {
        let values: Vec<f64> = (0..1_000)
            .map(|call| if call % 2 == 0 { 70.0 } else { 490.0 })
            .collect();
        assert_eq!(Levels::find(&values).values().len(), 1);
    }

    #[test]
    fn a_slow_drift_below_the_least_ratio_is_one_level() {
        let values: Vec<f64> = (0..1_000)
            .map(|call| 100.0 + f64::from(call) * 0.02)
            .collect();
        assert_eq!(Levels::find(&values).values().len(), 1);
    }

    #[test]
    fn odd_values_are_outliers() {
        assert_eq!(Levels::find(&[]), Levels::default());
        assert_eq!(
            Levels::find(&[f64::NAN, -1.0, 0.0, f64::INFINITY]),
            Levels::default()
        );
        let found = Levels::find(&[f64::NAN, 5.0, 0.0, 5.0]);
        assert_eq!(found.of_each(), [0; 4]);
        assert!((found.values()[0] - 5.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn any_values_have_levels_in_order(values in prop::collection::vec(prop_oneof![9 => 1.0..1e6, 1 => any::<f64>()], 1..200)) {
            let found = Levels::find(&values);
            prop_assert!(found.values().windows(2).all(|pair| pair[0] * 1.24 < pair[1]), "{:?}", found.values());
            prop_assert!(found.of_each().iter().all(|level| *level < found.values().len()));
            prop_assert!(found.of_each().len() == values.len() || found.values().is_empty());
        }
    }
}
