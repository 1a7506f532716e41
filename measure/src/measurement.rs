//! Measurement of one operation by one method, from the warm-up to the reported figures.
//!
//! Rank 0 plans: batches of observations until the stopping rule is satisfied, with
//! checks of the clock between them. All ranks take its steps in one loop. The
//! observations between two checks are a segment. If the clocks drifted by too large a
//! share of the run-time at its end, all of its observations are invalid; the clock is
//! synchronized again before that, if it can be.

use downbeat_clock_core::{Clock, Duration};
use downbeat_records::stats::{BatchMeans, Sample, StatsError};
use downbeat_records::{Observation, ObservationState, Observations};
use downbeat_sync::collective::agree;
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::clock_check::{ClockCheck, ClockChecks, ClockWatch};
use crate::collection::Collection;
use crate::context::{ClockBasis, MeasureContext};
use crate::error::MeasureError;
use crate::method::Method;
use crate::operation::{Coordinator, Operation};
use crate::processing::{Figure, ValidCalls};
use crate::scheme::{Basis, PreparedScheme};
use crate::stopping::{StopReason, Stopping, StoppingProgress};
use crate::thinning::Thinning;

/// Result of a measurement, on rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// All observations, each on all ranks.
    pub observations: Observations,
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

    /// Does the same as [`measure`](Self::measure), and returns on every rank the
    /// observations of its own calls, in their states on all ranks.
    ///
    /// # Errors
    /// As for [`measure`](Self::measure).
    pub async fn measure_on_each<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<(Option<Measurement>, Observations), MeasureError> {
        self.run(context, operation, true).await
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

    /// Measures an operation, and returns this rank's own observations if they are
    /// wanted.
    async fn run<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        wants_own: bool,
    ) -> Result<(Option<Measurement>, Observations), MeasureError> {
        self.check_context(context)?;
        self.check_series(operation.fits_series())?;
        let synchronized = renew_clock(context).await?;
        if self.needs_global_time() {
            context.global()?;
        }
        let mut scheme = PreparedScheme::prepare(&self.scheme, context, operation).await?;
        let most = self.stopping.most();
        let warmed_up = scheme.warm_up(context, operation, self.warm_up, most);
        let stopping = self.stopping.at_most(warmed_up.await?);
        let (is_first, mut watch) = (context.comm.rank() == 0, self.watch_clock(context));
        let is_renewable = matches!(context.clock_basis, ClockBasis::Synchronized(_));
        // Only the plan of rank 0 has all observations and decides.
        let mut plan = Plan::new(stopping, watch.is_some(), is_renewable, synchronized);
        let mut collection = Collection::new(self.basis(), scheme.calls_together());
        loop {
            let step = match is_first {
                true => plan.next_step(context.is_clock_due()),
                false => Step::End,
            };
            match Step::decode(collective::broadcast(context.comm, step.encode()).await?) {
                Step::End => break,
                Step::Check => {
                    plan.judge_segment(match &mut watch {
                        Some(watch) => watch.check(context).await?,
                        None => ClockCheck::default(),
                    });
                }
                Step::Synchronize => {
                    if let ClockBasis::Synchronized(global) = context.clock_basis {
                        plan.begin_after_synchronization(global.synchronize().await?);
                    }
                    watch = self.watch_clock(context);
                }
                Step::Observe(number, thinning) => {
                    // It is enough that rank 0 notices that the time is over.
                    let time = plan.time().filter(|_| is_first);
                    let (first, began) = (plan.made, context.now());
                    let spans = scheme.run(context, operation, first, number, time).await?;
                    // The time for collecting the observations does not count.
                    let took = context.now() - began;
                    let made = spans.len() as u32;
                    let (kept, slowest) = collection.add(context, spans, first, thinning).await?;
                    let times = match self.processing.uses_slowest() {
                        true => slowest,
                        false => kept.run_times(),
                    };
                    plan.add(kept, times, made, took);
                }
            }
        }
        self.finish(context, plan, collection, scheme.details(), wants_own)
            .await
    }

    /// Processes the observations. Returns the result on rank 0, and this rank's own
    /// observations if they are wanted.
    async fn finish<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        mut plan: Plan,
        collection: Collection,
        details: Vec<(&'static str, Duration)>,
        wants_own: bool,
    ) -> Result<(Option<Measurement>, Observations), MeasureError> {
        let (comm, basis, root) = (context.comm, self.basis(), self.root);
        if let (0, ClockBasis::Synchronized(global)) = (comm.rank(), context.clock_basis)
            && plan.wants_renewal()
        {
            global.expire();
        }
        plan.accept_drift();
        let all = plan.kept;
        let own = match wants_own || !self.processing.uses_run_times(basis) {
            true => collection.finish(comm, &all, plan.thinning).await?,
            false => Observations::default(),
        };
        let calls = ValidCalls {
            comm,
            basis,
            root,
            all,
            own,
        };
        let processed = self.processing.process(&calls).await?;
        let ValidCalls { all, own, .. } = calls;
        let measured = match comm.rank() {
            0 => processed.map(|processed| {
                let effective = BatchMeans::from_iter(all.run_times()).effective();
                let of_rule = || effective.err().filter(|_| self.stopping.needs_error());
                Some(Measurement {
                    observations: all,
                    figures: processed.figures,
                    effective,
                    no_interval: processed.no_interval.or_else(of_rule),
                    details,
                    facts: Vec::new(),
                    clock_checks: plan.clock.map(|clock| clock.checks),
                    stop_reason: plan.progress.stop_reason().unwrap_or(StopReason::Most),
                    made: plan.made,
                    elapsed: plan.elapsed,
                })
            }),
            _ => Ok(None),
        };
        Ok((agree(comm, measured).await?, own))
    }

    /// Returns the watch of the clock, if it can drift and the method depends on it:
    /// means of series do not.
    fn watch_clock<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Option<ClockWatch> {
        ClockWatch::new(context).filter(|_| self.basis() != Basis::Means)
    }
}

