//! Progress of a measurement towards its stopping rule.

use downbeat_clock_core::Duration;
use downbeat_records::stats::BatchMeans;

use super::decay::RemainingObservations;
use super::near_least::NearLeast;
use super::{StopReason, Stopping, time_slice};

/// Progress of a measurement towards its stopping rule. Rank 0 updates it between two batches of observations.
#[derive(Clone, Debug)]
pub struct StoppingProgress {
    rule: Stopping,
    /// Number of run-times that were already processed.
    processed: usize,
    means: BatchMeans,
    remaining: RemainingObservations,
    near_least: NearLeast,
    ended: Option<StopReason>,
}

impl StoppingProgress {
    /// Creates the progress of a measurement that has not begun.
    #[must_use]
    pub fn new(rule: Stopping) -> Self {
        let remaining = RemainingObservations::new(rule.most());
        let (means, near_least) = Default::default();
        Self {
            rule,
            processed: 0,
            means,
            remaining,
            near_least,
            ended: None,
        }
    }

    /// Returns the size of the next batch of observations: 0 when there are enough, and in all later calls.
    ///
    /// Takes the run-times of all valid observations so far, of which it reads the new ones and counts all; the number of all
    /// observations so far, valid or not; and the time since the first of them began, which is 0 before the first one.
    pub fn next(&mut self, run_times: &[f64], observations: u32, elapsed: Duration) -> u32 {
        if self.ended.is_some() {
            return 0;
        }
        let new = run_times.get(self.processed..).unwrap_or_default();
        self.processed = run_times.len();
        let valid = u32::try_from(run_times.len()).unwrap_or(u32::MAX);
        let allowed = self.rule.allowed(valid, observations);
        match self.batch_by_rule(new, observations, elapsed) {
            Ok(batch) if allowed > 0 => batch.clamp(1, allowed),
            Ok(_) => self.end(match self.rule {
                Stopping::Count { most } if valid >= most => StopReason::Count,
                _ => StopReason::Most,
            }),
            Err(ended) => self.end(ended),
        }
    }

    /// Returns the reason why the measurement ended; `None` before that.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.ended
    }

    /// Ends the measurement for this reason.
    fn end(&mut self, ended: StopReason) -> u32 {
        self.ended = Some(ended);
        0
    }

    /// Returns the batch size by the rule alone, regardless of the greatest number; or the reason to end.
    fn batch_by_rule(
        &mut self,
        new: &[f64],
        observations: u32,
        elapsed: Duration,
    ) -> Result<u32, StopReason> {
        match self.rule {
            Stopping::Count { .. } => Ok(u32::MAX),
            Stopping::TimeSlice { slice, .. } | Stopping::Fill { slice, .. } => {
                match time_slice::next(slice, elapsed, observations) {
                    0 => Err(StopReason::TimeSlice),
                    next => Ok(next),
                }
            }
            Stopping::RelativeError {
                bound,
                least,
                independent,
                ..
            } => {
                self.means.extend(new.iter().copied());
                let error = match independent {
                    true => self.means.independent_error(),
                    false => self.means.standard_error().ok(),
                };
                self.until_precise(error, bound, least, least)
            }
            Stopping::Interval {
                confidence,
                bound,
                least,
                independent,
                ..
            } => {
                self.means.extend(new.iter().copied());
                let reach = match independent {
                    true => self.means.independent_interval(confidence),
                    false => self.means.interval(confidence).ok(),
                };
                let reach = reach.map(|interval| interval.half_width());
                self.until_precise(reach, bound, least, 1)
            }
            Stopping::Decay { decay, batch, .. } => {
                match self.remaining.after(new, observations, decay, batch) {
                    0 if observations < self.rule.most() => Err(StopReason::Decayed),
                    left => Ok(left.min(batch)),
                }
            }
            Stopping::NearLeast {
                bound,
                times,
                least,
                ..
            } => match self.near_least.after(new, bound, least) {
                near if near >= times => Err(StopReason::NearLeast),
                _ => Ok(1),
            },
        }
    }

    /// Takes the error of the mean; returns the least number first, and batches of this size afterwards. Batches grow with the number of observations, as
    /// the ranks must agree after every batch.
    fn until_precise(
        &self,
        error: Option<f64>,
        bound: f64,
        least: u32,
        batch: u32,
    ) -> Result<u32, StopReason> {
        let valid = u32::try_from(self.means.count()).unwrap_or(u32::MAX);
        if valid < least {
            return Ok(least - valid);
        }
        let mean = self.means.mean().abs();
        if mean > 0.0 && error.is_some_and(|error| error <= bound * mean) {
            return Err(StopReason::Precise);
        }
        Ok(batch.max(valid / MIN_BATCH_FRACTION))
    }
}

