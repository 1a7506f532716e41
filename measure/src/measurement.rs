//! One operation measured by one method: from the first call for warming up to the figures that are reported.

use downbeat_clock_core::{Clock, Duration, Global, Local, Timestamp};
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::scheme::Running;
use crate::stage::{Span, Stage, Time};
use crate::{
    Ended, Figure, MeasureError, Operation, Processing, ProcessingError, Progress, Scheme,
    Stopping, Together,
};
use downbeat_records::{Basis, CallTimes, Observation, ObservationState, Observations};

/// How an operation is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// How many calls are made and thrown away before all others.
    pub warm_up: u32,
    /// How observations are made.
    pub scheme: Scheme,
    /// How many.
    pub stopping: Stopping,
    /// What is made of them.
    pub processing: Processing,
    /// The rank that counts as the root for the processing.
    pub root: u32,
}

/// What came of it, on rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Everything that was observed.
    pub observations: Observations,
    /// What the processing made of it; the first is the one to report.
    pub figures: Vec<Figure>,
    /// What the scheme found out by itself: names and times.
    pub found: Vec<(&'static str, Duration)>,
    /// Why there were not more observations.
    pub ended: Ended,
    /// How long the ranks were at it, without warming up and without collecting what they saw.
    pub elapsed: Duration,
}

impl Method {
    /// Whether the processing makes sense of what the scheme observes. To be asked before anything is measured.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self) -> Result<(), ProcessingError> {
        self.processing.fits(self.basis())
    }

    /// Whether the ranks need one clock.
    pub fn needs_global_time(&self) -> bool {
        self.basis() == Basis::Global
    }

    /// By what clocks calls are timed. Barriers do with the ranks' own, unless the processing does not.
    fn basis(&self) -> Basis {
        match self.scheme {
            Scheme::Series(_) => Basis::Means,
            Scheme::Windows(_) | Scheme::RoundTime(_) => Basis::Global,
            Scheme::EachCall(_) if self.processing.fits(Basis::Local).is_ok() => Basis::Local,
            Scheme::EachCall(_) => Basis::Global,
        }
    }

    /// Measures. All ranks call this, with equal methods; rank 0 gets the result.
    ///
    /// # Errors
    /// When the method needs one clock and there is none, when the operation fails, or when what was observed cannot be
    /// processed. [`MeasureError::is_of_one_rank`] says whether other ranks may be waiting for this one then.
    pub async fn measure<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measured>, MeasureError> {
        if self.needs_global_time() {
            stage.global()?;
        }
        let mut running = Running::prepare(&self.scheme, stage, operation).await?;
        running.warm_up(stage, operation, self.warm_up).await?;
        let mut progress = Progress::new(self.stopping);
        let mut seen: Option<Observations> = None;
        let (mut run_times, mut number, mut elapsed) = (Vec::new(), 0, Duration::ZERO);
        loop {
            // Only rank 0 knows.
            let more = progress.next(&run_times, number, elapsed);
            let more = collective::broadcast(stage.comm, u64::from(more)).await? as u32;
            if more == 0 {
                break;
            }
            let began = stage.now();
            let left = self.stopping.slice().map(|slice| slice - elapsed);
            let spans = running.run(stage, operation, number, more, left).await?;
            // What is done with the observations afterwards does not count.
            elapsed += stage.now() - began;
            number += spans.len() as u32;
            let Some(batch) = gather(stage, &spans, running.calls_together()).await? else {
                continue;
            };
            running.adapt(&batch);
            run_times.extend(batch.run_times());
            match &mut seen {
                Some(seen) => seen.append(batch),
                None => seen = Some(batch),
            }
        }
        let processed = seen
            .map(|seen| Ok((self.processing.apply(&seen, self.root as usize)?, seen)))
            .transpose();
        let processed = stage
            .agree(processed.map_err(MeasureError::Processing))
            .await?;
        Ok(processed.map(|(figures, observations)| Measured {
            observations,
            figures,
            found: running.found(),
            ended: progress.ended().unwrap_or(Ended::Most),
            elapsed,
        }))
    }
}

impl Method {
    /// As [`measure`](Self::measure), for ranks that never suspend.
    ///
    /// # Errors
    /// As [`measure`](Self::measure); and on a backend whose ranks do suspend.
    pub fn measure_blocking<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measured>, MeasureError> {
        block_on_ready(self.measure(stage, operation))
    }
}

/// Spans that fit into a message.
const TOGETHER: usize = 2;

/// What all ranks saw, on rank 0. With `calls`, a span was that of so many calls.
async fn gather<M: Comm, T: Together, K: Clock>(
    stage: &Stage<'_, M, T, K>,
    mine: &[Span],
    calls: Option<u32>,
) -> Result<Option<Observations>, MeasureError> {
    let words = |span: &Span| {
        [
            stage.nanos(span.start) as u64,
            stage.nanos(span.end) as u64,
            span.state as u64,
        ]
    };
    let none = [0; 3];
    if stage.comm.rank() != 0 {
        for spans in mine.chunks(TOGETHER) {
            let [a, b] = [0, 1].map(|i| spans.get(i).map_or(none, words));
            stage
                .comm
                .send(0, [a[0], a[1], a[2], b[0], b[1], b[2]])
                .await?;
        }
        return Ok(None);
    }
    let ranks = stage.comm.size() as usize;
    let mut all = vec![none; mine.len() * ranks];
    for (call, span) in mine.iter().enumerate() {
        all[call * ranks] = words(span);
    }
    for rank in 1..ranks {
        for call in (0..mine.len()).step_by(TOGETHER) {
            let [a, b, c, d, e, f]: [u64; 6] = stage.comm.recv(rank as u32).await?;
            all[call * ranks + rank] = [a, b, c];
            if let Some(second) = all.get_mut((call + 1) * ranks + rank) {
                *second = [d, e, f];
            }
        }
    }
    let states = all.chunks(ranks).map(state_of_call).collect();
    let stamps = match (calls, &stage.time) {
        (Some(calls), _) => CallTimes::Means(
            all.iter()
                .map(|span| (span[1] as i64 - span[0] as i64) as f64 / f64::from(calls))
                .collect(),
        ),
        (None, Time::Local(_)) => CallTimes::Local(all.iter().map(observation::<Local>).collect()),
        (None, Time::Global(_)) => {
            CallTimes::Global(all.iter().map(observation::<Global>).collect())
        }
    };
    Ok(Observations::new(ranks, states, stamps))
}

/// A call is spoiled if it was for any rank.
fn state_of_call(ranks: &[[u64; 3]]) -> ObservationState {
    let any = |state: ObservationState| ranks.iter().any(|rank| rank[2] == state as u64);
    [ObservationState::Late, ObservationState::Long]
        .into_iter()
        .find(|state| any(*state))
        .unwrap_or(ObservationState::Valid)
}

fn observation<D: downbeat_clock_core::Domain>(span: &[u64; 3]) -> Observation<D> {
    let [start, end] = [span[0], span[1]].map(|word| Timestamp::from_nanos(word as i64));
    Observation { start, end }
}