/// Synchronizes a clock that is too old, on all ranks; returns how long that took.
async fn renew_clock<M: Comm, T: Coordinator, K: Clock>(
    context: &MeasureContext<'_, M, T, K>,
) -> Result<Option<Duration>, MeasureError> {
    let ClockBasis::Synchronized(global) = context.clock_basis else {
        return Ok(None);
    };
    if !collective::broadcast(context.comm, global.is_due()).await? {
        return Ok(None);
    }
    Ok(Some(global.synchronize().await?))
}

/// Next step of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The measurement ends.
    End,
    /// Make a number of observations, of which some are kept.
    Observe(u32, Thinning),
    /// Check the clock.
    Check,
    /// Synchronize the clock, and check it.
    Synchronize,
}

impl Step {
    /// Encodes the step for a message.
    fn encode(self) -> [u64; 2] {
        match self {
            Self::End => [0, 0],
            Self::Observe(number, thinning) => {
                [1, u64::from(thinning.level()) << 32 | u64::from(number)]
            }
            Self::Check => [2, 0],
            Self::Synchronize => [3, 0],
        }
    }

    /// Decodes a step.
    fn decode([kind, number]: [u64; 2]) -> Self {
        match kind {
            0 => Self::End,
            1 => Self::Observe(number as u32, Thinning::at((number >> 32) as u32)),
            2 => Self::Check,
            _ => Self::Synchronize,
        }
    }
}

/// Plan of a measurement.
#[derive(Debug)]
struct Plan {
    progress: StoppingProgress,
    stopping: Stopping,
    /// Observations of all ranks that were kept.
    kept: Observations,
    thinning: Thinning,
    /// Times of the valid ones: run-times, or those that the stopping rule sees instead.
    /// Rules that thin observations see none.
    run_times: Vec<f64>,
    /// Number of observations that were made, valid or not, kept or not.
    made: u32,
    elapsed: Duration,
    /// Number of observations that the rule asked for, and that are missing.
    pending: u32,
    clock: Option<ClockPlan>,
}

/// Plan of the checks of a clock.
#[derive(Debug)]
struct ClockPlan {
    /// True if it can be synchronized again.
    renewable: bool,
    checks: ClockChecks,
    next: NextCheck,
    /// The best of several undecided checks at the end of the segment, and their number.
    undecided: Option<(ClockCheck, u32)>,
    /// Largest possible drift of observations that were marked.
    marked: Duration,
    /// Largest drift so far that even the shortest segments could not prevent.
    inevitable: Duration,
    /// Time after which a segment ends.
    length: Duration,
    /// Shortest useful segment.
    shortest: Duration,
    /// Observations, run-times and elapsed time at the begin of the segment.
    first: u32,
    first_run_time: usize,
    began: Duration,
    /// True if the clock was synchronized immediately before the segment.
    is_fresh: bool,
}

/// Reason for the next step that concerns the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextCheck {
    /// Before the first observation, or after a synchronization.
    Before,
    /// At the end of the segment.
    After,
    /// The clock drifts: it must be synchronized.
    Renew,
}

