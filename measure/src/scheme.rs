//! Schemes that make observations, one per file.

mod batch;
mod each_call;
mod round_grid;
mod round_time;
mod series;
mod time_limit;
mod windows;

use core::fmt;

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::Comm;

pub use each_call::{BarrierPlace, EachCall};
pub use round_grid::RoundGrid;
pub use round_time::RoundTime;
pub use series::Series;
pub use time_limit::{TimeLimit, Trial};
pub use windows::Windows;

use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use crate::prepared_barrier::PreparedBarrier;

/// Kind of times that a scheme provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// Every call, by a global clock.
    Global,
    /// Every call, by the ranks' own clocks.
    Local,
    /// Means of series of calls.
    Means,
}

/// Scheme that makes observations.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scheme {
    /// MS1: a barrier before each call.
    EachCall(EachCall),
    /// MS2 and MS3: several calls are timed together.
    Series(Series),
    /// MS4: calls begin at agreed times, one window after the other.
    Windows(Windows),
    /// Round-Time: each round has a common start, which is announced shortly before.
    RoundTime(RoundTime),
    /// Round-Time on a grid: calls begin at points of the global clock that are agreed once for many of them.
    RoundGrid(RoundGrid),
}

impl Scheme {
    /// Returns a scheme of each name with the usual parameters, and this number of calls
    /// in a series.
    fn of_each_name(calls: u32) -> [Self; 6] {
        let series = Series::new(calls);
        [
            Self::EachCall(EachCall::default()),
            Self::Series(series),
            Self::Series(Series {
                barrier_after_each: true,
                ..series
            }),
            Self::Windows(Windows { window: None }),
            Self::RoundTime(RoundTime::default()),
            Self::RoundGrid(RoundGrid::default()),
        ]
    }

    /// Returns the names of all schemes in options and records.
    pub fn names() -> [&'static str; 6] {
        Self::of_each_name(1).map(|scheme| scheme.name())
    }

    /// Returns the scheme of a name with the usual parameters, and this number of calls
    /// in a series; `None` if there is no such name.
    pub fn named(name: &str, calls: u32) -> Option<Self> {
        let all = Self::of_each_name(calls);
        all.into_iter().find(|scheme| scheme.name() == name)
    }

    /// Returns the name in options and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EachCall(_) => "ms1",
            Self::Series(Series {
                barrier_after_each: false,
                ..
            }) => "ms2",
            Self::Series(_) => "ms3",
            Self::Windows(_) => "ms4",
            Self::RoundTime(_) => "round-time",
            Self::RoundGrid(_) => "round-grid",
        }
    }

    /// Returns true if several calls are timed together.
    pub(crate) fn repeats_calls(&self) -> bool {
        matches!(self, Self::Series(series) if series.calls > 1 || series.untimed > 0)
    }

    /// Returns the barrier, if the scheme has one that can be chosen.
    pub fn barrier(&self) -> Option<Barrier> {
        match self {
            Self::EachCall(each_call) => Some(each_call.barrier),
            Self::Series(series) => Some(series.barrier),
            Self::Windows(_) | Self::RoundTime(_) | Self::RoundGrid(_) => None,
        }
    }

    /// Replaces the barrier, if the scheme has one.
    #[must_use]
    pub fn with_barrier(mut self, barrier: Barrier) -> Self {
        match &mut self {
            Self::EachCall(EachCall {
                barrier: current, ..
            })
            | Self::Series(Series {
                barrier: current, ..
            }) => *current = barrier,
            Self::Windows(_) | Self::RoundTime(_) | Self::RoundGrid(_) => {}
        }
        self
    }
}

/// Writes the [name](Self::name).
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Scheme whose parameters were determined for an operation and the ranks.
pub(crate) enum PreparedScheme {
    EachCall(EachCall, PreparedBarrier),
    Series(Series, PreparedBarrier),
    Windows(windows::PreparedWindows),
    RoundTime(round_time::PreparedRounds),
    RoundGrid(round_grid::PreparedGrid),
}

impl PreparedScheme {
    pub(crate) async fn prepare<M: Comm, T: Coordinator, K: Clock>(
        scheme: &Scheme,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Self, MeasureError> {
        Ok(match scheme {
            Scheme::EachCall(each_call) => {
                Self::EachCall(*each_call, PreparedBarrier::new(each_call.barrier))
            }
            Scheme::Series(series) => Self::Series(*series, PreparedBarrier::new(series.barrier)),
            Scheme::Windows(windows) => Self::Windows(windows.prepare(context, operation).await?),
            Scheme::RoundTime(round_time) => Self::RoundTime(round_time.prepare(context).await?),
            Scheme::RoundGrid(grid) => Self::RoundGrid(grid.prepare(context, operation).await?),
        })
    }

    /// Makes a number of calls that are discarded, in a series of their own if calls are timed together. Returns the greatest number
    /// of observations: `most`, or fewer if more would exceed a time limit.
    pub(crate) async fn warm_up<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        calls: u32,
        most: u32,
    ) -> Result<u32, MeasureError> {
        match self {
            Self::EachCall(each, barrier) => {
                return each.warm_up(context, barrier, operation, calls, most).await;
            }
            Self::Series(series, barrier) => {
                series.warm_up(context, barrier, operation, calls).await?;
            }
            _ if calls == 0 => {}
            _ => drop(self.run(context, operation, 0, calls, None).await?),
        }
        Ok(most)
    }

    /// Makes a number of observations, the first of which has the number `first`; fewer if the time is over, for schemes
    /// that agree on every observation.
    pub(crate) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        observations: u32,
        time: Option<Duration>,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        match self {
            Self::EachCall(each_call, barrier) => {
                each_call
                    .run(context, barrier, operation, first, observations)
                    .await
            }
            Self::Series(series, barrier) => {
                series
                    .run(context, barrier, operation, first, observations)
                    .await
            }
            Self::Windows(windows) => {
                windows
                    .run(context, operation, first, observations, time)
                    .await
            }
            Self::RoundTime(rounds) => {
                rounds
                    .run(context, operation, first, observations, time)
                    .await
            }
            Self::RoundGrid(grid) => {
                grid.run(context, operation, first, observations, time)
                    .await
            }
        }
    }

    /// Returns the number of calls of an observation, which is their mean.
    pub(crate) fn calls_together(&self) -> u32 {
        match self {
            Self::Series(series, _) => series.calls,
            _ => 1,
        }
    }

    /// Returns the durations that the scheme determined by itself, with their names.
    pub(crate) fn details(&self) -> Vec<(&'static str, Duration)> {
        match self {
            Self::EachCall(..) | Self::Series(..) => Vec::new(),
            Self::Windows(windows) => vec![("window", windows.window)],
            Self::RoundTime(rounds) => {
                vec![("broadcast", rounds.broadcast), ("slack", rounds.slack())]
            }
            Self::RoundGrid(grid) => vec![("spacing", grid.spacing)],
        }
    }
}
