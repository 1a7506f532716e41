//! Measurements of simulated ranks, whose true times are known.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Ticks, Timestamp};
use downbeat_measure::imbalance::{BarrierOperation, Imbalance};
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{
    BarrierPlace, EachCall, RoundGrid, RoundTime, Scheme, Series, Windows,
};
use downbeat_measure::stopping::{StopReason, Stopping};
use downbeat_measure::{
    Barrier, ClockBasis, Coordinator, MeasureContext, MeasureError, Measurement,
    MessageCoordinator, Method, Operation,
};
use downbeat_records::{ObservationState, Observations};
use downbeat_sync::sim::{
    Clocks, DelayBursts, Network, NetworkLink, SimClock, SimCluster, SimComm, VirtualTime,
};
use downbeat_sync::{Comm, CommError, collective};

/// Duration of reading a clock in nanoseconds.
const READ: i64 = 10;

/// Cluster with message latencies of a microsecond and perfect clocks.
fn cluster(ranks: u32) -> SimCluster {
    let link = NetworkLink::steady(Duration::from_micros(1));
    SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network {
            socket: link.clone(),
            node: link.clone(),
            switch: link,
            ..Network::noiseless()
        },
        clocks: Clocks {
            read_cost: Duration::from_nanos(READ),
            ..Clocks::perfect()
        },
        seed: 1,
    }
}

/// Nanoseconds from the arrival of the last rank until all ranks continue: longer than agreeing on that arrival takes.
const MEETING: i64 = 1_000_000;

/// Returns the time at which the last rank arrived.
async fn last(comm: &SimComm) -> Result<Timestamp<VirtualTime>, CommError> {
    let entered = comm.true_now().as_nanos() as u64;
    Ok(Timestamp::from_nanos(
        collective::all_reduce(comm, entered, u64::max).await? as i64,
    ))
}

fn pause_until(comm: &SimComm, instant: Timestamp<VirtualTime>) {
    comm.pause(instant - comm.true_now());
}

/// Behaviour of the test operation.
#[derive(Clone, Copy)]
enum TestCall {
    /// All ranks leave at the same time after the last has entered.
    Meet,
    /// Every rank works independently, for a duration that depends on the number of the call.
    Work(fn(u32) -> i64),
    /// The same, for a duration that depends on the rank, too.
    WorkOf(fn(u32, u32) -> i64),
    /// The operation fails on rank 1.
    Fail,
}

struct TestOperation<'a> {
    subject: TestCall,
    comm: &'a SimComm,
}

impl Operation for TestOperation<'_> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        match self.subject {
            TestCall::Meet => {
                let last = last(self.comm).await?;
                pause_until(self.comm, last + Duration::from_nanos(MEETING));
            }
            TestCall::Work(takes) => self.comm.pause(Duration::from_nanos(takes(number))),
            TestCall::WorkOf(takes) => {
                let takes = takes(self.comm.rank(), number);
                self.comm.pause(Duration::from_nanos(takes));
            }
            TestCall::Fail if self.comm.rank() == 1 => return Err(CommError::NotReady),
            TestCall::Fail => {}
        }
        Ok(())
    }
}

/// Coordinator with a barrier that every rank leaves `imbalance` nanoseconds after the previous rank.
struct SkewedCoordinator<'a> {
    comm: &'a SimComm,
    imbalance: i64,
}

impl Coordinator for SkewedCoordinator<'_> {
    async fn barrier(&self) -> Result<(), CommError> {
        let last = last(self.comm).await?;
        pause_until(
            self.comm,
            last + Duration::from_nanos(MEETING + self.imbalance * i64::from(self.comm.rank())),
        );
        Ok(())
    }

    async fn broadcast(&self, value: u64) -> Result<u64, CommError> {
        MessageCoordinator(self.comm).broadcast(value).await
    }

    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError> {
        MessageCoordinator(self.comm).bitwise_or(value).await
    }
}

type SimBasis = ClockBasis<'static, SimComm, SimClock>;

