//! What the schemes see of simulated ranks, of which the truth is known.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails where something is missing"
)]

use downbeat_clock_core::{ClockModel, Counter, Duration, Global, Timestamp};
use downbeat_measure::{
    Barrier, BarrierOperation, ByMessages, EachCall, Ended, Imbalance, MeasureError, Measured,
    Method, Operation, Processing, RoundTime, Scheme, Series, Stage, Stopping, Time, Together,
    Windows,
};
use downbeat_records::ObservationState;
use downbeat_sync::{
    Clocks, Comm, CommError, Network, NetworkLink, SimClock, SimCluster, SimComm, VirtualTime,
    collective,
};

/// To read a clock takes so long.
const READ: i64 = 10;

/// A cluster whose messages all take a microsecond, and whose clocks show the truth.
fn cluster(ranks: u32) -> SimCluster {
    let link = NetworkLink::steady(Duration::from_micros(1));
    SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
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

/// All ranks go on so long after the last of them came here: longer than it takes them to agree on when that was.
const MEETING: i64 = 1_000_000;

/// The instant at which the last rank came.
async fn last(comm: &SimComm) -> Result<Timestamp<VirtualTime>, CommError> {
    let came = comm.true_now().as_nanos() as u64;
    Ok(Timestamp::from_nanos(
        collective::all_reduce(comm, came, u64::max).await? as i64,
    ))
}

fn pause_until(comm: &SimComm, instant: Timestamp<VirtualTime>) {
    comm.pause(instant - comm.true_now());
}

/// What is called.
#[derive(Clone, Copy)]
enum Subject {
    /// Nobody leaves before the last has come.
    Meet,
    /// Every rank works for itself, as long as this says of the number of the call.
    Work(fn(u32) -> i64),
    /// It fails on rank 1.
    Fail,
}

struct Called<'a> {
    subject: Subject,
    comm: &'a SimComm,
}

impl Operation for Called<'_> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        match self.subject {
            Subject::Meet => {
                let last = last(self.comm).await?;
                pause_until(self.comm, last + Duration::from_nanos(MEETING));
            }
            Subject::Work(takes) => self.comm.pause(Duration::from_nanos(takes(number))),
            Subject::Fail if self.comm.rank() == 1 => return Err(CommError::NotReady),
            Subject::Fail => {}
        }
        Ok(())
    }
}

/// A barrier that every rank leaves so many nanoseconds later than the one before it.
struct Uneven<'a> {
    comm: &'a SimComm,
    imbalance: i64,
}

impl Together for Uneven<'_> {
    async fn barrier(&self) -> Result<(), CommError> {
        let last = last(self.comm).await?;
        pause_until(
            self.comm,
            last + Duration::from_nanos(MEETING + self.imbalance * i64::from(self.comm.rank())),
        );
        Ok(())
    }

    async fn broadcast(&self, word: u64) -> Result<u64, CommError> {
        ByMessages(self.comm).broadcast(word).await
    }

    async fn union(&self, word: u64) -> Result<u64, CommError> {
        ByMessages(self.comm).union(word).await
    }
}

/// By clocks that show the truth.
fn global() -> Time {
    let shown: ClockModel<Counter, Global> = SimClock::nominal_model().unwrap().renamed();
    Time::Global(shown)
}

fn local() -> Time {
    Time::Local(SimClock::nominal_model().unwrap())
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

const MS1: Scheme = Scheme::EachCall(EachCall {
    barrier: Barrier::Library,
});
const ROUND_TIME: Scheme = Scheme::RoundTime(RoundTime {
    slack: 0.5,
    adaptive: true,
});

/// What each rank gets.
fn all_results(
    ranks: u32,
    method: &Method,
    time: Time,
    imbalance: i64,
    subject: Subject,
) -> Vec<Result<Option<Measured>, MeasureError>> {
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let stage = Stage {
            comm,
            together: &Uneven { comm, imbalance },
            clock: &clock,
            time,
        };
        method.measure(&stage, &mut Called { subject, comm }).await
    };
    cluster(ranks).run(program).unwrap()
}

