//! Results of an experiment by the state of the machine.

use downbeat_common::output::{percent, time, time_within};
use downbeat_common::{Table, Text};
use downbeat_records::analysis::{Analysis, Average, GroupAnalysis};
use downbeat_records::stats::Sample;
use serde::Serialize;

use crate::experiments::states::{ByState, HEADING, JsonStates, changing, sorted};
use crate::experiments::{JsonKey, key_cells, or_dash};

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
    sorted(groups, |group| &group.key)
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
