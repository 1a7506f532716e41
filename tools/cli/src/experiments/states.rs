//! Results by the state of the machine, for experiments whose launches measured it.

use downbeat_common::output::{percent, probability, round_trips, time, time_within};
use downbeat_common::{Failure, Table, Text};
use downbeat_records::RoundTrips;
use downbeat_records::analysis::{
    Analysis, AnalysisSettings, Average, BlockedGroup, ComparedState, GroupAnalysis,
    Reproducibility, SplitByState, SplitExperiment,
};
use downbeat_records::stats::{BlockedRatio, Confidence, Interval, PValues, Sample, stars};
use serde::Serialize;

use super::compare::document::ComparePValues;
use super::reproducibility::ReproducibilityGroupReport;
use super::{JsonKey, ProbedLaunches, key_cells, or_dash, percentage, plural};

/// Experiments by the states of the machine, which are common to all of them.
pub(crate) struct ByState {
    split: SplitByState,
    /// Analyses of each experiment in each state.
    analyses: Vec<Vec<Option<Analysis>>>,
}

impl ByState {
    /// Splits experiments by the states of the machine; `None` if no launch measured these.
    pub(crate) fn new(
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
    fn round_trip(&self, state: usize) -> String {
        round_trips(self.split.round_trips[state])
    }
}

/// Heading of the tables.
const HEADING: &str =
    "\nBy state of the machine, which is the round trip between neighbouring ranks:\n\n";

/// Note on observations during which the state changed, if there are any.
fn changing(experiments: &[(&str, &SplitExperiment)]) -> String {
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

/// Table of one experiment by states.
pub(super) fn analyzed(found: &ByState, whole: &Analysis) -> Text {
    let mut table = Table::new([
        "operation",
        "bytes",
        "ranks",
        "round trip",
        "share",
        "launches",
        "median",
        "spread",
    ])
    .named_by(3);
    let (split, analyses) = (&found.split.experiments[0], &found.analyses[0]);
    for (state, group) in groups_by_state(analyses) {
        let median = |medians: Sample<'_>| match medians.median_interval(whole.settings.confidence)
        {
            Some(found) => time_within(medians.median(), [found.interval.low, found.interval.high]),
            None => time(medians.median()),
        };
        let [operation, bytes, ranks] = key_cells(&group.key);
        let several = group.launches.len() > 1;
        table.row([
            operation,
            bytes,
            ranks,
            found.round_trip(state),
            or_dash(share(group, whole).map(percent)),
            group.launches.len().to_string(),
            or_dash(group.averages(Average::Median).map(median)),
            or_dash(
                group
                    .spread(Average::Median)
                    .filter(|_| several)
                    .map(percent),
            ),
        ]);
    }
    let mut text = Text::from(HEADING.to_owned());
    text += table;
    text += changing(&[("", split)]);
    text
}

/// Returns the share of the valid observations of a group that were made in the state of `group`.
fn share(group: &GroupAnalysis, whole: &Analysis) -> Option<f64> {
    Some(group.valid() as f64 / whole.group(&group.key)?.valid() as f64)
}

/// Returns the groups of analyses in each state, by keys and then by states.
fn groups_by_state(analyses: &[Option<Analysis>]) -> Vec<(usize, &GroupAnalysis)> {
    let states = analyses.iter().enumerate();
    let groups = states.filter_map(|(state, analysis)| Some((state, analysis.as_ref()?)));
    let groups = groups
        .flat_map(|(state, analysis)| analysis.groups.iter().map(move |group| (state, group)));
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by(|(state, one), (other_state, other)| {
        one.key.cmp(&other.key).then(state.cmp(other_state))
    });
    groups
}

/// Comparison of two experiments within equal states, as `B` with `A`.
pub(crate) struct BlockedComparison {
    states: ByState,
    groups: Vec<BlockedGroup>,
}

impl BlockedComparison {
    /// Compares `second`, the experiment `B`, with `first`; `None` if no launch measured states.
    pub(super) fn new(
        second: ProbedLaunches,
        first: ProbedLaunches,
        average: Average,
        settings: &AnalysisSettings,
    ) -> Result<Option<Self>, Failure> {
        let Some(states) = ByState::new(&[second, first], settings)? else {
            return Ok(None);
        };
        let groups = BlockedGroup::all(&states.split, average, settings).map_err(Failure::run)?;
        Ok(Some(Self { states, groups }))
    }

    /// Tables of the states, and of the comparisons within them.
    pub(super) fn text(
        &self,
        average: Average,
        confidence: f64,
        p: impl Fn(&PValues) -> f64,
    ) -> Text {
        let Self { states, groups } = self;
        let [b, a] = [0, 1].map(|i| &states.split.experiments[i]);
        let mut table = Table::new([
            "operation",
            "bytes",
            "ranks",
            "round trip",
            "share of A",
            "share of B",
            "launches",
            &format!("{} A", average.name()),
            &format!("{} B", average.name()),
        ])
        .named_by(4);
        for group in groups {
            for ComparedState {
                state,
                launches,
                medians,
            } in &group.states
            {
                let [operation, bytes, ranks] = key_cells(&group.key);
                table.row([
                    operation,
                    bytes,
                    ranks,
                    states.round_trip(*state),
                    percent(a.share(*state)),
                    percent(b.share(*state)),
                    format!("{} + {}", launches[1], launches[0]),
                    or_dash(medians[1].map(time)),
                    or_dash(medians[0].map(time)),
                ]);
            }
        }
        let mut text = Text::from(HEADING.to_owned());
        text += table;
        text += "\n";
        let mut blocked = Table::new([
            "operation",
            "bytes",
            "ranks",
            "states",
            "B / A",
            "p",
            "p, Holm",
            "",
        ])
        .named_by(3);
        for group in groups {
            let [operation, bytes, ranks] = key_cells(&group.key);
            let adjusted = group.adjusted.as_ref().map(&p);
            blocked.row([
                operation,
                bytes,
                ranks,
                format!("{} of {}", group.common, group.states.len()),
                or_dash(group.ratio.map(ratio)),
                or_dash(group.p.as_ref().map(|found| probability(p(found)))),
                or_dash(adjusted.map(probability)),
                adjusted.map_or("", stars).to_owned(),
            ]);
        }
        text += blocked;
        for group in groups.iter().filter(|group| group.common == 0) {
            text += format!(
                "Note: {}: A and B were never in the same state, so that they cannot be compared\n",
                group.key
            );
        }
        text += changing(&[(" of A", a), (" of B", b)]);
        text += format!(
            "States: those of both experiments, of all. B / A: ratio of {} within equal states, with its {} interval.\n\
             p: van Elteren's test, which is Wilcoxon's within each state.\n",
            plural(average),
            percentage(confidence)
        );
        text
    }
}

fn ratio(
    BlockedRatio {
        times,
        interval: Interval { low, high },
    }: BlockedRatio,
) -> String {
    format!("{times:.3} [{low:.3}, {high:.3}]")
}

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
        let mut rows: Vec<_> = states
            .flat_map(|(state, groups)| groups.iter().map(move |group| (state, group)))
            .collect();
        rows.sort_by(|(state, one), (other_state, other)| {
            one.key.cmp(&other.key).then(state.cmp(other_state))
        });
        rows
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
            let [operation, bytes, ranks, rest @ ..] = super::reproducibility::row(group, settings);
            let key = [operation, bytes, ranks, self.states.round_trip(state)];
            table.row(key.into_iter().chain(rest).collect::<Vec<_>>());
        }
        let mut text = Text::from(HEADING.to_owned());
        text += table;
        text
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
    fn json<'a, G>(
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

/// A group of one experiment in one state, in JSON.
#[derive(Debug, Serialize)]
pub(super) struct AnalyzedState<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    /// Index of the state.
    state: usize,
    /// Share of the valid observations of the group.
    share: Option<f64>,
    launches: usize,
    median_ns: Option<f64>,
    spread: Option<f64>,
}

