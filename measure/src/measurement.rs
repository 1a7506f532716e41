//! Measurement of one operation by one method, from the warm-up to the reported figures.

use downbeat_clock_core::{Clock, Duration, Global, Local, ReadOrdering, Timestamp};
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::context::{CallSpan, ClockBasis, MeasureContext};
use crate::error::{MeasureError, MethodError};
use crate::operation::{Coordinator, Operation};
use crate::processing::{Figure, Processing};
use crate::scheme::{PreparedScheme, Scheme};
use crate::stopping::{StopReason, Stopping, StoppingProgress};
use downbeat_records::{Basis, CallTimes, Observation, ObservationState, Observations};

/// Method by which an operation is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Number of warm-up calls, which are discarded.
    pub warm_up: u32,
    /// Scheme that makes observations.
    pub scheme: Scheme,
    /// Rule that decides when there are enough observations.
    pub stopping: Stopping,
    /// Processing that computes figures from observations.
    pub processing: Processing,
    /// Root for the processing.
    pub root: u32,
}

/// Result of a measurement, on rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// All observations.
    pub observations: Observations,
    /// Figures that the processing computed; the first is the one to report.
    pub figures: Vec<Figure>,
    /// Durations that the scheme determined by itself, with names.
    pub details: Vec<(&'static str, Duration)>,
    /// First figures of earlier measurements that the caller discarded and replaced by this one, in nanoseconds.
    pub discarded: Vec<f64>,
    /// Reason why the measurement ended.
    pub stop_reason: StopReason,
    /// Time that the observations took, without warm-up and without gathering them.
    pub elapsed: Duration,
}

impl Method {
    /// Checks that the processing fits the scheme. Call this before measuring.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn check(&self) -> Result<(), MethodError> {
        self.processing.fits(self.basis())
    }

    /// Returns true if the ranks need a global clock.
    pub fn needs_global_time(&self) -> bool {
        self.basis() == Basis::Global
    }

    /// Returns the clocks that calls are timed by. Barriers work with local clocks, unless the processing needs a global one.
    fn basis(&self) -> Basis {
        match self.scheme {
            Scheme::Series(_) => Basis::Means,
            Scheme::Windows(_) | Scheme::RoundTime(_) => Basis::Global,
            Scheme::EachCall(_) if self.processing.fits(Basis::Local).is_ok() => Basis::Local,
            Scheme::EachCall(_) => Basis::Global,
        }
    }

    /// Measures an operation. All ranks call this, with equal methods; rank 0 gets the result.
    ///
    /// # Errors
    /// If the method needs a global clock and there is none, if the clock is unordered, if the operation fails, or if the observations cannot be
    /// processed. [`MeasureError::is_local`] says whether other ranks may be waiting for this one then.
    pub async fn measure<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measurement>, MeasureError> {
        if self.needs_global_time() {
            context.global()?;
        }
        if context.clock.ordering() == ReadOrdering::Unordered {
            return Err(MeasureError::UnorderedClock);
        }
        let mut scheme = PreparedScheme::prepare(&self.scheme, context, operation).await?;
        scheme.warm_up(context, operation, self.warm_up).await?;
        let mut progress = StoppingProgress::new(self.stopping);
        let mut gathered: Option<Observations> = None;
        let (mut run_times, mut number, mut elapsed) = (Vec::new(), 0, Duration::ZERO);
        loop {
            // Only rank 0 has all observations.
            let more = progress.next(&run_times, number, elapsed);
            let more = collective::broadcast(context.comm, u64::from(more)).await? as u32;
            if more == 0 {
                break;
            }
            let began = context.now();
            let remaining_time = self.stopping.slice().map(|slice| slice - elapsed);
            let spans = scheme
                .run(context, operation, number, more, remaining_time)
                .await?;
            // The time for gathering the observations does not count.
            elapsed += context.now() - began;
            number += spans.len() as u32;
            let Some(batch) = gather(context, &spans, scheme.calls_together()).await? else {
                continue;
            };
            scheme.adapt(&batch);
            run_times.extend(batch.run_times());
            match &mut gathered {
                Some(gathered) => gathered.append(batch),
                None => gathered = Some(batch),
            }
        }
        let processed = gathered
            .map(|gathered| {
                Ok((
                    self.processing.apply(&gathered, self.root as usize)?,
                    gathered,
                ))
            })
            .transpose();
        let processed = context.agree(processed).await?;
        Ok(processed.map(|(figures, observations)| Measurement {
            observations,
            figures,
            details: scheme.details(),
            discarded: Vec::new(),
            stop_reason: progress.stop_reason().unwrap_or(StopReason::Most),
            elapsed,
        }))
    }
}

impl Method {
    /// Same as [`measure`](Self::measure), for ranks that never suspend.
    ///
    /// # Errors
    /// As for [`measure`](Self::measure); also on a backend whose ranks suspend.
    pub fn measure_blocking<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measurement>, MeasureError> {
        block_on_ready(self.measure(context, operation))
    }
}

/// Number of spans that fit into a message.
const TOGETHER: usize = 2;

/// Gathers the spans of all ranks on rank 0. With `calls`, each span is that of several calls, and becomes a mean.
async fn gather<M: Comm, T: Coordinator, K: Clock>(
    context: &MeasureContext<'_, M, T, K>,
    own: &[CallSpan],
    calls: Option<u32>,
) -> Result<Option<Observations>, MeasureError> {
    let encode = |span: &CallSpan| {
        [
            context.nanos(span.start) as u64,
            context.nanos(span.end) as u64,
            span.state as u64,
        ]
    };
    let none = [0; 3];
    if context.comm.rank() != 0 {
        for spans in own.chunks(TOGETHER) {
            let [a, b] = [0, 1].map(|i| spans.get(i).map_or(none, encode));
            context
                .comm
                .send(0, [a[0], a[1], a[2], b[0], b[1], b[2]])
                .await?;
        }
        return Ok(None);
    }
    let ranks = context.comm.size() as usize;
    let mut all = vec![none; own.len() * ranks];
    for (call, span) in own.iter().enumerate() {
        all[call * ranks] = encode(span);
    }
    for rank in 1..ranks {
        for call in (0..own.len()).step_by(TOGETHER) {
            let [a, b, c, d, e, f]: [u64; 6] = context.comm.recv(rank as u32).await?;
            all[call * ranks + rank] = [a, b, c];
            if let Some(second) = all.get_mut((call + 1) * ranks + rank) {
                *second = [d, e, f];
            }
        }
    }
    let states = all.chunks(ranks).map(call_state).collect();
    let stamps = match (calls, &context.clock_basis) {
        (Some(calls), _) => CallTimes::Means(
            all.iter()
                .map(|span| (span[1] as i64 - span[0] as i64) as f64 / f64::from(calls))
                .collect(),
        ),
        (None, ClockBasis::Local(_)) => {
            CallTimes::Local(all.iter().map(observation::<Local>).collect())
        }
        (None, ClockBasis::Global(_)) => {
            CallTimes::Global(all.iter().map(observation::<Global>).collect())
        }
    };
    Ok(Observations::new(ranks, states, stamps))
}

/// Combines the states of a call on all ranks: it is valid only if it is on all of them.
fn call_state(ranks: &[[u64; 3]]) -> ObservationState {
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
