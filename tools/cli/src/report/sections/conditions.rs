//! Conditions of the measurements: factors of the experiments, and facts of their launches.

use downbeat_records::ObservationState;

use crate::experiments::{busy_launches, places};
use crate::report::measured::{Experiments, MeasuredExperiment};
use crate::report::over_time;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;

pub(super) fn write(page: &mut Page, experiments: &Experiments) {
    page.section("conditions", "Conditions");
    page.table(&commands(experiments));
    page.table(&factors(experiments));
    page.pictures(over_time::pictures(experiments));
    for measured in &experiments.all {
        let count = units::counted(measured.launches.len(), "launch", "launches");
        page.folded(
            &format!(
                "{}: {count} in {}",
                measured.name,
                measured.folder.display()
            ),
            |page| {
                let notes = places(&measured.analysis).chain(busy_launches(&measured.analysis));
                notes.for_each(|note| page.note(&format!("{note}.")));
                page.table(&launches(measured));
                facts(page, measured);
            },
        );
    }
}

/// Makes the table of the commands that `downbeat run` launched.
fn commands(experiments: &Experiments) -> HtmlTable {
    let mut table = HtmlTable::of_text("Launched commands", ["experiment", "command"]);
    for MeasuredExperiment { name, command, .. } in &experiments.all {
        if let Some(command) = command {
            table.row([name, command]);
        }
    }
    table
}

/// Returns the distinct names of factors or facts, in the order of their first occurrence.
fn distinct_names<'a>(all: impl Iterator<Item = &'a downbeat_records::Factors>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in all.flat_map(downbeat_records::Factors::iter) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Makes the table of factors; those in which the experiments differ come first.
fn factors(experiments: &Experiments) -> HtmlTable {
    let all: Vec<_> = experiments
        .all
        .iter()
        .map(|measured| &measured.analysis.factors)
        .collect();
    let values = |name: &str| -> Vec<&str> {
        all.iter()
            .map(|factors| factors.get(name).unwrap_or("–"))
            .collect()
    };
    let (equal, differing): (Vec<&str>, Vec<&str>) = distinct_names(all.iter().copied())
        .into_iter()
        .partition(|name| {
            all.windows(2)
                .all(|pair| pair[0].get(name) == pair[1].get(name))
        });
    let several = all.len() > 1;
    let headings = ["factor"].into_iter().chain(
        experiments
            .all
            .iter()
            .map(|measured| measured.name.as_str()),
    );
    let caption = match (several, differing.is_empty()) {
        (false, _) => "Factors",
        (true, true) => "Factors: all are equal",
        (true, false) => "Factors: those marked with \u{2260} differ",
    };
    let mut table = HtmlTable::of_text(caption, headings);
    for name in differing {
        let marked = format!("\u{2260} {name}");
        table.marked_row([marked.as_str()].into_iter().chain(values(name)));
    }
    for name in equal {
        table.row([name].into_iter().chain(values(name)));
    }
    table
}

fn launches(measured: &MeasuredExperiment) -> HtmlTable {
    let headings = [
        "launch", "number", "groups", "valid", "late", "long", "drifted", "outliers", "complete",
    ];
    let mut table = HtmlTable::of_numbers("Observations of all groups", headings);
    for (i, (name, launch)) in measured.launches.iter().enumerate() {
        let groups = || {
            measured.analysis.groups.iter().flat_map(|group| {
                group
                    .launches
                    .iter()
                    .filter(|averages| averages.launch == *name)
            })
        };
        let count = |state: ObservationState| {
            let counts = groups()
                .flat_map(|averages| &averages.counts)
                .filter(|(known, _)| *known == state);
            units::count(counts.map(|(_, count)| count).sum())
        };
        table.row([
            name.clone(),
            (i + 1).to_string(),
            launch.groups.len().to_string(),
            units::count(groups().map(|averages| averages.valid as u64).sum()),
            count(ObservationState::Late),
            count(ObservationState::Long),
            count(ObservationState::Drifted),
            units::count(groups().map(|averages| averages.outliers as u64).sum()),
            if launch.complete { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// Writes facts that are equal in all launches once, and the others for every launch.
fn facts(page: &mut Page, measured: &MeasuredExperiment) {
    let all: Vec<_> = measured
        .launches
        .iter()
        .map(|(_, launch)| &launch.facts)
        .collect();
    let (same, other): (Vec<&str>, Vec<&str>) = distinct_names(all.iter().copied())
        .into_iter()
        .partition(|name| {
            all.windows(2)
                .all(|pair| pair[0].get(name) == pair[1].get(name))
        });
    let mut table = HtmlTable::of_text("Facts of all launches", ["fact", "value"]);
    for name in same {
        table.row([
            name,
            all.first().and_then(|facts| facts.get(name)).unwrap_or("–"),
        ]);
    }
    page.table(&table);
    if other.is_empty() {
        return;
    }
    let mut table = HtmlTable::of_text(
        "Facts of each launch",
        ["launch"].into_iter().chain(other.iter().copied()),
    );
    for (name, launch) in &measured.launches {
        let values = other
            .iter()
            .map(|fact| launch.facts.get(fact).unwrap_or("–"));
        table.row([name.as_str()].into_iter().chain(values));
    }
    page.table(&table);
}
