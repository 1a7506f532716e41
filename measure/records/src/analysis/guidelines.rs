//! Performance guidelines: bounds on the time of an operation by those of others, of smaller and of larger messages.

mod rules;

use super::experiment::Analysis;
use super::group::{Average, GroupAnalysis};
use crate::GroupKey;
use crate::stats::{Confidence, Interval, Sample, SignedRank, holm};
use rules::RULES;

/// Self-consistent expectation of a library's user: an operation is not slower than something else that has the same result.
///
/// ```
/// use downbeat_records::GroupKey;
/// use downbeat_records::analysis::Guideline;
///
/// let key = |operation: &str, bytes| GroupKey { operation: operation.to_owned(), bytes, ranks: 4 };
/// let measured = [key("allreduce", 8), key("bcast", 8), key("reduce", 8), key("allreduce", 16)];
/// let found = Guideline::all(&measured);
/// let written: Vec<String> = found.testable.iter().map(|one| format!("{} {}", one.key.bytes, one.bound())).collect();
/// assert_eq!(written, ["8 reduce + bcast", "8 allreduce", "8 16 bytes", "16 2 x 8 bytes"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guideline {
    /// Operation that must not be slower.
    pub key: GroupKey,
    /// Reason for the expectation.
    pub kind: GuidelineKind,
    /// Operations that take as long together at least, and how many times each is called.
    pub others: Vec<(GroupKey, u64)>,
}

/// Reason why an operation must not be slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuidelineKind {
    /// Others have the same result.
    Mockup,
    /// Messages are larger.
    Monotony,
    /// The message can be split.
    Split,
}

impl GuidelineKind {
    /// Name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mockup => "mockup",
            Self::Monotony => "monotony",
            Self::Split => "split",
        }
    }
}

/// Guidelines for the operations that were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guidelines {
    /// Those whose operations were all measured.
    pub testable: Vec<Guideline>,
    /// Groups that were not measured, and without which others cannot be tested; none has more bytes than those that were measured.
    pub missing: Vec<GroupKey>,
    /// Number of guidelines that cannot be tested therefore.
    pub untestable: usize,
}

impl Guideline {
    /// Returns all guidelines for groups that were measured.
    pub fn all(measured: &[GroupKey]) -> Guidelines {
        let mut found = Guidelines::default();
        for key in measured {
            found.add_mockups(key, measured);
        }
        for key in measured {
            let sizes = measured
                .iter()
                .filter(|one| (&one.operation, one.ranks) == (&key.operation, key.ranks));
            found.add_larger(key, sizes.clone());
            found.add_parts(key, sizes);
        }
        found.missing = GroupKey::distinct(found.missing.iter())
            .into_iter()
            .cloned()
            .collect();
        found
    }

    /// Returns all rules by which an operation must not be slower than others with the same result: its name, and these, with sizes
    /// relative to its own.
    ///
    /// ```
    /// use downbeat_records::analysis::Guideline;
    ///
    /// let mut rules = Guideline::rules();
    /// assert_eq!(rules.next(), Some(("bcast", "scatter of 1/n of the size + allgather of 1/n of the size".to_owned())));
    /// assert!(rules.any(|rule| rule == ("allreduce", "reduce + bcast".to_owned())));
    /// ```
    pub fn rules() -> impl Iterator<Item = (&'static str, String)> {
        RULES.iter().map(|rule| (rule.operation, rule.bound()))
    }

    /// Writes the other side: `reduce + bcast`, `2 x 8 bytes`.
    pub fn bound(&self) -> String {
        let other = |(key, times): &(GroupKey, u64)| {
            let bytes = || format!("{} bytes", key.bytes);
            match (self.kind, times) {
                (GuidelineKind::Mockup, _) if key.bytes == self.key.bytes => key.operation.clone(),
                (GuidelineKind::Mockup, _) => format!("{} of {}", key.operation, bytes()),
                (_, 1) => bytes(),
                (_, times) => format!("{times} x {}", bytes()),
            }
        };
        let others: Vec<String> = self.others.iter().map(other).collect();
        others.join(" + ")
    }
}

