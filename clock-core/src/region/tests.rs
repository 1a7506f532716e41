//! Tests of timers with a clock that shows given readings.

extern crate std;
use super::*;
use crate::{Duration, TickRate, Ticks};
use core::cell::Cell;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

/// A clock that shows the readings of a list in order.
struct ScriptedClock<'a>(&'a [u64], Cell<usize>);

impl Clock for ScriptedClock<'_> {
    fn ticks(&self) -> Ticks {
        Ticks(self.0[self.1.replace(self.1.get() + 1)])
    }
}

fn scale(tick: i64) -> TickScale {
    TickScale::new(TickRate::NANOSECOND, Duration::from_nanos(tick)).unwrap()
}

fn timer(script: &[u64]) -> RegionTimer<ScriptedClock<'_>> {
    RegionTimer::new(ScriptedClock(script, Cell::new(0)), scale(1))
}

/// Clock readings of events with these lengths.
fn readings(lengths: &[u64]) -> Vec<u64> {
    let mut now = 17;
    let mut script = vec![];
    for length in lengths {
        script.extend([now, now + length]);
        now += length + 3;
    }
    script
}

fn event(length: u64, number: u64) -> Option<RegionEvent> {
    Some(RegionEvent { length, number })
}

#[test]
fn statistics_are_those_of_the_paper() {
    let script = readings(&[500, 12, 30, 12, 30, 7]);
    let timer = timer(&script);
    for _ in 0..6 {
        timer.start().unwrap();
        timer.stop().unwrap();
    }
    let found = timer.statistics();
    assert_eq!((found.events, found.total), (6, 591));
    assert_eq!(
        (found.longest, found.second_longest, found.shortest),
        (event(500, 1), event(30, 3), event(7, 6))
    );
    let count = |low| found.count(DecimalBin::containing(low));
    assert_eq!([500, 30, 10, 7, 8].map(count), [1, 2, 2, 1, 0]);
    assert_eq!(found.misuse, MisuseCounts::default());
    timer.reset();
    assert_eq!(timer.statistics(), RegionStatistics::default());
}

#[test]
fn guards_nest_and_a_recursion_is_one_event() {
    let script = [10, 19, 30, 35, 90];
    let timer = timer(&script);
    drop(timer.enter());
    {
        let _outer = timer.enter();
        let inner = timer.enter();
        drop(inner);
        assert!(timer.is_running());
    }
    let found = timer.statistics();
    assert_eq!(
        (found.events, found.total, found.recursions),
        (2, 9 + 60, 1)
    );
    assert!(!found.is_running);
}

#[test]
fn guards_may_be_dropped_in_any_order() {
    let script = [10, 50, 90];
    let timer = timer(&script);
    let outer = timer.enter();
    let inner = timer.enter();
    drop(outer);
    assert!(timer.is_running());
    drop(inner);
    assert_eq!(
        (timer.statistics().events, timer.statistics().total),
        (1, 80)
    );
}

#[test]
fn a_second_start_changes_nothing_and_is_counted() {
    let script = [10, 100];
    let timer = timer(&script);
    timer.start().unwrap();
    assert_eq!(timer.start(), Err(TimerMisuse::StartedWhileRunning));
    assert_eq!(timer.start(), Err(TimerMisuse::StartedWhileRunning));
    timer.stop().unwrap();
    let found = timer.statistics();
    assert_eq!(
        (
            found.events,
            found.total,
            found.misuse.started_while_running
        ),
        (1, 90, 2)
    );
}

#[test]
fn a_stop_without_a_start_is_counted() {
    let script = [10, 20, 30, 40];
    let timer = timer(&script);
    assert_eq!(timer.stop(), Err(TimerMisuse::StoppedWhileStopped));
    timer.start().unwrap();
    timer.stop().unwrap();
    assert_eq!(timer.stop(), Err(TimerMisuse::StoppedWhileStopped));
    let found = timer.statistics();
    assert_eq!(
        (
            found.events,
            found.total,
            found.misuse.stopped_while_stopped
        ),
        (1, 10, 2)
    );
}

