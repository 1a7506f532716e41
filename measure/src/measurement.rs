//! Measurement of one operation by one method, from the warm-up to the reported figures.

use downbeat_clock_core::{Clock, Duration, Global, Local, ReadOrdering, Timestamp};
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::clock_check::{ClockCheck, ClockWatch};
use crate::context::{CallSpan, ClockBasis, MeasureContext};
use crate::error::{MeasureError, MethodError};
use crate::operation::{Coordinator, Operation};
use crate::plan::{ClockChecks, Finished, Plan, Step};
use crate::processing::{Figure, Processing};
use crate::scheme::{PreparedScheme, Scheme};
use crate::stopping::{StopReason, Stopping};
use downbeat_records::stats::{BatchMeans, StatsError};
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
    /// Number of independent observations whose mean would be as precise as that of the valid ones; see [`BatchMeans`].
    pub effective: Result<f64, StatsError>,
    /// Reason why there is no interval of the mean, if the processing or the stopping rule needs one.
    pub no_interval: Option<StatsError>,
    /// Durations that the scheme determined by itself, with names.
    pub details: Vec<(&'static str, Duration)>,
    /// First figures of earlier measurements that the caller discarded and replaced by this one, in nanoseconds.
    pub discarded: Vec<f64>,
    /// Checks of the global clock; `None` if no clock can drift, because all ranks read one or measure locally.
    pub clock_checks: Option<ClockChecks>,
    /// Reason why the measurement ended.
    pub stop_reason: StopReason,
    /// Number of observations that were made; of very many in a time slice, evenly spaced ones were kept.
    pub made: u32,
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
    /// If the method needs a global clock and there is none, if that cannot be synchronized, if the clock is unordered, if the
    /// operation fails, or if the observations cannot be processed. [`MeasureError::is_local`] says whether other ranks may be waiting for this one then.
    pub async fn measure<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measurement>, MeasureError> {
        if context.clock.ordering() == ReadOrdering::Unordered {
            return Err(MeasureError::UnorderedClock);
        }
        let mut synchronized = None;
        if let ClockBasis::Synchronized(global) = context.clock_basis {
            let due = u64::from(global.is_due());
            if collective::broadcast(context.comm, due).await? != 0 {
                synchronized = Some(global.synchronize().await?);
            }
        }
        if self.needs_global_time() {
            context.global()?;
        }
        let mut scheme = PreparedScheme::prepare(&self.scheme, context, operation).await?;
        scheme.warm_up(context, operation, self.warm_up).await?;
        // Means of series do not depend on the global clock.
        let new_watch = || ClockWatch::new(context).filter(|_| self.basis() != Basis::Means);
        let mut watch = new_watch();
        // Only rank 0 has all observations.
        let mut plan = (context.comm.rank() == 0).then(|| {
            let renewable = matches!(context.clock_basis, ClockBasis::Synchronized(_));
            Plan::new(self.stopping, watch.is_some(), renewable, synchronized)
        });
        let mut number = 0;
        loop {
            let step = plan
                .as_mut()
                .map_or(Step::End, |plan| plan.next(context.is_clock_due()));
            match Step::decode(collective::broadcast(context.comm, step.encode()).await?) {
                Step::End => break,
                Step::Check => {
                    let check = match &mut watch {
                        Some(watch) => watch.check(context).await?,
                        None => ClockCheck::default(),
                    };
                    if let Some(plan) = &mut plan {
                        plan.checked(check);
                    }
                }
                Step::Synchronize => {
                    if let ClockBasis::Synchronized(global) = context.clock_basis {
                        let took = global.synchronize().await?;
                        if let Some(plan) = &mut plan {
                            plan.synchronized(took);
                        }
                    }
                    watch = new_watch();
                }
                Step::Observe(more, thinning) => {
                    let began = context.now();
                    // It is enough that rank 0 notices that the time is over.
                    let time = plan.as_ref().and_then(Plan::time);
                    let mut spans = scheme.run(context, operation, number, more, time).await?;
                    // The time for gathering the observations does not count.
                    let took = context.now() - began;
                    let made = spans.len() as u32;
                    let mut calls = number..;
                    spans.retain(|_| calls.next().is_some_and(|call| thinning.keeps(call)));
                    number += made;
                    let kept = gather(context, &spans, scheme.calls_together()).await?;
                    if let (Some(plan), Some(kept)) = (&mut plan, kept) {
                        scheme.adapt(&kept);
                        plan.observed(kept, made, took);
                    }
                }
            }
        }
        let measured = plan.map(|plan| {
            if let (ClockBasis::Synchronized(global), true) =
                (context.clock_basis, plan.wants_renewal())
            {
                global.expire();
            }
            let Finished {
                observations,
                made,
                clock_checks,
                stop_reason,
                elapsed,
            } = plan.finish();
            let root = self.root as usize;
            let effective = BatchMeans::from_iter(observations.run_times()).effective();
            let of_rule = || effective.err().filter(|_| self.stopping.needs_error());
            Ok(Measurement {
                figures: self.processing.apply(&observations, root)?,
                effective,
                no_interval: self
                    .processing
                    .no_interval(&observations, root)
                    .or_else(of_rule),
                observations,
                details: scheme.details(),
                discarded: Vec::new(),
                clock_checks,
                stop_reason,
                made,
                elapsed,
            })
        });
        context.agree(measured.transpose()).await
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
    let stamps = match (calls, context.clock_basis) {
        (Some(calls), _) => CallTimes::Means(
            all.iter()
                .map(|span| (span[1] as i64 - span[0] as i64) as f64 / f64::from(calls))
                .collect(),
        ),
        (None, ClockBasis::Local(_)) => {
            CallTimes::Local(all.iter().map(observation::<Local>).collect())
        }
        (None, ClockBasis::Global(_) | ClockBasis::Synchronized(_)) => {
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
