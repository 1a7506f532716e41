//! What all ranks saw of many calls of one operation.

use downbeat_clock_core::{Duration, Global, Local};

use crate::{Observation, local_run_time, run_time};

/// What became of one observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObservationState {
    /// It counts.
    Valid,
    /// A rank was not there in time for the common start.
    Late,
    /// It took longer than its window, so that the next one could not begin in time.
    Long,
}

impl ObservationState {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Valid, Self::Late, Self::Long];

    /// As it is written in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Late => "late",
            Self::Long => "long",
        }
    }
}

/// By what clocks the ranks saw it. In each, those of one call stand together, in the order of the ranks.
#[derive(Clone, Debug, PartialEq)]
pub enum CallTimes {
    /// By one clock that all ranks share.
    Global(Vec<Observation<Global>>),
    /// By clocks of their own: nothing but their differences means anything.
    Local(Vec<Observation<Local>>),
    /// Not call by call: how long one of several calls took on average, in nanoseconds. An observation is then one
    /// such series of calls.
    Means(Vec<f64>),
}

/// What kind of stamps there are, which a scheme settles before anything is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// Every call, by one clock that all ranks share.
    Global,
    /// Every call, by clocks of the ranks' own.
    Local,
    /// The means of several calls each.
    Means,
}

impl CallTimes {
    /// What kind they are.
    pub fn basis(&self) -> Basis {
        match self {
            Self::Global(_) => Basis::Global,
            Self::Local(_) => Basis::Local,
            Self::Means(_) => Basis::Means,
        }
    }

    /// How many there are, of all ranks together.
    pub fn len(&self) -> usize {
        match self {
            Self::Global(all) => all.len(),
            Self::Local(all) => all.len(),
            Self::Means(all) => all.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What all ranks saw of many calls of one operation, in the order of the calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    ranks: usize,
    states: Vec<ObservationState>,
    call_times: CallTimes,
}

impl Observations {
    /// `None` unless there is a stamp for every call and rank, and at least one rank.
    pub fn new(ranks: usize, states: Vec<ObservationState>, call_times: CallTimes) -> Option<Self> {
        (ranks > 0 && states.len().checked_mul(ranks) == Some(call_times.len())).then_some(Self {
            ranks,
            states,
            call_times,
        })
    }

    /// Appends observations of the same ranks by the same clocks; ignores others.
    pub fn append(&mut self, mut more: Self) {
        match (&mut self.call_times, &mut more.call_times) {
            _ if self.ranks != more.ranks => return,
            (CallTimes::Global(all), CallTimes::Global(more)) => all.append(more),
            (CallTimes::Local(all), CallTimes::Local(more)) => all.append(more),
            (CallTimes::Means(all), CallTimes::Means(more)) => all.append(more),
            _ => return,
        }
        self.states.append(&mut more.states);
    }

    /// How many ranks took part.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// How many calls there were, or series of calls, valid or not.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// What became of each.
    pub fn states(&self) -> &[ObservationState] {
        &self.states
    }

    /// By what clocks they were seen.
    pub fn call_times(&self) -> &CallTimes {
        &self.call_times
    }

    /// How many ended in this state.
    pub fn count(&self, state: ObservationState) -> usize {
        self.states.iter().filter(|found| **found == state).count()
    }

    /// The numbers of the valid calls.
    pub fn valid(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|call| self.states[*call] == ObservationState::Valid)
    }

    /// How long one rank spent in a call, in nanoseconds.
    ///
    /// # Panics
    /// If there is no such call or rank.
    pub fn time(&self, call: usize, rank: usize) -> f64 {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let place = call * self.ranks + rank;
        match &self.call_times {
            CallTimes::Global(all) => nanos(all[place].length()),
            CallTimes::Local(all) => nanos(all[place].length()),
            CallTimes::Means(all) => all[place],
        }
    }

    /// The run-time of a call, in nanoseconds: by a clock that all ranks share, from the first that entered to the last
    /// that left; otherwise the longest that a rank spent in it.
    ///
    /// # Panics
    /// If there is no such call.
    pub fn run_time(&self, call: usize) -> f64 {
        let places = call * self.ranks..(call + 1) * self.ranks;
        // There is at least one rank.
        match &self.call_times {
            CallTimes::Global(all) => run_time(&all[places]).map_or(0.0, nanos),
            CallTimes::Local(all) => local_run_time(&all[places]).map_or(0.0, nanos),
            CallTimes::Means(all) => all[places].iter().copied().fold(f64::MIN, f64::max),
        }
    }

    /// The run-times of the valid calls, in their order.
    pub fn run_times(&self) -> Vec<f64> {
        self.valid().map(|call| self.run_time(call)).collect()
    }
}

fn nanos(span: Duration) -> f64 {
    span.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::{Domain, Timestamp};

    fn seen<D: Domain>(start: i64, end: i64) -> Observation<D> {
        Observation {
            start: Timestamp::from_nanos(start),
            end: Timestamp::from_nanos(end),
        }
    }

    #[test]
    fn run_times_are_by_the_clocks_that_there_are() {
        let states = vec![
            ObservationState::Valid,
            ObservationState::Late,
            ObservationState::Valid,
        ];
        let global = CallTimes::Global(vec![
            seen(0, 40),
            seen(5, 50),
            seen(100, 900),
            seen(90, 120),
            seen(200, 230),
            seen(201, 220),
        ]);
        let global = Observations::new(2, states.clone(), global).unwrap();
        assert_eq!(
            (
                global.len(),
                global.ranks(),
                global.count(ObservationState::Valid)
            ),
            (3, 2, 2)
        );
        assert_eq!(global.run_times(), [50.0, 30.0]);
        assert_eq!(global.run_time(1), 810.0);
        assert_eq!(global.time(0, 1), 45.0);

        let local = CallTimes::Local(vec![
            seen(0, 40),
            seen(1_005, 1_050),
            seen(0, 1),
            seen(0, 2),
            seen(0, 30),
            seen(0, 19),
        ]);
        let local = Observations::new(2, states.clone(), local).unwrap();
        assert_eq!(local.run_times(), [45.0, 30.0]);

        let means = Observations::new(
            2,
            states,
            CallTimes::Means(vec![1.5, 2.5, 0.0, 0.0, 4.0, 3.0]),
        )
        .unwrap();
        assert_eq!(means.run_times(), [2.5, 4.0]);
        assert_eq!(means.time(2, 1), 3.0);
    }

    #[test]
    fn there_is_a_stamp_for_every_call_and_rank() {
        assert!(
            Observations::new(
                2,
                vec![ObservationState::Valid],
                CallTimes::Means(vec![1.0])
            )
            .is_none()
        );
        assert!(Observations::new(0, vec![], CallTimes::Means(vec![])).is_none());
        assert!(
            Observations::new(
                usize::MAX,
                vec![ObservationState::Valid; 2],
                CallTimes::Means(vec![])
            )
            .is_none()
        );
        let none = Observations::new(3, vec![], CallTimes::Means(vec![])).unwrap();
        assert!(none.is_empty() && none.run_times().is_empty());
    }
}
