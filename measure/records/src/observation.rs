//! What the ranks saw of one call of an operation.

use downbeat_clock_core::{Domain, Duration, Timestamp};

/// When one rank entered the operation and when it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation<D: Domain> {
    /// Before the call.
    pub start: Timestamp<D>,
    /// After the call.
    pub end: Timestamp<D>,
}

impl<D: Domain> Observation<D> {
    /// How long the rank spent in the call.
    pub fn length(&self) -> Duration {
        self.end - self.start
    }
}

/// The run-time of a call on a clock that all ranks share: from the first that entered to the last that left.
///
/// `None` without ranks.
pub fn run_time<D: Domain>(ranks: &[Observation<D>]) -> Option<Duration> {
    let first = ranks.iter().map(|rank| rank.start).min()?;
    let last = ranks.iter().map(|rank| rank.end).max()?;
    Some(last - first)
}

/// The run-time of a call by clocks that differ: the longest that any rank spent in it.
///
/// What the ranks waited for each other is in it, too. `None` without ranks.
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