/// Returns a global clock without errors.
fn global<K>() -> ClockBasis<'static, SimComm, K> {
    let shown: ClockModel<Counter, Global> = SimClock::nominal_model().unwrap().renamed();
    ClockBasis::Global(shown)
}

fn local() -> SimBasis {
    ClockBasis::Local(SimClock::nominal_model().unwrap())
}

fn method(scheme: Scheme, count: u32) -> Method {
    Method {
        warm_up: 2,
        scheme,
        stopping: Stopping::Count { most: count },
        processing: Processing::Median,
        root: 0,
    }
}

const MS1: Scheme = Scheme::EachCall(EachCall::new(Barrier::Library));
const ROUND_TIME: Scheme = rounds(0.5, true);
const GRID: Scheme = Scheme::RoundGrid(RoundGrid { spacing: None });

const fn rounds(slack: f64, adaptive: bool) -> Scheme {
    Scheme::RoundTime(RoundTime {
        slack,
        adaptive,
        barrier: None,
        by_messages: false,
    })
}

/// Returns the results of all ranks.
fn all_results(
    ranks: u32,
    method: &Method,
    time: SimBasis,
    imbalance: i64,
    subject: TestCall,
) -> Vec<Result<Option<Measurement>, MeasureError>> {
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let context = MeasureContext {
            comm,
            coordinator: &SkewedCoordinator { comm, imbalance },
            clock: &clock,
            clock_basis: time,
        };
        method
            .measure(&context, &mut TestOperation { subject, comm })
            .await
    };
    cluster(ranks).run(program).unwrap()
}

/// Returns the result of rank 0 if no rank fails.
fn measure(
    ranks: u32,
    method: &Method,
    time: SimBasis,
    imbalance: i64,
    subject: TestCall,
) -> Measurement {
    let found = all_results(ranks, method, time, imbalance, subject)
        .into_iter()
        .map(Result::unwrap);
    let found: Vec<_> = found.collect();
    assert!(found.iter().skip(1).all(Option::is_none));
    found.into_iter().flatten().next().unwrap()
}

#[test]
fn the_imbalance_of_a_barrier_biases_ms1_but_not_round_time() {
    for ranks in [2, 3, 5] {
        let reported = |scheme, time, imbalance| {
            let measured = measure(ranks, &method(scheme, 10), time, imbalance, TestCall::Meet);
            assert_eq!(measured.observations.count(ObservationState::Valid), 10);
            measured.figures[0].nanos as i64
        };
        for imbalance in [700, 5_000] {
            let bias = reported(MS1, local(), imbalance) - reported(MS1, local(), 0);
            assert_eq!(bias, imbalance * i64::from(ranks - 1));
            assert_eq!(
                reported(ROUND_TIME, global(), imbalance),
                reported(ROUND_TIME, global(), 0)
            );
        }
        // With a barrier without imbalance, both find the true time, up to the cost of reading clocks.
        for (scheme, time) in [(MS1, local()), (ROUND_TIME, global())] {
            let error = reported(scheme, time, 0) - MEETING;
            assert!((0..=3 * READ).contains(&error), "{error}");
        }
    }
}

/// Ranks leave a meeting together, so that nothing of its messages is in what is measured behind it.
#[test]
fn a_meeting_has_no_imbalance() {
    let after = EachCall {
        place: BarrierPlace::After,
        ..EachCall::new(Barrier::Harmonize)
    };
    let series = Series {
        barrier: Barrier::Harmonize,
        ..Series::new(1)
    };
    for scheme in [
        Scheme::EachCall(EachCall::new(Barrier::Harmonize)),
        Scheme::EachCall(after),
        Scheme::Series(series),
    ] {
        let meeting = method(scheme, 10);
        assert!(meeting.needs_global_time());
        for ranks in [2, 3, 5] {
            let measured = measure(ranks, &meeting, global(), 5_000, TestCall::Meet);
            let error = measured.figures[0].nanos as i64 - MEETING;
            assert!((0..=4 * READ).contains(&error), "{scheme} {ranks}: {error}");
        }
        for result in all_results(2, &meeting, local(), 0, TestCall::Meet) {
            assert_eq!(result, Err(MeasureError::NeedsGlobalClock));
        }
    }
}