/// What rank 0 gets, where nothing fails.
fn measure(ranks: u32, method: &Method, time: Time, imbalance: i64, subject: Subject) -> Measured {
    let found = all_results(ranks, method, time, imbalance, subject)
        .into_iter()
        .map(Result::unwrap);
    let found: Vec<_> = found.collect();
    assert!(found.iter().skip(1).all(Option::is_none));
    found.into_iter().flatten().next().unwrap()
}

#[test]
fn the_imbalance_of_a_barrier_is_in_what_ms1_sees_and_not_in_what_round_time_sees() {
    for ranks in [2, 3, 5] {
        let reported = |scheme, time, imbalance| {
            let measured = measure(ranks, &method(scheme, 10), time, imbalance, Subject::Meet);
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
        // With a barrier of no imbalance, both see the truth, to what it takes to read a clock and to wait for it.
        for (scheme, time) in [(MS1, local()), (ROUND_TIME, global())] {
            let error = reported(scheme, time, 0) - MEETING;
            assert!((0..=3 * READ).contains(&error), "{error}");
        }
    }
}

#[test]
fn a_series_is_the_mean_of_its_calls_and_of_its_barriers() {
    let series = Series {
        barriers_before: 2,
        ..Series::of(4)
    };
    let work = Subject::Work(|number| 1_000 + 100 * i64::from(number % 4));
    let ms2 = measure(3, &method(Scheme::Series(series), 5), local(), 0, work);
    assert_eq!(ms2.observations.len(), 5);
    // Two readings of the clock are between the stamps at most.
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
fn a_call_that_is_longer_than_its_window_spoils_itself_and_the_next() {
    let windows = Scheme::Windows(Windows {
        window: Some(Duration::from_micros(20)),
    });
    // The fourth call is a little too long; the eleventh by almost two windows, which three calls need to catch up with.
    let work = Subject::Work(|number| match number {
        3 => 21_000,
        10 => 55_000,
        _ => 5_000,
    });
    let method = Method {
        warm_up: 0,
        ..method(windows, 16)
    };
    let found = measure(2, &method, global(), 0, work);
    let states: Vec<_> = found
        .observations
        .states()
        .iter()
        .map(|state| state.name())
        .collect();
    let mut expected = ["valid"; 16];
    (expected[3], expected[4]) = ("long", "late");
    expected[10] = "long";
    expected[11..14].fill("late");
    assert_eq!(states, expected);
    assert_eq!(found.found, [("window", Duration::from_micros(20))]);
    // What is left is not touched by it.
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
        Subject::Meet,
    );
    let window = found.found[0].1.as_nanos();
    assert!((2 * MEETING..3 * MEETING).contains(&window), "{window}");
    assert_eq!(found.observations.count(ObservationState::Valid), 200);
}

#[test]
fn rounds_without_slack_are_late_and_counted_and_slack_that_follows_mends_it() {
    // To reach the last of eight ranks takes three messages and some readings; then half as much, a third of the ranks are
    // told too late.
    let fixed = |slack, adaptive| {
        let scheme = Scheme::RoundTime(RoundTime { slack, adaptive });
        all_results(8, &method(scheme, 400), global(), 0, Subject::Meet).swap_remove(0)
    };
    let none = fixed(0.0, false);
    let late = match &none {
        Ok(Some(measured)) => measured.observations.count(ObservationState::Late),
        Err(MeasureError::Processing(_)) => 400,
        _ => 0,
    };
    assert!(late > 200, "{none:?}");
    let mended = fixed(0.0, true).unwrap().unwrap();
    assert!(
        mended.observations.count(ObservationState::Late) < 20,
        "{}",
        mended.observations.count(ObservationState::Late)
    );
    assert_eq!(mended.observations.len(), 400);
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
        Subject::Meet,
    );
    assert_eq!(found.ended, Ended::TimeSlice);
    // A round takes a millisecond for the meeting, and some microseconds for agreeing.
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
fn an_operation_that_fails_on_one_rank_leaves_nobody_waiting() {
    let series = Series {
        barrier: Barrier::Tree,
        barrier_after_each: true,
        ..Series::of(3)
    };
    let windows = Windows {
        window: Some(Duration::from_micros(50)),
    };
    for scheme in [
        MS1,
        ROUND_TIME,
        Scheme::Series(series),
        Scheme::Windows(windows),
    ] {
        for warm_up in [0, 1] {
            let method = Method {
                warm_up,
                ..method(scheme, 5)
            };
            let found = all_results(3, &method, global(), 0, Subject::Fail);
            // That rank says so; the others hear no more than that it left.
            assert_eq!(
                found[1],
                Err(MeasureError::Operation(CommError::NotReady)),
                "{scheme}"
            );
            for other in [&found[0], &found[2]] {
                assert!(
                    matches!(other, Err(why) if why.is_of_one_rank()),
                    "{scheme}: {other:?}"
                );
            }
        }
    }
}

#[test]
fn schemes_with_agreed_starts_need_one_clock() {
    for scheme in [ROUND_TIME, Scheme::Windows(Windows { window: None })] {
        let found = all_results(2, &method(scheme, 5), local(), 0, Subject::Meet);
        assert_eq!(
            found,
            [
                Err(MeasureError::NeedsGlobalTime),
                Err(MeasureError::NeedsGlobalTime)
            ]
        );
    }
}

#[test]
fn a_clock_that_stands_is_no_endless_wait() {
    let standing = SimCluster {
        clocks: Clocks::perfect(),
        ..cluster(1)
    };
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let stage = Stage {
            comm,
            together: &ByMessages(comm),
            clock: &clock,
            time: global(),
        };
        method(ROUND_TIME, 5)
            .measure(
                &stage,
                &mut Called {
                    subject: Subject::Work(|_| 5),
                    comm,
                },
            )
            .await
    };
    assert_eq!(
        standing.run(program).unwrap(),
        [Err(MeasureError::ClockStands)]
    );
}

