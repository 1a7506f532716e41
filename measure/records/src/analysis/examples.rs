//! Small experiments for tests.

use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState};

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
