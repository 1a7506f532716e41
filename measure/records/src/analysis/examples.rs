//! Small experiments for tests.

use crate::{Factors, Group, GroupKey, Launch, State};

pub(super) fn key(bytes: u64) -> GroupKey {
    GroupKey {
        operation: "bcast".to_owned(),
        bytes,
        ranks: 2,
    }
}

/// One of whose calls was late.
pub(super) fn group(bytes: u64, nanos: &[f64]) -> Group {
    let counts = vec![
        (State::Valid, nanos.len() as u64),
        (State::Late, 1),
        (State::Long, 0),
    ];
    Group {
        key: key(bytes),
        nanos: nanos.to_vec(),
        counts,
        figures: vec![],
    }
}

pub(super) fn launch(name: &str, groups: &[Group]) -> (String, Launch) {
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

/// With the same single group in all launches, which are called a, b, c...
pub(super) fn experiment(launches: &[&[f64]]) -> Vec<(String, Launch)> {
    let named = ('a'..='z').zip(launches);
    named
        .map(|(name, nanos)| launch(&name.to_string(), &[group(8, nanos)]))
        .collect()
}
