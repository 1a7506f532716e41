//! Measurement of one operation by one method, from the warm-up to the reported figures.

use downbeat_clock_core::{Clock, Duration, ReadOrdering};
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::barrier::Barrier;
use crate::clock_check::{ClockCheck, ClockWatch};
use crate::collection::{Collect, Collection, Exits};
use crate::context::{ClockBasis, MeasureContext};
use crate::error::{MeasureError, MethodError};
use crate::operation::{Coordinator, Operation};
use crate::plan::{ClockChecks, Finished, Plan, Step};
use crate::processing::{Figure, Processing};
use crate::scheme::{PreparedScheme, Scheme};
use crate::stopping::{StopReason, Stopping};
use downbeat_records::stats::{BatchMeans, StatsError};
use downbeat_records::{Basis, Observations};

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
    /// Times of the calls that rank 0 gets.
    pub collect: Collect,
}

/// Result of a measurement, on rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// All observations, with the run-times of the calls as of one rank.
    pub observations: Observations,
    /// Imbalance of each of them, if the method collects it.
    pub exits: Option<Exits>,
    /// Figures that the processing computed; the first is the one to report.
    pub figures: Vec<Figure>,
    /// Number of independent observations whose mean would be as precise as that of the valid ones; see [`BatchMeans`].
    pub effective: Result<f64, StatsError>,
    /// Reason why there is no interval of the mean, if the processing or the stopping rule needs one.
    pub no_interval: Option<StatsError>,
    /// Durations that the scheme determined by itself, with names.
    pub details: Vec<(&'static str, Duration)>,
    /// Facts that the caller found out about it, for its record.
    pub facts: Vec<(&'static str, String)>,
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
    /// If it does not fit, or if imbalances are collected without a global clock.
    pub fn check(&self) -> Result<(), MethodError> {
        if self.collect == Collect::Exits && self.basis() != Basis::Global {
            return Err(MethodError::NeedsGlobalClock);
        }
        self.processing.fits(self.basis())
    }

    /// Checks that an operation can be called as the scheme does, given that it [fits a series](Operation::fits_series).
    ///
    /// # Errors
    /// If calls are timed together and the operation cannot be prepared between them.
    pub fn check_series(&self, fits_series: bool) -> Result<(), MethodError> {
        match self.scheme.repeats_calls() && !fits_series {
            true => Err(MethodError::NotInSeries),
            false => Ok(()),
        }
    }

    /// Returns true if the ranks need a global clock.
    pub fn needs_global_time(&self) -> bool {
        let barrier = self.scheme.barrier();
        self.basis() == Basis::Global || barrier.is_some_and(Barrier::needs_global_clock)
    }

    /// Returns the clocks that calls are timed by. Barriers work with local clocks, unless the processing needs a global one.
    fn basis(&self) -> Basis {
        match self.scheme {
            Scheme::Series(_) => Basis::Means,
            Scheme::Windows(_) | Scheme::RoundTime(_) | Scheme::RoundGrid(_) => Basis::Global,
            Scheme::EachCall(_) if self.processing.fits(Basis::Local).is_ok() => Basis::Local,
            Scheme::EachCall(_) => Basis::Global,
        }
    }

    /// Measures an operation. All ranks call this, with equal methods; rank 0 gets the result.
    ///
    /// # Errors
    /// If the method needs a global clock and there is none, if that cannot be synchronized, if the clock is unordered, if the
    /// operation does not fit the method or fails, or if the observations cannot be processed. [`MeasureError::is_local`] says whether other ranks may be waiting for this one then.
    pub async fn measure<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measurement>, MeasureError> {
        Ok(self.run(context, operation, false).await?.0)
    }

    /// Does the same as [`measure`](Self::measure), and returns on every rank the times of its own calls, with their states on all ranks.
    ///
    /// # Errors
    /// As for [`measure`](Self::measure).
    pub async fn measure_on_each<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<(Option<Measurement>, Observations), MeasureError> {
        let (measured, own) = self.run(context, operation, true).await?;
        Ok((measured, own.unwrap_or_else(Observations::none)))
    }

    /// Measures an operation, and returns this rank's own times if they are wanted.
    async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        wants_own: bool,
    ) -> Result<(Option<Measurement>, Option<Observations>), MeasureError> {
        if context.clock.ordering() == ReadOrdering::Unordered {
            return Err(MeasureError::UnorderedClock);
        }
        self.check()?;
        self.check_series(operation.fits_series())?;
        if self.root >= context.comm.size() {
            return Err(MeasureError::NoSuchRoot {
                root: self.root as usize,
                ranks: context.comm.size() as usize,
            });
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
        let most = self.stopping.most();
        let most = scheme
            .warm_up(context, operation, self.warm_up, most)
            .await?;
        let stopping = self.stopping.at_most(most);
        // Means of series do not depend on the global clock.
        let new_watch = || ClockWatch::new(context).filter(|_| self.basis() != Basis::Means);
        let mut watch = new_watch();
        // Only rank 0 has all observations.
        let mut plan = (context.comm.rank() == 0).then(|| {
            let renewable = matches!(context.clock_basis, ClockBasis::Synchronized(_));
            Plan::new(stopping, watch.is_some(), renewable, synchronized)
        });
        let calls_together = scheme.calls_together().unwrap_or(1);
        let needed = self.processing.needed();
        let mut collection = Collection::new(self.collect, self.basis(), needed, calls_together);
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
                    let spans = scheme.run(context, operation, number, more, time).await?;
                    // The time for collecting the observations does not count.
                    let took = context.now() - began;
                    let made = spans.len() as u32;
                    let kept = collection.add(context, spans, number, thinning).await?;
                    number += made;
                    if let (Some(plan), Some((kept, times))) = (&mut plan, kept) {
                        plan.observed(kept, times, made, took);
                    }
                }
            }
        }
        if let (ClockBasis::Synchronized(global), Some(plan)) = (context.clock_basis, &plan)
            && plan.wants_renewal()
        {
            global.expire();
        }
        let finished = plan.map(Plan::finish);
        let kept = finished
            .as_ref()
            .map(|found| (&found.observations, found.thinning));
        let thinning = kept.map(|(_, thinning)| thinning);
        let own = match wants_own {
            true => Some(collection.own_times(context.comm, kept).await?),
            false => None,
        };
        let exits = collection.exits(context.comm, thinning).await?;
        let times = collection.times(context.comm, self.root, kept).await?;
        let measured = finished.map(|finished| {
            let Finished {
                observations,
                thinning: _,
                made,
                clock_checks,
                stop_reason,
                elapsed,
            } = finished;
            let times = times.ok_or_else(|| MeasureError::nothing(observations.states()))?;
            let effective = BatchMeans::from_iter(observations.run_times()).effective();
            let of_rule = || effective.err().filter(|_| self.stopping.needs_error());
            Ok(Measurement {
                figures: self.processing.figures(&times)?,
                effective,
                no_interval: self.processing.no_interval(&times).or_else(of_rule),
                observations,
                exits,
                details: scheme.details(),
                facts: Vec::new(),
                clock_checks,
                stop_reason,
                made,
                elapsed,
            })
        });
        Ok((context.agree(measured.transpose()).await?, own))
    }

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
