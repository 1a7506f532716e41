//! Observations of many calls of one operation.

use downbeat_clock_core::{Duration, Global, Local};

use crate::{Observation, local_run_time, run_time};

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

/// Times of calls, by the clock that measured them. The values of one call are adjacent, in the
/// order of the ranks.
#[derive(Clone, Debug, PartialEq)]
pub enum CallTimes {
    /// Timestamps of a global clock.
    Global(Vec<Observation<Global>>),
    /// Timestamps of the ranks' own clocks: only differences on one rank have a meaning.
    Local(Vec<Observation<Local>>),
    /// Mean duration of one call in a series of calls, in nanoseconds. An observation is one such
    /// series.
    Means(Vec<f64>),
}

/// Kind of [`CallTimes`] that a measurement scheme produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// Every call, by a global clock.
    Global,
    /// Every call, by the ranks' own clocks.
    Local,
    /// Means of series of calls.
    Means,
}

impl CallTimes {
    /// Kind of these times.
    pub fn basis(&self) -> Basis {
        match self {
            Self::Global(_) => Basis::Global,
            Self::Local(_) => Basis::Local,
            Self::Means(_) => Basis::Means,
        }
    }

    /// Number of values of all ranks.
    pub fn len(&self) -> usize {
        match self {
            Self::Global(all) => all.len(),
            Self::Local(all) => all.len(),
            Self::Means(all) => all.len(),
        }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Observations of many calls of one operation on all ranks, in the order of the calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    ranks: usize,
    states: Vec<ObservationState>,
    call_times: CallTimes,
}

impl Observations {
    /// Returns `None` unless there is a value for every call and rank, and at least one rank.
    pub fn new(ranks: usize, states: Vec<ObservationState>, call_times: CallTimes) -> Option<Self> {
        (ranks > 0 && states.len().checked_mul(ranks) == Some(call_times.len())).then_some(Self {
            ranks,
            states,
            call_times,
        })
    }

    /// Returns observations of several ranks from those of each rank; `None` unless these
    /// are of one rank, of as many calls and by the same clocks. The states are those on
    /// the first rank.
    pub fn of_ranks<'a>(ranks: &'a [Self]) -> Option<Self> {
        let first = ranks.first()?;
        macro_rules! times {
            ($kind:ident) => {{
                let of_rank = |one: &'a CallTimes| match one {
                    CallTimes::$kind(times) => Some(&times[..]),
                    _ => None,
                };
                let all = ranks.iter().map(|one| &one.call_times);
                CallTimes::$kind(call_by_call(all.map(of_rank))?)
            }};
        }
        let times = match first.call_times {
            CallTimes::Global(_) => times!(Global),
            CallTimes::Local(_) => times!(Local),
            CallTimes::Means(_) => times!(Means),
        };
        Self::new(ranks.len(), first.states.clone(), times)
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

    /// Keeps the calls whose position satisfies a condition.
    pub fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let ranks = self.ranks;
        retain(&mut self.states, &keep);
        let of_call = |place: usize| keep(place / ranks);
        match &mut self.call_times {
            CallTimes::Global(all) => retain(all, of_call),
            CallTimes::Local(all) => retain(all, of_call),
            CallTimes::Means(all) => retain(all, of_call),
        }
    }

    /// Returns observations of one rank without any calls.
    pub fn none() -> Self {
        Self {
            ranks: 1,
            states: Vec::new(),
            call_times: CallTimes::Means(Vec::new()),
        }
    }

    /// Takes calls whose clocks had drifted for valid ones; returns true if there are any.
    pub fn accept_drifted(&mut self) -> bool {
        let mut any = false;
        for state in &mut self.states {
            if *state == ObservationState::Drifted {
                (*state, any) = (ObservationState::Valid, true);
            }
        }
        any
    }

    /// Marks the valid calls from this one on as drifted.
    pub fn mark_drifted(&mut self, from: usize) {
        let states = self.states.iter_mut().skip(from);
        for state in states.filter(|state| **state == ObservationState::Valid) {
            *state = ObservationState::Drifted;
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Number of calls or series of calls, valid or not.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns true if there are no calls.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// State of each call.
    pub fn states(&self) -> &[ObservationState] {
        &self.states
    }

    /// Times of the calls.
    pub fn call_times(&self) -> &CallTimes {
        &self.call_times
    }

    /// Number of calls in this state.
    pub fn count(&self, state: ObservationState) -> usize {
        self.states.iter().filter(|found| **found == state).count()
    }

    /// Indices of the valid calls.
    pub fn valid(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|call| self.states[*call] == ObservationState::Valid)
    }

    /// Duration of a call on one rank, in nanoseconds.
    ///
    /// # Panics
    /// If the call or rank is out of range.
    pub fn time(&self, call: usize, rank: usize) -> f64 {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let place = call * self.ranks + rank;
        match &self.call_times {
            CallTimes::Global(all) => nanos(all[place].length()),
            CallTimes::Local(all) => nanos(all[place].length()),
            CallTimes::Means(all) => all[place],
        }
    }

    /// Run-time of a call in nanoseconds: on a global clock, from the first rank that entered to
    /// the last that left; otherwise the longest duration on a rank.
    ///
    /// # Panics
    /// If the call is out of range.
    pub fn run_time(&self, call: usize) -> f64 {
        let places = call * self.ranks..(call + 1) * self.ranks;
        // There is at least one rank.
        match &self.call_times {
            CallTimes::Global(all) => run_time(&all[places]).map_or(0.0, nanos),
            CallTimes::Local(all) => local_run_time(&all[places]).map_or(0.0, nanos),
            CallTimes::Means(all) => all[places].iter().copied().fold(f64::MIN, f64::max),
        }
    }

    /// Run-times of the valid calls, in their order.
    pub fn run_times(&self) -> Vec<f64> {
        self.valid().map(|call| self.run_time(call)).collect()
    }
}

