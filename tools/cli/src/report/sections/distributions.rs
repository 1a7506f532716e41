//! Distributions of the observations of a group: in each launch, and in all launches together.

use downbeat_records::GroupKey;
use downbeat_records::stats::Sample;

use crate::report::histogram::{self, PooledSample};
use crate::report::launch_places::LaunchPlace;
use crate::report::measured::{
    Experiments, MeasuredExperiment, MeasuredOperation, shown_sizes, without_outliers,
};
use crate::report::smooth;
use crate::report::violin::{self, Violin};
use downbeat_common::page::Page;
use downbeat_common::page::svg::Picture;

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    page.section("distributions", "Distributions");
    page.note(
        "For a few sizes. The width of a violin is the density of the observations of a launch; its box extends from the \
         lower to the upper quartile, with the median inside. Densities use normal kernels of Silverman's bandwidth, \
         histograms use bins by Freedman and Diaconis; both are wider if the clock counts in steps.",
    );
    let shown = shown_sizes(operations.len());
    for operation in operations {
        page.subsection(&operation.title());
        let pictures: Vec<_> = operation
            .some_sizes(shown)
            .into_iter()
            .map(|bytes| pictures(experiments, operation, bytes))
            .collect();
        let (violins, histograms): (Vec<_>, Vec<_>) = pictures.into_iter().unzip();
        page.pictures(violins);
        page.folded(&format!("Histograms of {}", operation.title()), |page| {
            page.pictures(histograms);
        });
    }
}

/// A picture with the name of its file.
type NamedPicture = (String, Option<Picture>);

fn pictures(
    experiments: &Experiments,
    operation: &MeasuredOperation,
    bytes: u64,
) -> (NamedPicture, NamedPicture) {
    let key = operation.key(bytes);
    let title = operation.title_of_size(bytes);
    let kept = all_without_outliers(experiments, &key);
    let violins = violins(experiments, &title, &key, &kept);

    // All launches together, each without its outliers.
    let steps = kept.iter().map(|launches| {
        let samples = launches.iter().filter_map(|nanos| Sample::of_sorted(nanos));
        smooth::step_bandwidth(samples)
    });
    let mut pooled: Vec<Vec<f64>> = kept.iter().map(|launches| launches.concat()).collect();
    let samples = pooled.iter_mut().zip(steps).enumerate();
    let samples = samples.filter_map(|(series, (nanos, steps))| {
        let kept = Sample::new(nanos).ok()?;
        Some(PooledSample {
            series,
            kept,
            steps,
        })
    });
    let samples: Vec<_> = samples.collect();
    let histogram = histogram::picture(
        format!("{title}: all launches"),
        &experiments.names(),
        &samples,
    );
    let name = |plot| operation.file_of_size(plot, bytes);
    ((name("launches"), violins), (name("histogram"), histogram))
}

/// For each experiment and each of its launches, the observations without outliers, sorted.
fn all_without_outliers(experiments: &Experiments, key: &GroupKey) -> Vec<Vec<Vec<f64>>> {
    let filter = |measured: &MeasuredExperiment| {
        let step = measured.clock_step();
        let launches = measured.observations(key).into_iter();
        launches
            .map(|nanos| without_outliers(nanos, step))
            .collect()
    };
    experiments.all.iter().map(filter).collect()
}

fn violins(
    experiments: &Experiments,
    title: &str,
    key: &GroupKey,
    kept: &[Vec<Vec<f64>>],
) -> Option<Picture> {
    // A sample needs mutable values, since it sorts them.
    let mut violins = Vec::new();
    for (series, launches) in kept.iter().enumerate() {
        for (launch, nanos) in (1..).zip(launches) {
            let of = LaunchPlace { series, launch };
            let kept = Sample::of_sorted(nanos);
            violins.extend(kept.map(|kept| Violin { of, kept }));
        }
    }
    let all = experiments.all.iter();
    let all = all.flat_map(|measured| measured.observations(key));
    let all: usize = all.map(<[f64]>::len).sum();
    let drawn: usize = violins.iter().map(|violin| violin.kept.len()).sum();
    violin::picture(
        format!("{title}: each launch"),
        &experiments.names(),
        &violins,
        all - drawn,
    )
}
