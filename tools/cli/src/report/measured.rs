//! Experiments of a report, and their common operations.

use std::path::{Path, PathBuf};

use downbeat_records::analysis::{Analysis, AnalysisSettings, Average, GroupAnalysis};
use downbeat_records::stats::{MedianInterval, Sample};
use downbeat_records::{GroupKey, Launch};

use downbeat_common::page::interval::IntervalTime;
use downbeat_common::units;

use crate::experiments::{Alternative, operation_title};

/// An experiment with its launches and analysis.
#[derive(Debug)]
pub(crate) struct MeasuredExperiment {
    /// Shortest unique name.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// Command that was launched, if it is known.
    pub(crate) command: Option<String>,
    pub(crate) launches: Vec<(String, Launch)>,
    pub(crate) analysis: Analysis,
}

/// All experiments of a report, with the settings of their analysis.
#[derive(Debug)]
pub(crate) struct Experiments {
    /// Experiments, at least one.
    pub(crate) all: Vec<MeasuredExperiment>,
    pub(crate) settings: AnalysisSettings,
    /// Average of each launch.
    pub(crate) average: Average,
    /// Alternative hypothesis of comparisons with the first experiment.
    pub(crate) alternative: Alternative,
}

/// An operation with a number of ranks that any of the experiments measured.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredOperation {
    pub(crate) operation: String,
    pub(crate) ranks: u32,
    /// Message sizes, ascending.
    pub(crate) sizes: Vec<u64>,
}

impl MeasuredOperation {
    /// Title of plots of this operation.
    pub(crate) fn title(&self) -> String {
        operation_title(&self.operation, self.ranks)
    }

    /// Title of plots of one size.
    pub(crate) fn title_of_size(&self, bytes: u64) -> String {
        format!("{}, {}", self.title(), units::bytes(bytes))
    }

    /// Name of the file of a plot of one size.
    pub(crate) fn file_of_size(&self, plot: &str, bytes: u64) -> String {
        format!("{plot}-{}-{}-{bytes}", self.operation, self.ranks)
    }

    pub(crate) fn key(&self, bytes: u64) -> GroupKey {
        GroupKey {
            operation: self.operation.clone(),
            bytes,
            ranks: self.ranks,
        }
    }

    /// Returns at most `most` sizes: the smallest, the largest, and some between.
    pub(crate) fn some_sizes(&self, most: usize) -> Vec<u64> {
        let count = self.sizes.len();
        if count <= most {
            return self.sizes.clone();
        }
        let index = |i: usize| i * (count - 1) / (most - 1).max(1);
        (0..most)
            .filter_map(|i| self.sizes.get(index(i)).copied())
            .collect()
    }
}

impl Experiments {
    pub(crate) fn names(&self) -> Vec<String> {
        self.all
            .iter()
            .map(|experiment| experiment.name.clone())
            .collect()
    }

    /// Returns an ending of titles that names one of several experiments; empty if there is only one.
    pub(crate) fn suffix(&self, name: &str) -> String {
        match self.all.len() {
            1 => String::new(),
            _ => format!(": {name}"),
        }
    }

    /// Confidence interval of the median of the launches.
    pub(crate) fn interval(&self, averages: &Sample<'_>) -> Option<MedianInterval> {
        averages.median_interval(self.settings.confidence)
    }

    /// Returns the median of the launches of a group with its interval.
    pub(crate) fn median(&self, group: &GroupAnalysis) -> Option<IntervalTime> {
        let averages = group.averages(self.average)?;
        Some(IntervalTime {
            nanos: averages.median(),
            interval: self.interval(&averages).map(|found| found.interval),
        })
    }

    /// Returns all operations, sorted by name and ranks.
    pub(crate) fn operations(&self) -> Vec<MeasuredOperation> {
        let groups = self
            .all
            .iter()
            .flat_map(|experiment| &experiment.analysis.groups);
        let mut keys: Vec<&GroupKey> = groups.map(|group| &group.key).collect();
        keys.sort_unstable_by_key(|key| (&key.operation, key.ranks, key.bytes));
        keys.dedup();
        let operations =
            keys.chunk_by(|one, two| (&one.operation, one.ranks) == (&two.operation, two.ranks));
        let operations = operations.map(|keys| MeasuredOperation {
            operation: keys[0].operation.clone(),
            ranks: keys[0].ranks,
            sizes: keys.iter().map(|key| key.bytes).collect(),
        });
        operations.collect()
    }
}

