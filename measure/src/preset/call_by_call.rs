//! The calls of every preset, compared with those of its suite.

use super::Preset;
use super::recorded::{RANKS, measure};
use crate::Measurement;
use crate::stopping::StopReason;

/// Measures an operation that takes these times in turn; returns the result and all events.
fn run(preset: Preset, bytes: u64, nanos: &[i64]) -> (Measurement, Vec<String>) {
    measure(preset, "allreduce", bytes, 0, &[nanos])
}

/// Events of calls with these numbers, each with events before and after it; the root is 0 unless the preset rotates it.
fn calls(
    preset: Preset,
    numbers: core::ops::Range<u32>,
    before: &[&str],
    after: &[&str],
) -> Vec<String> {
    let around = |events: &[&str]| {
        events
            .iter()
            .map(|event| (*event).to_owned())
            .collect::<Vec<_>>()
    };
    let root = |number| {
        if preset.rotates_root() {
            number % RANKS
        } else {
            0
        }
    };
    let call = |number| vec![format!("call {number} root {}", root(number))];
    numbers
        .flat_map(|number| [around(before), call(number), around(after)].concat())
        .collect()
}

fn barriers(count: usize) -> Vec<String> {
    vec!["barrier".to_owned(); count]
}

#[track_caller]
fn expect(found: &[String], expected: &[Vec<String>]) {
    let expected = expected.concat();
    let differing = found
        .iter()
        .zip(&expected)
        .position(|(found, expected)| found != expected);
    if let Some(at) = differing {
        panic!("event {at} is {}, not {}", found[at], expected[at]);
    }
    assert_eq!(found.len(), expected.len(), "number of events");
}

/// Returns the events of an operation that takes 5 ns.
fn events_of(preset: Preset, operation: &str, bytes: u64) -> Vec<String> {
    measure(preset, operation, bytes, 0, &[&[5]]).1
}

#[test]
fn osu_has_a_barrier_after_each_call_and_warms_up() {
    for (bytes, warm_up, counted) in [
        (0, 100, 1_000),
        (8_192, 100, 1_000),
        (8_193, 10, 100),
        (1 << 20, 10, 100),
    ] {
        let places: [(&str, &[&str], &[&str]); 4] = [
            ("allreduce", &[], &["barrier"]),
            ("bcast", &[], &["barrier"]),
            ("reduce", &["barrier"], &[]),
            ("barrier", &[], &[]),
        ];
        for (operation, before, after) in places {
            let calls = |number| calls(Preset::Osu, 0..number, before, after);
            let events = events_of(Preset::Osu, operation, bytes);
            expect(&events, &[calls(warm_up), calls(counted)]);
        }
    }
    let (measured, _) = run(Preset::Osu, 8, &[5]);
    assert_eq!(
        (measured.observations.len(), measured.stop_reason),
        (1_000, StopReason::Count)
    );
}

/// Sizes, and numbers of calls of IMB.
const IMB_SIZES: [(u64, u32); 6] = [
    (0, 1_000),
    (1, 1_000),
    (41_943, 1_000),
    (65_536, 640),
    (1 << 20, 40),
    (64 << 20, 1),
];

#[test]
fn imb_times_each_call_before_a_barrier() {
    let imb = Preset::Imb;
    let after = ["barrier"];
    let kernel = |number| [barriers(2), calls(imb, 0..number, &[], &after)].concat();
    for (bytes, counted) in IMB_SIZES {
        let (measured, events) = run(imb, bytes, &[1_000]);
        let expected = match counted {
            1 => vec![kernel(1), kernel(1)],
            _ => [1, counted, counted / 10, counted].map(kernel).to_vec(),
        };
        expect(&events, &expected);
        assert_eq!(
            (measured.observations.len() as u32, measured.stop_reason),
            (counted, StopReason::Count),
            "{bytes}"
        );
    }
    // 0.1 s each: 10 fit into a second, and 100 and another one into 10 s.
    let (_, events) = run(imb, 8, &[100_000_000]);
    expect(&events, &[1, 10, 10, 101].map(kernel));
    // A barrier needs no others.
    let kernel = |number| [barriers(2), calls(imb, 0..number, &[], &[])].concat();
    let expected = [1, 1_000, 100, 1_000].map(kernel);
    expect(&events_of(imb, "barrier", 0), &expected);
}

