//! `PublishedModel` on the real machine, with real preemption, which loom does not model.

#![expect(clippy::expect_used, reason = "a test's helpers fail like the test")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use downbeat_clock_core::{
    ClockModel, Counter, Duration, ErrorBound, Global, ModelClock, PublishedModel, TickRate, Ticks,
    Timestamp,
};
use downbeat_timers::{SystemClock, SystemClockId};

const READERS: usize = 3;
const PUBLICATIONS: u64 = 200_000;

type Model = ClockModel<Counter, Global>;

/// Returns the `count`-th model; all its parts follow from the count, which is its anchor.
fn model(count: u64) -> Model {
    let image = Timestamp::from_nanos(count as i64 * -1_000_003);
    let rate = TickRate::from_hz(1_000_000_000 + count).expect("1 GHz and a little");
    Model::through(Ticks(count), image, rate).expect("a few minutes from the origin")
}

/// Reads until the last model arrives; returns how often the model had changed since the read before.
fn read_to_the_end(cell: &PublishedModel<Global>) -> u64 {
    let mut latest = 0;
    let mut changes = 0;
    while latest < PUBLICATIONS {
        let seen = cell.load();
        let count = seen.anchor().0;
        assert!(count >= latest, "model {count} after model {latest}");
        assert_eq!(seen, model(count), "parts of several models");
        changes += u64::from(count > latest);
        latest = count;
    }
    changes
}

#[test]
fn readers_see_whole_models_in_order() {
    let cell = PublishedModel::new(model(0));
    let start = Barrier::new(READERS + 1);

    thread::scope(|scope| {
        let readers = [(); READERS].map(|()| {
            scope.spawn(|| {
                start.wait();
                read_to_the_end(&cell)
            })
        });
        start.wait();
        let mut writer = cell.writer().expect("the only writer");
        (1..=PUBLICATIONS).for_each(|count| writer.publish(model(count)));
        for reader in readers {
            assert!(
                reader.join().expect("a reader panicked") > 0,
                "a reader saw no change"
            );
        }
    });
}

#[test]
fn several_threads_take_turns_to_publish() {
    let cell = PublishedModel::new(model(0));
    let done = AtomicBool::new(false);

    thread::scope(|scope| {
        let writers = [(); READERS].map(|()| scope.spawn(|| publish_in_turns(&cell)));
        let reader = scope.spawn(|| {
            let mut latest = 0;
            while !done.load(Ordering::Relaxed) {
                let count = cell.load().anchor().0;
                assert!(count >= latest, "model {count} after model {latest}");
                latest = count;
            }
        });
        let published: u64 = writers
            .map(|writer| writer.join().expect("a writer panicked"))
            .iter()
            .sum();
        done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader panicked");
        // Two writers at once would have continued from the same model.
        assert_eq!(cell.load(), model(published));
    });
}

/// Publishes the successor of the current model whenever no other writer is active.
fn publish_in_turns(cell: &PublishedModel<Global>) -> u64 {
    let mut published = 0;
    for _ in 0..PUBLICATIONS {
        if let Some(mut writer) = cell.writer() {
            writer.publish(model(cell.load().anchor().0 + 1));
            published += 1;
        }
    }
    published
}

/// A clock that slews again and again, to a line that is behind and to one that is ahead.
#[test]
fn a_slewed_clock_never_runs_backward() {
    const SLEWS: i64 = 40;
    let counter = SystemClock::detect(SystemClockId::MonotonicRaw).expect("available on Linux");
    let line = |ahead| {
        let image = Timestamp::from_nanos(ahead);
        Model::through(Ticks(0), image, TickRate::NANOSECOND).expect("near the origin")
    };
    let clock = ModelClock::new(counter, line(0));
    let done = AtomicBool::new(false);

    thread::scope(|scope| {
        let readers = [(); READERS].map(|()| {
            scope.spawn(|| {
                let mut last = clock.now();
                while !done.load(Ordering::Relaxed) {
                    let now = clock.now();
                    assert!(now >= last, "{now:?} after {last:?}");
                    last = now;
                }
            })
        });
        let mut slews = 0;
        while slews < SLEWS {
            let wanted = line(if slews % 2 == 0 { -900 } else { 900 });
            let within = Duration::from_micros(10);
            let slewed = clock.slew_toward(wanted, ErrorBound::UNKNOWN, within);
            slews += i64::from(slewed.expect("near lines"));
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("a reader panicked");
        }
    });
}
