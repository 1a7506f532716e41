//! Probes of the state of the machine.

use crate::ObservationState;

/// Name of the factor of launches whose observations have probes.
pub const PROBES: &str = "probes";

/// Round trip between neighbouring ranks, measured between two observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Index of the next observation.
    pub before: usize,
    /// Round trip of the slowest pair of ranks, in nanoseconds.
    pub nanos: f64,
}

/// Returns probes with the index of the next valid observation, given the numbers and states of all observations.
pub(crate) fn before_valid(
    probes: &[Probe],
    observations: impl Iterator<Item = (u64, ObservationState)>,
) -> Vec<Probe> {
    let (mut observations, mut valid) = (observations.peekable(), 0);
    let probe = |probe: &Probe| {
        let is_earlier = |(number, _): &(u64, ObservationState)| *number < probe.before as u64;
        while let Some((_, state)) = observations.next_if(is_earlier) {
            valid += usize::from(state == ObservationState::Valid);
        }
        Probe {
            before: valid,
            ..*probe
        }
    };
    probes.iter().map(probe).collect()
}
