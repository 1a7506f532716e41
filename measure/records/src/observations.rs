//! Observations of many calls of one operation.

use core::ops::Deref;

/// State of one observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObservationState {
    /// Valid.
    Valid,
    /// A rank missed the common start time.
    Late,
    /// The call took longer than its time window, so that the next one could not start in time.
    Long,
    /// The global clocks had drifted apart by too large a share of the run-time.
    Drifted,
}

impl ObservationState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Valid, Self::Late, Self::Long, Self::Drifted];

    /// All states but the valid one.
    pub const INVALID: [Self; 3] = [Self::Late, Self::Long, Self::Drifted];

    /// Name of the state in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Late => "late",
            Self::Long => "long",
            Self::Drifted => "drifted",
        }
    }
}

/// Observation of a call on one rank, or on all ranks together. A series of calls that are
/// timed together is one observation: their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// State.
    pub state: ObservationState,
    /// Begin of the call in nanoseconds of the clock that timed it: the global clock, or that of
    /// the rank; 0 if only the duration has a meaning.
    pub begin: i64,
    /// Duration of the call in nanoseconds. On all ranks it is the run-time: by a global clock
    /// from the first begin to the last end, otherwise the longest duration on a rank.
    pub nanos: f64,
}

impl Observation {
    /// End of the call in nanoseconds of the same clock.
    pub fn end(&self) -> i64 {
        self.begin.saturating_add(self.nanos as i64)
    }

    /// Returns true if the observation is valid.
    pub fn is_valid(&self) -> bool {
        self.state == ObservationState::Valid
    }
}

/// Observations of many calls of one operation, in the order of the calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations(pub Vec<Observation>);

impl Observations {
    /// Creates valid observations of which only the durations are known.
    pub fn of_durations(nanos: &[f64]) -> Self {
        let valid = |nanos: &f64| Observation {
            state: ObservationState::Valid,
            begin: 0,
            nanos: *nanos,
        };
        Self(nanos.iter().map(valid).collect())
    }

    /// Number of calls in this state.
    pub fn count(&self, state: ObservationState) -> usize {
        self.iter().filter(|found| found.state == state).count()
    }

    /// The valid observations, in their order.
    pub fn valid(&self) -> impl Iterator<Item = &Observation> {
        self.iter().filter(|found| found.is_valid())
    }

    /// Durations of the valid calls, in their order.
    pub fn run_times(&self) -> Vec<f64> {
        self.valid().map(|found| found.nanos).collect()
    }
}

impl Deref for Observations {
    type Target = [Observation];

    fn deref(&self) -> &[Observation] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_times_are_those_of_valid_calls() {
        let call = |state, begin, nanos| Observation {
            state,
            begin,
            nanos,
        };
        let found = Observations(vec![
            call(ObservationState::Valid, 5, 45.0),
            call(ObservationState::Late, 90, 810.0),
            call(ObservationState::Valid, -200, 30.0),
        ]);
        assert_eq!((found.len(), found.count(ObservationState::Valid)), (3, 2));
        assert_eq!(found.run_times(), [45.0, 30.0]);
        assert_eq!((found[1].end(), found[2].end()), (900, -170));
        assert!(!found[1].is_valid());
        let means = Observations::of_durations(&[2.5, 4.0]);
        assert_eq!(means.run_times(), [2.5, 4.0]);
        assert!(Observations::default().run_times().is_empty());
    }
}