/// A rank that learns too late when to leave a meeting makes the call late, on all ranks.
#[test]
fn calls_behind_a_missed_meeting_are_late() {
    let mut cluster = cluster(4);
    cluster.network.switch.bursts = DelayBursts::Chance {
        probability: 0.02,
        mean: Duration::from_micros(50),
    };
    let meeting = Scheme::EachCall(EachCall::new(Barrier::Harmonize));
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: &clock,
            clock_basis: global(),
        };
        let subject = TestCall::Work(|_| 1_000);
        let mut operation = TestOperation { subject, comm };
        let method = Method {
            warm_up: 20,
            ..method(meeting, 300)
        };
        let measured = method.measure_on_each(&context, &mut operation).await;
        measured.unwrap().1
    };
    let found = cluster.run(program).unwrap();
    let states_of = |rank: &Observations| rank.iter().map(|own| own.state).collect::<Vec<_>>();
    let states = &states_of(&found[0]);
    assert!(found.iter().all(|rank| states_of(rank) == *states));
    let late = states
        .iter()
        .filter(|state| **state == ObservationState::Late);
    let late = late.count();
    assert!((5..states.len() / 2).contains(&late), "{late}");
    let spread = |call: usize| {
        let starts = (0..4).map(|rank: usize| found[rank][call].begin);
        let first = starts.clone().min().unwrap();
        starts.max().unwrap() - first
    };
    let apart = |state| {
        let calls = (0..states.len()).filter(move |call| states[*call] == state);
        calls.map(spread)
    };
    assert!(apart(ObservationState::Valid).all(|apart| apart <= 2 * READ));
    assert!(apart(ObservationState::Late).any(|apart| apart > 100 * READ));
}

/// Operation that notes which message each call uses.
struct Walking {
    message: u32,
    used: Vec<u32>,
    fits_series: bool,
}

impl Operation for Walking {
    async fn call(&mut self, _: u32) -> Result<(), CommError> {
        self.used.push(self.message);
        Ok(())
    }

    fn prepare(&mut self) {
        self.message += 1;
    }

    fn prepare_in_series(&mut self) {
        self.message += 1;
    }

    fn fits_series(&self) -> bool {
        self.fits_series
    }
}

/// Returns the messages that rank 0 used, or the reason why the method does not fit the operation.
fn messages(scheme: Scheme, fits_series: bool) -> Result<Vec<u32>, MeasureError> {
    let method = method(scheme, 3);
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: &clock,
            clock_basis: local(),
        };
        let mut operation = Walking {
            message: 0,
            used: vec![],
            fits_series,
        };
        method.measure(&context, &mut operation).await?;
        Ok(operation.used)
    };
    cluster(2).run(program).unwrap().remove(0)
}

#[test]
fn every_call_uses_the_message_after_that_of_the_last_call() {
    let series = Series {
        untimed: 2,
        ..Series::new(4)
    };
    for (scheme, calls) in [
        (MS1, 2 + 3),
        // The discarded series has two calls.
        (Scheme::Series(Series::new(4)), 2 + 3 * 4),
        (Scheme::Series(series), 2 + 3 * (2 + 4)),
    ] {
        let expected: Vec<u32> = (1..=calls).collect();
        assert_eq!(messages(scheme, true), Ok(expected), "{scheme:?}");
    }
}

#[test]
fn operations_that_cannot_be_prepared_within_a_series_are_refused() {
    let refused = messages(Scheme::Series(Series::new(2)), false).unwrap_err();
    assert!(refused.to_string().contains("cold-walk"), "{refused}");
    for scheme in [MS1, Scheme::Series(Series::new(1))] {
        assert!(messages(scheme, false).is_ok(), "{scheme:?}");
    }
}