#[test]
fn imb_4_times_a_series_after_two_barriers_and_rotates_the_root() {
    let imb = Preset::Imb4;
    for (bytes, counted) in IMB_SIZES {
        let (measured, events) = run(imb, bytes, &[1_000]);
        let series = |number| [barriers(2), calls(imb, 0..number, &[], &[])].concat();
        expect(&events, &[2, 5, counted].map(series));
        assert_eq!(
            (measured.observations.len(), measured.stop_reason),
            (1, StopReason::Count),
            "{bytes}"
        );
    }
    // 0.1 s each: 10 s are over after 100.
    let (_, events) = run(imb, 8, &[100_000_000]);
    assert_eq!(events.len(), 2 + 2 + 2 + 5 + 2 + 100);
}

#[test]
fn phloem_times_calls_and_barriers_in_a_series_of_50_ms() {
    let phloem = Preset::Phloem;
    for (nanos, counted) in [
        (1_000, 1_000),
        (50_000, 1_000),
        (100_000, 500),
        (20_000_000, 2),
        (1_000_000_000, 1),
    ] {
        let (_, events) = run(phloem, 1 << 20, &[nanos]);
        let after = ["barrier"];
        expect(
            &events,
            &[
                barriers(1),
                calls(phloem, 0..1, &[], &after),
                barriers(1),
                calls(phloem, 0..5, &[], &after),
                barriers(1),
                calls(phloem, 0..counted, &[], &after),
            ],
        );
    }
}

#[test]
fn phloem_16_times_each_call_without_its_barrier() {
    let phloem = Preset::Phloem16;
    // The barriers in the loop are messages.
    let kernel = |number| [barriers(1), calls(phloem, 0..number, &[], &[])].concat();
    for (nanos, counted) in [(1_000, 1_000), (100_000, 500), (20_000_000, 2)] {
        let (measured, events) = run(phloem, 1 << 20, &[nanos]);
        expect(&events, &[1, 5, counted].map(kernel));
        assert_eq!(measured.observations.len() as u32, counted);
    }
    for preset in [Preset::Phloem, phloem] {
        expect(&events_of(preset, "barrier", 0), &[1, 5, 1_000].map(kernel));
    }
}

#[test]
fn skampi_checks_the_error_after_every_eight_windows() {
    // Equal run-times are precise at once. With 9 and 11 us the error is 3.8 % after 8, and 2.6 % after 16; with 5 and 15
    // it stays above 3 %.
    let alternating = [
        (10_000, 10_000, 8, StopReason::Precise),
        (9_000, 11_000, 16, StopReason::Precise),
    ];
    for (one, other, counted, ended) in
        alternating
            .into_iter()
            .chain([(5_000, 15_000, 32, StopReason::Most)])
    {
        let (measured, events) = run(Preset::Skampi, 8, &[one, other]);
        let windows = calls(Preset::Skampi, 0..counted, &[], &[]);
        expect(
            &events,
            &[calls(Preset::Skampi, 0..32, &["barrier"], &[]), windows],
        );
        assert_eq!(
            (measured.observations.len(), measured.stop_reason),
            (counted as usize, ended)
        );
    }
}

#[test]
fn nbcbench_calls_in_windows() {
    let (measured, events) = run(Preset::NbcBench, 8, &[10_000]);
    let windows = calls(Preset::NbcBench, 0..50, &[], &[]);
    expect(
        &events,
        &[calls(Preset::NbcBench, 0..32, &["barrier"], &[]), windows],
    );
    assert_eq!(measured.stop_reason, StopReason::Count);
}

#[test]
fn mpibench_has_a_barrier_before_each_call() {
    let (measured, events) = run(Preset::MpiBench, 8, &[10]);
    expect(
        &events,
        &[calls(Preset::MpiBench, 0..1_000, &["barrier"], &[])],
    );
    assert_eq!(measured.stop_reason, StopReason::Count);
}