impl MeasuredExperiment {
    pub(crate) fn group(&self, key: &GroupKey) -> Option<&GroupAnalysis> {
        self.analysis.group(key)
    }

    /// Largest step of the clocks of all launches, in nanoseconds.
    pub(crate) fn clock_step(&self) -> f64 {
        let steps = self.launches.iter().map(|(_, launch)| launch.clock_step());
        steps.fold(0.0, f64::max)
    }

    /// Returns the observations of a group for every launch, in their order; empty if the launch did not measure it.
    pub(crate) fn observations(&self, key: &GroupKey) -> Vec<&[f64]> {
        let launches = self.launches.iter();
        launches
            .map(|(_, launch)| observations(launch, key))
            .collect()
    }
}

/// Returns the observations of a group in one launch; empty if the launch did not measure
/// it.
pub(crate) fn observations<'a>(launch: &'a Launch, key: &GroupKey) -> &'a [f64] {
    let group = launch.groups.iter().find(|group| group.key == *key);
    group.map_or(&[], |group| &group.nanos)
}

/// Returns the observations of one launch without outliers, sorted, for a clock with this step in nanoseconds.
pub(crate) fn without_outliers(nanos: &[f64], step: f64) -> Vec<f64> {
    let mut nanos = nanos.to_vec();
    Sample::new(&mut nanos)
        .map(|all| all.without_outliers(step).values().to_vec())
        .unwrap_or_default()
}

/// Number of sizes of each operation for which the page shows single observations: fewer if there are many operations, so
/// that the page stays readable.
pub(crate) fn shown_sizes(operations: usize) -> usize {
    match operations {
        0..=12 => 3,
        13..=24 => 2,
        _ => 1,
    }
}

/// Returns a unique name for each folder: its last component, with preceding ones where that is not unique.
pub(crate) fn short_names(folders: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = folders.iter().map(|folder| parts(folder)).collect();
    let last =
        |parts: &[String], count: usize| parts[parts.len().saturating_sub(count)..].join("/");
    let longest = parts.iter().map(Vec::len).max().unwrap_or(1);
    (0..parts.len())
        .map(|i| {
            let is_unique = |count: &usize| {
                let others = parts.iter().enumerate().filter(|(other, _)| *other != i);
                others
                    .into_iter()
                    .all(|(_, other)| last(other, *count) != last(&parts[i], *count))
            };
            let name = (1..=longest)
                .find(is_unique)
                .map(|count| last(&parts[i], count));
            // The same folder is given twice.
            name.unwrap_or_else(|| format!("{} ({})", last(&parts[i], 1), i + 1))
        })
        .collect()
}

fn parts(folder: &Path) -> Vec<String> {
    // Resolve `.` and `a/..`, which are not names.
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let parts: Vec<String> = full
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .filter(|part| part != "/")
        .collect();
    if parts.is_empty() {
        vec!["/".to_owned()]
    } else {
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_short_as_possible() {
        let names =
            |folders: &[&str]| short_names(&folders.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["/x/a", "/x/b"]), ["a", "b"]);
        assert_eq!(names(&["/x/a", "/y/a", "/y/b"]), ["x/a", "y/a", "b"]);
        assert_eq!(names(&["/x/a", "/x/a"]), ["a (1)", "a (2)"]);
        assert_eq!(names(&["/"]), ["/"]);
    }

    #[test]
    fn some_sizes_are_the_ends_and_some_between() {
        let operation = |sizes: &[u64]| MeasuredOperation {
            operation: "x".into(),
            ranks: 2,
            sizes: sizes.to_vec(),
        };
        assert_eq!(operation(&[1, 2, 4, 8, 16, 32]).some_sizes(3), [1, 4, 32]);
        assert_eq!(operation(&[1, 2]).some_sizes(3), [1, 2]);
        assert_eq!(operation(&[1, 2, 4]).some_sizes(2), [1, 4]);
        assert_eq!(operation(&[1, 2, 4]).some_sizes(1), [1]);
    }
}