#[test]
fn a_series_is_the_mean_of_its_calls_and_of_its_barriers() {
    let series = Series {
        barriers_before: 2,
        ..Series::new(4)
    };
    let work = TestCall::Work(|number| 1_000 + 100 * i64::from(number % 4));
    let ms2 = measure(3, &method(Scheme::Series(series), 5), local(), 0, work);
    assert_eq!(ms2.observations.len(), 5);
    // There are at most two readings of the clock between the timestamps.
    let mean = ms2.figures[0].nanos;
    assert!(
        (1_150.0..=1_150.0 + 2.0 * READ as f64 / 4.0).contains(&mean),
        "{mean}"
    );

    let ms3 = Series {
        barrier_after_each: true,
        ..series
    };
    let found = measure(3, &method(Scheme::Series(ms3), 5), local(), 0, work);
    assert_eq!(found.figures[0].nanos, mean + MEETING as f64);
}

#[test]
fn a_call_longer_than_its_window_invalidates_itself_and_the_next() {
    let windows = Scheme::Windows(Windows {
        window: Some(Duration::from_micros(20)),
    });
    // The fourth call is slightly too long; the eleventh by almost two windows, so that the next three calls are late. The last one
    // of a batch makes no other call late.
    let work = TestCall::Work(|number| match number {
        3 => 21_000,
        10 | 21 => 55_000,
        _ => 5_000,
    });
    let method = Method {
        warm_up: 0,
        ..method(windows, 16)
    };
    let found = measure(2, &method, global(), 0, work);
    let states: Vec<_> = found
        .observations
        .iter()
        .map(|call| call.state.name())
        .collect();
    let mut expected = ["valid"; 16 + 7];
    (expected[3], expected[4]) = ("long", "late");
    expected[10] = "long";
    expected[11..14].fill("late");
    expected[21] = "long";
    assert_eq!(states, expected);
    assert_eq!(found.details, [("window", Duration::from_micros(20))]);
    // Valid calls are not affected.
    let longest = found
        .observations
        .run_times()
        .into_iter()
        .fold(0.0, f64::max);
    assert!(
        (5_000.0..5_000.0 + 4.0 * READ as f64).contains(&longest),
        "{longest}"
    );
}

#[test]
fn windows_find_their_size() {
    let found = measure(
        3,
        &method(Scheme::Windows(Windows { window: None }), 200),
        global(),
        0,
        TestCall::Meet,
    );
    let window = found.details[0].1.as_nanos();
    assert!((2 * MEETING..3 * MEETING).contains(&window), "{window}");
    assert_eq!(found.observations.count(ObservationState::Valid), 200);
}

#[test]
fn rounds_without_slack_are_late_until_slack_grows() {
    // The last of eight ranks receives the start after three messages and some clock readings, which is too late without
    // slack.
    let fixed = |slack, adaptive| {
        let scheme = rounds(slack, adaptive);
        all_results(8, &method(scheme, 400), global(), 0, TestCall::Meet).swap_remove(0)
    };
    for adaptive in [false, true] {
        let found = fixed(0.0, adaptive).unwrap().unwrap();
        let [valid, late] = [ObservationState::Valid, ObservationState::Late]
            .map(|state| found.observations.count(state));
        assert!(valid == 400 && late < 20, "{valid}, {late}");
    }
}

#[test]
fn a_time_slice_ends_rounds_in_time() {
    let stopping = Stopping::TimeSlice {
        slice: Duration::from_millis(50),
        most: 1_000_000,
    };
    let found = measure(
        3,
        &Method {
            stopping,
            ..method(ROUND_TIME, 1)
        },
        global(),
        0,
        TestCall::Meet,
    );
    assert_eq!(found.stop_reason, StopReason::TimeSlice);
    // A round takes a millisecond for the operation, and some microseconds for agreeing.
    assert!(
        (45..=50).contains(&found.observations.len()),
        "{}",
        found.observations.len()
    );
    assert!(
        found.elapsed >= Duration::from_millis(50) && found.elapsed < Duration::from_millis(52)
    );
}