#[test]
fn mpiblib_ends_when_the_mean_is_precise() {
    let (measured, events) = run(Preset::MpiBlib, 8, &[10]);
    expect(&events, &[calls(Preset::MpiBlib, 0..5, &["barrier"], &[])]);
    assert_eq!(measured.stop_reason, StopReason::Precise);
    // The mean of 10 and 30 in turn is known to 10 % after a hundred calls.
    let (measured, events) = run(Preset::MpiBlib, 8, &[10, 30]);
    expect(
        &events,
        &[calls(Preset::MpiBlib, 0..100, &["barrier"], &[])],
    );
    assert_eq!(measured.stop_reason, StopReason::Most);
}

#[test]
fn mpicroscope_ends_early_unless_there_are_new_minima() {
    // The first hundred has the minimum, and each further hundred leaves 200 fewer: 1000, 900, 700, 500, 300, 100, 0.
    let (measured, events) = run(Preset::Mpicroscope, 8, &[10]);
    expect(
        &events,
        &[calls(Preset::Mpicroscope, 0..600, &["barrier"], &[])],
    );
    assert_eq!(measured.stop_reason, StopReason::Decayed);
    let falling: Vec<i64> = (0..1_000).map(|call| 2_000 - call).collect();
    let (measured, events) = run(Preset::Mpicroscope, 8, &falling);
    expect(
        &events,
        &[calls(Preset::Mpicroscope, 0..1_000, &["barrier"], &[])],
    );
    assert_eq!(measured.stop_reason, StopReason::Most);
}

#[test]
fn mpptest_repeats_series_until_the_minimum_is_found() {
    let mpptest = Preset::Mpptest;
    let series = |_| {
        [
            calls(mpptest, 0..1, &[], &[]),
            barriers(1),
            calls(mpptest, 0..50, &[], &[]),
            barriers(1),
        ]
        .concat()
    };
    let (measured, events) = run(mpptest, 8, &[10]);
    expect(&events, &(0..7).map(series).collect::<Vec<_>>());
    assert_eq!(measured.stop_reason, StopReason::NearLeast);
    let falling: Vec<i64> = (0..30 * 51).map(|call| 10_000 - call).collect();
    let (measured, events) = run(mpptest, 8, &falling);
    expect(&events, &(0..30).map(series).collect::<Vec<_>>());
    assert_eq!(
        (measured.stop_reason, measured.observations.len()),
        (StopReason::Most, 30)
    );
}

#[test]
fn reprompi_2018_agrees_after_every_round_until_the_slice_is_over() {
    let (measured, events) = run(Preset::ReproMpi2018, 8, &[1_000_000_000]);
    let latency_of_a_broadcast = vec!["barrier".to_owned(), "broadcast".to_owned()];
    expect(
        &events,
        &[
            vec![latency_of_a_broadcast; 51].concat(),
            calls(Preset::ReproMpi, 0..5, &["broadcast"], &["union"]),
        ],
    );
    assert_eq!(
        (measured.observations.len(), measured.stop_reason),
        (5, StopReason::TimeSlice)
    );
}

#[test]
fn reprompi_has_a_barrier_before_each_round_and_announces_by_messages() {
    let (measured, events) = run(Preset::ReproMpi, 8, &[1_000_000]);
    let rounds = calls(Preset::ReproMpi, 0..500, &["barrier"], &[]);
    expect(&events, &[barriers(51), rounds]);
    assert_eq!(measured.stop_reason, StopReason::Most);
    let (measured, _) = run(Preset::ReproMpi, 8, &[1_000_000_000]);
    assert_eq!(
        (measured.observations.len(), measured.stop_reason),
        (2, StopReason::TimeSlice)
    );
}

/// By local times, ranks that take 10 us each differ little; by run-times they would not.
#[test]
fn skampi_checks_the_error_of_the_slowest_local_time() {
    let starts_late = [10_000, 10_000];
    let (measured, _) = measure(
        Preset::Skampi,
        "bcast",
        8,
        0,
        &[&starts_late, &[9_000, 5_000]],
    );
    assert_eq!(
        (measured.observations.len(), measured.stop_reason),
        (8, StopReason::Precise)
    );
}
