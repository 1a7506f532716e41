//! Small experiments for tests.

use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState, Probe, RoundTrips};

pub(super) fn key(bytes: u64) -> GroupKey {
    GroupKey {
        operation: "bcast".to_owned(),
        bytes,
        ranks: 2,
    }
}

/// A group with one late call.
pub(super) fn group(bytes: u64, nanos: &[f64]) -> MeasuredGroup {
    let counts = vec![
        (ObservationState::Valid, nanos.len() as u64),
        (ObservationState::Late, 1),
        (ObservationState::Long, 0),
    ];
    MeasuredGroup {
        key: key(bytes),
        nanos: nanos.to_vec(),
        probes: vec![],
        counts,
        figures: vec![],
    }
}

pub(super) fn launch(name: &str, groups: &[MeasuredGroup]) -> (String, Launch) {
    let factors = Factors::default().with("ranks", &2);
    (
        name.to_owned(),
        Launch {
            factors,
            groups: groups.to_vec(),
            complete: true,
            ..Launch::default()
        },
    )
}

/// One group per launch; the launches are named a, b, c...
pub(super) fn experiment(launches: &[&[f64]]) -> Vec<(String, Launch)> {
    let named = ('a'..='z').zip(launches);
    named
        .map(|(name, nanos)| launch(&name.to_string(), &[group(8, nanos)]))
        .collect()
}

/// A launch with ten observations between two probes each, which take a multiple of the first of these.
pub(super) fn probed(name: &str, round_trips: &[f64], times: f64) -> (String, Launch) {
    let nanos: Vec<f64> = round_trips
        .windows(2)
        .flat_map(|pair| [times * pair[0]; 10])
        .collect();
    let probe = |(i, nanos): (usize, &f64)| Probe {
        before: 10 * i,
        round_trips: RoundTrips {
            within: Some(*nanos),
            between: None,
        },
    };
    let measured = MeasuredGroup {
        probes: round_trips.iter().enumerate().map(probe).collect(),
        ..group(8, &nanos)
    };
    launch(name, &[measured])
}
