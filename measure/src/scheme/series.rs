//! MS2 and MS3: several calls are timed together.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use crate::stage::{Span, Stage, room_for};
use crate::{Barrier, MeasureError, Operation, Together};
use downbeat_records::ObservationState;

/// Several calls that are timed together, so that an observation is their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// How many calls.
    pub calls: u32,
    /// How long a series may take: if so many calls would take longer, there are fewer, but one at least. Rank 0 finds
    /// that out, by the time of some calls before the first series.
    pub within: Option<Duration>,
    /// How many calls there are before the barriers of every series that are not timed.
    pub untimed: u32,
    /// Which barrier.
    pub barrier: Barrier,
    /// How many of them there are before the first call that is timed.
    pub barriers_before: u32,
    /// Whether there is a barrier after every call (MS3), which is timed with it, or none (MS2): then calls overlap,
    /// where the operation lets ranks leave before others came.
    pub barrier_after_each: bool,
}

/// Calls that are tried for how many fit into the time of a series.
const TRIED: u32 = 5;

impl Series {
    /// So many calls behind a barrier.
    pub const fn of(calls: u32) -> Self {
        Self {
            calls,
            within: None,
            untimed: 0,
            barrier: Barrier::Library,
            barriers_before: 1,
            barrier_after_each: false,
        }
    }

    /// A series of so many calls that is thrown away; then one that says how many calls fit into the time of a series.
    pub(super) async fn warm_up<M: Comm, T: Together, K: Clock>(
        &mut self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
        calls: u32,
    ) -> Result<(), MeasureError> {
        let series = u32::from(calls > 0);
        Self {
            calls,
            untimed: 0,
            ..*self
        }
        .run(stage, operation, 0, series)
        .await?;
        if let Some(within) = self.within {
            let tried = Self {
                calls: TRIED,
                ..*self
            }
            .run(stage, operation, 0, 1)
            .await?;
            let took = tried
                .iter()
                .map(|span| {
                    stage
                        .nanos(span.end)
                        .saturating_sub(stage.nanos(span.start))
                })
                .sum();
            self.calls = collective::broadcast(stage.comm, u64::from(self.fitting(within, took)))
                .await? as u32;
        }
        Ok(())
    }

    /// How many calls fit, if those that were tried took so many nanoseconds.
    fn fitting(&self, within: Duration, took: i64) -> u32 {
        let fit = i128::from(within.as_nanos()) * i128::from(TRIED) / i128::from(took.max(1));
        fit.clamp(1, i128::from(self.calls.max(1))) as u32
    }

    pub(super) async fn run<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        observations: u32,
    ) -> Result<Vec<Span>, MeasureError> {
        let mut spans = room_for(observations);
        for _ in first..first + observations {
            operation.prepare();
            for call in 0..self.untimed {
                operation
                    .call(call)
                    .await
                    .map_err(MeasureError::Operation)?;
            }
            for _ in 0..self.barriers_before {
                stage.wait_for_all(self.barrier).await?;
            }
            let start = stage.clock.open();
            for call in 0..self.calls {
                operation
                    .call(call)
                    .await
                    .map_err(MeasureError::Operation)?;
                if self.barrier_after_each {
                    stage.wait_for_all(self.barrier).await?;
                }
            }
            let end = stage.clock.close();
            spans.push(Span {
                start,
                end,
                state: ObservationState::Valid,
            });
        }
        Ok(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_calls_as_fit_but_one_at_least() {
        let fitting =
            |calls, millis, took| Series::of(calls).fitting(Duration::from_millis(millis), took);
        // 5 calls took 1 ms, so 250 take 50.
        assert_eq!(
            (fitting(1_000, 50, 1_000_000), fitting(100, 50, 1_000_000)),
            (250, 100)
        );
        // Clocks need not have moved, or may have moved back.
        assert_eq!(
            (
                fitting(1_000, 50, 0),
                fitting(1_000, 50, -7),
                fitting(1_000, 0, 5)
            ),
            (1_000, 1_000, 1)
        );
        assert_eq!((fitting(7, 1, i64::MAX), fitting(0, 1, 1)), (1, 1));
    }
}
