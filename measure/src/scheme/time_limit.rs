//! Time limits of loops of calls, as suites have them.

use downbeat_clock_core::Duration;
use downbeat_sync::{Comm, collective};

use crate::error::MeasureError;

/// Time limit of a loop of calls: if they would take longer, their number is reduced, to at least one. The calls that are tried
/// to determine the number are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// Time for all calls.
    pub within: Duration,
    /// Calls that are tried.
    pub trial: Trial,
}

/// Calls that are tried to determine how many fit into a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Five calls after the warm-up, by the time of rank 0.
    Five,
    /// One call, then as many as fit into a second, at most 1,000, by the slowest rank; all before the warm-up, which has a tenth of
    /// the calls at most.
    Second,
}

impl TimeLimit {
    /// Determines the number of calls. `try_calls` makes a number of calls, and returns the nanoseconds that they took on this rank.
    pub(super) async fn calls<M: Comm>(
        self,
        comm: &M,
        most: u32,
        mut try_calls: impl AsyncFnMut(u32) -> Result<i64, MeasureError>,
    ) -> Result<u32, MeasureError> {
        const SECOND: i64 = 1_000_000_000;
        match self.trial {
            Trial::Five => {
                let took = try_calls(5).await?;
                let fit = fitting(self.within.as_nanos(), 5, took).clamp(1, most.max(1));
                Ok(collective::broadcast(comm, fit).await?)
            }
            Trial::Second => {
                let mut took = slowest(comm, try_calls(1).await?).await?;
                let tried = fitting(SECOND, 1, took).clamp(1, most.clamp(1, 1_000));
                if tried > 1 {
                    took = slowest(comm, try_calls(tried).await?).await?;
                }
                let fit = fitting(self.within.as_nanos(), tried, took).saturating_add(1);
                Ok(fit.clamp(1, most.max(1)))
            }
        }
    }
}

/// Makes calls that are discarded: the wanted ones, and those that a time limit tries. Returns the number of calls that it leaves of
/// `most`. `discard` makes a number of calls, and returns the nanoseconds that they took on this rank.
pub(super) async fn warm_up<M: Comm>(
    limit: Option<TimeLimit>,
    comm: &M,
    calls: u32,
    most: u32,
    mut discard: impl AsyncFnMut(u32) -> Result<i64, MeasureError>,
) -> Result<u32, MeasureError> {
    let tries_first = |limit: &TimeLimit| limit.trial == Trial::Second;
    let first = limit.filter(tries_first);
    let most = match first {
        Some(limit) => limit.calls(comm, most, &mut discard).await?,
        None => most,
    };
    let calls = first.map_or(calls, |_| calls.min((most / 10).max(1)));
    if calls > 0 {
        discard(calls).await?;
    }
    match limit.filter(|limit| !tries_first(limit)) {
        Some(limit) => limit.calls(comm, most, discard).await,
        None => Ok(most),
    }
}

/// Returns the number of calls that fit into a time, if the tried ones took this number of nanoseconds.
fn fitting(nanos: i64, tried: u32, took: i64) -> u32 {
    // Clocks may show the same time as before, or an earlier one.
    let fit = i128::from(nanos) * i128::from(tried) / i128::from(took.max(1));
    u32::try_from(fit).unwrap_or(u32::MAX)
}

async fn slowest<M: Comm>(comm: &M, nanos: i64) -> Result<i64, MeasureError> {
    let nanos = nanos.max(0) as u64;
    Ok(collective::all_reduce(comm, nanos, u64::max).await? as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    /// Returns the number of calls, and the tried ones, if a call takes these nanoseconds on rank 0, and twice that on rank 1.
    fn calls(trial: Trial, millis: i64, most: u32, each: i64) -> (u32, Vec<u32>) {
        let limit = TimeLimit {
            within: Duration::from_millis(millis),
            trial,
        };
        let ranks = ThreadCluster::new(2).run(|comm| {
            let mut tried = Vec::new();
            let took = async |calls: u32| {
                tried.push(calls);
                Ok(each * i64::from(calls) * i64::from(1 + comm.rank()))
            };
            let calls = block_on_ready(limit.calls(comm, most, took)).unwrap();
            (calls, tried)
        });
        let ranks = ranks.unwrap();
        assert_eq!(ranks[0], ranks[1]);
        ranks[0].clone()
    }

    #[test]
    fn five_calls_of_rank_0_decide() {
        for (millis, most, each, expected) in [
            (50, 1_000, 200_000, 250),
            (50, 100, 200_000, 100),
            (50, 1_000, 0, 1_000),
            (50, 1_000, -7, 1_000),
            (0, 1_000, 1, 1),
            (1, 7, i64::MAX / 16, 1),
            (1, 0, 1, 1),
        ] {
            let found = calls(Trial::Five, millis, most, each);
            assert_eq!(found, (expected, vec![5]), "{most} of {each} ns");
        }
    }

    #[test]
    fn calls_of_a_second_on_the_slowest_rank_decide() {
        // 0.4 ms on the slowest rank; 2 ms; 0.4 s; 2 s.
        for (most, each, expected, tried) in [
            (1_000, 200_000, 1_000, vec![1, 1_000]),
            (40, 200_000, 40, vec![1, 40]),
            (1_000, 1_000_000, 1_000, vec![1, 500]),
            (1_000, 20_000_000, 251, vec![1, 25]),
            (1_000, 200_000_000, 26, vec![1, 2]),
            (1_000, 1_000_000_000, 6, vec![1]),
            (1, 200_000, 1, vec![1]),
        ] {
            let found = calls(Trial::Second, 10_000, most, each);
            assert_eq!(found, (expected, tried), "{most} of {each} ns");
        }
    }
}
