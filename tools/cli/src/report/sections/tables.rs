//! Tables with the averages of every group in every launch.

use downbeat_records::ObservationState;
use downbeat_records::analysis::LaunchAverages;

use crate::report::measured::{Experiments, MeasuredExperiment, MeasuredOperation, observations};
use downbeat_common::page::Page;
use downbeat_common::page::axis::range;
use downbeat_common::{Table, units};

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    page.section("tables", "Tables");
    page.note("Times in nanoseconds. Median and mean are without outliers; minimum and maximum are over all valid observations.");
    for measured in &experiments.all {
        for operation in operations {
            let caption = format!("{}: {}", measured.name, operation.title());
            let table = table(measured, operation);
            page.folded(&caption, |page| page.table(&caption, &table));
        }
    }
}

fn table(measured: &MeasuredExperiment, operation: &MeasuredOperation) -> Table {
    let rows = operation.sizes.iter().flat_map(|bytes| {
        let key = operation.key(*bytes);
        let averages = measured.group(&key).map(|group| &group.launches);
        let rows = averages.into_iter().flatten().map(|averages| {
            let mut launches = measured.launches.iter();
            let launch = launches.find(|(name, _)| *name == averages.launch);
            let nanos = launch.map_or(&[][..], |(_, launch)| observations(launch, &key));
            (*bytes, averages, range(nanos.iter().copied()))
        });
        rows.collect::<Vec<_>>()
    });
    let number =
        |nanos: Option<f64>| nanos.map_or("–".to_owned(), |nanos| units::digits(nanos, 6));
    let count = |averages: &LaunchAverages, state| units::count(averages.count(state));
    Table::of(rows)
        .column("launch", |(_, averages, _)| averages.launch.clone())
        .column("bytes", |(bytes, ..)| units::count(*bytes))
        .column("valid", |(_, averages, _)| {
            units::count(averages.valid as u64)
        })
        .column("late", |(_, averages, _)| {
            count(averages, ObservationState::Late)
        })
        .column("long", |(_, averages, _)| {
            count(averages, ObservationState::Long)
        })
        .column("drifted", |(_, averages, _)| {
            count(averages, ObservationState::Drifted)
        })
        .column("outliers", |(_, averages, _)| {
            units::count(averages.outliers as u64)
        })
        .column("median", |(_, averages, _)| number(averages.median))
        .column("mean", |(_, averages, _)| number(averages.mean))
        .column("minimum", |(.., ends)| number(ends.map(|[least, _]| least)))
        .column("maximum", |(.., ends)| number(ends.map(|[_, most]| most)))
        .column("reported", |(_, averages, _)| number(averages.reported))
        .table()
}
