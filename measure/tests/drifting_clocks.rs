//! Measurements of simulated ranks whose clocks drift and wander: the true run-time is known.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::cell::RefCell;

use downbeat_clock_core::{Duration, Timestamp};
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, RoundTime, Scheme, Windows};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{
    ClockBasis, MeasureContext, Measurement, MessageCoordinator, Method, Operation, RenewableClock,
};
use downbeat_records::ObservationState;
use downbeat_sync::sim::{Clocks, Drift, DriftWalk, Network, SimClock, SimCluster, SimComm};
use downbeat_sync::{Algorithm, Comm, CommError, LocalClock, collective};

/// Time from the arrival of the last rank until all ranks leave the operation.
const MEETING: Duration = Duration::from_micros(20);

/// Time between two calls, so that a minute needs few of them.
const PAUSE: Duration = Duration::from_millis(1);

/// Operation that all ranks leave at the same time after the last has entered.
struct Meeting<'a> {
    comm: &'a SimComm,
    global: &'a RenewableClock<'a, SimComm, SimClock>,
    /// Difference of this rank's global clock from true time, in nanoseconds, at each call.
    errors: &'a RefCell<Vec<i64>>,
}

impl Operation for Meeting<'_> {
    async fn call(&mut self, _: u32) -> Result<(), CommError> {
        let now = self.comm.true_now();
        if let Some(model) = self.global.model() {
            let shown = model.apply(self.comm.clock().ticks_at(now));
            let error = shown.as_nanos() - now.as_nanos();
            self.errors.borrow_mut().push(error);
        }
        let last = collective::all_reduce(self.comm, now.as_nanos() as u64, u64::max).await?;
        let end = Timestamp::from_nanos(last as i64) + MEETING;
        self.comm.pause(end - self.comm.true_now());
        Ok(())
    }

    fn prepare(&mut self) {
        self.comm.pause(PAUSE);
    }
}

fn cluster(clocks: Clocks, seed: u64) -> SimCluster {
    SimCluster {
        ranks: 4,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks,
        seed,
    }
}

fn perfect() -> Clocks {
    Clocks {
        read_cost: Duration::from_nanos(20),
        ..Clocks::perfect()
    }
}

/// Clocks that drift by up to 20 ppm, and that wander by 0.02 ppm in a second.
fn drifting() -> Clocks {
    Clocks {
        offset: Duration::from_millis(1),
        drift: Drift::Within(20e-6),
        wander: Some(DriftWalk {
            drift_per_sqrt_second: 2e-8,
            interval: Duration::from_millis(10),
            lasting: Duration::from_secs(120),
        }),
        ..perfect()
    }
}

fn method(scheme: Scheme, seconds: i64) -> Method {
    Method {
        warm_up: 2,
        scheme,
        stopping: Stopping::TimeSlice {
            slice: Duration::from_secs(seconds),
            most: u32::MAX,
        },
        processing: Processing::Median,
        root: 0,
    }
}

/// Measurement of some seconds, and the largest true error of a clock in it.
fn measure(
    clocks: Clocks,
    scheme: Scheme,
    algorithm: &str,
    seconds: i64,
    seed: u64,
) -> (Measurement, Duration) {
    let (algorithm, method) = (algorithm.parse().unwrap(), method(scheme, seconds));
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let local = SimClock::nominal_model().unwrap();
        let me = LocalClock::new(&clock, local).source(comm.rank().into());
        let global = RenewableClock::new(comm, me, algorithm, Duration::from_secs(1_000));
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: &clock,
            clock_basis: ClockBasis::Synchronized(&global),
        };
        let errors = RefCell::new(Vec::new());
        let mut meeting = Meeting {
            comm,
            global: &global,
            errors: &errors,
        };
        let measured = method.measure(&context, &mut meeting).await.unwrap();
        (measured, errors.into_inner())
    };
    let mut found = cluster(clocks, seed).run(program).unwrap();
    let (measured, of_first) = found.remove(0);
    let differences = found.iter().flat_map(|(_, errors)| {
        assert_eq!(errors.len(), of_first.len());
        errors
            .iter()
            .zip(&of_first)
            .map(|(own, first)| (own - first).abs())
    });
    let most = differences.max().unwrap();
    (measured.unwrap(), Duration::from_nanos(most))
}

fn median(measured: &Measurement) -> f64 {
    measured.figures[0].nanos
}

/// Checks that a median is as good as with perfect clocks, and that the stated error of the clocks is above the true one.
fn is_as_with_perfect_clocks(scheme: Scheme, algorithm: &str, seconds: i64, seed: u64) {
    let (reference, _) = measure(perfect(), scheme, algorithm, 1, seed);
    let (found, error) = measure(drifting(), scheme, algorithm, seconds, seed);
    let bias = median(&found) - median(&reference);
    let checks = found.clock_checks.unwrap();
    let valid = found.observations.count(ObservationState::Valid);
    let case = format!("{scheme} with {algorithm}: {bias} ns, {error}, {checks:?}, {valid} valid");
    assert!(bias.abs() <= 0.02 * median(&reference), "{case}");
    assert!(error <= checks.offset, "{case}");
    assert!(2 * valid > found.observations.len(), "{case}");
    assert!(checks.synchronizations > 1, "{case}");
}

#[test]
fn rounds_with_drifting_clocks_are_as_good_as_with_perfect_ones() {
    let rounds = Scheme::RoundTime(RoundTime::default());
    if std::env::var_os("DOWNBEAT_LONG").is_some() {
        is_as_with_perfect_clocks(rounds, "hca3/1000/skampi/100", 15, 1);
    }
    is_as_with_perfect_clocks(rounds, "hca3/50/skampi/20", 10, 2);
    is_as_with_perfect_clocks(rounds, "jk/20/skampi/20", 5, 3);
}

#[test]
fn windows_and_barriers_with_drifting_clocks_are_as_good_as_with_perfect_ones() {
    let windows = Scheme::Windows(Windows {
        window: Some(PAUSE + Duration::from_micros(40)),
    });
    for scheme in [windows, Scheme::EachCall(EachCall::default())] {
        is_as_with_perfect_clocks(scheme, "hca3/50/skampi/20", 10, 1);
    }
}

#[test]
fn observations_of_clocks_that_drifted_are_marked() {
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let me = LocalClock::new(&clock, SimClock::nominal_model().unwrap());
        let algorithm: Algorithm = "hca3/20/skampi/20".parse().unwrap();
        let global = RenewableClock::new(comm, me, algorithm, Duration::MAX);
        let model = algorithm.synchronize(&me, comm).await.unwrap().model;
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: &clock,
            clock_basis: ClockBasis::Global(model),
        };
        let errors = RefCell::new(Vec::new());
        let mut meeting = Meeting {
            comm,
            global: &global,
            errors: &errors,
        };
        let rounds = Scheme::RoundTime(RoundTime::default());
        method(rounds, 3).measure(&context, &mut meeting).await
    };
    let found = cluster(drifting(), 1).run(program).unwrap().remove(0);
    let found = found.unwrap().unwrap();
    let states = found.observations.iter().map(|call| call.state);
    let states: Vec<_> = states.collect();
    // All after some time, since the clock cannot be synchronized again.
    let first = states
        .iter()
        .position(|state| *state == ObservationState::Drifted)
        .unwrap();
    assert!(first > 0 && !states[first..].contains(&ObservationState::Valid));
    assert_eq!(found.clock_checks.unwrap().synchronizations, 0);
}