#[test]
fn dropping_the_guard_of_a_stopped_event_is_counted_as_misuse() {
    let script = [10, 25, 40];
    let timer = timer(&script);
    let guard = timer.enter();
    timer.stop().unwrap();
    drop(guard);
    let found = timer.statistics();
    assert_eq!(
        (
            found.events,
            found.total,
            found.misuse.stopped_while_stopped
        ),
        (1, 15, 1)
    );
}

#[test]
fn a_clock_that_runs_backwards_is_counted_without_an_event() {
    let script = [1_000, 999, 2_000, 2_010, u64::MAX, 0];
    let timer = timer(&script);
    timer.start().unwrap();
    assert_eq!(timer.stop(), Err(TimerMisuse::ClockRanBackwards));
    drop(timer.enter());
    drop(timer.enter());
    let found = timer.statistics();
    assert_eq!(
        (found.events, found.total, found.misuse.clock_ran_backwards),
        (1, 10, 2)
    );
    assert_eq!(found.longest, event(10, 1));
    assert!(!found.is_running);
}

#[test]
fn the_overhead_is_subtracted() {
    let script = [100, 150, 200, 205, 300, 310, 400, 399, 500, 400];
    let timer = RegionTimer::with_overhead(ScriptedClock(&script, Cell::new(0)), scale(1), 10);
    (0..5).for_each(|_| drop(timer.enter()));
    let found = timer.statistics();
    // Events longer than the overhead, shorter, and equal; then two during which the clock went backwards.
    assert_eq!((found.events, found.total), (3, 40));
    assert_eq!((found.longest, found.shortest), (event(40, 1), event(0, 2)));
    assert_eq!(found.misuse.clock_ran_backwards, 2);
}

#[test]
fn totals_are_exact_for_long_ticks() {
    let script = readings(&[1_500; 4]);
    let timer = RegionTimer::new(ScriptedClock(&script, Cell::new(0)), scale(1_000));
    (0..4).for_each(|_| drop(timer.enter()));
    let found = timer.statistics().scaled(timer.scale());
    // 4 * 1.5
    assert_eq!((found.total, found.longest), (6, event(1, 1)));
    assert_eq!(found.count(DecimalBin::containing(1)), 4);
}

#[test]
fn statistics_during_an_event_show_that_it_runs() {
    let script = [10, 20, 30];
    let timer = timer(&script);
    drop(timer.enter());
    let _guard = timer.enter();
    let found = timer.statistics();
    assert_eq!((found.events, found.total, found.is_running), (1, 10, true));
    // Provides a reading for the drop of the guard.
    timer.reset();
    timer.clock.1.set(0);
}

proptest! {
    #[test]
    fn extremes_are_those_of_the_sorted_lengths(lengths in prop::collection::vec(0_u64..6, 0..20)) {
        let script = readings(&lengths);
        let timer = timer(&script);
        lengths.iter().for_each(|_| drop(timer.enter()));
        let found = timer.statistics();
        let mut events: Vec<_> = (1_u64..).zip(&lengths).map(|(number, length)| RegionEvent { length: *length, number }).collect();
        // A stable sort: of equal lengths the first event comes first.
        events.sort_by_key(|event| core::cmp::Reverse(event.length));
        prop_assert_eq!(found.longest, events.first().copied());
        prop_assert_eq!(found.second_longest.map(|event| event.length), events.get(1).map(|event| event.length));
        let second = found.second_longest;
        prop_assert!(second.is_none_or(|second| lengths[second.number as usize - 1] == second.length));
        prop_assert!(second.is_none_or(|second| Some(second.number) != found.longest.map(|event| event.number)));
        prop_assert_eq!(found.shortest, events.iter().copied().min_by_key(|event| event.length));
        prop_assert_eq!(found.total, lengths.iter().sum::<u64>());
        prop_assert_eq!(found.bins.iter().sum::<u64>(), lengths.len() as u64);
    }
}
