//! The raw tables: what every launch says about every group.

use downbeat_records::ObservationState;
use downbeat_records::analysis::LaunchAverages;

use crate::report::measured::{Experiments, MeasuredExperiment, MeasuredOperation};
use downbeat_common::page::units;
use downbeat_common::page::{HtmlTable, Page};

pub(super) fn write(page: &mut Page, experiments: &Experiments, kinds: &[MeasuredOperation]) {
    page.section("tables", "Tables");
    page.note("Times in nanoseconds. Median and mean are without outliers, minimum and maximum are of all valid observations.");
    for measured in &experiments.all {
        for kind in kinds {
            let table = table(measured, kind);
            page.folded(&format!("{}: {}", measured.name, kind.title()), |page| {
                page.table(&table)
            });
        }
    }
}

fn table(measured: &MeasuredExperiment, kind: &MeasuredOperation) -> HtmlTable {
    let headings = [
        "launch", "bytes", "valid", "late", "long", "outliers", "median", "mean", "minimum",
        "maximum", "reported",
    ];
    let mut table =
        HtmlTable::of_numbers(&format!("{}: {}", measured.name, kind.title()), headings);
    for bytes in &kind.sizes {
        let key = kind.key(*bytes);
        let Some(group) = measured.group(&key) else {
            continue;
        };
        for of in &group.launches {
            let place = measured
                .launches
                .iter()
                .position(|(name, _)| *name == of.launch);
            let launch = place
                .and_then(|place| measured.launches.get(place))
                .map(|(_, launch)| launch);
            let nanos =
                launch.and_then(|launch| launch.groups.iter().find(|group| group.key == key));
            table.row(row(*bytes, of, nanos.map_or(&[], |group| &group.nanos)));
        }
    }
    table
}

fn row(bytes: u64, of: &LaunchAverages, nanos: &[f64]) -> [String; 11] {
    let count = |state: ObservationState| {
        of.counts
            .iter()
            .find(|(known, _)| *known == state)
            .map_or(0, |(_, count)| *count)
    };
    let number =
        |nanos: Option<f64>| nanos.map_or("–".to_owned(), |nanos| units::digits(nanos, 6));
    [
        of.launch.clone(),
        bytes.to_string(),
        units::count(of.valid as u64),
        units::count(count(ObservationState::Late)),
        units::count(count(ObservationState::Long)),
        units::count(of.outliers as u64),
        number(of.median),
        number(of.mean),
        number(nanos.iter().copied().reduce(f64::min)),
        number(nanos.iter().copied().reduce(f64::max)),
        number(of.reported),
    ]
}
