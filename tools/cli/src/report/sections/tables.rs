//! Tables with the averages of every group in every launch.

use downbeat_records::ObservationState;
use downbeat_records::analysis::LaunchAverages;

use crate::report::measured::{Experiments, MeasuredExperiment, MeasuredOperation};
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    page.section("tables", "Tables");
    page.note("Times in nanoseconds. Median and mean are without outliers; minimum and maximum are over all valid observations.");
    for measured in &experiments.all {
        for operation in operations {
            let table = table(measured, operation);
            page.folded(
                &format!("{}: {}", measured.name, operation.title()),
                |page| page.table(&table),
            );
        }
    }
}

fn table(measured: &MeasuredExperiment, operation: &MeasuredOperation) -> HtmlTable {
    let headings = [
        "launch", "bytes", "valid", "late", "long", "drifted", "outliers", "median", "mean",
        "minimum", "maximum", "reported",
    ];
    let mut table = HtmlTable::of_numbers(
        &format!("{}: {}", measured.name, operation.title()),
        headings,
    );
    for bytes in &operation.sizes {
        let key = operation.key(*bytes);
        let Some(group) = measured.group(&key) else {
            continue;
        };
        for averages in &group.launches {
            let mut launches = measured.launches.iter();
            let launch = launches
                .find(|(name, _)| *name == averages.launch)
                .map(|(_, launch)| launch);
            let nanos =
                launch.and_then(|launch| launch.groups.iter().find(|group| group.key == key));
            table.row(row(
                *bytes,
                averages,
                nanos.map_or(&[], |group| &group.nanos),
            ));
        }
    }
    table
}

fn row(bytes: u64, averages: &LaunchAverages, nanos: &[f64]) -> [String; 12] {
    let count = |state: ObservationState| {
        averages
            .counts
            .iter()
            .find(|(known, _)| *known == state)
            .map_or(0, |(_, count)| *count)
    };
    let number =
        |nanos: Option<f64>| nanos.map_or("–".to_owned(), |nanos| units::digits(nanos, 6));
    [
        averages.launch.clone(),
        units::count(bytes),
        units::count(averages.valid as u64),
        units::count(count(ObservationState::Late)),
        units::count(count(ObservationState::Long)),
        units::count(count(ObservationState::Drifted)),
        units::count(averages.outliers as u64),
        number(averages.median),
        number(averages.mean),
        number(nanos.iter().copied().reduce(f64::min)),
        number(nanos.iter().copied().reduce(f64::max)),
        number(averages.reported),
    ]
}
