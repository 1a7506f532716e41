//! Observations of single calls.

use downbeat_clock_core::{Domain, Duration, Timestamp};

/// Timestamps of one rank around one call of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation<D: Domain> {
    /// Time before the call.
    pub start: Timestamp<D>,
    /// Time after the call.
    pub end: Timestamp<D>,
}

impl<D: Domain> Observation<D> {
    /// Duration of the call on this rank.
    pub fn length(&self) -> Duration {
        self.end - self.start
    }
}

/// Run-time of a call on a global clock: from the first rank that entered to the last that left.
///
/// `None` without ranks.
pub fn run_time<D: Domain>(ranks: &[Observation<D>]) -> Option<Duration> {
    let first = ranks.iter().map(|rank| rank.start).min()?;
    let last = ranks.iter().map(|rank| rank.end).max()?;
    Some(last - first)
}

/// Run-time of a call by local clocks: the longest duration on any rank.
///
/// It includes the time that ranks wait for each other. `None` without ranks.
pub fn local_run_time<D: Domain>(ranks: &[Observation<D>]) -> Option<Duration> {
    ranks.iter().map(Observation::length).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::Global;

    #[test]
    fn the_global_run_time_spans_all_ranks_and_the_local_one_the_slowest() {
        let rank = |start, end| Observation::<Global> {
            start: Timestamp::from_nanos(start),
            end: Timestamp::from_nanos(end),
        };
        let ranks = [rank(10, 50), rank(0, 30), rank(20, 55)];
        assert_eq!(run_time(&ranks), Some(Duration::from_nanos(55)));
        assert_eq!(local_run_time(&ranks), Some(Duration::from_nanos(40)));
        assert_eq!(run_time::<Global>(&[]), None);
        assert_eq!(local_run_time::<Global>(&[]), None);
    }
}