/// Batches are at least this fraction of the valid observations: a 64th more than needed is acceptable.
const MIN_BATCH_FRACTION: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Simulates a measurement whose observations take 10 ns each, with run-times from a function, and every
    /// `invalid_every`th of them invalid. Returns the sizes of the batches and the reason for the end.
    fn run(
        rule: &str,
        invalid_every: u32,
        run_time: impl Fn(u32) -> f64,
    ) -> (Vec<u32>, StopReason) {
        let mut progress = StoppingProgress::new(rule.parse().unwrap());
        let (mut run_times, mut observations, mut batches) = (Vec::new(), 0_u32, Vec::new());
        loop {
            let next = progress.next(
                &run_times,
                observations,
                Duration::from_nanos(10 * i64::from(observations)),
            );
            let Some(ended) = progress.stop_reason() else {
                assert!(next > 0, "{rule} asks for nothing and does not end");
                let valid = |call: &u32| !(call + 1).is_multiple_of(invalid_every);
                run_times.extend(
                    (observations..observations + next)
                        .filter(valid)
                        .map(&run_time),
                );
                observations += next;
                batches.push(next);
                continue;
            };
            assert_eq!((next, progress.next(&run_times, 0, Duration::ZERO)), (0, 0));
            return (batches, ended);
        }
    }

    #[test]
    fn a_count_is_made_at_once() {
        assert_eq!(
            run("count/1000", 0, |_| 1.0),
            (vec![1_000], StopReason::Count)
        );
        assert_eq!(run("count/1", 0, |_| 1.0), (vec![1], StopReason::Count));
        assert_eq!(
            StoppingProgress::new(Stopping::Count { most: u32::MAX }).next(&[], 0, Duration::ZERO),
            u32::MAX
        );
    }

    #[test]
    fn a_time_slice_is_filled_and_barely_exceeded() {
        let (batches, ended) = run("time/100us/1000000", 0, |_| 1.0);
        assert_eq!(run("fill/100us/9", 0, |_| 1.0), (batches.clone(), ended));
        // 10,000 of 10 ns; only the last batch may end after the slice.
        assert_eq!(
            (batches.iter().sum::<u32>(), ended),
            (10_000, StopReason::TimeSlice)
        );
        assert!(batches.len() < 30, "{batches:?}");
        assert_eq!(
            run("time/1h/20", 0, |_| 1.0),
            (vec![8, 8, 4], StopReason::Most)
        );
    }

    #[test]
    fn a_relative_error_is_checked_after_every_batch() {
        // n run-times of 9 and 11 in turn have the mean 10 and the standard error 1 / sqrt(n - 1).
        let alternating = |call| if call % 2 == 0 { 9.0 } else { 11.0 };
        assert_eq!(
            run("rse/0.025/8/33/iid", 0, alternating),
            (vec![8, 8, 8], StopReason::Precise)
        );
        assert_eq!(
            run("rse/0.02/8/33/iid", 0, alternating),
            (vec![8; 4], StopReason::Precise)
        );
        assert_eq!(
            run("rse/0.01/8/33/iid", 0, alternating),
            (vec![8, 8, 8, 8, 1], StopReason::Most)
        );
        // Equal run-times are precise at once; zeros have no relative error.
        assert_eq!(
            run("rse/0.1/2/10/iid", 0, |_| 5.0),
            (vec![2], StopReason::Precise)
        );
        assert_eq!(
            run("rse/0.1/5/10/iid", 0, |_| 0.0),
            (vec![5, 5], StopReason::Most)
        );
    }

    #[test]
    fn an_interval_is_checked_after_every_call() {
        let alternating = |call| if call % 2 == 0 { 9.0 } else { 11.0 };
        // By R, as `qt(0.975, n - 1) * sd(x) / sqrt(n) / mean(x)`: 0.0512 for 18 of them, and 0.0497 for 19.
        let (batches, ended) = run("interval/0.95/0.05/5/1000/iid", 0, alternating);
        assert_eq!((batches[0], ended), (5, StopReason::Precise));
        assert!(batches[1..].iter().all(|batch| *batch == 1));
        assert_eq!(batches.iter().sum::<u32>(), 19);
    }

    #[test]
    fn run_times_that_follow_each_other_count_less() {
        // Each run-time twenty times, between 9 and 11.
        let run_time = |call: u32| {
            let random = fastrand::Rng::with_seed((call / 20).into()).f64();
            9.0 + 2.0 * random
        };
        let made = |rule: &str| {
            let (batches, ended) = run(rule, 0, run_time);
            assert_eq!(ended, StopReason::Precise, "{rule}");
            batches.iter().sum::<u32>()
        };
        for rule in ["rse/0.003/50/100000", "interval/0.95/0.006/50/100000"] {
            let (dependent, independent) = (made(rule), made(&format!("{rule}/iid")));
            assert!(
                dependent > 8 * independent,
                "{rule}: {dependent}, {independent}"
            );
        }
        // Too few to see if they depend on each other.
        assert_eq!(run("rse/0.5/2/29", 0, run_time).1, StopReason::Most);
    }

    #[test]
    fn a_decay_ends_early_only_without_new_minima() {
        assert_eq!(
            run("decay/linear/10/100", 0, |_| 5.0),
            (vec![10; 6], StopReason::Decayed)
        );
        assert_eq!(
            run("decay/exponential/10/100", 0, |_| 5.0),
            (vec![10, 10, 10, 10, 2], StopReason::Decayed)
        );
        assert_eq!(
            run("decay/linear/10/95", 0, |call| -f64::from(call)).1,
            StopReason::Most
        );
        assert_eq!(
            run("decay/linear/10/95", 0, |call| -f64::from(call))
                .0
                .iter()
                .sum::<u32>(),
            95
        );
    }

    #[test]
    fn enough_run_times_near_the_minimum_end_it() {
        assert_eq!(
            run("near/0.05/3/4/30", 0, |_| 5.0),
            (vec![1; 7], StopReason::NearLeast)
        );
        // Call 5 is a new minimum, and calls 6, 7 and 8 are near it.
        let once_less = |call| if call < 5 { 6.0 } else { 5.0 };
        assert_eq!(
            run("near/0.05/3/4/30", 0, once_less),
            (vec![1; 9], StopReason::NearLeast)
        );
        assert_eq!(
            run("near/0.05/3/4/30", 0, |call| -f64::from(call)),
            (vec![1; 30], StopReason::Most)
        );
        assert_eq!(
            run("near/0.05/3/4/30", 2, |_| 5.0),
            (vec![1; 13], StopReason::NearLeast)
        );
    }

    #[test]
    fn valid_observations_count_and_all_are_limited() {
        let alternating = |call: u32| if call % 4 < 2 { 9.0 } else { 11.0 };
        // Every other observation is invalid: 8 valid ones take 15.
        let (batches, ended) = run("rse/0.1/8/1000/iid", 2, |call| alternating(call / 2 * 2));
        assert_eq!((batches[0], ended), (8, StopReason::Precise));
        let all = |rule, invalid_every, time: fn(u32) -> f64| {
            let (batches, ended) = run(rule, invalid_every, time);
            (batches.iter().sum::<u32>(), ended)
        };
        let counts = [
            "near/0.1/3/4/50",
            "rse/0.1/8/50/iid",
            "interval/0.9/0.1/8/50/iid",
            "count/50",
        ];
        for rule in counts {
            assert_eq!(all(rule, 1, |_| 1.0), (200, StopReason::Most), "{rule}");
        }
        assert_eq!(all("count/50", 2, |_| 1.0), (99, StopReason::Count));
        let growing = |call: u32| f64::from(1 << (call % 20));
        assert_eq!(all("rse/0.01/8/50/iid", 2, growing).1, StopReason::Most);
        assert_eq!(all("time/1h/50", 1, |_| 1.0), (50, StopReason::Most));
        assert_eq!(
            run("decay/linear/10/100", 1, |_| 1.0),
            (vec![10; 5], StopReason::Decayed)
        );
    }

    #[test]
    fn invalid_rules_end_nevertheless() {
        let mut progress = StoppingProgress::new(Stopping::Count { most: 0 });
        assert_eq!(
            (
                progress.next(&[], 0, Duration::ZERO),
                progress.stop_reason()
            ),
            (0, Some(StopReason::Count))
        );
        let mut progress = StoppingProgress::new(Stopping::RelativeError {
            bound: f64::NAN,
            least: 0,
            most: 5,
            independent: false,
        });
        assert_eq!(progress.next(&[], 0, Duration::ZERO), 1);
        assert_eq!(progress.next(&[f64::NAN; 5], 5, Duration::ZERO), 0);
        // Fewer run-times than before: none of them are new.
        let mut progress = StoppingProgress::new("rse/0.1/2/10/iid".parse().unwrap());
        progress.next(&[1.0, 2.0, 3.0], 3, Duration::ZERO);
        assert!(progress.next(&[1.0], 3, Duration::ZERO) > 0);
    }

    proptest! {
        #[test]
        fn every_rule_ends(
            rule in prop::sample::select(vec!["count/", "time/3us/", "fill/3us/",  "rse/0.05/4/", "interval/0.95/0.01/4/",
                "decay/linear/3/", "decay/exponential/3/", "near/0.05/3/4/"]),
            most in 4_u32..500,
            invalid_every in 0_u32..4,
            times in prop::collection::vec(0.0..100.0, 1..50),
        ) {
            let time = |call: u32| times[call as usize % times.len()];
            let (batches, _) = run(&format!("{rule}{most}"), invalid_every, time);
            let limit = if rule == "fill/3us/" { 600 } else { 4 * most };
            prop_assert!(batches.iter().sum::<u32>() <= limit);
        }
    }
}
