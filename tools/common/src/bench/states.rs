//! States of the machine during a launch, by the round trips between neighbouring ranks.

use downbeat_records::analysis::MachineStates;
use downbeat_records::stats::Sample;

use super::summary::{GroupSummary, Probed, StateFigures};
use crate::output::{percent, round_trips, time};
use crate::table::Table;
use crate::text::Text;
use crate::units;

/// Recognizes the states of a launch over all its groups, which are in the order in which they were measured.
pub(super) fn recognize(groups: &mut [GroupSummary]) {
    let probes = groups
        .iter()
        .map(|group| group.probed.as_ref().map_or(&[][..], |found| &found.probes));
    let states = MachineStates::recognize(probes);
    for (index, group) in groups.iter_mut().enumerate() {
        let Some(Probed { run_times, .. }) = &group.probed else {
            continue;
        };
        let of_each = states.of_observations(index, run_times.len());
        let all = (0..states.round_trips().len()).map(Some).chain([None]);
        let figures = all.filter_map(|state| {
            let in_state = run_times
                .iter()
                .zip(&of_each)
                .filter(|(_, found)| **found == state);
            let mut in_state: Vec<f64> = in_state.map(|(nanos, _)| *nanos).collect();
            let sample = Sample::new(&mut in_state).ok()?;
            let round_trips = state.map(|state| states.round_trips()[state]);
            Some(StateFigures {
                round_trips,
                within_ns: round_trips.and_then(|found| found.within),
                between_ns: round_trips.and_then(|found| found.between),
                observations: sample.len(),
                share: sample.len() as f64 / run_times.len() as f64,
                median_ns: sample.median(),
            })
        });
        group.states = figures.collect();
    }
}

/// Returns a table of the states of each group, with a heading; nothing without probes.
pub(super) fn table(groups: &[&GroupSummary]) -> Option<Text> {
    let mut table = Table::new([
        "operation",
        "bytes",
        "ranks",
        "round trip",
        "share",
        "valid",
        "median",
    ])
    .named_by(3);
    for group in groups {
        for state in &group.states {
            table.row([
                group.operation.clone(),
                group.bytes.to_string(),
                group.ranks.to_string(),
                state
                    .round_trips
                    .map_or_else(|| "changing".to_owned(), round_trips),
                percent(state.share),
                units::count(state.observations as u64),
                time(state.median_ns),
            ]);
        }
    }
    groups
        .iter()
        .any(|group| !group.states.is_empty())
        .then(|| {
            let mut text = Text::from(
                "\nStates of the machine, by the round trip between neighbouring ranks:\n\n"
                    .to_owned(),
            );
            text += table;
            text
        })
}
