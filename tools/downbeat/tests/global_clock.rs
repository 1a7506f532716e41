//! The global clock of ranks that are threads.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::sync::atomic::{AtomicBool, Ordering};

use downbeat::{
    Clock, ClockModel, ClockName, Comm, CommError, Counter, Duration, Global, GlobalClock,
    GlobalClockError, LocalTime, MachineClock, MockClock, SessionLimits, ThreadCluster, TickRate,
    Ticks, Timestamp, block_on_ready, collective, from_first,
};
use downbeat_timers::skew::{Skew, SkewSwing, SkewedClock, Truth};

/// Returns how far the clock of this rank is from that of rank 0 at one reading of the
/// counter that all share, and the bound.
fn error(clock: &GlobalClock<impl Clock>, comm: &impl Comm, at: Ticks) -> (Duration, Duration) {
    let shown = clock.model().apply(at);
    let reference: Timestamp<Global> = from_first(comm, shown).unwrap();
    ((shown - reference).abs(), clock.bound().at_time(shown))
}

#[test]
fn threads_share_one_time_and_know_its_error() {
    for threads in [1, 2, 3, 5] {
        let found = GlobalClock::over_threads(threads, |clock, comm| {
            assert_eq!((clock.rank(), clock.size()), (comm.rank(), threads));
            let at = from_first(comm, clock.clock().ticks()).unwrap();
            let (error, bound) = error(clock, comm, at);
            assert!(error <= bound, "{error} > {bound}");
            let start = from_first(comm, clock.now() + Duration::from_micros(50)).unwrap();
            assert!(clock.wait_until(start) >= start);
            let (now, largest) = clock.now_with_error();
            assert!(now >= start && (largest > Duration::ZERO || comm.rank() == 0));
            clock.elapsed_since(start)
        });
        let late = found.unwrap();
        assert_eq!(late.len(), threads as usize);
        assert!(late.iter().all(|late| *late >= Duration::ZERO), "{late:?}");
    }
}

/// Ends the loops of readers when it is dropped, also by a panic, which would wait for
/// them otherwise.
struct EndOfReaders<'a>(&'a AtomicBool);

