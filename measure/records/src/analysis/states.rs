//! States of the machine during experiments, by the probes in their records.

use core::ops::Range;

use super::experiment::Analysis;
use super::settings::AnalysisSettings;
use crate::stats::Levels;
use crate::{Launch, MeasuredGroup, Probe, RecordError, RoundTrips};

/// States of a machine: levels of the round trips of [probes](Probe), in the order in which these were made.
///
/// ```
/// use downbeat_records::analysis::MachineStates;
/// use downbeat_records::{Probe, RoundTrips};
///
/// // A probe before each of nine batches of 10 observations, and one behind the last. The machine changes during the fifth batch.
/// let nanos = [150.0, 152.0, 149.0, 151.0, 150.0, 394.0, 391.0, 390.0, 392.0, 393.0];
/// let round_trips = |nanos| RoundTrips { within: Some(nanos), between: None };
/// let places = (0..).step_by(10).zip(nanos);
/// let probes = places.map(|(before, nanos)| Probe { before, round_trips: round_trips(nanos) });
/// let probes: Vec<Probe> = probes.collect();
/// let states = MachineStates::recognize([probes.as_slice()]);
/// assert_eq!(states.round_trips().len(), 2);
/// let of_each = states.of_observations(0, 90);
/// assert_eq!((of_each[0], of_each[45], of_each[50]), (Some(0), None, Some(1)));
/// assert_eq!(states.counts(0), [40, 40]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineStates {
    round_trips: Vec<RoundTrips>,
    /// State of each probe, and the index of the next observation, by groups.
    groups: Vec<Vec<(usize, usize)>>,
}

impl MachineStates {
    /// Recognizes the states of groups that were measured one after the other, by the probes of each. Round trips within nodes and
    /// between nodes have levels of their own; a state is a level of both.
    pub fn recognize<'a>(groups: impl IntoIterator<Item = &'a [Probe]>) -> Self {
        let groups: Vec<&[Probe]> = groups.into_iter().collect();
        let levels = [0, 1].map(|place| {
            let found = groups.iter().flat_map(|probes| probes.iter());
            let nanos = found.map(|probe| probe.round_trips.each()[place].unwrap_or(f64::NAN));
            Levels::find(&nanos.collect::<Vec<_>>())
        });
        // Without levels, there are no indices.
        let level = |place: usize, probe: usize| levels[place].of_each().get(probe).copied();
        let probes = groups.iter().map(|probes| probes.len()).sum();
        let of_each: Vec<[Option<usize>; 2]> = (0..probes)
            .map(|probe| [0, 1].map(|place| level(place, probe)))
            .collect();
        let mut states = of_each.clone();
        states.sort_unstable();
        states.dedup();
        states.retain(|state| state.iter().any(Option::is_some));
        let mut of_each = of_each.iter();
        let of_group = |probes: &&[Probe]| {
            let found = probes.iter().zip(of_each.by_ref());
            let state = |(probe, state): (&Probe, _)| {
                Some((states.binary_search(state).ok()?, probe.before))
            };
            found.filter_map(state).collect()
        };
        let groups = groups.iter().map(of_group).collect();
        let nanos =
            |state: &[Option<usize>; 2], place: usize| Some(levels[place].values()[state[place]?]);
        let round_trips = states.iter().map(|state| RoundTrips {
            within: nanos(state, 0),
            between: nanos(state, 1),
        });
        Self {
            round_trips: round_trips.collect(),
            groups,
        }
    }

    /// Round trips of each state; empty without probes.
    pub fn round_trips(&self) -> &[RoundTrips] {
        &self.round_trips
    }

    /// Number of observations of a group in each state: those between two probes in the same state.
    pub fn counts(&self, group: usize) -> Vec<usize> {
        let mut counts = vec![0; self.round_trips.len()];
        for (state, observations) in self.intervals(group) {
            counts[state] += observations.len();
        }
        counts
    }

    /// Observations between two probes in the same state, with the state.
    fn intervals(&self, group: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let probes = self.groups.get(group).map_or(&[][..], Vec::as_slice);
        let pairs = probes.windows(2).map(|pair| (pair[0], pair[1]));
        let in_one = pairs.filter(|((state, _), (next_state, _))| state == next_state);
        in_one.map(|((state, from), (_, until))| (state, from..until))
    }

    /// State of each of `count` observations of a group: `None` if the probes before and after it differ in their state, or one is missing.
    pub fn of_observations(&self, group: usize, count: usize) -> Vec<Option<usize>> {
        let mut states = vec![None; count];
        for (state, Range { start, end }) in self.intervals(group) {
            let end = end.min(count);
            if start < end {
                states[start..end].fill(Some(state));
            }
        }
        states
    }
}