/// Returns the states of one experiment for a document.
pub(super) fn analyzed_json<'a>(
    found: &'a ByState,
    whole: &Analysis,
) -> JsonStates<AnalyzedState<'a>> {
    let groups = groups_by_state(&found.analyses[0]).into_iter();
    let groups = groups.map(|(state, group)| AnalyzedState {
        key: (&group.key).into(),
        state,
        share: share(group, whole),
        launches: group.launches.len(),
        median_ns: group
            .averages(Average::Median)
            .map(|medians| medians.median()),
        spread: group.spread(Average::Median),
    });
    found.json(&found.split.experiments, groups.collect())
}

/// A group of two experiments within states, in JSON.
#[derive(Debug, Serialize)]
pub(super) struct JsonBlockedGroup<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    /// Number of states in which both experiments measured the group.
    common: usize,
    /// Run-times of the second experiment as multiples of those of the first in equal states.
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    p: Option<ComparePValues>,
    p_holm: Option<ComparePValues>,
    states: Vec<JsonComparedState>,
}

#[derive(Debug, Serialize)]
struct JsonComparedState {
    /// Index of the state.
    state: usize,
    launches: [usize; 2],
    medians_ns: [Option<f64>; 2],
}

impl BlockedComparison {
    /// Returns the comparison for a document.
    pub(super) fn json(&self) -> JsonStates<JsonBlockedGroup<'_>> {
        let experiments = self.states.split.experiments.iter().rev();
        let groups = self.groups.iter().map(JsonBlockedGroup::from);
        self.states.json(experiments, groups.collect())
    }
}

impl<'a> From<&'a BlockedGroup> for JsonBlockedGroup<'a> {
    fn from(group: &'a BlockedGroup) -> Self {
        let state = |found: &ComparedState| JsonComparedState {
            state: found.state,
            launches: [found.launches[1], found.launches[0]],
            medians_ns: [found.medians[1], found.medians[0]],
        };
        Self {
            key: (&group.key).into(),
            common: group.common,
            ratio: group.ratio.map(|ratio| ratio.times),
            ratio_low: group.ratio.map(|ratio| ratio.interval.low),
            ratio_high: group.ratio.map(|ratio| ratio.interval.high),
            p: group.p.map(ComparePValues::from),
            p_holm: group.adjusted.map(ComparePValues::from),
            states: group.states.iter().map(state).collect(),
        }
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