/// Returns the values of all ranks call by call; `None` unless they are of equally many calls.
fn call_by_call<'a, T: Copy + 'a>(ranks: impl Iterator<Item = Option<&'a [T]>>) -> Option<Vec<T>> {
    let ranks = ranks.collect::<Option<Vec<&[T]>>>()?;
    let calls = ranks.first()?.len();
    if ranks.iter().any(|times| times.len() != calls) {
        return None;
    }
    let of_call = |call| ranks.iter().map(move |times| times[call]);
    Some((0..calls).flat_map(of_call).collect())
}

/// Keeps the values whose position satisfies a condition.
fn retain<T>(values: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut positions = 0..;
    values.retain(|_| positions.next().is_some_and(&keep));
}

fn nanos(span: Duration) -> f64 {
    span.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::{Domain, Timestamp};

    fn observation<D: Domain>(start: i64, end: i64) -> Observation<D> {
        Observation {
            start: Timestamp::from_nanos(start),
            end: Timestamp::from_nanos(end),
        }
    }

    #[test]
    fn observations_of_ranks_are_joined_call_by_call() {
        let states = [ObservationState::Valid, ObservationState::Late];
        let one = |times| Observations::new(1, states.to_vec(), times).unwrap();
        let means = |times: [f64; 2]| one(CallTimes::Means(times.to_vec()));
        let joined = Observations::of_ranks(&[means([1.0, 2.0]), means([3.0, 4.0])]).unwrap();
        assert_eq!((joined.ranks(), joined.states()), (2, &states[..]));
        assert_eq!(
            joined.call_times(),
            &CallTimes::Means(vec![1.0, 3.0, 2.0, 4.0])
        );
        let local = one(CallTimes::Local(vec![observation(0, 1), observation(2, 3)]));
        let short = Observations::new(1, states[..1].to_vec(), CallTimes::Means(vec![1.0]));
        for other in [local, short.unwrap(), joined] {
            assert_eq!(Observations::of_ranks(&[means([1.0, 2.0]), other]), None);
        }
        assert_eq!(Observations::of_ranks(&[]), None);
    }

    #[test]
    fn run_times_depend_on_the_kind_of_times() {
        let states = vec![
            ObservationState::Valid,
            ObservationState::Late,
            ObservationState::Valid,
        ];
        let global = CallTimes::Global(vec![
            observation(0, 40),
            observation(5, 50),
            observation(100, 900),
            observation(90, 120),
            observation(200, 230),
            observation(201, 220),
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
            observation(0, 40),
            observation(1_005, 1_050),
            observation(0, 1),
            observation(0, 2),
            observation(0, 30),
            observation(0, 19),
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
    fn all_ranks_of_a_call_are_kept() {
        let states = [
            ObservationState::Valid,
            ObservationState::Late,
            ObservationState::Long,
        ];
        let means = CallTimes::Means(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut found = Observations::new(2, states.to_vec(), means).unwrap();
        found.retain(|call| call != 1);
        let kept = CallTimes::Means(vec![1.0, 2.0, 5.0, 6.0]);
        assert_eq!(
            found,
            Observations::new(2, vec![states[0], states[2]], kept).unwrap()
        );
    }

    #[test]
    fn there_must_be_a_time_for_every_call_and_rank() {
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