#[test]
fn calls_on_a_grid_take_as_long_as_announced_ones() {
    for ranks in [1, 2, 3, 5, 8] {
        let [grid, announced] = [GRID, ROUND_TIME].map(|scheme| {
            let found = measure(ranks, &method(scheme, 300), global(), 0, TestCall::Meet);
            let late = found.observations.count(ObservationState::Late);
            assert!(late <= 3, "{scheme}, {ranks} ranks: {late}");
            found.figures[0].nanos
        });
        assert!(
            (grid - announced).abs() <= 2.0 * READ as f64,
            "{grid} {announced}"
        );
    }
}

/// A rank that sometimes takes longer than the others begins its next calls at other points.
#[test]
fn calls_that_do_not_begin_at_one_point_are_late() {
    let work = TestCall::WorkOf(|rank, number| {
        if rank == 1 && number % 50 == 49 {
            30_000
        } else {
            3_000
        }
    });
    let found = measure(3, &method(GRID, 400), global(), 0, work);
    let [valid, late] = [ObservationState::Valid, ObservationState::Late]
        .map(|state| found.observations.count(state));
    assert!(valid == 400 && (8..800).contains(&late), "{valid} {late}");
    // Those that are left begin together.
    let longest = found
        .observations
        .run_times()
        .into_iter()
        .fold(0.0, f64::max);
    assert!(longest <= 30_000.0 + 3.0 * READ as f64, "{longest}");
}

/// Such a rank catches up, where the operation does not wait for it.
#[test]
fn few_calls_are_late_behind_an_interruption() {
    let work = TestCall::WorkOf(|rank, number| match number % 1_000 {
        500 if rank == 1 => 20_000,
        // Now and then a call takes longer than the spacing.
        250 => 4_000,
        _ => 1_000,
    });
    let found = measure(3, &method(GRID, 50_000), global(), 0, work);
    let observations = &found.observations;
    let late = observations.count(ObservationState::Late);
    assert!(
        late * 50 <= observations.len(),
        "{late} of {}",
        observations.len()
    );
}

#[test]
fn a_time_slice_ends_calls_on_a_grid_in_time() {
    let stopping = Stopping::TimeSlice {
        slice: Duration::from_millis(50),
        most: 1_000_000,
    };
    let method = Method {
        stopping,
        ..method(GRID, 1)
    };
    let found = measure(3, &method, global(), 0, TestCall::Meet);
    assert_eq!(found.stop_reason, StopReason::TimeSlice);
    let made = found.observations.len();
    assert!(
        (35..=60).contains(&made),
        "{made} {:?} {}",
        found.details,
        found.elapsed
    );
    assert!(
        found.elapsed < Duration::from_millis(63),
        "{}",
        found.elapsed
    );
}

#[test]
fn no_rank_waits_for_an_operation_that_fails_on_one_rank() {
    let series = Series {
        barrier: Barrier::Tree,
        barrier_after_each: true,
        ..Series::new(3)
    };
    let windows = Windows {
        window: Some(Duration::from_micros(50)),
    };
    for scheme in [
        MS1,
        ROUND_TIME,
        GRID,
        Scheme::Series(series),
        Scheme::Windows(windows),
    ] {
        for warm_up in [0, 1] {
            let method = Method {
                warm_up,
                ..method(scheme, 5)
            };
            let found = all_results(3, &method, global(), 0, TestCall::Fail);
            // That rank has the reason; the others only notice that it left.
            assert_eq!(
                found[1],
                Err(MeasureError::Operation(CommError::NotReady)),
                "{scheme}"
            );
            for other in [&found[0], &found[2]] {
                assert!(
                    matches!(other, Err(why) if why.is_local()),
                    "{scheme}: {other:?}"
                );
            }
        }
    }
}

#[test]
fn schemes_with_agreed_starts_need_a_global_clock() {
    let windows = Scheme::Windows(Windows { window: None });
    for scheme in [ROUND_TIME, GRID, windows] {
        let found = all_results(2, &method(scheme, 5), local(), 0, TestCall::Meet);
        assert_eq!(
            found,
            [
                Err(MeasureError::NeedsGlobalClock),
                Err(MeasureError::NeedsGlobalClock)
            ]
        );
    }
}

