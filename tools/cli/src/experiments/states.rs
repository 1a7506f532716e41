//! Results by the state of the machine, for experiments whose launches measured it.

use downbeat_common::Failure;
use downbeat_common::output::{percent, round_trips};
use downbeat_records::analysis::{Analysis, AnalysisSettings, SplitByState, SplitExperiment};
use downbeat_records::{GroupKey, RoundTrips};
use serde::Serialize;

use super::ProbedLaunches;

/// Experiments by the states of the machine, which are common to all of them.
pub(super) struct ByState {
    pub(super) split: SplitByState,
    /// Analyses of each experiment in each state.
    pub(super) analyses: Vec<Vec<Option<Analysis>>>,
}

impl ByState {
    /// Splits experiments by the states of the machine; `None` if no launch measured these.
    pub(super) fn new(
        experiments: &[ProbedLaunches],
        settings: &AnalysisSettings,
    ) -> Result<Option<Self>, Failure> {
        let launches: Vec<_> = experiments.iter().map(Vec::as_slice).collect();
        let Some(split) = SplitByState::new(&launches) else {
            return Ok(None);
        };
        let analyses = split.experiments.iter().map(|one| one.analyses(settings));
        Ok(Some(Self {
            analyses: analyses.collect::<Result<_, _>>().map_err(Failure::run)?,
            split,
        }))
    }

    /// Returns a state as a cell: its round trips.
    pub(super) fn round_trip(&self, state: usize) -> String {
        round_trips(self.split.round_trips[state])
    }
}

/// Heading of the tables.
pub(super) const HEADING: &str =
    "\nBy state of the machine, which is the round trip between neighbouring ranks:\n\n";

/// Replaces the tables for an average that has no value in a state.
pub(super) const NO_VALUES: &str =
    "None: the values that launches reported are those of all states.\n";

/// Sorts groups by their keys, and then by the states in which they were measured.
pub(super) fn sorted<'a, T>(
    groups: impl Iterator<Item = (usize, &'a T)>,
    key: impl Fn(&'a T) -> &'a GroupKey,
) -> Vec<(usize, &'a T)> {
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by_key(|(state, group)| (key(group), *state));
    groups
}

/// Note on observations during which the state changed, if there are any.
pub(super) fn changing(experiments: &[(&str, &SplitExperiment)]) -> String {
    let changed = experiments.iter().filter(|(_, split)| split.changing > 0);
    let changed = changed.map(|(of, split)| {
        format!(
            "{} of the observations{of}",
            percent(split.changing_share())
        )
    });
    let changed: Vec<String> = changed.collect();
    match changed.is_empty() {
        true => String::new(),
        false => format!(
            "During {}, the state changed: they belong to none.\n",
            changed.join(" and ")
        ),
    }
}

/// States of the machine in JSON.
#[derive(Debug, Serialize)]
pub(super) struct JsonStates<G> {
    states: Vec<JsonState>,
    /// Shares of the observations of each experiment during which the state changed, or is not known.
    changing: Vec<f64>,
    /// Groups within the states.
    groups: Vec<G>,
}

#[derive(Debug, Serialize)]
struct JsonState {
    /// Round trips between neighbouring ranks within nodes, and between nodes.
    within_ns: Option<f64>,
    between_ns: Option<f64>,
    /// Shares of the observations of each experiment.
    shares: Vec<f64>,
}

impl ByState {
    pub(super) fn json<'a, G>(
        &'a self,
        experiments: impl IntoIterator<Item = &'a SplitExperiment>,
        groups: Vec<G>,
    ) -> JsonStates<G> {
        let experiments: Vec<_> = experiments.into_iter().collect();
        let round_trips = self.split.round_trips.iter().enumerate();
        let state = |(state, found): (usize, &RoundTrips)| JsonState {
            within_ns: found.within,
            between_ns: found.between,
            shares: experiments.iter().map(|one| one.share(state)).collect(),
        };
        JsonStates {
            states: round_trips.map(state).collect(),
            changing: experiments.iter().map(|one| one.changing_share()).collect(),
            groups,
        }
    }
}