/// End of the name of a form of an operation, and begin and end of that of one that may be slower.
const FORMS: [(&str, [&str; 2]); 3] = [("", ["i", ""]), ("_init", ["", ""]), ("_init", ["i", ""])];

impl Guidelines {
    fn add(&mut self, key: &GroupKey, kind: GuidelineKind, others: Vec<(GroupKey, u64)>) {
        self.testable.push(Guideline {
            key: key.clone(),
            kind,
            others,
        });
    }

    fn add_mockups(&mut self, key: &GroupKey, measured: &[GroupKey]) {
        let of = |operation: &str, bytes| GroupKey {
            operation: operation.to_owned(),
            bytes,
            ranks: key.ranks,
        };
        let rules = RULES.iter().filter(|rule| rule.operation == key.operation);
        let sizes = measured.iter().filter(|one| one.ranks == key.ranks);
        let most = sizes.map(|one| one.bytes).max().unwrap_or(0);
        for rule in rules {
            let others = rule.others.iter().map(|term| {
                let bytes = term.size.of(key.bytes, key.ranks)?;
                Some((of(term.operation, bytes), 1))
            });
            // A size that cannot be divided has no such guideline.
            let Some(others) = others.collect::<Option<Vec<(GroupKey, u64)>>>() else {
                continue;
            };
            // Larger messages would have guidelines by even larger ones, without an end.
            if others.iter().any(|(other, _)| other.bytes > most) {
                continue;
            }
            let lacking = others.iter().map(|(other, _)| other);
            let lacking: Vec<_> = lacking.filter(|other| !measured.contains(other)).collect();
            if lacking.is_empty() {
                self.add(key, GuidelineKind::Mockup, others);
            } else {
                self.untestable += 1;
                self.missing.extend(lacking.into_iter().cloned());
            }
        }
        // A call can do all that the non-blocking form and a wait do, and a persistent operation has done a part of that before.
        for (end, [other_begin, other_end]) in FORMS {
            let Some(operation) = key.operation.strip_suffix(end) else {
                continue;
            };
            let other = of(&format!("{other_begin}{operation}{other_end}"), key.bytes);
            if measured.contains(&other) {
                self.add(key, GuidelineKind::Mockup, vec![(other, 1)]);
            }
        }
    }

    /// Adds that an operation is not slower than with the next larger messages.
    fn add_larger<'a>(&mut self, key: &GroupKey, sizes: impl Iterator<Item = &'a GroupKey>) {
        let larger = sizes.filter(|one| one.bytes > key.bytes);
        if let Some(next) = larger.min_by_key(|one| one.bytes) {
            self.add(key, GuidelineKind::Monotony, vec![(next.clone(), 1)]);
        }
    }

    /// Adds that an operation is not slower than several ones with parts of its message, the largest ones that were measured.
    fn add_parts<'a>(&mut self, key: &GroupKey, sizes: impl Iterator<Item = &'a GroupKey>) {
        let parts = sizes.filter(|one| {
            one.bytes > 0 && one.bytes < key.bytes && key.bytes.is_multiple_of(one.bytes)
        });
        if let Some(part) = parts.max_by_key(|one| one.bytes) {
            let calls = key.bytes / part.bytes;
            self.add(key, GuidelineKind::Split, vec![(part.clone(), calls)]);
        }
    }
}

/// Guideline that was tested over launches.
#[derive(Clone, Debug, PartialEq)]
pub struct TestedGuideline {
    /// The guideline.
    pub guideline: Guideline,
    /// Number of launches in which all of its operations were measured.
    pub launches: usize,
    /// Medians over these launches: of the time of the operation, and of the bound.
    pub medians: [f64; 2],
    /// Time of the operation as a multiple of the bound, by the median of means of two logarithms.
    pub times: f64,
    /// Confidence interval of this multiple.
    pub interval: Interval,
    /// p value of the alternative that the operation takes longer than the tolerance allows.
    pub p: f64,
    /// The same, adjusted by Holm's method over all guidelines.
    pub adjusted: f64,
    /// Verdict: the adjusted p value is at most the level, and the multiple exceeds the tolerance.
    pub violated: bool,
}

