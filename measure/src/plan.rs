//! Plan of a measurement, by which rank 0 leads: batches of observations until the stopping rule is satisfied, with checks of
//! the clock between them.
//!
//! The observations between two checks are a segment. If the clocks drifted by too large a share of the run-time at its end,
//! all of its observations are invalid; the clock is synchronized again before that, if it can be.

use downbeat_clock_core::Duration;
use downbeat_records::stats::Sample;
use downbeat_records::{ObservationState, Observations};

use crate::clock_check::ClockCheck;
use crate::stopping::{StopReason, Stopping, StoppingProgress};
use crate::thinning::Thinning;

/// Next step of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
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
    pub(crate) fn encode(self) -> [u64; 2] {
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
    pub(crate) fn decode([kind, number]: [u64; 2]) -> Self {
        match kind {
            0 => Self::End,
            1 => Self::Observe(number as u32, Thinning::at((number >> 32) as u32)),
            2 => Self::Check,
            _ => Self::Synchronize,
        }
    }
}

/// Checks of the clocks during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockChecks {
    /// Largest possible offset of a rank before the measurement.
    pub before: Duration,
    /// Largest possible offset of a rank after the last observation.
    pub after: Duration,
    /// Largest possible offset of a rank in any check.
    pub offset: Duration,
    /// Largest possible drift of a rank, from the synchronization to the end of any segment with valid observations. The
    /// difference of both directions of messages cancels out in it.
    pub drift: Duration,
    /// Number of synchronizations before and during the measurement.
    pub synchronizations: u32,
}

impl ClockChecks {
    /// Drift that is accepted, as a share of the median run-time.
    pub const PERMITTED_SHARE: f64 = 0.02;

    /// Name of the drift among the figures.
    pub const DRIFT: &str = "clock_drift";

    /// Returns the figures of a record, with their names.
    pub fn figures(&self) -> [(&'static str, Duration); 4] {
        [
            ("clock_before", self.before),
            ("clock_after", self.after),
            ("clock_offset", self.offset),
            (Self::DRIFT, self.drift),
        ]
    }
}

/// Observations of a measurement that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) observations: Observations,
    /// Thinning that left these.
    pub(crate) thinning: Thinning,
    /// Number of observations that were made.
    pub(crate) made: u32,
    pub(crate) clock_checks: Option<ClockChecks>,
    pub(crate) stop_reason: StopReason,
    /// Time that the observations took.
    pub(crate) elapsed: Duration,
}

/// Plan of a measurement.
#[derive(Debug)]
pub(crate) struct Plan {
    progress: StoppingProgress,
    stopping: Stopping,
    /// Observations that were kept.
    gathered: Option<Observations>,
    thinning: Thinning,
    /// Times of the valid ones: run-times, or those that the stopping rule sees instead. Rules that thin observations see none.
    run_times: Vec<f64>,
    /// Number of observations that were made, valid or not, kept or not.
    observations: u32,
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

/// Number of checks at the end of a segment until one decides: others may have met the scheduler.
const TRIES: u32 = 4;

/// Drift that is accepted in any case.
const LEAST: Duration = Duration::from_nanos(2);

/// Shortest and longest segment. A synchronization that takes longer than the shortest one makes it longer.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(250);

impl Plan {
    /// Creates the plan of a measurement whose clock may drift, and may be synchronized again.
    ///
    /// `synchronized` is the duration of a synchronization immediately before.
    pub(crate) fn new(
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
            gathered: None,
            thinning: Thinning::default(),
            run_times: Vec::new(),
            observations: 0,
            elapsed: Duration::ZERO,
            pending: 0,
            clock: may_drift.then_some(clock),
        };
        if let Some(took) = synchronized {
            plan.synchronized(took);
        }
        plan
    }

