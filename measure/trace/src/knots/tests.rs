//! Tests of knots against a second implementation of OTF2's arithmetic and against the minimum
//! number of knots.

use proptest::prelude::*;

use super::*;

/// Interpolates as `OTF2_EvtReader.c` (3.0) does: tries intervals from the first one on.
fn read(knots: &[OffsetKnot], time: u64) -> u64 {
    if knots.len() < 2 {
        return time;
    }
    let mut i = 0;
    while i + 2 < knots.len() && time > knots[i + 1].at as u64 {
        i += 1;
    }
    let (begin, end) = (knots[i], knots[i + 1]);
    let slope = (end.offset - begin.offset) as f64 / (end.at as u64 - begin.at as u64) as f64;
    let begin_at = begin.at as u64;
    let diff = if time >= begin_at {
        (time - begin_at) as f64
    } else {
        -((begin_at - time) as f64)
    };
    // Far from knots with a steep line between them.
    let moved = (slope * diff).round_ties_even() as i64;
    let offset = begin.offset.wrapping_add(moved);
    time.wrapping_add(offset as u64)
}

fn windows(events: &[(i64, i64)], slack: i64) -> Vec<TimeWindow> {
    events
        .iter()
        .map(|&(at, to)| TimeWindow {
            at,
            earliest: to - slack,
            latest: to + slack,
        })
        .collect()
}

fn through(windows: Vec<TimeWindow>) -> Result<Knots, ClockOffsetError> {
    Knots::through(windows, usize::MAX)
}

/// Minimum number of knots at these events, by dynamic programming over all paths from the first to
/// the last.
fn fewest(windows: &[TimeWindow]) -> usize {
    let values = |window: &TimeWindow| window.earliest..=window.latest;
    let mut best: Vec<Vec<(i64, usize)>> = vec![values(&windows[0]).map(|to| (to, 1)).collect()];
    for (j, end) in windows.iter().enumerate().skip(1) {
        let of = |to: i64| {
            let from = best
                .iter()
                .enumerate()
                .flat_map(|(i, values)| values.iter().map(move |&(from, n)| (i, from, n)));
            let fits = |&(i, from, _): &(usize, i64, usize)| {
                let line = [(i, from), (j, to)].map(|(k, to)| OffsetKnot {
                    at: windows[k].at,
                    offset: to - windows[k].at,
                });
                from <= to
                    && windows[i..j].iter().all(|w| {
                        (w.earliest..=w.latest).contains(&(read(&line, w.at as u64) as i64))
                    })
            };
            from.filter(fits).map(|(_, _, n)| n + 1).min()
        };
        best.push(
            values(end)
                .filter_map(|to| of(to).map(|n| (to, n)))
                .collect(),
        );
    }
    best[windows.len() - 1]
        .iter()
        .map(|&(_, n)| n)
        .min()
        .unwrap_or(0)
}

#[test]
fn a_straight_line_is_two_knots_and_a_bend_is_one_more() {
    let bend = |at: i64| (at, at + 5_000 + at / 1_000 + (at - 5_000_000).max(0) / 50);
    let events: Vec<_> = (0..100_000).map(|i| bend(i * 100)).collect();
    let knots = through(windows(&events, 1)).unwrap();
    assert!(knots.knots().len() <= 4, "{:?}", knots.knots());
    let whole: Vec<_> = (0..100_000).map(|i| bend(i * 1_000)).collect();
    assert_eq!(through(windows(&whole, 0)).unwrap().knots().len(), 3);
}

#[test]
fn rounding_adds_few_knots_if_windows_allow_for_it() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut at = 1_000_000;
    let mut events = vec![];
    for _ in 0..50_000 {
        at += random.i64(1..2_000);
        events.push((at, (at as f64 * 0.990_123_4 + 7e9).round() as i64));
    }
    assert_eq!(through(windows(&events, 1)).unwrap().knots().len(), 2);
    // Without tolerance, every event that was rounded the other way needs its own knots.
    let exact = through(windows(&events, 0)).unwrap();
    assert!(exact.knots().len() > 1_000);
    assert!(events.iter().all(|&(at, to)| exact.apply(at) == to));
}

#[test]
fn one_time_gives_two_knots_and_no_time_none() {
    let one = through(windows(&[(7, 9), (7, 9)], 0)).unwrap();
    assert_eq!(
        one.knots(),
        [
            OffsetKnot { at: 7, offset: 2 },
            OffsetKnot { at: 8, offset: 2 }
        ]
    );
    assert_eq!(through(vec![]).unwrap(), Knots::default());
    // OTF2 ignores a single knot.
    assert_eq!(
        Knots::new(vec![OffsetKnot { at: 7, offset: 2 }])
            .unwrap()
            .apply(7),
        7
    );
}