/// How far apart ranks leave the library's barrier, call by call.
fn imbalances(ranks: u32, barrier: Barrier, imbalance: i64) -> Imbalance {
    let program = async |comm: &SimComm| {
        let (clock, together) = (comm.clock(), Uneven { comm, imbalance });
        let stage = Stage {
            comm,
            together: &together,
            clock: &clock,
            time: global(),
        };
        let mut operation = BarrierOperation {
            barrier,
            comm,
            together: &together,
        };
        method(ROUND_TIME, 20)
            .measure(&stage, &mut operation)
            .await
            .unwrap()
    };
    let measured = cluster(ranks).run(program).unwrap().swap_remove(0).unwrap();
    assert_eq!(measured.observations.count(ObservationState::Valid), 20);
    Imbalance::of(&measured.observations).unwrap()
}

#[test]
fn the_imbalance_of_a_barrier_is_found_exactly() {
    for (ranks, imbalance) in [(2, 0), (2, 700), (3, 0), (3, 5_000), (5, 123)] {
        for barrier in [Barrier::Library, Barrier::Double] {
            let found = imbalances(ranks, barrier, imbalance);
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
    // With steady messages and a power of two, all ranks of a dissemination leave at once, but for when they began.
    let [even, tree] =
        [Barrier::Dissemination, Barrier::Tree].map(|barrier| imbalances(8, barrier, 0));
    let [even, tree] = [even, tree].map(|found| found.figures()[0].nanos);
    assert!(even <= 2.0 * READ as f64, "{even}");
    // The root leaves three messages before the last leaf.
    assert!(tree >= 1_000.0, "{tree}");
}
