//! Averages of the launches: each with its interval, and against a normal distribution.

use downbeat_records::analysis::{Average, Outliers};
use downbeat_records::stats::{Interval, Sample};
use downbeat_records::{GroupKey, Launch};

use crate::experiments::{percentage, plural};
use crate::report::averages::{self, ExperimentLaunches};
use crate::report::measured::{
    Experiments, MeasuredExperiment, MeasuredOperation, observations, shown_sizes, without_outliers,
};
use crate::report::normal_plot;
use downbeat_common::page::Page;
use downbeat_common::page::interval::IntervalTime;
use downbeat_common::page::svg::Picture;

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    let averages = plural(experiments.average);
    page.section("launches", "Averages of the launches");
    page.note(&format!(
        "For a few sizes. The line is the median of the launches' {averages}, the band its interval with {} confidence. {}",
        percentage(experiments.settings.confidence.share()),
        bars(experiments.average)
    ));
    let shown = shown_sizes(operations.len());
    for operation in operations {
        page.subsection(&operation.title());
        let sizes = operation.some_sizes(shown);
        page.pictures(
            sizes
                .iter()
                .map(|bytes| launches(experiments, operation, *bytes)),
        );
        let normal: Vec<_> = sizes
            .iter()
            .flat_map(|bytes| normal(experiments, operation, *bytes))
            .filter(|(_, picture)| picture.is_some())
            .collect();
        if !normal.is_empty() {
            page.folded(&format!("Q-Q plots of {}", operation.title()), |page| {
                page.note(&format!(
                    "The launches' {averages} are on the line through their quartiles if they are normal, as intervals of means \
                     and t-tests assume; a small p of the test by Shapiro and Wilk says that they are not. From {} launches on.",
                    normal_plot::FEWEST
                ));
                page.pictures(normal);
            });
        }
    }
}

/// Describes the bars of single launches.
const fn bars(average: Average) -> &'static str {
    match average {
        Average::Median | Average::Mean => {
            "The bar of a launch is the interval by its own observations, as if these were independent: where launches \
             differ by more than their bars, more observations do not replace more launches."
        }
        Average::Reported => "Reported values have no bars.",
    }
}

/// Draws all experiments in one picture; returns it with the name of its file.
fn launches(
    experiments: &Experiments,
    operation: &MeasuredOperation,
    bytes: u64,
) -> (String, Option<Picture>) {
    let key = operation.key(bytes);
    let all: Vec<ExperimentLaunches> = experiments
        .all
        .iter()
        .filter_map(|measured| averaged(experiments, measured, &key))
        .collect();
    let average = experiments.average.name();
    let title = operation.title_of_size(bytes);
    let title = format!("{title}: {average} of each launch");
    (
        operation.file_of_size("averages", bytes),
        averages::picture(title, average, &all),
    )
}

fn averaged(
    experiments: &Experiments,
    measured: &MeasuredExperiment,
    key: &GroupKey,
) -> Option<ExperimentLaunches> {
    let group = measured.group(key)?;
    let launch = |(number, (name, launch)): (usize, &(String, Launch))| {
        let own = group.launches.iter().find(|own| own.launch == *name)?;
        let nanos = observations(launch, key);
        let average = IntervalTime {
            nanos: own.average(experiments.average)?,
            interval: own_interval(experiments, nanos, measured.clock_step()),
        };
        Some((number, average))
    };
    let launches = (1..).zip(&measured.launches);
    Some(ExperimentLaunches {
        name: measured.name.clone(),
        median: experiments.median(group)?,
        launches: launches.filter_map(launch).collect(),
    })
}

/// Computes the interval of the average of one launch by its observations.
fn own_interval(experiments: &Experiments, nanos: &[f64], step: f64) -> Option<Interval> {
    let settings = &experiments.settings;
    let mut kept = match settings.outliers {
        Outliers::Keep => nanos.to_vec(),
        _ => without_outliers(nanos, step),
    };
    let kept = Sample::new(&mut kept).ok()?;
    match experiments.average {
        Average::Median => Some(kept.median_interval(settings.confidence)?.interval),
        Average::Mean => kept.mean_interval(settings.confidence),
        Average::Reported => None,
    }
}

/// Draws the Q-Q plot of each experiment; returns them with the names of their files.
fn normal(
    experiments: &Experiments,
    operation: &MeasuredOperation,
    bytes: u64,
) -> Vec<(String, Option<Picture>)> {
    let key = operation.key(bytes);
    let label = format!("{} run-time", experiments.average.name());
    let picture = |(series, measured): (usize, &MeasuredExperiment)| {
        let suffix = experiments.suffix(&measured.name);
        let title = operation.title_of_size(bytes) + &suffix;
        let name = operation.file_of_size("normal", bytes);
        let name = format!("{name}-{}", series + 1);
        let averages = measured
            .group(&key)
            .and_then(|group| group.averages(experiments.average));
        let picture =
            averages.and_then(|averages| normal_plot::picture(title, &label, series, &averages));
        (name, picture)
    };
    experiments.all.iter().enumerate().map(picture).collect()
}