#[test]
fn impossible_windows_are_errors() {
    let error = |events: &[(i64, i64)], slack| through(windows(events, slack)).unwrap_err();
    assert_eq!(
        error(&[(1, 1), (5, 7), (5, 9)], 0),
        ClockOffsetError::Inseparable { first: 1, last: 2 }
    );
    assert!(through(windows(&[(1, 1), (5, 7), (5, 9)], 1)).is_ok());
    assert_eq!(error(&[(5, 7), (4, 9)], 0), ClockOffsetError::Decreasing(1));
    assert_eq!(
        error(&[(4, 9), (5, 7)], 0),
        ClockOffsetError::Inseparable { first: 1, last: 1 }
    );
    assert_eq!(
        error(&[(4, 9), (5, 1 << 50)], 0),
        ClockOffsetError::Unreachable(1)
    );
    assert_eq!(
        error(&[(i64::MIN, 0), (0, i64::MAX)], 0),
        ClockOffsetError::Unreachable(0)
    );
    assert_eq!(
        Knots::new(vec![OffsetKnot { at: 7, offset: 2 }; 2]),
        Err(ClockOffsetError::Decreasing(1))
    );
}

#[test]
fn the_search_stops_at_the_maximum_number_of_knots() {
    let mut taken = 0;
    let zigzag = (0..1_000).map(|i| (100 * i, 100 * i + i % 2));
    let windows = windows(&zigzag.collect::<Vec<_>>(), 0)
        .into_iter()
        .inspect(|_| taken += 1);
    // Every event is a knot.
    assert_eq!(
        Knots::through(windows, 13),
        Err(ClockOffsetError::TooMany(13))
    );
    assert!(taken < 30, "{taken}");
}

proptest! {
    #[test]
    fn every_event_is_in_its_window_and_order_is_kept(
        start in 0..1_i64 << 60,
        steps in prop::collection::vec((prop_oneof![0..3_i64, 0..1_000_i64, 0..1_000_000_000_i64], -20..50_i64), 1..300),
        offset in -1_000_000_i64..1 << 60,
        slack in 0..3_i64,
    ) {
        let mut event = (start, start.saturating_add(offset).max(0));
        let mut events = vec![];
        for (gap, extra) in steps {
            event.0 += gap;
            event.1 += if gap == 0 { 0 } else { (gap + gap * extra / 1_000 + extra % 3).max(0) };
            events.push(event);
        }
        let knots = through(windows(&events, slack)).unwrap();
        prop_assert!(knots.knots().len() >= 2);
        prop_assert!(knots.knots().windows(2).all(|pair| pair[0].at < pair[1].at));
        for pair in events.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|(at, _)| knots.apply(at));
            prop_assert!(a <= b);
        }
        for &(at, to) in &events {
            let moved = knots.apply(at);
            prop_assert_eq!(moved, read(knots.knots(), at as u64) as i64);
            prop_assert!((moved - to).abs() <= slack, "{} became {}, not {}", at, moved, to);
        }
    }

    #[test]
    fn times_between_and_around_knots_become_what_the_reader_makes_of_them(
        knots in prop::collection::btree_map(0..1_i64 << 62, -(1_i64 << 50)..1 << 50, 0..20),
        times in prop::collection::vec(0..1_i64 << 62, 0..50),
    ) {
        let knots = Knots::new(knots.into_iter().map(|(at, offset)| OffsetKnot { at, offset }).collect()).unwrap();
        for time in times.into_iter().chain(knots.knots().iter().map(|knot| knot.at)) {
            prop_assert_eq!(knots.apply(time), read(knots.knots(), time as u64) as i64);
        }
    }

    #[test]
    fn there_are_hardly_more_knots_than_must_be(
        steps in prop::collection::vec((1..40_i64, 0..60_i64), 1..12),
        slack in 0..3_i64,
    ) {
        let mut event = (0, 100);
        let mut events = vec![event];
        for (gap, step) in steps {
            event = (event.0 + gap, event.1 + step);
            events.push(event);
        }
        let windows = windows(&events, slack);
        let found = through(windows.clone()).unwrap().knots().len();
        let least = fewest(&windows);
        // Margins for errors of floating-point numbers cost additional knots in windows as narrow as
        // these.
        prop_assert!(found <= 2 * least, "{} knots, not {}", found, least);
    }
}