/// Number of checks at the end of a segment until one decides: others may have met the
/// scheduler.
const TRIES: u32 = 4;

/// Drift that is accepted in any case.
const LEAST: Duration = Duration::from_nanos(2);

/// Shortest and longest segment. A synchronization that takes longer than the shortest
/// one makes it longer.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(250);

impl Plan {
    /// Creates the plan of a measurement whose clock may drift, and may be synchronized
    /// again.
    ///
    /// `synchronized` is the duration of a synchronization immediately before.
    fn new(
        stopping: Stopping,
        may_drift: bool,
        renewable: bool,
        synchronized: Option<Duration>,
    ) -> Self {
        let clock = ClockPlan {
            renewable,
            checks: ClockChecks::default(),
            next: NextCheck::Before,
            undecided: None,
            marked: Duration::ZERO,
            inevitable: Duration::ZERO,
            length: SHORTEST,
            shortest: SHORTEST,
            first: 0,
            first_run_time: 0,
            began: Duration::ZERO,
            is_fresh: false,
        };
        let mut plan = Self {
            progress: StoppingProgress::new(stopping),
            stopping,
            kept: Observations::default(),
            thinning: Thinning::default(),
            run_times: Vec::new(),
            made: 0,
            elapsed: Duration::ZERO,
            pending: 0,
            clock: may_drift.then_some(clock),
        };
        if let Some(took) = synchronized {
            plan.begin_after_synchronization(took);
        }
        plan
    }

    /// Returns the next step; `is_due` is true if the clock is too old.
    fn next_step(&mut self, is_due: bool) -> Step {
        let first = self.clock.as_ref().map_or(self.made, |clock| clock.first);
        if self.made == first && self.progress.stop_reason().is_some() {
            return Step::End;
        }
        if let Some(clock) = &self.clock {
            let is_over = self.elapsed - clock.began >= clock.length || is_due;
            if clock.undecided.is_some() {
                return Step::Check;
            }
            match clock.next {
                NextCheck::Before => return Step::Check,
                NextCheck::Renew => return Step::Synchronize,
                NextCheck::After if self.made > first && is_over => return Step::Check,
                NextCheck::After if is_due && clock.renewable && !clock.is_fresh => {
                    return Step::Synchronize;
                }
                NextCheck::After => {}
            }
        }
        if self.pending == 0 || self.remaining().is_some_and(|left| left <= Duration::ZERO) {
            self.pending = self.progress.next(&self.run_times, self.made, self.elapsed);
        }
        match self.pending {
            0 if self.made > first => Step::Check,
            0 => Step::End,
            pending => {
                let batch = pending.min(self.fitting());
                Step::Observe(batch, self.thinning)
            }
        }
    }

    /// Returns the rest of the time slice.
    fn remaining(&self) -> Option<Duration> {
        self.stopping.slice().map(|slice| slice - self.elapsed)
    }

    /// Returns the time for the next observations, for schemes that can end them in time.
    fn time(&self) -> Option<Duration> {
        let times = [self.remaining(), self.until_check()];
        times.into_iter().flatten().min()
    }

    fn until_check(&self) -> Option<Duration> {
        let clock = self.clock.as_ref()?;
        Some(clock.began + clock.length - self.elapsed)
    }

    /// Returns the number of observations that fit into the segment, by those so far.
    fn fitting(&self) -> u32 {
        const FIRST: u32 = 8;
        let Some(left) = self.until_check() else {
            return u32::MAX;
        };
        if self.made == 0 {
            return FIRST;
        }
        let each = self.elapsed.as_nanos() / i64::from(self.made);
        let fit = left.as_nanos().checked_div(each).unwrap_or(i64::MAX).max(1);
        u32::try_from(fit).unwrap_or(u32::MAX)
    }

    /// Adds what was kept of a number of observations, which took this time, and the
    /// times of the valid ones for the stopping rule.
    fn add(&mut self, kept: Observations, times: Vec<f64>, made: u32, took: Duration) {
        self.made = self.made.saturating_add(made);
        self.pending = self.pending.saturating_sub(made);
        self.elapsed += took;
        self.run_times.extend(times);
        self.kept.0.extend(kept.0);
        let Some(most) = self.stopping.keep() else {
            return;
        };
        if self.kept.len() <= most as usize {
            return;
        }
        self.thinning.limit(&mut self.kept.0, most as usize);
        self.run_times = self.kept.run_times();
        if let Some(clock) = &mut self.clock {
            let before = &self.kept[..self.thinning.kept_of(clock.first)];
            clock.first_run_time = before.iter().filter(|found| found.is_valid()).count();
        }
    }

