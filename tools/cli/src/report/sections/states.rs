//! States of the machine over time, for launches that measured them.

use downbeat_common::output::round_trips;
use downbeat_common::page::svg::Picture;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;
use downbeat_records::analysis::SplitByState;
use downbeat_records::stats::Sample;
use downbeat_records::{GroupKey, Launch, RoundTrips};

use super::orders::span;
use crate::report::measured::Experiments;
use crate::report::run_order::{self, OrderedValues};

/// Name of one kind of round trips, and their selection.
type RoundTripKind = (&'static str, fn(&RoundTrips) -> Option<f64>);

/// Splits the experiments by the states of the machine, if any launch measured these.
pub(super) fn split(experiments: &Experiments) -> Option<SplitByState> {
    let launches: Vec<_> = experiments
        .all
        .iter()
        .map(|one| one.launches.as_slice())
        .collect();
    SplitByState::new(&launches)
}

pub(super) fn write(page: &mut Page, experiments: &Experiments, states: &SplitByState) {
    page.section("states", "States of the machine");
    page.note(
        "Round trips between neighbouring ranks, of the slowest pair, measured between batches of calls, in the order of all groups of \
         a launch. Their levels are states of the machine, on which run-times depend.",
    );
    let kinds: [RoundTripKind; 2] = [
        ("within nodes", |found| found.within),
        ("between nodes", |found| found.between),
    ];
    for kind in kinds {
        page.pictures(pictures(experiments, kind));
    }
    page.table(&shares(experiments, states));
    for (place, name) in experiments.names().iter().enumerate() {
        let table = medians(name, place, states);
        page.folded(&format!("{name}: medians in each state"), |page| {
            page.table(&table);
        });
    }
}

/// Draws the round trips of one kind in each experiment; returns pictures with the names of their files.
fn pictures(
    experiments: &Experiments,
    (kind, of): RoundTripKind,
) -> Vec<(String, Option<Picture>)> {
    let of_launch = |(_, launch): &(String, Launch)| -> Vec<f64> {
        let probes = launch.groups.iter().flat_map(|group| &group.probes);
        probes.filter_map(|probe| of(&probe.round_trips)).collect()
    };
    let all: Vec<Vec<Vec<f64>>> = experiments
        .all
        .iter()
        .map(|one| one.launches.iter().map(of_launch).collect())
        .collect();
    let all: Vec<Vec<&[f64]>> = all
        .iter()
        .map(|one| one.iter().map(Vec::as_slice).collect())
        .collect();
    let span = span(&all, 0.0);
    let names = experiments.names();
    let picture = |(series, (launches, name)): (usize, (&Vec<&[f64]>, &String))| {
        let title = format!("Round trips {kind}: {name}");
        let file = format!("states-{}-{}", kind.replace(' ', "-"), series + 1);
        let picture = run_order::picture(title, series, OrderedValues::ROUND_TRIPS, launches, span);
        (file, picture)
    };
    all.iter().zip(&names).enumerate().map(picture).collect()
}

/// Shares of the observations of each experiment in each state.
fn shares(experiments: &Experiments, states: &SplitByState) -> HtmlTable {
    let mut table = HtmlTable::of_numbers(
        "Shares of the observations",
        ["experiment", "round trip", "share"],
    );
    for (name, split) in experiments.names().iter().zip(&states.experiments) {
        for (state, found) in states.round_trips.iter().enumerate() {
            let cells = [
                name.clone(),
                round_trips(*found),
                units::share(split.share(state)),
            ];
            table.row(cells);
        }
        if split.changing > 0 {
            table.row([
                name.clone(),
                "changing".to_owned(),
                units::share(split.changing_share()),
            ]);
        }
    }
    table
}

/// Medians of the launches of one experiment in each state.
fn medians(name: &str, place: usize, states: &SplitByState) -> HtmlTable {
    let mut table = HtmlTable::of_numbers(name, ["group", "round trip", "launches", "median"]);
    let of_states = &states.experiments[place].of_states;
    let groups = of_states
        .iter()
        .flatten()
        .flat_map(|(_, launch)| &launch.groups);
    for key in GroupKey::distinct(groups.map(|group| &group.key)) {
        for (launches, found) in of_states.iter().zip(&states.round_trips) {
            let groups = launches.iter().flat_map(|(_, launch)| &launch.groups);
            let medians = groups
                .filter(|group| group.key == *key)
                .filter_map(|group| {
                    let mut nanos = group.nanos.clone();
                    Sample::new(&mut nanos).map(|nanos| nanos.median()).ok()
                });
            let mut medians: Vec<f64> = medians.collect();
            if let Ok(medians) = Sample::new(&mut medians) {
                let launches = units::count(medians.len() as u64);
                let median = units::time(medians.median());
                table.row([units::group(key), round_trips(*found), launches, median]);
            }
        }
    }
    table
}
