//! Tests of the plan of a measurement.

use super::*;

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
    fn run(mut self) -> (Plan, u32) {
        loop {
            match self.plan.next_step(false) {
                Step::End => {
                    self.plan.accept_drift();
                    return (self.plan, self.synchronizations);
                }
                Step::Check => {
                    let check = (self.drift)(self.age);
                    self.plan.judge_segment(check);
                }
                Step::Synchronize => {
                    self.age = Duration::ZERO;
                    self.synchronizations += 1;
                    self.plan
                        .begin_after_synchronization(Duration::from_micros(10));
                }
                Step::Observe(number, thinning) => {
                    let first = self.plan.made;
                    let kept = (first..first + number).filter(|call| thinning.keeps(*call));
                    let count = kept.count();
                    let batch = Observations::of_durations(&vec![1_000.0; count]);
                    let took = Duration::from_millis(number.into());
                    self.age += took;
                    let times = batch.run_times();
                    self.plan.add(batch, times, number, took);
                }
            }
        }
    }
}

fn run(rule: &str, renewable: bool, drift: impl Fn(Duration) -> ClockCheck) -> (Plan, u32) {
    Simulated::new(rule, renewable, drift).run()
}

fn count(found: &Plan, state: ObservationState) -> usize {
    found.kept.count(state)
}

fn drift(found: &Plan) -> i64 {
    found.clock.as_ref().unwrap().checks.drift.as_nanos()
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
    assert_eq!(found.clock.unwrap().checks.offset.as_nanos(), 500);
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
    assert_eq!(found.progress.stop_reason().unwrap(), StopReason::TimeSlice);
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
    assert_eq!(plan.next_step(false), Step::Check);
    plan.judge_segment(ClockCheck::default());
    assert_eq!(plan.next_step(true), Step::Synchronize);
    plan.begin_after_synchronization(Duration::ZERO);
    assert_eq!(plan.next_step(true), Step::Check);
    plan.judge_segment(ClockCheck::default());
    // It is observed before the next one, even if it is due at once.
    assert_eq!(plan.next_step(true), Step::Observe(8, Thinning::default()));
}

#[test]
fn a_filled_time_slice_is_thinned() {
    let (found, _) = run("fill/20s/1000", true, linear(100.0));
    let (kept, made) = (found.kept.len(), found.made);
    assert!((500..=1_000).contains(&kept), "{kept}");
    assert!((20_000..20_100).contains(&made), "{made}");
    assert_eq!(found.progress.stop_reason().unwrap(), StopReason::TimeSlice);
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