/// Launches of an experiment, with their names.
type Launches = [(String, Launch)];

/// Several experiments, split by the states of the machine, which are recognized over all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitByState {
    /// Round trips of each state.
    pub round_trips: Vec<RoundTrips>,
    /// The experiments.
    pub experiments: Vec<SplitExperiment>,
}

/// An experiment, split by the states of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitExperiment {
    /// For each state the launches with the observations in it, without groups of fewer than [`LEAST`](Self::LEAST), and without launches
    /// that have no other groups.
    pub of_states: Vec<Vec<(String, Launch)>>,
    /// Number of observations in each state.
    pub counts: Vec<usize>,
    /// Number of observations whose state is unknown, because it changed meanwhile.
    pub changing: usize,
}

impl SplitByState {
    /// Splits experiments; `None` if no launch has probes.
    pub fn new(experiments: &[&Launches]) -> Option<Self> {
        let groups = experiments
            .iter()
            .flat_map(|launches| launches.iter())
            .flat_map(|(_, launch)| &launch.groups);
        let states = MachineStates::recognize(groups.map(|group| group.probes.as_slice()));
        if states.round_trips().is_empty() {
            return None;
        }
        let mut group = 0;
        let split = |launches: &&Launches| {
            let mut split = SplitExperiment::new(states.round_trips().len());
            for (name, launch) in *launches {
                split.add(name, launch, &states, &mut group);
            }
            split
        };
        Some(Self {
            experiments: experiments.iter().map(split).collect(),
            round_trips: states.round_trips().to_vec(),
        })
    }
}

impl SplitExperiment {
    /// Least number of observations of a group in a launch that stand for a state.
    pub const LEAST: usize = 5;

    fn new(states: usize) -> Self {
        Self {
            of_states: vec![Vec::new(); states],
            counts: vec![0; states],
            changing: 0,
        }
    }

    /// Share of the observations that were made in a state.
    pub fn share(&self, state: usize) -> f64 {
        self.share_of(self.counts.get(state).copied().unwrap_or(0))
    }

    /// Share of the observations during which the state changed.
    pub fn changing_share(&self) -> f64 {
        self.share_of(self.changing)
    }

    fn share_of(&self, count: usize) -> f64 {
        let all = self.counts.iter().sum::<usize>() + self.changing;
        count as f64 / all.max(1) as f64
    }

    /// Analyses the launches in each state; `None` for a state without launches.
    ///
    /// # Errors
    /// If they cannot be analysed.
    pub fn analyses(
        &self,
        settings: &AnalysisSettings,
    ) -> Result<Vec<Option<Analysis>>, RecordError> {
        let analyse = |launches: &Vec<_>| match launches.is_empty() {
            true => Ok(None),
            false => Analysis::new(launches, settings).map(Some),
        };
        self.of_states.iter().map(analyse).collect()
    }

    /// State with most observations.
    pub fn most(&self) -> Option<usize> {
        let states = 0..self.counts.len();
        // The first one of equals.
        states.rev().max_by_key(|state| self.counts[*state])
    }