impl Drop for EndOfReaders<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Clocks that drift are kept: they never run backward, bounds hold, and the past is
/// known. A synchronization begins again.
#[test]
fn a_clock_is_kept_while_threads_read_it() {
    let counter = MachineClock::detect(ClockName::Raw).unwrap();
    let truth: ClockModel<Counter, Truth> =
        ClockModel::through(counter.ticks(), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
    let settings = GlobalClock::builder()
        .algorithm("cube/20/20".parse().unwrap())
        .max_drift(1e-4)
        .max_wander(1e-6)
        .slew(Duration::from_micros(100));
    let found = ThreadCluster::new(3).run(|comm| {
        let clock = settings
            .over_clock(skewed(comm.rank(), truth), comm, 0)
            .unwrap();
        let mut keeping = clock.keeping(comm, Duration::from_millis(400)).unwrap();
        assert!(keeping.due_in() <= Duration::from_millis(25));
        let ended = AtomicBool::new(false);
        let mut longest = Duration::ZERO;
        let ticks = std::thread::scope(|scope| {
            let end = EndOfReaders(&ended);
            let reader = scope.spawn(|| {
                let mut last = clock.now();
                while !ended.load(Ordering::Relaxed) {
                    let now = clock.now();
                    assert!(now >= last, "{now} after {last}");
                    last = now;
                    std::thread::yield_now();
                }
            });
            let ticks: Vec<Ticks> = (0..6)
                .map(|session| {
                    if session == 4 {
                        clock.resynchronize_over(comm).unwrap();
                    }
                    // Longer than the lead of a slew.
                    clock.wait_until(clock.now() + Duration::from_millis(15));
                    let session = keeping.keep_now().unwrap().unwrap();
                    assert!(session.exchanges > 0 && session.took > Duration::ZERO);
                    longest = longest.max(session.took);
                    clock.clock().ticks()
                })
                .collect();
            drop(end);
            reader.join().unwrap();
            ticks
        });
        // Two sessions since the last synchronization; on busy cores they are as wrong as
        // threads wait for each other.
        let past = keeping.past(ticks[5]) - clock.model().apply(ticks[5]);
        let wrong = Duration::from_millis(10) + longest;
        assert!(past.abs() < wrong, "{past}, {wrong}");
        assert_eq!(keeping.keep().unwrap(), None, "it is not due yet");
        let at = from_first(comm, counter.ticks()).unwrap();
        // By the counter that all share, rank 0 shows the truth.
        let local = clock.clock().ticks();
        let after = counter.ticks();
        let shown = clock.model().apply(local);
        let (before, error) = (truth.apply(at), clock.bound().at_time(shown));
        (comm.rank(), shown, before, truth.apply(after), error)
    });
    for (rank, shown, before, after, error) in found.unwrap() {
        let [shown, before, after] =
            [shown.as_nanos(), before.as_nanos(), after.as_nanos()].map(Duration::from_nanos);
        assert!(
            shown + error >= before && shown - error <= after,
            "{rank}: {shown} +- {error}, not {before} to {after}"
        );
    }
}

#[test]
fn every_clock_of_the_machine_can_be_chosen() {
    for name in [ClockName::Raw, ClockName::Monotonic, ClockName::Realtime] {
        let chosen = GlobalClock::builder()
            .clock(name)
            .over_threads(2, |clock, _| clock.clock().name());
        assert_eq!(chosen.unwrap(), [name, name]);
    }
}

/// A clock of each rank whose error against the shared counter is known.
fn skewed(rank: u32, truth: ClockModel<Counter, Truth>) -> LocalTime<SkewedClock<MachineClock>> {
    let skew = Skew {
        offset: Duration::from_millis(i64::from(rank) * 700),
        drift: f64::from(rank) * 5e-6,
        ..Skew::default()
    };
    let counter = MachineClock::detect(ClockName::Raw).unwrap();
    LocalTime {
        clock: SkewedClock::new(counter, truth, skew).unwrap(),
        model: SkewedClock::<MachineClock>::nominal_model().unwrap(),
        rate_error: 0.0,
        other: None,
        source: rank.into(),
    }
}

#[test]
fn a_clock_of_the_caller_is_synchronized_again_while_it_is_read() {
    let counter = MachineClock::detect(ClockName::Raw).unwrap();
    let truth = ClockModel::through(counter.ticks(), Timestamp::ORIGIN, MockClock::RATE).unwrap();
    let settings = GlobalClock::builder()
        .algorithm("hca3/20/skampi/10".parse().unwrap())
        .max_drift(1e-4);
    let found = ThreadCluster::new(3).run(|comm| {
        let local = skewed(comm.rank(), truth);
        let clock = settings.over_clock(local, comm, 0).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let end = EndOfReaders(&ended);
            let reader = scope.spawn(|| {
                let mut read = 0_u32;
                // The thread may not have run before.
                while read == 0 || !ended.load(Ordering::Relaxed) {
                    let (_, error) = clock.now_with_error();
                    assert!(error < Duration::from_secs(1), "{error}");
                    read += 1;
                }
                read
            });
            for _ in 0..3 {
                clock.resynchronize_over(comm).unwrap();
            }
            drop(end);
            assert!(reader.join().unwrap() > 0);
        });
        // Both readings are of different clocks, so compare them with the truth.
        let at = counter.ticks();
        let shown = clock.now();
        let after = counter.ticks();
        let middle = truth.apply(at).midpoint(truth.apply(after));
        let [truth, shown] = [middle.as_nanos(), shown.as_nanos()].map(Duration::from_nanos);
        let ahead = shown - truth;
        let reference = from_first(comm, ahead).unwrap();
        let within =
            clock.bound().at_time(clock.now()) + Duration::from_nanos(after.signed_since(at));
        let within = block_on_ready(collective::all_reduce(comm, within, Duration::max)).unwrap();
        assert!(
            (ahead - reference).abs() <= within + within,
            "{ahead} {reference}"
        );
    });
    found.unwrap();
}

/// Threads read one counter, as `auto` proves: those that follow rank 0 read it, and
/// exchange no message.
#[test]
fn ranks_that_share_a_counter_take_the_session_of_the_first() {
    for (algorithm, exchanges) in [("auto/20ms", 1), ("skampi/skampi/10", 100)] {
        let settings = GlobalClock::builder().algorithm(algorithm.parse().unwrap());
        let found = settings.over_threads(3, |clock, comm| {
            for _ in 0..2 {
                clock.timesync_over(comm, SessionLimits::default()).unwrap();
            }
            let expected = if comm.rank() == 0 { 0 } else { 2 };
            let sessions = clock.session_exchanges();
            assert_eq!(sessions.len(), expected);
            for session in sessions {
                assert_eq!(session.exchanges().len(), exchanges);
            }
        });
        found.unwrap();
    }
}

