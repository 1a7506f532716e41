//! Conditions of the measurements: factors of the experiments, and facts of their launches.

use downbeat_records::analysis::LaunchAverages;
use downbeat_records::{Factors, ObservationState};

use crate::experiments::{busy_launches, places};
use crate::report::measured::{Experiments, MeasuredExperiment};
use crate::report::over_time;
use downbeat_common::page::Page;
use downbeat_common::records::distinct;
use downbeat_common::{RowMark, Table, units};

pub(super) fn write(page: &mut Page, experiments: &Experiments) {
    page.section("conditions", "Conditions");
    page.text_table("Launched commands", &commands(experiments));
    add_factors(page, experiments);
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
                page.notes(notes.map(|note| format!("{note}.")));
                page.table("Observations of all groups", &launches(measured));
                facts(page, measured);
            },
        );
    }
}

/// Makes the table of the commands that `downbeat run` launched.
fn commands(experiments: &Experiments) -> Table {
    let launched = experiments.all.iter();
    let launched =
        launched.filter_map(|measured| Some((&measured.name, measured.command.as_ref()?)));
    Table::of(launched)
        .column("experiment", |(name, _)| (*name).clone())
        .column("command", |(_, command)| (*command).clone())
        .table()
}

/// Returns the names of factors or facts in the order of their first occurrence: those
/// that are equal everywhere, and the others.
fn equal_and_other<'a>(all: &[&'a Factors]) -> (Vec<&'a str>, Vec<&'a str>) {
    let names = all.iter().flat_map(|factors| factors.iter());
    let is_equal = |name: &&str| {
        let mut pairs = all.windows(2);
        pairs.all(|pair| pair[0].get(name) == pair[1].get(name))
    };
    let names = distinct(names.map(|(name, _)| name));
    names.into_iter().partition(is_equal)
}

/// Returns the value of a factor or fact, or a dash.
fn value(factors: &Factors, name: &str) -> String {
    factors.get(name).unwrap_or("–").to_owned()
}

/// Adds the table of factors; those in which the experiments differ come first.
fn add_factors(page: &mut Page, experiments: &Experiments) {
    let all = experiments.all.iter();
    let all: Vec<&Factors> = all.map(|measured| &measured.analysis.factors).collect();
    let (equal, differing) = equal_and_other(&all);
    let caption = match (all.len() > 1, differing.is_empty()) {
        (false, _) => "Factors",
        (true, true) => "Factors: all are equal",
        (true, false) => "Factors: those marked with \u{2260} differ",
    };
    let differing = differing.into_iter().map(|name| (name, true));
    let equal = equal.into_iter().map(|name| (name, false));
    let mut table = Table::of(differing.chain(equal))
        .column("factor", |(name, is_differing)| match is_differing {
            true => format!("\u{2260} {name}"),
            false => (*name).to_owned(),
        })
        .mark(|(_, is_differing)| is_differing.then_some(RowMark::Highlight));
    for measured in &experiments.all {
        let factors = &measured.analysis.factors;
        table = table.column(&measured.name, |(name, _)| value(factors, name));
    }
    page.text_table(caption, &table.table());
}

fn launches(measured: &MeasuredExperiment) -> Table {
    let rows = (1..)
        .zip(&measured.launches)
        .map(|(number, (name, launch))| {
            let groups = measured.analysis.groups.iter();
            let averages = groups.flat_map(|group| &group.launches);
            let averages = averages.filter(|averages| averages.launch == *name);
            (number, name, launch, averages.collect::<Vec<_>>())
        });
    let sum = |averages: &[&LaunchAverages], number: &dyn Fn(&LaunchAverages) -> u64| {
        units::count(averages.iter().map(|averages| number(averages)).sum())
    };
    let count = |averages: &[_], state| sum(averages, &|averages| averages.count(state));
    Table::of(rows)
        .column("launch", |(_, name, ..)| (*name).clone())
        .column("number", |(number, ..)| number.to_string())
        .column("groups", |(_, _, launch, _)| {
            launch.groups.len().to_string()
        })
        .column("valid", |(.., all)| {
            sum(all, &|averages| averages.valid as u64)
        })
        .column("late", |(.., all)| count(all, ObservationState::Late))
        .column("long", |(.., all)| count(all, ObservationState::Long))
        .column("drifted", |(.., all)| count(all, ObservationState::Drifted))
        .column("outliers", |(.., all)| {
            sum(all, &|averages| averages.outliers as u64)
        })
        .column("complete", |(_, _, launch, _)| {
            if launch.complete { "yes" } else { "no" }.to_owned()
        })
        .table()
}

/// Writes facts that are equal in all launches once, and the others for every launch.
fn facts(page: &mut Page, measured: &MeasuredExperiment) {
    let all = measured.launches.iter();
    let all: Vec<&Factors> = all.map(|(_, launch)| &launch.facts).collect();
    let (equal, other) = equal_and_other(&all);
    let of_all = Table::of(equal)
        .column("fact", |name| (*name).to_owned())
        .column("value", |name| {
            all.first()
                .map_or_else(String::new, |facts| value(facts, name))
        });
    page.text_table("Facts of all launches", &of_all.table());
    if other.is_empty() {
        return;
    }
    let mut of_each = Table::of(&measured.launches).column("launch", |(name, _)| name.clone());
    for fact in other {
        of_each = of_each.column(fact, |(_, launch)| value(&launch.facts, fact));
    }
    page.text_table("Facts of each launch", &of_each.table());
}
