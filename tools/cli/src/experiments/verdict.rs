//! One sentence on how an experiment differs from another.

use downbeat_records::WALL;
use downbeat_records::analysis::{ComparedGroup, ExperimentComparison};
use downbeat_records::stats::{Interval, stars};

use super::Alternative;

/// Run-times of an experiment as a multiple of those of another, with an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunTimeRatio {
    pub(crate) times: f64,
    pub(crate) interval: Interval,
}

impl RunTimeRatio {
    /// Returns the ratio by the shift of the first experiment against the second; `None` if the second took no time.
    pub(crate) fn new(group: &ComparedGroup) -> Option<Self> {
        let found = &group.comparison;
        let Interval { low, high } = found.relative_interval()?;
        Some(Self {
            times: 1.0 + found.relative_shift()?,
            interval: Interval {
                low: 1.0 + low,
                high: 1.0 + high,
            },
        })
    }

    fn is_slower(self) -> bool {
        self.times >= 1.0
    }

    /// Writes how many times slower or faster.
    fn text(self) -> String {
        let Self {
            times,
            interval: Interval { low, high },
        } = self;
        if self.is_slower() {
            return format!("{times:.2} times [{low:.2}, {high:.2}] slower");
        }
        // A shift by more than the base takes leaves no time: its launches scatter widely.
        let faster = |times: f64| {
            if times > 0.0 {
                1.0 / times
            } else {
                f64::INFINITY
            }
        };
        format!(
            "{:.2} times [{:.2}, {:.2}] faster",
            faster(times),
            faster(high),
            faster(low)
        )
    }
}

/// Says how a group of the experiment that was compared first differs from that of the
/// second, by the adjusted p-value of an alternative.
fn verdict_of_group(
    group: &ComparedGroup,
    [name, base]: [&str; 2],
    alternative: Alternative,
) -> String {
    let is_significant = is_significant(group, alternative);
    match RunTimeRatio::new(group) {
        Some(ratio) if is_significant => format!("{name} is {} than {base}", ratio.text()),
        ratio => {
            let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({})", ratio.text()));
            format!("{}{ratio}", not_significant([name, base], alternative))
        }
    }
}

fn is_significant(group: &ComparedGroup, alternative: Alternative) -> bool {
    !stars(alternative.p_value(&group.adjusted)).is_empty()
}

/// Says that there is no evidence for an alternative.
fn not_significant([name, base]: [&str; 2], alternative: Alternative) -> String {
    match alternative {
        Alternative::TwoSided => format!("{name} and {base} do not differ significantly"),
        Alternative::Less => format!("{name} does not take significantly less time than {base}"),
        Alternative::Greater => format!("{name} does not take significantly more time than {base}"),
    }
}

/// Says how the experiment that was compared first differs from the second, by the
/// adjusted p-values of an alternative; of commands that `downbeat time` has run, by
/// their wall times.
pub(crate) fn verdict(
    comparison: &ExperimentComparison,
    [name, base]: [&str; 2],
    alternative: Alternative,
) -> String {
    let is_wall = |group: &&ComparedGroup| group.key.operation == WALL && group.key.bytes == 0;
    if let Some(wall) = comparison.groups.iter().find(is_wall) {
        return verdict_of_group(wall, [name, base], alternative);
    }
    let significant: Vec<(&ComparedGroup, RunTimeRatio)> = comparison
        .groups
        .iter()
        .filter(|group| is_significant(group, alternative))
        .filter_map(|group| Some((group, RunTimeRatio::new(group)?)))
        .collect();
    let distance = |(_, ratio): &&(&ComparedGroup, RunTimeRatio)| {
        ratio.times.max(f64::MIN_POSITIVE).ln().abs()
    };
    let farthest = significant
        .iter()
        .max_by(|a, b| distance(a).total_cmp(&distance(b)));
    match (&comparison.groups[..], farthest) {
        ([], _) => format!("{name} has no group in common with {base}"),
        ([one], _) => {
            let verdict = verdict_of_group(one, [name, base], alternative);
            format!("{verdict}: {}", one.key)
        }
        (all, None) => format!(
            "{} in any of {} groups",
            not_significant([name, base], alternative),
            all.len()
        ),
        (all, Some((group, ratio))) => {
            let slower = significant
                .iter()
                .filter(|(_, ratio)| ratio.is_slower())
                .count();
            format!(
                "{name} is slower than {base} in {slower} and faster in {} of {} groups, at most {}: {}",
                significant.len() - slower,
                all.len(),
                ratio.text(),
                group.key
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(times: f64, low: f64, high: f64) -> String {
        RunTimeRatio {
            times,
            interval: Interval { low, high },
        }
        .text()
    }

    #[test]
    fn ratios_are_written_as_multiples_of_the_faster() {
        assert_eq!(text(1.5, -0.25, 2.0), "1.50 times [-0.25, 2.00] slower");
        assert_eq!(text(0.5, 0.25, 0.8), "2.00 times [1.25, 4.00] faster");
        assert_eq!(text(0.5, -1.0, 0.8), "2.00 times [1.25, inf] faster");
    }
}
