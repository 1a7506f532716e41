//! First sentences of the page: operations, results, and doubts.

use downbeat_records::ObservationState;
use downbeat_records::analysis::{ExperimentComparison, GroupAnalysis};

use crate::experiments::plural;
use crate::experiments::verdict::verdict;
use crate::report::measured::{Experiments, MeasuredExperiment, MeasuredOperation};
use downbeat_common::page::Page;
use downbeat_common::records::distinct;
use downbeat_common::units::{self, joined};

/// Maximum number of operations or names in a sentence.
const MOST: usize = 4;

pub(super) fn title(experiments: &Experiments) -> String {
    match &experiments.names()[..] {
        [one] => format!("Run-times of {one}"),
        [first, others @ ..] if others.len() < MOST => {
            format!("Run-times of {first} and {}", others.join(", "))
        }
        names => format!(
            "Run-times of {}",
            units::counted(names.len(), "experiment", "experiments")
        ),
    }
}

pub(super) fn write(
    page: &mut Page,
    experiments: &Experiments,
    operations: &[MeasuredOperation],
    compared: &[ExperimentComparison],
) {
    let names = experiments.names();
    for (comparison, name) in compared.iter().zip(names.iter().skip(1)) {
        let verdict = verdict(comparison, [name, &names[0]], experiments.alternative);
        page.paragraph("lead", &format!("{verdict}."));
    }
    page.paragraph("lead", &overview(experiments, operations));
    if compared.is_empty() {
        page.paragraph("lead", &numbers(experiments, operations));
    }
    for doubt in experiments.all.iter().flat_map(doubts) {
        page.paragraph("note", &doubt);
    }
}

/// Summarizes operations, observations and programs.
fn overview(experiments: &Experiments, operations: &[MeasuredOperation]) -> String {
    let names = operations.iter().map(|operation| &*operation.operation);
    let names = match distinct(names) {
        many if many.len() > MOST => units::counted(many.len(), "operation", "operations"),
        few => listed(&few),
    };
    let ranks = || operations.iter().map(|operation| operation.ranks);
    let ranks = match (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0)) {
        (least, most) if least == most => units::counted(most as usize, "rank", "ranks"),
        (least, most) => format!("{least} to {most} ranks"),
    };
    let sizes = || {
        operations
            .iter()
            .flat_map(|operation| operation.sizes.iter().copied())
    };
    let sizes = match (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)) {
        (least, most) if least == most => format!("of {}", units::bytes(most)),
        (least, most) => format!("of {} to {}", units::bytes(least), units::bytes(most)),
    };
    let groups = experiments
        .all
        .iter()
        .flat_map(|measured| &measured.analysis.groups);
    let valid: usize = groups.map(GroupAnalysis::valid).sum();
    format!(
        "{names} between {ranks}, with messages {sizes}: {} in {}{}.",
        units::counted(valid, "valid observation", "valid observations"),
        describe_launches(&experiments.all),
        common_setup(experiments)
    )
}

/// Names the experiments with their numbers of launches; only counts them if there are many.
fn describe_launches(all: &[MeasuredExperiment]) -> String {
    if all.len() > MOST {
        let launches: usize = all.iter().map(|measured| measured.launches.len()).sum();
        return format!(
            "{} launches of {} experiments",
            units::count(launches as u64),
            all.len()
        );
    }
    let describe = |measured: &MeasuredExperiment| {
        let launches = units::counted(measured.launches.len(), "launch", "launches");
        format!("{} ({launches})", measured.name)
    };
    listed(&all.iter().map(describe).collect::<Vec<_>>())
}

/// Names the program, library and scheme, if all experiments have the same.
fn common_setup(experiments: &Experiments) -> String {
    let same = |name: &&str| {
        let all = experiments.all.iter();
        let mut values = all.map(|measured| measured.analysis.factors.get(name));
        let first = values.next().flatten()?;
        let is_same = values.all(|value| value == Some(first));
        is_same.then(|| abbreviated(first))
    };
    let method = same(&"as").map_or_else(|| same(&"scheme"), |suite| Some(format!("as {suite}")));
    let made = ["program", "mpi"].iter().filter_map(same).chain(method);
    match joined(made, ", ") {
        none if none.is_empty() => none,
        made => format!(", by {made}"),
    }
}

/// Shortens a value to its beginning: an MPI library reports its whole configuration.
fn abbreviated(value: &str) -> String {
    let beginning = value
        .split([',', ';', '('])
        .next()
        .unwrap_or_default()
        .trim();
    let short: String = beginning.chars().take(40).collect();
    if short.len() < beginning.len() {
        short + "…"
    } else {
        short
    }
}

/// Lists the run-times of the smallest and largest sizes.
fn numbers(experiments: &Experiments, operations: &[MeasuredOperation]) -> String {
    let measured = &experiments.all[0];
    let at = |operation: &MeasuredOperation, bytes: u64| {
        let median = experiments.median(measured.group(&operation.key(bytes))?)?;
        Some(format!("{} at {}", median.text(), units::bytes(bytes)))
    };
    let describe = |operation: &MeasuredOperation| {
        let ends = operation.some_sizes(2).into_iter();
        let ends = joined(ends.filter_map(|bytes| at(operation, bytes)), ", ");
        (!ends.is_empty()).then(|| format!("{}: {ends}", operation.title()))
    };
    let more = match operations.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more below"),
    };
    format!(
        "Launches' {}, with their intervals: {}{more}.",
        plural(experiments.average),
        joined(operations.iter().take(MOST).filter_map(describe), "; ")
    )
}

/// Lists reasons to doubt the results, and the shares of invalid observations and outliers.
fn doubts(measured: &MeasuredExperiment) -> Vec<String> {
    let analysis = &measured.analysis;
    let mut found = Vec::new();
    if !analysis.incomplete.is_empty() {
        let names = shortened(&analysis.incomplete);
        found.push(format!("{}: incomplete launches: {names}.", measured.name));
    }
    let groups = analysis.groups.iter();
    let missing = groups.filter(|group| !group.missing.is_empty()).count();
    if missing > 0 {
        let groups = units::counted(missing, "group", "groups");
        found.push(format!(
            "{}: {groups} not measured in all launches.",
            measured.name
        ));
    }
    let sum = |number: fn(&GroupAnalysis) -> u64| analysis.groups.iter().map(number).sum::<u64>();
    let valid = sum(|group| group.valid() as u64);
    let invalid = sum(|group| {
        ObservationState::INVALID
            .map(|state| group.count(state))
            .iter()
            .sum()
    });
    let outliers = sum(|group| group.outliers() as u64);
    let share = |part: u64, all: u64| units::share(part as f64 / all.max(1) as f64);
    found.push(format!(
        "{}: {} of all observations invalid ({}), and {} of the valid ones outliers ({}).",
        measured.name,
        share(invalid, valid + invalid),
        units::count(invalid),
        share(outliers, valid),
        units::count(outliers)
    ));
    found
}

fn shortened(names: &[String]) -> String {
    let shown = joined(names.iter().take(MOST), ", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => format!("{} and {}", joined(most, ", "), last.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_and_shortened() {
        assert_eq!(
            [&["a"][..], &["a", "b"], &["a", "b", "c"]].map(listed),
            ["a", "a and b", "a, b and c"]
        );
        assert_eq!(
            abbreviated("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"),
            "Open MPI v4.1.4"
        );
        assert_eq!(abbreviated(&"x".repeat(50)), "x".repeat(40) + "…");
        let names: Vec<String> = (0..6).map(|i| i.to_string()).collect();
        assert_eq!(shortened(&names), "0, 1, 2, 3 and 2 more");
    }
}
