//! States of the machine during experiments, by the probes in their records.

use super::experiment::Analysis;
use super::settings::AnalysisSettings;
use crate::stats::Levels;
use crate::{Launch, MeasuredGroup, Probe, RecordError};

/// States of a machine: levels of the round trips of [probes](Probe), in the order in which these were made.
///
/// ```
/// use downbeat_records::Probe;
/// use downbeat_records::analysis::MachineStates;
///
/// // A probe before each of nine batches of 10 observations, and one behind the last. The machine changes during the fifth batch.
/// let nanos = [150.0, 152.0, 149.0, 151.0, 150.0, 394.0, 391.0, 390.0, 392.0, 393.0];
/// let probes: Vec<Probe> = (0..).zip(nanos).map(|(i, nanos)| Probe { before: 10 * i, nanos }).collect();
/// let states = MachineStates::recognize([probes.as_slice()]);
/// assert_eq!(states.round_trips().len(), 2);
/// let of_each = states.of_observations(0, 90);
/// assert_eq!((of_each[0], of_each[45], of_each[50]), (Some(0), None, Some(1)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineStates {
    levels: Levels,
    /// Of each probe the index of the next observation, by groups.
    groups: Vec<Vec<usize>>,
    /// Index of the first probe of each group.
    first: Vec<usize>,
}

impl MachineStates {
    /// Recognizes the states of groups that were measured one after the other, by the probes of each.
    pub fn recognize<'a>(groups: impl IntoIterator<Item = &'a [Probe]>) -> Self {
        let (mut round_trips, mut found) = (Vec::new(), Self::default());
        for probes in groups {
            found.first.push(round_trips.len());
            found
                .groups
                .push(probes.iter().map(|probe| probe.before).collect());
            round_trips.extend(probes.iter().map(|probe| probe.nanos));
        }
        found.levels = Levels::find(&round_trips);
        found
    }

    /// Round trip of each state in nanoseconds, in ascending order; empty without probes.
    pub fn round_trips(&self) -> &[f64] {
        self.levels.values()
    }

    /// State of each of `count` observations of a group: `None` if the probes before and after it differ in their state, or one is missing.
    pub fn of_observations(&self, group: usize, count: usize) -> Vec<Option<usize>> {
        let mut states = vec![None; count];
        let (Some(places), Some(first)) = (self.groups.get(group), self.first.get(group)) else {
            return states;
        };
        let levels = self.levels.of_each().get(*first..).unwrap_or(&[]);
        for (between, level) in places.windows(2).zip(levels.windows(2)) {
            let until = between[1].min(count);
            if level[0] == level[1] && between[0] < until {
                states[between[0]..until].fill(Some(level[0]));
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
    /// Round trip of each state in nanoseconds, in ascending order.
    pub round_trips: Vec<f64>,
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

    #[test]
    fn observations_without_probes_have_no_state() {
        assert_eq!(
            SplitByState::new(&[&[launch("a", &[group(8, &[1.0, 2.0])])]]),
            None
        );
        let none = MachineStates::recognize([
            &[][..],
            &[Probe {
                before: 0,
                nanos: 100.0,
            }],
        ]);
        assert_eq!(none.of_observations(0, 2), [None, None]);
        assert_eq!(none.of_observations(1, 2), [None, None]);
        assert_eq!(none.of_observations(9, 1), [None]);
    }

    /// Hostile records may have any index.
    #[test]
    fn probes_behind_the_last_observation_are_ignored() {
        let probes = [0, 4, usize::MAX, usize::MAX].map(|before| Probe {
            before,
            nanos: 100.0,
        });
        let states = MachineStates::recognize([probes.as_slice()]);
        assert_eq!(states.of_observations(0, 6), [Some(0); 6]);
        assert_eq!(states.of_observations(0, 2), [Some(0); 2]);
    }
}
