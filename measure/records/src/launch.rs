//! What one launch of a program measured.

use core::fmt;

use crate::ObservationState;

/// Names and values, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factors(Vec<(String, String)>);

impl Factors {
    /// One more. Line ends become blanks, since a factor is written on a line.
    #[must_use]
    pub fn with(mut self, name: &str, value: &dyn fmt::Display) -> Self {
        let on_one_line = |text: String| text.replace(['\n', '\r'], " ").trim().to_owned();
        self.0
            .push((on_one_line(name.to_owned()), on_one_line(value.to_string())));
        self
    }

    /// None at all.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// One more, as it is.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// The value of one of them.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The name of the first one that the other does not have, or has with another value; or that only the other has.
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

/// What was measured: the same operation with messages of the same size among as many ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// As its name is written: `allreduce`.
    pub operation: String,
    /// The size of a message.
    pub bytes: u64,
    /// How many ranks took part.
    pub ranks: u32,
}

/// As in `allreduce, 8 bytes, 4 ranks`.
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

/// Everything that was observed of it in one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredGroup {
    /// What was measured.
    pub key: GroupKey,
    /// The run-times of the valid observations in nanoseconds, in the order in which they were made.
    pub nanos: Vec<f64>,
    /// How many observations ended in each state, also those that were not kept.
    pub counts: Vec<(ObservationState, u64)>,
    /// What the processing made of it: names and nanoseconds. The first is the one to report.
    pub figures: Vec<(String, f64)>,
}

/// What one launch of a program measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// What the results depend on, and what is the same for all launches of an experiment.
    pub factors: Factors,
    /// What was found out or drawn by lot in this launch: when it began, its seed, the rate of its counter.
    pub facts: Factors,
    /// In the order in which they were measured; only whole ones.
    pub groups: Vec<MeasuredGroup>,
    /// Whether all groups that were to be measured are there.
    pub complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

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
