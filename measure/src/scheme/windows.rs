//! MS4: with one clock for all ranks, calls begin at agreed times, one window after the other.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use super::EachCall;
use crate::stage::{Span, Stage, from_word, room_for, to_word};
use crate::{MeasureError, Operation, Together};
use downbeat_records::stats::Sample;
use downbeat_records::{ObservationState, Observations};

/// Calls begin one window after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// How long a window is; found by trying when it is not given.
    pub window: Option<Duration>,
}

/// How long the first windows are, as rank 0 decides.
pub(crate) struct Running {
    pub(super) window: Duration,
    fixed: bool,
}

/// All ranks learn of the first window in this time.
const NOTICE: Duration = Duration::from_millis(1);

/// Calls that are tried for the size of a window.
const TRIES: u32 = 32;

/// Above this share of spoiled windows they become longer.
const MOST_SPOILED: f64 = 0.02;

impl Windows {
    /// Finds the size of the windows: twice what most calls take, the waiting for a barrier included.
    pub(super) async fn prepare<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Running, MeasureError> {
        if let Some(window) = self.window {
            return Ok(Running {
                window,
                fixed: true,
            });
        }
        let tried = EachCall::default().run(stage, operation, 0, TRIES).await?;
        let mut lengths: Vec<f64> = tried
            .iter()
            .map(|span| {
                stage
                    .nanos(span.end)
                    .saturating_sub(stage.nanos(span.start)) as f64
            })
            .collect();
        let most = Sample::new(&mut lengths).map_or(0.0, |sample| sample.quantile(0.9));
        let most = collective::all_reduce(stage.comm, most as u64, u64::max).await?;
        Ok(Running {
            window: Duration::from_nanos((most * 2).max(1) as i64),
            fixed: false,
        })
    }
}

impl Running {
    pub(super) async fn run<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
    ) -> Result<Vec<Span>, MeasureError> {
        let model = stage.global()?;
        let begin = model.apply(stage.clock.ticks()) + NOTICE;
        let [begin, window] =
            collective::broadcast(stage.comm, [to_word(begin), self.window.as_nanos() as u64])
                .await?;
        let (mut begin, window) = (from_word(begin), Duration::from_nanos(window as i64));
        let mut spans = room_for(calls);
        for number in first..first + calls {
            operation.prepare();
            let late = stage.wait_until(&model, begin)?;
            let mut span = stage.timed(operation, number).await?;
            begin = begin + window;
            if late.is_some() {
                span.state = ObservationState::Late;
            } else if span.end > model.invert(begin) {
                span.state = ObservationState::Long;
            }
            spans.push(span);
        }
        Ok(spans)
    }

    /// Makes the windows longer if too many were too short. On rank 0, which tells the others.
    pub(super) fn adapt(&mut self, batch: &Observations) {
        let spoiled = (batch.len() - batch.count(ObservationState::Valid)) as f64;
        if !self.fixed && spoiled > MOST_SPOILED * batch.len() as f64 {
            self.window = self.window + self.window;
        }
    }
}
