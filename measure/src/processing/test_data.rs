//! Observations that can be processed by hand.

use downbeat_clock_core::{Domain, Global, Local, Timestamp};

use super::{Figure, Processing};
use downbeat_records::{CallTimes, Observation, ObservationState, Observations};

fn observation<D: Domain>(start: i64, end: i64) -> Observation<D> {
    Observation {
        start: Timestamp::from_nanos(start),
        end: Timestamp::from_nanos(end),
    }
}

/// Valid calls by local clocks, from the duration of each call on each rank.
pub(super) fn local(calls: &[&[i64]]) -> Observations {
    let skewed = |(rank, time): (usize, &i64)| {
        let start = 1_000_000 * rank as i64;
        observation::<Local>(start, start + time)
    };
    let stamps = calls
        .iter()
        .flat_map(|times| times.iter().enumerate().map(skewed))
        .collect();
    let ranks = calls.first().map_or(1, |times| times.len());
    Observations::new(
        ranks,
        vec![ObservationState::Valid; calls.len()],
        CallTimes::Local(stamps),
    )
    .unwrap()
}

/// Calls of two ranks by a global clock: state, and start and end on each rank.
pub(super) type GlobalCalls = Vec<(ObservationState, [(i64, i64); 2])>;

pub(super) fn global(calls: &[(ObservationState, [(i64, i64); 2])]) -> Observations {
    let states = calls.iter().map(|(state, _)| *state).collect();
    let stamps = calls
        .iter()
        .flat_map(|(_, ranks)| ranks.map(|(start, end)| observation::<Global>(start, end)))
        .collect();
    Observations::new(2, states, CallTimes::Global(stamps)).unwrap()
}

/// Five calls with the run-times 50, 30, -, 45 and 35.
pub(super) fn five_calls() -> GlobalCalls {
    vec![
        (ObservationState::Valid, [(0, 40), (5, 50)]),
        (ObservationState::Valid, [(100, 130), (101, 120)]),
        (ObservationState::Late, [(200, 900), (800, 990)]),
        (ObservationState::Valid, [(300, 340), (295, 310)]),
        (ObservationState::Valid, [(400, 410), (395, 430)]),
    ]
}

/// Processes by a label, and compares names and values of all figures.
pub(super) fn expect(
    label: &str,
    observations: &Observations,
    root: usize,
    figures: &[(&str, f64)],
) {
    let found = label
        .parse::<Processing>()
        .unwrap()
        .apply(observations, root)
        .unwrap();
    let names: Vec<&str> = found.iter().map(|figure| figure.name).collect();
    assert_eq!(
        names,
        figures.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "{label}"
    );
    for (Figure { name, nanos }, (_, expected)) in found.iter().zip(figures) {
        assert!(
            (nanos - expected).abs() <= 1e-9 * expected.abs(),
            "{label}: {name} is {nanos}, not {expected}"
        );
    }
}
