//! Launches: the results of one run of a program.

use core::fmt;

use crate::ObservationState;

/// Name of the fact that states the step of the clock, in nanoseconds.
pub const CLOCK_STEP: &str = "clock_step_ns";

/// Name of the fact that states the hosts of the ranks.
pub const HOSTS: &str = "hosts";

/// Name of the fact that describes the nodes: processor, kernel and what else makes one differ from another.
pub const NODES: &str = "kinds of nodes";

/// Name of the fact that states the load when a launch began: the mean number of tasks
/// that ran or waited for a disk during the minute before, for each processor of the node of rank 0.
pub const LOAD: &str = "load_per_core";

/// Names of the facts that state the longest round trip between two neighbouring ranks at
/// the start and at the end of a launch, in nanoseconds.
pub const ROUND_TRIPS: [&str; 2] = ["round_trip_at_start_ns", "round_trip_at_end_ns"];

/// First word of that description if the nodes of a launch differ from each other.
pub const UNEQUAL: &str = "unequal: ";

/// Operation of the wall times of a command, whose groups have 0 bytes.
pub const WALL: &str = "wall";

/// Names and values, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factors(Vec<(String, String)>);

impl Factors {
    /// Appends a factor. Line ends become spaces, as a factor is written on one line.
    #[must_use]
    pub fn with(mut self, name: &str, value: &dyn fmt::Display) -> Self {
        let on_one_line = |text: String| text.replace(['\n', '\r'], " ").trim().to_owned();
        self.0
            .push((on_one_line(name.to_owned()), on_one_line(value.to_string())));
        self
    }

    /// No factors.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Appends a factor unchanged.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// Value of a factor.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Name of the first factor with another value in `other`, or that only one of the two has.
    pub fn differing<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let differs = |one: &'a Self, two: &Self| {
            one.iter()
                .find(|(name, value)| two.get(name) != Some(value))
        };
        differs(self, other)
            .or_else(|| differs(other, self))
            .map(|(name, _)| name)
    }
}

/// Key of a group: an operation with messages of one size on a number of ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct GroupKey {
    /// Name of the operation, as in `allreduce`.
    pub operation: String,
    /// Message size.
    pub bytes: u64,
    /// Number of ranks.
    pub ranks: u32,
}

impl GroupKey {
    /// Returns the keys without duplicates, in ascending order.
    pub fn distinct<'a>(keys: impl IntoIterator<Item = &'a Self>) -> Vec<&'a Self> {
        let mut keys: Vec<&Self> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Written as `allreduce, 8 bytes, 4 ranks`.
impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operation,
            bytes,
            ranks,
        } = self;
        write!(f, "{operation}, {bytes} bytes, {ranks} ranks")
    }
}

/// Observations of one group in one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredGroup {
    /// Key of the group.
    pub key: GroupKey,
    /// Run-times of the valid observations in nanoseconds, in measured order.
    pub nanos: Vec<f64>,
    /// Number of observations in each state, including those that were not kept.
    pub counts: Vec<(ObservationState, u64)>,
    /// Names and nanoseconds of the processed results. The first one is the one to report.
    pub figures: Vec<(String, f64)>,
}

/// Results of one launch of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Conditions that the results depend on, the same in all launches of an experiment.
    pub factors: Factors,
    /// Data of this launch alone: time of its start, random seed, rate of its counter.
    pub facts: Factors,
    /// Complete groups, in measured order.
    pub groups: Vec<MeasuredGroup>,
    /// True if all groups of the launch are measured.
    pub complete: bool,
}

impl Launch {
    /// The facts that no two launches share, the time of the start and the seed; `None` if the record lacks one of them.
    pub fn identity(&self) -> Option<[&str; 2]> {
        Some([self.facts.get("started")?, self.facts.get("seed")?])
    }

    /// Returns true if other launches of the experiment must have the same factors: a launch without a group says nothing yet.
    pub fn binds(&self) -> bool {
        self.complete || !self.groups.is_empty()
    }

    /// Distinct values of a fact, in their order: a launch that was continued states its facts once for each part.
    pub fn distinct(&self, fact: &str) -> Vec<&str> {
        let is_numbered = |name: &str| {
            let number = name.strip_prefix(fact)?.strip_prefix(" (")?;
            number.strip_suffix(')')?.parse::<u32>().ok()
        };
        let mut found = vec![];
        for (name, value) in self.facts.iter() {
            if (name == fact || is_numbered(name).is_some()) && !found.contains(&value) {
                found.push(value);
            }
        }
        found
    }

    /// Step of the clock that measured, in nanoseconds; 0 if the record does not state it.
    pub fn clock_step(&self) -> f64 {
        let stated = self
            .facts
            .get(CLOCK_STEP)
            .and_then(|step| step.parse().ok());
        stated
            .filter(|step| (0.0..1e18).contains(step))
            .unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_all_parts_of_a_launch_are_found() {
        let launch = Launch {
            facts: Factors::default()
                .with(HOSTS, &"a b")
                .with("hosts of others", &"x")
                .with("hosts (2)", &"c")
                .with("hosts (3)", &"a b")
                .with("hosts (of y)", &"y"),
            ..Launch::default()
        };
        assert_eq!(launch.distinct(HOSTS), ["a b", "c"]);
        assert!(launch.distinct(NODES).is_empty());
    }

    #[test]
    fn the_first_difference_between_factors_is_named() {
        let four = Factors::default()
            .with("ranks", &4)
            .with("mpi", &"Open MPI\n4.1 \r");
        assert_eq!(four.get("mpi"), Some("Open MPI 4.1"));
        assert_eq!(four.differing(&four), None);
        assert_eq!(
            four.differing(&Factors::default().with("ranks", &4).with("mpi", &"MPICH")),
            Some("mpi")
        );
        assert_eq!(
            four.differing(&Factors::default().with("ranks", &4)),
            Some("mpi")
        );
        assert_eq!(
            Factors::default().with("ranks", &4).differing(&four),
            Some("mpi")
        );
    }
}
