//! Reproducibility within equal states of the machine.

use downbeat_common::{Failure, Table, Text};
use downbeat_records::analysis::{AnalysisSettings, Average, Reproducibility};
use downbeat_records::stats::Confidence;
use serde::Serialize;

use super::group::{ReproducibilityGroupReport, row};
use crate::experiments::ProbedLaunches;
use crate::experiments::states::{ByState, HEADING, JsonStates, NO_VALUES, sorted};

/// Reproducibility in each state.
pub(super) struct ReproducibleStates {
    states: ByState,
    /// Repetitions in each state.
    groups: Vec<Vec<Reproducibility>>,
}

impl ReproducibleStates {
    /// Compares trials within equal states; `None` if no launch measured states.
    pub(super) fn new(
        names: &[String],
        trials: &[ProbedLaunches],
        average: Average,
        settings: &AnalysisSettings,
    ) -> Result<Option<Self>, Failure> {
        let Some(states) = ByState::new(trials, settings)? else {
            return Ok(None);
        };
        let of_state = |state: usize| {
            let found = names.iter().zip(&states.analyses);
            let found =
                found.filter_map(|(name, of_trial)| Some((name.clone(), of_trial[state].clone()?)));
            Reproducibility::for_trials(&found.collect::<Vec<_>>(), average)
        };
        let groups = (0..states.split.round_trips.len()).map(of_state).collect();
        Ok(Some(Self { states, groups }))
    }

    /// Returns the groups with their states, by keys and then by states.
    fn rows(&self) -> Vec<(usize, &Reproducibility)> {
        let states = self.groups.iter().enumerate();
        let groups =
            states.flat_map(|(state, groups)| groups.iter().map(move |group| (state, group)));
        sorted(groups, |group| &group.key)
    }

    /// Table of the states.
    pub(super) fn text(&self, settings: &AnalysisSettings) -> Text {
        let mut table = Table::new([
            "operation",
            "bytes",
            "ranks",
            "round trip",
            "trials",
            "launches",
            "smallest",
            "largest",
            "spread",
            "deviation",
            "its interval",
        ])
        .named_by(4);
        for (state, group) in self.rows() {
            let [operation, bytes, ranks, rest @ ..] = row(group, settings);
            let key = [operation, bytes, ranks, self.states.round_trip(state)];
            table.row(key.into_iter().chain(rest).collect::<Vec<_>>());
        }
        let mut text = Text::from(HEADING.to_owned());
        if self
            .groups
            .iter()
            .flatten()
            .all(|group| group.trials.is_empty())
        {
            text += NO_VALUES;
            return text;
        }
        text += table;
        text
    }
}

/// Repetitions of a group in one state, in JSON.
#[derive(Debug, Serialize)]
pub(super) struct ReproducibleState<'a> {
    /// Index of the state.
    state: usize,
    #[serde(flatten)]
    group: ReproducibilityGroupReport<'a>,
}

impl ReproducibleStates {
    /// Returns the states for a document.
    pub(super) fn json(&self, confidence: Confidence) -> JsonStates<ReproducibleState<'_>> {
        let groups = self
            .rows()
            .into_iter()
            .map(|(state, group)| ReproducibleState {
                state,
                group: ReproducibilityGroupReport::new(group, confidence),
            });
        self.states
            .json(&self.states.split.experiments, groups.collect())
    }
}
