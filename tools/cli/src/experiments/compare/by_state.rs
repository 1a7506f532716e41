//! Comparison of two experiments within equal states of the machine.

use downbeat_common::output::{percent, probability, time};
use downbeat_common::{Failure, Table, Text};
use downbeat_records::analysis::{AnalysisSettings, Average, BlockedGroup, ComparedState};
use downbeat_records::stats::{BlockedRatio, Interval, PValues, stars};
use serde::Serialize;

use crate::experiments::states::{ByState, HEADING, JsonStates, NO_VALUES, changing};
use crate::experiments::{
    JsonKey, JsonPValues, ProbedLaunches, key_cells, or_dash, percentage, plural,
};

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
        let both = [0, 1].map(|i| states.analyses[i].as_slice());
        let groups = BlockedGroup::all(both, average, settings.confidence);
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
        if groups.iter().all(|group| group.states.is_empty()) {
            text += NO_VALUES;
            return text;
        }
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
    p: Option<JsonPValues>,
    p_holm: Option<JsonPValues>,
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
            p: group.p.map(JsonPValues::from),
            p_holm: group.adjusted.map(JsonPValues::from),
            states: group.states.iter().map(state).collect(),
        }
    }
}