/// A clock whose readings can be taken earlier or later than where they stand in the program.
struct Unordered(SimClock);

impl Clock for Unordered {
    fn ticks(&self) -> Ticks {
        self.0.ticks()
    }
}

#[test]
fn an_unordered_clock_is_refused() {
    let program = async |comm: &SimComm| {
        let clock = Unordered(comm.clock());
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: &clock,
            clock_basis: global(),
        };
        let mut operation = TestOperation {
            subject: TestCall::Work(|_| 5),
            comm,
        };
        method(ROUND_TIME, 5)
            .measure(&context, &mut operation)
            .await
    };
    assert_eq!(
        cluster(1).run(program).unwrap(),
        [Err(MeasureError::UnorderedClock)]
    );
}

#[test]
fn a_root_beyond_the_ranks_is_refused() {
    let method = Method {
        root: 2,
        ..method(ROUND_TIME, 5)
    };
    for result in all_results(2, &method, global(), 0, TestCall::Work(|_| 5)) {
        assert_eq!(result, Err(MeasureError::NoSuchRoot { root: 2, ranks: 2 }));
    }
}

#[test]
fn a_stopped_clock_is_an_error() {
    let standing = SimCluster {
        clocks: Clocks::perfect(),
        ..cluster(1)
    };
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: &clock,
            clock_basis: global(),
        };
        method(ROUND_TIME, 5)
            .measure(
                &context,
                &mut TestOperation {
                    subject: TestCall::Work(|_| 5),
                    comm,
                },
            )
            .await
    };
    assert_eq!(
        standing.run(program).unwrap(),
        [Err(MeasureError::ClockStopped)]
    );
}

/// Measures the imbalance of a barrier.
fn imbalances(ranks: u32, barrier: Barrier, imbalance: i64) -> (Measurement, Imbalance) {
    let program = async |comm: &SimComm| {
        let (clock, coordinator) = (comm.clock(), SkewedCoordinator { comm, imbalance });
        let context = MeasureContext {
            comm,
            coordinator: &coordinator,
            clock: &clock,
            clock_basis: global(),
        };
        let mut operation = BarrierOperation::new(barrier, &context);
        let method = method(ROUND_TIME, 20);
        let measured = Imbalance::measure(&method, &context, &mut operation).await;
        measured.unwrap().0
    };
    let found = cluster(ranks).run(program).unwrap().swap_remove(0).unwrap();
    assert_eq!(found.0.observations.count(ObservationState::Valid), 20);
    found
}

#[test]
fn the_imbalance_of_a_barrier_is_found_exactly() {
    for (ranks, imbalance) in [(2, 0), (2, 700), (3, 0), (3, 5_000), (5, 123)] {
        for barrier in [Barrier::Library, Barrier::Double] {
            let (_, found) = imbalances(ranks, barrier, imbalance);
            let expected = (imbalance * i64::from(ranks - 1)) as f64;
            assert!(
                found
                    .leaving()
                    .run_times()
                    .into_iter()
                    .all(|nanos| nanos == expected),
                "{barrier} of {ranks}"
            );
            let last = if imbalance > 0 { ranks as usize - 1 } else { 0 };
            assert_eq!(found.usually_last(), (last, 1.0));
        }
    }
}

#[test]
fn ranks_leave_a_tree_further_apart_than_a_dissemination() {
    // With equal latencies and a power of two, all ranks leave a dissemination barrier at once if they enter at once.
    let [even, tree] =
        [Barrier::Dissemination, Barrier::Tree].map(|barrier| imbalances(8, barrier, 0));
    let [even, tree] = [even, tree].map(|(measured, found)| {
        let run_times = measured.observations.run_times();
        found.figures(run_times)[0].nanos
    });
    assert!(even <= 2.0 * READ as f64, "{even}");
    // The root leaves three message latencies before the last leaf.
    assert!(tree >= 1_000.0, "{tree}");
}
