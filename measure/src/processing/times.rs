//! Times that figures are computed from, reduced over the ranks.

use downbeat_records::stats::Sample;
use downbeat_records::{Basis, CallTimes, Observations};

use super::figure::{Extremes, PerRank};
use super::mpi_bench;
use crate::error::{MeasureError, MethodError};

/// Kind of times that a processing needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Needed {
    /// One time of each call.
    Calls(CallTime),
    /// A figure of each rank.
    Ranks(PerRank),
    /// Times of all calls on all ranks, without outliers.
    Pooled {
        /// Multiple of the 99th percentile above which a time is an outlier.
        factor: f64,
    },
}

/// Time of a call on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallTime {
    /// Run-time.
    RunTime,
    /// Duration on the slowest rank. The run-time is longer by a global clock, as it begins with the first rank.
    Slowest,
    /// Duration on the root.
    Root,
    /// From the start of the root to the end of the last rank, by a global clock.
    SinceRoot,
}

/// Times of the valid calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Times {
    /// One time of each call, in their order.
    Calls(Vec<f64>),
    /// A figure of each rank.
    Ranks(Extremes),
    /// Times of all calls on all ranks up to a threshold.
    Pooled {
        /// Time above which a time is an outlier.
        threshold: f64,
        /// Figures of the others.
        kept: Extremes,
    },
}

impl Times {
    /// Reduces observations that have the times of every rank. There is a valid one, and the root is one of the ranks.
    pub(crate) fn of(
        observations: &Observations,
        needed: Needed,
        root: usize,
    ) -> Result<Self, MeasureError> {
        let ranks = 0..observations.ranks();
        match needed {
            Needed::Calls(time) => of_calls(observations, time, root).map(Self::Calls),
            Needed::Ranks(figure) => {
                let of_rank = |rank| figure.of(&mut rank_times(observations, rank));
                let mut of_ranks = ranks.map(of_rank).collect::<Result<Vec<f64>, _>>()?;
                Ok(Self::Ranks(Extremes::of(&Sample::new(&mut of_ranks)?)))
            }
            Needed::Pooled { factor } => {
                let of_call = |call| ranks.clone().map(move |rank| observations.time(call, rank));
                let mut times: Vec<f64> = observations.valid().flat_map(of_call).collect();
                let sample = Sample::new(&mut times)?;
                let t99 = sample.quantile(mpi_bench::PERCENTILE);
                let threshold = mpi_bench::threshold(t99, factor);
                let kept = sample.values().partition_point(|time| *time <= threshold);
                let kept = Extremes::of(&Sample::new(&mut times[..kept])?);
                Ok(Self::Pooled { threshold, kept })
            }
        }
    }
}

/// Returns the times of one rank in all valid calls.
fn rank_times(observations: &Observations, rank: usize) -> Vec<f64> {
    let time = |call| observations.time(call, rank);
    observations.valid().map(time).collect()
}

fn of_calls(
    observations: &Observations,
    time: CallTime,
    root: usize,
) -> Result<Vec<f64>, MeasureError> {
    let ranks = observations.ranks();
    Ok(match (time, observations.call_times()) {
        (CallTime::RunTime, _) => observations.run_times(),
        (CallTime::Slowest, _) => {
            let times = |call| (0..ranks).map(move |rank| observations.time(call, rank));
            let slowest = |call| times(call).fold(f64::MIN, f64::max);
            observations.valid().map(slowest).collect()
        }
        (CallTime::Root, _) => rank_times(observations, root),
        (CallTime::SinceRoot, CallTimes::Global(stamps)) => {
            let since_root = |call: usize| {
                let of_call = &stamps[call * ranks..(call + 1) * ranks];
                let last = of_call.iter().map(|rank| rank.end).max();
                last.map_or(0.0, |last| (last - of_call[root].start).as_nanos() as f64)
            };
            observations.valid().map(since_root).collect()
        }
        (CallTime::SinceRoot, _) => return Err(MethodError::NeedsGlobalClock.into()),
    })
}

impl CallTime {
    /// Returns true if it is the run-time, by the clocks of this basis.
    pub(crate) fn is_run_time(self, basis: Basis) -> bool {
        self == Self::RunTime || self == Self::Slowest && basis != Basis::Global
    }
}