    /// Returns the next step; `is_due` is true if the clock is too old.
    pub(crate) fn next(&mut self, is_due: bool) -> Step {
        let first = self
            .clock
            .as_ref()
            .map_or(self.observations, |clock| clock.first);
        if self.observations == first && self.progress.stop_reason().is_some() {
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
                NextCheck::After if self.observations > first && is_over => return Step::Check,
                NextCheck::After if is_due && clock.renewable && !clock.is_fresh => {
                    return Step::Synchronize;
                }
                NextCheck::After => {}
            }
        }
        if self.pending == 0 || self.remaining().is_some_and(|left| left <= Duration::ZERO) {
            self.pending = self
                .progress
                .next(&self.run_times, self.observations, self.elapsed);
        }
        match self.pending {
            0 if self.observations > first => Step::Check,
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
    pub(crate) fn time(&self) -> Option<Duration> {
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
        if self.observations == 0 {
            return FIRST;
        }
        let each = self.elapsed.as_nanos() / i64::from(self.observations);
        let fit = left.as_nanos().checked_div(each).unwrap_or(i64::MAX).max(1);
        u32::try_from(fit).unwrap_or(u32::MAX)
    }

    /// Adds what was kept of a number of observations, which took this time, and the times of the valid ones for the stopping rule.
    pub(crate) fn observed(
        &mut self,
        kept: Observations,
        times: Vec<f64>,
        made: u32,
        took: Duration,
    ) {
        self.observations = self.observations.saturating_add(made);
        self.pending = self.pending.saturating_sub(made);
        self.elapsed += took;
        self.run_times.extend(times);
        let gathered = match &mut self.gathered {
            Some(gathered) => {
                gathered.append(kept);
                gathered
            }
            none => none.insert(kept),
        };
        let Some(most) = self.stopping.keep() else {
            return;
        };
        if gathered.len() <= most as usize {
            return;
        }
        self.thinning.limit(gathered, most as usize);
        self.run_times = gathered.run_times();
        if let Some(clock) = &mut self.clock {
            let before = &gathered.states()[..self.thinning.kept_of(clock.first)];
            let is_valid = |state: &&ObservationState| **state == ObservationState::Valid;
            clock.first_run_time = before.iter().filter(is_valid).count();
        }
    }

    /// Notes that the clock was synchronized, which took this time.
    pub(crate) fn synchronized(&mut self, took: Duration) {
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

    /// Judges the segment by the check at its end, and marks its observations if the clocks drifted too far.
    pub(crate) fn checked(&mut self, mut check: ClockCheck) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        if clock.next == NextCheck::After {
            let kept = self.gathered.as_ref().map_or(0, Observations::len);
            let before = match kept > self.thinning.kept_of(clock.first) {
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
                if let Some(gathered) = &mut self.gathered {
                    gathered.mark_drifted(self.thinning.kept_of(clock.first));
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
            if self.observations == 0 {
                clock.checks.before = check.offset;
            }
            clock.next = NextCheck::After;
        }
        clock.checks.offset = clock.checks.offset.max(check.offset);
        clock.first = self.observations;
        clock.first_run_time = self.run_times.len();
        clock.began = self.elapsed;
    }

    /// Returns true if the clock must be synchronized before it is used again.
    pub(crate) fn wants_renewal(&self) -> bool {
        let renew = |clock: &ClockPlan| clock.next == NextCheck::Renew;
        self.clock.as_ref().is_some_and(renew)
    }

    /// Ends the measurement. If all observations were marked because of drift, that is accepted and
    /// stated: too few were wanted to find better ones.
    pub(crate) fn finish(mut self) -> Finished {
        let mut observations = self.gathered.take().unwrap_or_else(Observations::none);
        if let Some(clock) = &mut self.clock
            && self.run_times.is_empty()
            && observations.accept_drifted()
        {
            clock.checks.drift = clock.checks.drift.max(clock.marked);
        }
        Finished {
            observations,
            thinning: self.thinning,
            made: self.observations,
            clock_checks: self.clock.map(|clock| clock.checks),
            stop_reason: self.progress.stop_reason().unwrap_or(StopReason::Most),
            elapsed: self.elapsed,
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

/// Returns the drift that run-times permit. If none is valid, the clock may be the reason.
fn permitted(run_times: &[f64]) -> Duration {
    let share = |sample: Sample<'_>| {
        Duration::from_nanos((sample.median() * ClockChecks::PERMITTED_SHARE) as i64)
    };
    Sample::new(&mut run_times.to_vec()).map_or(LEAST, |sample| share(sample).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_records::CallTimes;

    /// A measurement whose observations take 1 ms each, with clocks whose drift is a function of their age.
    struct Simulated<D> {
        plan: Plan,
        /// Time since the last synchronization.
        age: Duration,
        drift: D,
        synchronizations: u32,
    }

    impl<D: Fn(Duration) -> ClockCheck> Simulated<D> {
        fn new(rule: &str, renewable: bool, drift: D) -> Self {
            Self {
                plan: Plan::new(rule.parse().unwrap(), true, renewable, None),
                age: Duration::ZERO,
                drift,
                synchronizations: 0,
            }
        }

        /// Returns the measurement, and the number of synchronizations.
        fn run(mut self) -> (Finished, u32) {
            loop {
                match self.plan.next(false) {
                    Step::End => return (self.plan.finish(), self.synchronizations),
                    Step::Check => {
                        let check = (self.drift)(self.age);
                        self.plan.checked(check);
                    }
                    Step::Synchronize => {
                        self.age = Duration::ZERO;
                        self.synchronizations += 1;
                        self.plan.synchronized(Duration::from_micros(10));
                    }
                    Step::Observe(number, thinning) => {
                        let first = self.plan.observations;
                        let kept = (first..first + number).filter(|call| thinning.keeps(*call));
                        let count = kept.count();
                        let states = vec![ObservationState::Valid; count];
                        let means = CallTimes::Means(vec![1_000.0; count]);
                        let batch = Observations::new(1, states, means).unwrap();
                        let took = Duration::from_millis(number.into());
                        self.age += took;
                        let times = batch.run_times();
                        self.plan.observed(batch, times, number, took);
                    }
                }
            }
        }
    }

    fn run(rule: &str, renewable: bool, drift: impl Fn(Duration) -> ClockCheck) -> (Finished, u32) {
        Simulated::new(rule, renewable, drift).run()
    }

    fn count(found: &Finished, state: ObservationState) -> usize {
        found.observations.count(state)
    }

    fn drift(found: &Finished) -> i64 {
        found.clock_checks.unwrap().drift.as_nanos()
    }

    /// A clock that drifts by some nanoseconds per second, found without noise.
    fn linear(nanos_per_second: f64) -> impl Fn(Duration) -> ClockCheck {
        move |age| {
            let nanos = age.as_nanos() as f64 * 1e-9 * nanos_per_second;
            let drift = Duration::from_nanos(nanos as i64);
            ClockCheck {
                proven: drift,
                possible: drift,
                offset: drift + Duration::from_nanos(500),
            }
        }
    }

    #[test]
    fn a_clock_that_does_not_drift_is_only_checked() {
        let (found, synchronizations) = run("count/2000", true, linear(0.0));
        assert_eq!(count(&found, ObservationState::Valid), 2_000);
        assert_eq!((drift(&found), synchronizations), (0, 0));
        assert_eq!(found.clock_checks.unwrap().offset.as_nanos(), 500);
    }

    #[test]
    fn a_clock_is_synchronized_before_it_drifts_too_far() {
        // 20 ns, a 50th of the run-time, in 200 ms.
        let (found, synchronizations) = run("count/5000", true, linear(100.0));
        assert!(synchronizations > 10, "{synchronizations}");
        assert!(count(&found, ObservationState::Drifted) < 500);
        assert!(drift(&found) <= 20);
        assert_eq!(count(&found, ObservationState::Valid), 5_000);
    }

    #[test]
    fn a_drift_that_no_synchronization_prevents_is_accepted_and_stated() {
        // 20 ns in 1 ms.
        let (found, _) = run("count/1000", true, linear(20_000.0));
        assert!(count(&found, ObservationState::Valid) > 900);
        assert!(drift(&found) > 100);
        // There is a single segment, which did not begin with a synchronization.
        let (found, _) = run("count/3", true, linear(20_000.0));
        assert_eq!(count(&found, ObservationState::Valid), 3);
        assert_eq!(drift(&found), 60);
    }

    #[test]
    fn a_clock_that_cannot_be_synchronized_spoils_all_later_observations() {
        let (found, _) = run("time/2s/100000", false, linear(100.0));
        let valid = count(&found, ObservationState::Valid);
        assert!((50..=200).contains(&valid), "{valid}");
        assert!(count(&found, ObservationState::Drifted) > 1_700);
        assert_eq!(found.stop_reason, StopReason::TimeSlice);
    }

    #[test]
    fn a_noisy_check_is_repeated_and_proves_nothing() {
        let noisy = |_| ClockCheck {
            proven: Duration::ZERO,
            possible: Duration::from_micros(9),
            offset: Duration::from_micros(9),
        };
        let (found, synchronizations) = run("count/100", true, noisy);
        assert_eq!(count(&found, ObservationState::Valid), 100);
        assert_eq!((drift(&found), synchronizations), (9_000, 0));
    }

    #[test]
    fn a_clock_that_is_due_is_synchronized_between_segments() {
        let mut plan = Plan::new("count/100".parse().unwrap(), true, true, None);
        assert_eq!(plan.next(false), Step::Check);
        plan.checked(ClockCheck::default());
        assert_eq!(plan.next(true), Step::Synchronize);
        plan.synchronized(Duration::ZERO);
        assert_eq!(plan.next(true), Step::Check);
        plan.checked(ClockCheck::default());
        // It is observed before the next one, even if it is due at once.
        assert_eq!(plan.next(true), Step::Observe(8, Thinning::default()));
    }

    #[test]
    fn a_filled_time_slice_is_thinned() {
        let (found, _) = run("fill/20s/1000", true, linear(100.0));
        let (kept, made) = (found.observations.len(), found.made);
        assert!((500..=1_000).contains(&kept), "{kept}");
        assert!((20_000..20_100).contains(&made), "{made}");
        assert_eq!(found.stop_reason, StopReason::TimeSlice);
        let drifted = count(&found, ObservationState::Drifted);
        assert!(drifted < kept / 10, "{drifted} of {kept}");
        // Once clocks cannot be synchronized again, everything after the first moments is drifted.
        let (found, _) = run("fill/20s/1000", false, linear(100.0));
        let valid = count(&found, ObservationState::Valid);
        assert!((1..20).contains(&valid), "{valid}");
    }

    #[test]
    fn segments_of_which_nothing_is_kept_may_drift_as_far() {
        let synchronizations = |rule| run(rule, true, linear(100.0)).1;
        let of_all = synchronizations("fill/20s/100000");
        assert_eq!(synchronizations("fill/20s/10"), of_all);
    }

    #[test]
    fn steps_are_transferred() {
        for step in [
            Step::End,
            Step::Observe(7, Thinning::at(3)),
            Step::Check,
            Step::Synchronize,
        ] {
            assert_eq!(Step::decode(step.encode()), step);
        }
    }
}