    fn add(&mut self, name: &str, launch: &Launch, states: &MachineStates, group: &mut usize) {
        let mut split = vec![Vec::new(); self.of_states.len()];
        for measured in &launch.groups {
            let of_each = states.of_observations(*group, measured.nanos.len());
            *group += 1;
            for (state, groups) in split.iter_mut().enumerate() {
                let in_state = || {
                    (0..)
                        .zip(&measured.nanos)
                        .filter(|(i, _)| of_each[*i] == Some(state))
                };
                let nanos: Vec<f64> = in_state().map(|(_, nanos)| *nanos).collect();
                self.counts[state] += nanos.len();
                if nanos.len() >= Self::LEAST {
                    groups.push(MeasuredGroup {
                        key: measured.key.clone(),
                        nanos,
                        probes: Vec::new(),
                        counts: Vec::new(),
                        figures: Vec::new(),
                    });
                }
            }
            self.changing += of_each.iter().filter(|state| state.is_none()).count();
        }
        for (launches, groups) in self.of_states.iter_mut().zip(split) {
            if !groups.is_empty() {
                let launch = Launch {
                    factors: launch.factors.clone(),
                    facts: launch.facts.clone(),
                    groups,
                    complete: launch.complete,
                };
                launches.push((name.to_owned(), launch));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{group, launch, probed};
    use super::*;

    const FAST: [f64; 8] = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0];

    fn slow() -> Vec<f64> {
        FAST.iter().map(|nanos| 4.0 * nanos).collect()
    }

    #[test]
    fn states_are_common_to_all_experiments() {
        let mixed = [&FAST[..], &slow()].concat();
        let first = [probed("a", &mixed, 1.0), probed("b", &FAST, 1.0)];
        let second = [probed("a", &slow(), 1.0)];
        let found = SplitByState::new(&[&first, &second]).unwrap();
        assert_eq!(found.round_trips.len(), 2);
        let [one, other] = &found.experiments[..] else {
            panic!("{found:?}")
        };
        let names = |launches: &[(String, Launch)]| {
            launches
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            one.of_states
                .iter()
                .map(|all| names(all))
                .collect::<Vec<_>>(),
            [vec!["a", "b"], vec!["a"]]
        );
        // Ten observations are between a fast and a slow probe.
        assert_eq!((&one.counts[..], one.changing), (&[140, 70][..], 10));
        assert_eq!((&other.counts[..], other.changing), (&[0, 70][..], 0));
        assert_eq!(
            (one.most(), other.most(), other.share(1)),
            (Some(0), Some(1), 1.0)
        );
        assert!(
            one.of_states[1][0].1.groups[0]
                .nanos
                .iter()
                .all(|nanos| *nanos > 300.0)
        );
    }

    #[test]
    fn few_observations_do_not_stand_for_a_state() {
        let (name, mut launch) = probed("a", &[&FAST[..], &slow()].concat(), 1.0);
        launch.groups[0].nanos.truncate(83);
        let found = SplitByState::new(&[&[(name, launch)]]).unwrap();
        assert_eq!(
            (
                found.experiments[0].counts[1],
                found.experiments[0].of_states[1].len()
            ),
            (3, 0)
        );
    }

    fn probe(before: usize, within: Option<f64>, between: Option<f64>) -> Probe {
        let round_trips = RoundTrips { within, between };
        Probe {
            before,
            round_trips,
        }
    }

    #[test]
    fn observations_without_probes_have_no_state() {
        let plain = [launch("a", &[group(8, &[1.0, 2.0])])];
        assert_eq!(SplitByState::new(&[&plain]), None);
        let one = [probe(0, Some(100.0), None)];
        let none = MachineStates::recognize([&[][..], &one]);
        for group in [0, 1, 9] {
            assert_eq!(none.of_observations(group, 2), [None, None]);
        }
        let nothing = [probe(0, None, None), probe(1, None, None)];
        assert!(
            MachineStates::recognize([&nothing[..]])
                .round_trips()
                .is_empty()
        );
    }

    /// Hostile records may have any index.
    #[test]
    fn probes_behind_the_last_observation_are_ignored() {
        let probes = [0, 4, usize::MAX, usize::MAX].map(|before| probe(before, Some(100.0), None));
        let states = MachineStates::recognize([probes.as_slice()]);
        assert_eq!(states.of_observations(0, 6), [Some(0); 6]);
        assert_eq!(states.of_observations(0, 2), [Some(0); 2]);
    }

    /// The network changes after eight probes, and the node after sixteen.
    #[test]
    fn nodes_and_networks_have_levels_of_their_own() {
        let nanos = |i: usize| {
            let within = if i < 16 { 100.0 } else { 300.0 };
            let between = if i < 8 { 2_000.0 } else { 5_000.0 };
            [within, between].map(|nanos| Some(nanos * (1.0 + 0.01 * (i % 3) as f64)))
        };
        let probes: Vec<Probe> = (0..24)
            .map(|i| probe(i, nanos(i)[0], nanos(i)[1]))
            .collect();
        let states = MachineStates::recognize([probes.as_slice()]);
        assert_eq!(states.round_trips().len(), 3);
        let of_each = states.of_observations(0, 24);
        let expected = [Some(0), None, Some(1), None, Some(2)];
        assert_eq!([0, 7, 8, 15, 20].map(|i| of_each[i]), expected);
        let network: Vec<Probe> = (0..24).map(|i| probe(i, None, nanos(i)[1])).collect();
        let states = MachineStates::recognize([network.as_slice()]);
        let [fast, slow] = states.round_trips() else {
            panic!("{states:?}")
        };
        assert!(fast.within.is_none() && fast.between < slow.between);
    }
}