    /// Notes that the clock was synchronized, which took this time.
    fn begin_after_synchronization(&mut self, took: Duration) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        clock.checks.synchronizations += 1;
        // No more than half of the time is for synchronizations.
        clock.shortest = SHORTEST.max(took);
        clock.length = clock.length.max(clock.shortest);
        clock.next = NextCheck::Before;
        clock.is_fresh = true;
    }

    /// Judges the segment by the check at its end, and marks its observations if the
    /// clocks drifted too far.
    fn judge_segment(&mut self, mut check: ClockCheck) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        if clock.next == NextCheck::After {
            let before = match self.kept.len() > self.thinning.kept_of(clock.first) {
                true => clock.first_run_time,
                // None of the segment was kept: earlier ones show how long calls take.
                false => 0,
            };
            let run_times = self.run_times.get(before..).unwrap_or(&[]);
            let permitted = permitted(run_times).max(clock.inevitable);
            let tries = clock.undecided.take().map_or(1, |(best, tries)| {
                if best.possible < check.possible {
                    check = best;
                }
                tries + 1
            });
            if check.proven <= permitted && check.possible > permitted && tries < TRIES {
                clock.undecided = Some((check, tries));
                return;
            }
            clock.checks.after = check.offset;
            let is_short = self.elapsed - clock.began <= clock.shortest + clock.shortest;
            if check.proven > permitted && clock.is_fresh && is_short && !run_times.is_empty() {
                // Even the shortest segments drift: others would be no better.
                clock.inevitable = check.possible;
            } else if check.proven > permitted {
                let first = self.thinning.kept_of(clock.first);
                let of_segment = self.kept.0.iter_mut().skip(first);
                for found in of_segment.filter(|found| found.is_valid()) {
                    found.state = ObservationState::Drifted;
                }
                clock.marked = clock.marked.max(check.possible);
                self.run_times.truncate(clock.first_run_time);
                self.progress = StoppingProgress::new(self.stopping);
                self.pending = 0;
            }
            if self.run_times.len() > clock.first_run_time {
                clock.checks.drift = clock.checks.drift.max(check.possible);
            }
            let share = check.proven.as_nanos() as f64 / permitted.as_nanos() as f64;
            clock.adapt(share);
        } else {
            if self.made == 0 {
                clock.checks.before = check.offset;
            }
            clock.next = NextCheck::After;
        }
        clock.checks.offset = clock.checks.offset.max(check.offset);
        clock.first = self.made;
        clock.first_run_time = self.run_times.len();
        clock.began = self.elapsed;
    }

    /// Returns true if the clock must be synchronized before it is used again.
    fn wants_renewal(&self) -> bool {
        let renew = |clock: &ClockPlan| clock.next == NextCheck::Renew;
        self.clock.as_ref().is_some_and(renew)
    }

    /// Accepts the drift if all observations were marked because of it: too few were
    /// wanted to find better ones. It is stated.
    fn accept_drift(&mut self) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        if !self.run_times.is_empty() {
            return;
        }
        let is_drifted = |found: &&mut Observation| found.state == ObservationState::Drifted;
        for found in self.kept.0.iter_mut().filter(is_drifted) {
            found.state = ObservationState::Valid;
            clock.checks.drift = clock.checks.drift.max(clock.marked);
        }
    }
}

impl ClockPlan {
    /// Plans the next segment after a drift of this share of the permitted one.
    fn adapt(&mut self, share: f64) {
        const RENEW: f64 = 0.5;
        const LENGTHEN: f64 = 0.125;
        if share > RENEW {
            self.length = self
                .shortest
                .max(Duration::from_nanos(self.length.as_nanos() / 2));
        } else if share < LENGTHEN {
            self.length = LONGEST.min(self.length + self.length);
        }
        self.is_fresh = false;
        if share > RENEW && self.renewable {
            self.next = NextCheck::Renew;
        }
    }
}

/// Returns the drift that run-times permit. If none is valid, the clock may be the
/// reason.
fn permitted(run_times: &[f64]) -> Duration {
    let share = |sample: Sample<'_>| {
        Duration::from_nanos((sample.median() * ClockChecks::PERMITTED_SHARE) as i64)
    };
    Sample::new(&mut run_times.to_vec()).map_or(LEAST, |sample| share(sample).max(LEAST))
}

#[cfg(test)]
mod tests;
