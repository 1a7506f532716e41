//! Measurement of one operation by one method, from the warm-up to the reported figures.

use downbeat_clock_core::{Clock, Duration, ReadOrdering};
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::barrier::Barrier;
use crate::clock_check::{ClockCheck, ClockWatch};
use crate::collection::{Collect, Collection, Exits};
use crate::context::{CallSpan, ClockBasis, MeasureContext};
use crate::error::{MeasureError, MethodError};
use crate::operation::{Coordinator, Operation};
use crate::plan::{ClockChecks, Finished, Plan, Step};
use crate::processing::{Figure, Processing, Times};
use crate::scheme::{PreparedScheme, Scheme};
use crate::stopping::{StopReason, Stopping};
use crate::thinning::Thinning;
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

    /// Returns the watch of the clock, if it can drift and the method depends on it: means of series
    /// do not.
    fn watch<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Option<ClockWatch> {
        ClockWatch::new(context).filter(|_| self.basis() != Basis::Means)
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
        self.check_context(context)?;
        self.check_series(operation.fits_series())?;
        let synchronized = renew_clock(context).await?;
        if self.needs_global_time() {
            context.global()?;
        }
        let mut scheme = PreparedScheme::prepare(&self.scheme, context, operation).await?;
        let most = self.stopping.most();
        let most = scheme
            .warm_up(context, operation, self.warm_up, most)
            .await?;
        let stopping = self.stopping.at_most(most);
        let mut running = Running::new(self, context, (&scheme, stopping), synchronized);
        loop {
            match running.next_step(context).await? {
                Step::End => break,
                Step::Check => running.check_clock(context).await?,
                Step::Synchronize => running.synchronize(context).await?,
                Step::Observe(number, thinning) => {
                    // It is enough that rank 0 notices that the time is over.
                    let time = running.plan.as_ref().and_then(Plan::time);
                    let (first, began) = (running.made, context.now());
                    let spans = scheme.run(context, operation, first, number, time).await?;
                    // The time for collecting the observations does not count.
                    let took = context.now() - began;
                    running.collect(context, spans, thinning, took).await?;
                }
            }
        }
        running.finish(context, scheme.details(), wants_own).await
    }

    /// Checks that these ranks and their clock allow the method.
    fn check_context<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<(), MeasureError> {
        if context.clock.ordering() == ReadOrdering::Unordered {
            return Err(MeasureError::UnorderedClock);
        }
        self.check()?;
        if self.root >= context.comm.size() {
            return Err(MeasureError::NoSuchRoot {
                root: self.root as usize,
                ranks: context.comm.size() as usize,
            });
        }
        Ok(())
    }

    /// Creates the result of a measurement, whose figures are those of the given times.
    fn measured(
        &self,
        finished: Finished,
        (times, exits): (Option<Times>, Option<Exits>),
        details: Vec<(&'static str, Duration)>,
    ) -> Result<Measurement, MeasureError> {
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
            details,
            facts: Vec::new(),
            clock_checks,
            stop_reason,
            made,
            elapsed,
        })
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

/// Synchronizes a clock that is too old, on all ranks; returns how long that took.
async fn renew_clock<M: Comm, T: Coordinator, K: Clock>(
    context: &MeasureContext<'_, M, T, K>,
) -> Result<Option<Duration>, MeasureError> {
    let ClockBasis::Synchronized(global) = context.clock_basis else {
        return Ok(None);
    };
    let is_due = u64::from(global.is_due());
    Ok(match collective::broadcast(context.comm, is_due).await? {
        0 => None,
        _ => Some(global.synchronize().await?),
    })
}

/// Measurement between its first observation and its last one.
struct Running<'a> {
    method: &'a Method,
    /// Plan of the next steps, on rank 0.
    plan: Option<Plan>,
    /// Watch of a clock that may drift.
    watch: Option<ClockWatch>,
    collection: Collection,
    /// Number of observations that were made.
    made: u32,
}

impl<'a> Running<'a> {
    fn new<M: Comm, T: Coordinator, K: Clock>(
        method: &'a Method,
        context: &MeasureContext<'_, M, T, K>,
        (scheme, stopping): (&PreparedScheme, Stopping),
        synchronized: Option<Duration>,
    ) -> Self {
        let (basis, needed) = (method.basis(), method.processing.needed());
        let calls_together = scheme.calls_together().unwrap_or(1);
        let watch = method.watch(context);
        // Only rank 0 has all observations.
        let plan = (context.comm.rank() == 0).then(|| {
            let renewable = matches!(context.clock_basis, ClockBasis::Synchronized(_));
            Plan::new(stopping, watch.is_some(), renewable, synchronized)
        });
        Self {
            method,
            plan,
            watch,
            collection: Collection::new(method.collect, basis, needed, calls_together),
            made: 0,
        }
    }

    /// Returns the next step, which rank 0 chooses for all.
    async fn next_step<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<Step, MeasureError> {
        let plan = self.plan.as_mut();
        let step = plan.map_or(Step::End, |plan| plan.next(context.is_clock_due()));
        let step = collective::broadcast(context.comm, step.encode()).await?;
        Ok(Step::decode(step))
    }

    async fn check_clock<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<(), MeasureError> {
        let check = match &mut self.watch {
            Some(watch) => watch.check(context).await?,
            None => ClockCheck::default(),
        };
        if let Some(plan) = &mut self.plan {
            plan.checked(check);
        }
        Ok(())
    }

    async fn synchronize<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<(), MeasureError> {
        if let ClockBasis::Synchronized(global) = context.clock_basis {
            let took = global.synchronize().await?;
            if let Some(plan) = &mut self.plan {
                plan.synchronized(took);
            }
        }
        self.watch = self.method.watch(context);
        Ok(())
    }

    /// Collects the times of calls, which took this time in all.
    async fn collect<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        spans: Vec<CallSpan>,
        thinning: Thinning,
        took: Duration,
    ) -> Result<(), MeasureError> {
        let made = spans.len() as u32;
        let kept = self
            .collection
            .add(context, spans, self.made, thinning)
            .await?;
        self.made += made;
        if let (Some(plan), Some((kept, times))) = (&mut self.plan, kept) {
            plan.observed(kept, times, made, took);
        }
        Ok(())
    }

    /// Returns the result on rank 0, and this rank's own times if they are wanted.
    async fn finish<M: Comm, T: Coordinator, K: Clock>(
        self,
        context: &MeasureContext<'_, M, T, K>,
        details: Vec<(&'static str, Duration)>,
        wants_own: bool,
    ) -> Result<(Option<Measurement>, Option<Observations>), MeasureError> {
        let Self {
            method,
            plan,
            mut collection,
            ..
        } = self;
        if let (ClockBasis::Synchronized(global), Some(plan)) = (context.clock_basis, &plan)
            && plan.wants_renewal()
        {
            global.expire();
        }
        let comm = context.comm;
        let finished = plan.map(Plan::finish);
        let kept = finished
            .as_ref()
            .map(|found| (&found.observations, found.thinning));
        let own = match wants_own {
            true => Some(collection.own_times(comm, kept).await?),
            false => None,
        };
        let thinning = kept.map(|(_, thinning)| thinning);
        let exits = collection.exits(comm, thinning).await?;
        let times = collection.times(comm, method.root, kept).await?;
        let measured = finished.map(|finished| method.measured(finished, (times, exits), details));
        Ok((context.agree(measured.transpose()).await?, own))
    }
}
