//! Observations in one state of the machine, by the probes between them.

use downbeat_clock_core::Duration;
use downbeat_records::analysis::MachineStates;
use downbeat_records::stats::Levels;
use downbeat_records::{Probe, RoundTrips};

/// Progress towards a number of observations in one state of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateProgress {
    /// Number of probes from which states are recognized next: each time, all probes are read again.
    next: usize,
}

/// State in which observations are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StateWanted {
    /// Number of observations, valid or not.
    pub(crate) number: u32,
    /// Round trip of the state; `None` for the one with most observations.
    pub(crate) round_trip: Option<Duration>,
}

impl StateProgress {
    /// Returns true if there are enough observations between the probes so far, each with the index of the observation behind it.
    pub(crate) fn is_reached(&mut self, wanted: StateWanted, probes: &[(u32, RoundTrips)]) -> bool {
        /// Recognized again after this part of the probes so far.
        const PART: usize = 16;
        if probes.len() < self.next {
            return false;
        }
        self.next = probes.len() + probes.len().div_ceil(PART);
        let probes: Vec<Probe> = probes
            .iter()
            .map(|(before, round_trips)| Probe {
                before: *before as usize,
                round_trips: *round_trips,
            })
            .collect();
        let states = MachineStates::recognize([probes.as_slice()]);
        let counts = states.counts(0);
        let in_state = match wanted.round_trip {
            None => counts.into_iter().max(),
            Some(named) => nearest(states.round_trips(), named).map(|state| counts[state]),
        };
        in_state.is_some_and(|found| found >= wanted.number as usize)
    }
}

/// Returns the state whose round trip is nearest to this one, if they are not told apart.
fn nearest(states: &[RoundTrips], named: Duration) -> Option<usize> {
    let ratio = |state: &RoundTrips| {
        // That within nodes, if there is one.
        let found = state.within.or(state.between)?;
        Some((found / named.as_nanos() as f64).ln().abs())
    };
    let ratios = states.iter().enumerate();
    let ratios = ratios.filter_map(|(state, found)| Some((state, ratio(found)?)));
    ratios
        .filter(|(_, ratio)| *ratio <= Levels::LEAST_RATIO.ln())
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(state, _)| state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes with 100 observations between two.
    fn probes(nanos: &[f64]) -> Vec<(u32, RoundTrips)> {
        let round_trips = |within| RoundTrips {
            within: Some(within),
            between: None,
        };
        (0..)
            .step_by(100)
            .zip(nanos.iter().copied().map(round_trips))
            .collect()
    }

    /// 8 intervals of 100 observations at 400 ns, and 11 at 150 ns.
    fn changing() -> Vec<(u32, RoundTrips)> {
        probes(&[&[400.0; 9][..], &[150.0; 12]].concat())
    }

    fn is_reached(number: u32, round_trip: Option<i64>) -> bool {
        let wanted = StateWanted {
            number,
            round_trip: round_trip.map(Duration::from_nanos),
        };
        StateProgress::default().is_reached(wanted, &changing())
    }

    #[test]
    fn the_state_met_most_often_counts_unless_one_is_named() {
        assert!(is_reached(1_100, None) && !is_reached(1_101, None));
        assert!(is_reached(800, Some(430)) && !is_reached(801, Some(430)));
        assert!(is_reached(1_100, Some(140)) && !is_reached(1_101, Some(140)));
        assert!(!is_reached(1, Some(250)));
    }

    #[test]
    fn states_are_not_recognized_after_every_probe() {
        let (mut progress, all) = (StateProgress::default(), probes(&[150.0; 200]));
        let wanted = StateWanted {
            number: 10_000,
            round_trip: None,
        };
        let reached = (1..=all.len()).find(|some| progress.is_reached(wanted, &all[..*some]));
        // 101 probes enclose 10,000 observations.
        assert!((101..=108).contains(&reached.unwrap()), "{reached:?}");
    }
}