/// The curve goes through the points of all sessions. How near to the truth it is between
/// them depends on the load here; simulated clusters tell.
#[test]
fn the_past_is_interpolated_through_sessions() {
    let counter = MachineClock::detect(ClockName::Raw).unwrap();
    let truth = ClockModel::through(counter.ticks(), Timestamp::ORIGIN, MockClock::RATE).unwrap();
    let settings = GlobalClock::builder().algorithm("skampi/skampi/10".parse().unwrap());
    let limits = SessionLimits {
        duration: Duration::from_millis(20),
        ..SessionLimits::default()
    };
    let found = ThreadCluster::new(3).run(|comm| {
        let mut local = skewed(comm.rank(), truth);
        let swing = SkewSwing {
            amplitude: Duration::from_micros(10),
            period: Duration::from_millis(400),
        };
        let skew = Skew {
            swing: (comm.rank() > 0).then_some(swing),
            ..local.clock.skew().clone()
        };
        local.clock = SkewedClock::new(counter, truth, skew).unwrap();
        let clock = settings.over_clock(local, comm, 0).unwrap();
        let before = clock.clock().ticks();
        assert_eq!(clock.past(before), clock.model().apply(before));
        let mut middles = vec![];
        for session in 0..5 {
            if session > 0 {
                clock.wait_until(clock.now() + Duration::from_millis(15));
                middles.push((counter.ticks(), clock.clock().ticks()));
                clock.wait_until(clock.now() + Duration::from_millis(15));
            }
            clock.timesync_over(comm, limits).unwrap();
        }
        let sessions = clock.sessions();
        assert_eq!(sessions.len(), if comm.rank() == 0 { 0 } else { 5 });
        let condensed = clock.session_exchanges();
        let condensed = condensed
            .iter()
            .map(|session| session.knot(limits.rule).unwrap());
        assert_eq!(condensed.collect::<Vec<_>>(), sessions);
        let spline = downbeat_clock_core::spline::ConstrainedSpline::new(&sessions);
        for knot in &sessions {
            assert_eq!(spline.unwrap().apply(knot.at), knot.image);
        }
        let ahead = |(shared, own): (Ticks, Ticks)| {
            clock.past(own).as_nanos() - truth.apply(shared).as_nanos()
        };
        middles.into_iter().map(ahead).collect::<Vec<_>>()
    });
    let found = found.unwrap();
    // Global time is that of rank 0, whose clock is right, from another origin.
    let origin = found[0][0];
    for rank in &found {
        // The clocks are 700 ms apart.
        let near = |ahead: &i64| (ahead - origin).abs() < 100_000_000;
        assert!(rank.iter().all(near), "{found:?}");
    }
}

#[test]
fn a_failure_of_one_rank_is_one_error_on_all() {
    let found = ThreadCluster::new(3).run(|comm| {
        let name = match comm.rank() {
            1 if cfg!(target_arch = "aarch64") => ClockName::Tsc,
            1 => ClockName::Cntvct,
            _ => ClockName::Raw,
        };
        let other = GlobalClock::builder().clock(name).over(comm, 0);
        let label = if comm.rank() == 2 { "hca3" } else { "skampi" };
        let algorithm = label.parse().unwrap();
        let different = GlobalClock::builder().algorithm(algorithm).over(comm, 0);
        [other, different].map(|failed| failed.unwrap_err())
    });
    let found = found.unwrap();
    assert!(found.iter().all(|errors| *errors == found[0]), "{found:?}");
    let [other, different] = found[0].each_ref().map(ToString::to_string);
    assert!(other.starts_with("rank 1: this is not an "), "{other}");
    assert_eq!(
        different,
        "rank 0: the ranks were called with different algorithms"
    );
}

#[test]
fn impossible_numbers_of_threads_are_errors() {
    let none = GlobalClock::over_threads(0, |_, _| ()).unwrap_err();
    assert_eq!(none.to_string(), "there can be 1 to 512 ranks, not 0");
    assert!(matches!(none, GlobalClockError::Cluster(_)));
    let panicked = GlobalClock::over_threads(2, |_, comm| {
        assert!(comm.rank() == 0, "rank 1 gives up");
    });
    assert!(
        panicked
            .unwrap_err()
            .to_string()
            .contains("rank 1 gives up")
    );
    assert!(
        GlobalClockError::from(CommError::NotReady)
            .to_string()
            .contains("suspends")
    );
}