/// Conditions under which a guideline is violated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuidelineTest {
    /// Average of a launch.
    pub average: Average,
    /// Multiple of the bound that is accepted.
    pub tolerance: f64,
    /// Probability of any wrong verdict.
    pub level: f64,
    /// Confidence of intervals.
    pub confidence: Confidence,
}

impl GuidelineTest {
    /// Tests guidelines: violated ones first, by the factor by which they are. Both sides of a guideline come from the same launch, so that
    /// Wilcoxon's signed-rank test decides. Those whose sides no launch has are left out.
    pub fn run(&self, guidelines: &[Guideline], analysis: &Analysis) -> Vec<TestedGuideline> {
        let mut tested: Vec<TestedGuideline> = guidelines
            .iter()
            .filter_map(|guideline| self.test(guideline, analysis))
            .collect();
        let p: Vec<f64> = tested.iter().map(|one| one.p).collect();
        for (one, adjusted) in tested.iter_mut().zip(holm(&p)) {
            one.adjusted = adjusted;
            one.violated = adjusted <= self.level && one.times > self.tolerance;
        }
        tested.sort_by(|a, b| {
            let by_verdict = b.violated.cmp(&a.violated);
            by_verdict.then(b.times.total_cmp(&a.times))
        });
        tested
    }

    fn test(&self, guideline: &Guideline, analysis: &Analysis) -> Option<TestedGuideline> {
        let own = analysis.group(&guideline.key)?;
        let others: Vec<(&GroupAnalysis, u64)> = guideline
            .others
            .iter()
            .map(|(key, times)| Some((analysis.group(key)?, *times)))
            .collect::<Option<_>>()?;
        let of_launch = |group: &GroupAnalysis, launch: &str| {
            let found = group.launches.iter().find(|one| one.launch == launch)?;
            found.average(self.average).filter(|nanos| *nanos > 0.0)
        };
        let pairs: Vec<[f64; 2]> = own
            .launches
            .iter()
            .filter_map(|launch| {
                let bounds = others
                    .iter()
                    .map(|(group, times)| Some(of_launch(group, &launch.launch)? * *times as f64));
                let bound = bounds.sum::<Option<f64>>()?;
                Some([of_launch(own, &launch.launch)?, bound])
            })
            .collect();
        // Beyond the tolerance. Without it, the differences of logarithms are all larger by its logarithm, and so are their means.
        let differences = pairs
            .iter()
            .map(|[own, bound]| (own / (bound * self.tolerance)).ln());
        let beyond = SignedRank::new(&differences.collect::<Vec<_>>(), self.confidence).ok()?;
        let times = |difference: f64| self.tolerance * difference.exp();
        let median = |side: usize| {
            let mut values: Vec<f64> = pairs.iter().map(|pair| pair[side]).collect();
            Some(Sample::new(&mut values).ok()?.median())
        };
        Some(TestedGuideline {
            guideline: guideline.clone(),
            launches: pairs.len(),
            medians: [median(0)?, median(1)?],
            times: times(beyond.shift),
            interval: Interval {
                low: times(beyond.interval.low),
                high: times(beyond.interval.high),
            },
            p: beyond.p.greater,
            adjusted: 1.0,
            violated: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::AnalysisSettings;
    use super::super::examples::launch;
    use super::*;
    use crate::{Launch, MeasuredGroup};

    fn key(operation: &str, bytes: u64) -> GroupKey {
        GroupKey {
            operation: operation.to_owned(),
            bytes,
            ranks: 4,
        }
    }

    /// Twelve launches, in which each group takes these times, with some percent of noise that is common to a launch.
    fn experiment(groups: &[(&str, u64, f64)]) -> Vec<(String, Launch)> {
        let names = 'a'..='l';
        let launches = names.enumerate().map(|(i, name)| {
            let common = 1.0 + 0.1 * (i % 5) as f64;
            let groups = groups
                .iter()
                .enumerate()
                .map(|(j, (operation, bytes, nanos))| {
                    let own = 1.0 + 0.001 * ((3 * i + 5 * j) % 7) as f64;
                    MeasuredGroup {
                        key: key(operation, *bytes),
                        nanos: vec![nanos * common * own; 5],
                        counts: vec![],
                        figures: vec![],
                    }
                });
            launch(&name.to_string(), &groups.collect::<Vec<_>>())
        });
        launches.collect()
    }

    fn tested(groups: &[(&str, u64, f64)], tolerance: f64) -> Vec<TestedGuideline> {
        let analysis = Analysis::new(&experiment(groups), &AnalysisSettings::default()).unwrap();
        let keys: Vec<GroupKey> = analysis.groups.iter().map(|one| one.key.clone()).collect();
        let test = GuidelineTest {
            average: Average::Median,
            tolerance,
            level: 0.05,
            confidence: Confidence::USUAL,
        };
        test.run(&Guideline::all(&keys).testable, &analysis)
    }

    #[test]
    fn an_operation_that_is_slower_than_its_mockup_is_found() {
        let groups = [
            ("allreduce", 8, 1_500.0),
            ("reduce", 8, 400.0),
            ("bcast", 8, 600.0),
        ];
        let found = tested(&groups, 1.05);
        // reduce <= allreduce holds.
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&found[0].guideline.key, found[0].violated),
            (&key("allreduce", 8), true)
        );
        assert!((found[0].times - 1.5).abs() < 0.01, "{:?}", found[0]);
        assert!(found[0].interval.contains(1.5), "{:?}", found[0].interval);
        assert_eq!((found[0].launches, found[1].violated), (12, false));
        // Half as much again is accepted.
        assert!(tested(&groups, 1.6).iter().all(|one| !one.violated));
    }

    #[test]
    fn equal_times_are_no_violation() {
        let found = tested(&[("gather", 8, 500.0), ("gatherv", 8, 500.0)], 1.0);
        assert_eq!(found.len(), 1);
        assert!(found.iter().all(|one| !one.violated), "{found:?}");
    }

    #[test]
    fn sizes_are_compared() {
        let groups = [
            ("bcast", 8, 900.0),
            ("bcast", 16, 500.0),
            ("bcast", 64, 3_000.0),
        ];
        let violated: Vec<_> = tested(&groups, 1.05)
            .into_iter()
            .filter(|one| one.violated)
            .map(|one| (one.guideline.key.bytes, one.guideline.bound()))
            .collect();
        // 8 bytes take 1.8 times as long as 16, and 64 bytes 1.5 times as long as 4 x 16.
        assert_eq!(
            violated,
            [(8, "16 bytes".to_owned()), (64, "4 x 16 bytes".to_owned())]
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let found = Guideline::all(&[key("allgather", 8), key("gather", 8)]);
        let written: Vec<_> = found.testable.iter().map(Guideline::bound).collect();
        assert_eq!(written, ["allgather"]);
        assert_eq!(
            found.missing,
            [key("allgatherv", 8), key("alltoall", 8), key("gatherv", 8)]
        );
        assert_eq!(found.untestable, 3);
        // Four times the size, if it is not beyond what was measured.
        let larger = Guideline::all(&[key("gather", 8), key("gather", 32)]);
        assert!(larger.missing.contains(&key("reduce", 32)));
        assert!(larger.missing.iter().all(|missing| missing.bytes <= 32));
        // 9 bytes cannot be divided among four ranks.
        let odd = Guideline::all(&[key("bcast", 9)]);
        assert_eq!(odd, Guidelines::default());
    }

    #[test]
    fn other_forms_are_no_faster() {
        let measured = [key("bcast", 8), key("ibcast", 8), key("bcast_init", 8)];
        let found = Guideline::all(&measured);
        let written: Vec<_> = found.testable.iter().map(Guideline::bound).collect();
        // The blocking form, and the persistent one, which is made in advance.
        assert_eq!(written, ["ibcast", "bcast", "ibcast"]);
        assert_eq!(found.testable[1].key, key("bcast_init", 8));
    }
}
