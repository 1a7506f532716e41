//! How the observations of a group are distributed: in each launch, and in all of them together.

use downbeat_records::GroupKey;
use downbeat_records::stats::Sample;

use crate::report::histogram::{self, PooledSample};
use crate::report::measured::{Experiments, MeasuredOperation, kept, shown_sizes};
use crate::report::smooth;
use crate::report::violin::{self, Violin};
use downbeat_common::page::Page;
use downbeat_common::page::svg::Picture;
use downbeat_common::page::units;

pub(super) fn write(page: &mut Page, experiments: &Experiments, kinds: &[MeasuredOperation]) {
    page.section("distributions", "Distributions");
    page.note(
        "Of a few sizes. A violin is as wide as the observations of a launch are dense; its box reaches from the lower to \
         the upper quartile, with the median in it. Densities have normal kernels of Silverman's bandwidth, histograms \
         bins by Freedman and Diaconis, both of them wider where a clock counts in steps.",
    );
    let shown = shown_sizes(kinds.len());
    for kind in kinds {
        page.subsection(&kind.title());
        let pictures: Vec<_> = kind
            .some_sizes(shown)
            .into_iter()
            .map(|bytes| of_size(experiments, kind, bytes))
            .collect();
        let (violins, histograms): (Vec<_>, Vec<_>) = pictures.into_iter().unzip();
        page.pictures(violins);
        page.folded(&format!("Histograms of {}", kind.title()), |page| {
            page.pictures(histograms)
        });
    }
}

/// A picture and from what the name of its file is made.
type NamedPicture = (String, Option<Picture>);

fn of_size(
    experiments: &Experiments,
    kind: &MeasuredOperation,
    bytes: u64,
) -> (NamedPicture, NamedPicture) {
    let key = kind.key(bytes);
    let title = format!("{}, {}", kind.title(), units::bytes(bytes));
    let kept = all_kept(experiments, &key);
    let violins = violins(experiments, &title, &key, &kept);

    // All launches together, each without what are outliers in it.
    let steps: Vec<f64> = kept.iter().map(|launches| steps(launches)).collect();
    let mut together: Vec<Vec<f64>> = kept.into_iter().map(|launches| launches.concat()).collect();
    let samples = together.iter_mut().map(|nanos| Sample::new(nanos).ok());
    let samples: Vec<_> = samples
        .zip(steps)
        .map(|(kept, steps)| Some(PooledSample { kept: kept?, steps }))
        .collect();
    let histogram = histogram::picture(
        format!("{title}: all launches"),
        &experiments.names(),
        &samples,
    );
    let name = |what: &str| format!("{what}-{}-{}-{bytes}", kind.operation, kind.ranks);
    ((name("launches"), violins), (name("histogram"), histogram))
}

fn steps(launches: &[Vec<f64>]) -> f64 {
    let mut launches = launches.to_vec();
    smooth::steps(
        launches
            .iter_mut()
            .filter_map(|nanos| Sample::new(nanos).ok()),
    )
}

/// For each experiment and each of its launches, the observations without outliers, sorted.
fn all_kept(experiments: &Experiments, key: &GroupKey) -> Vec<Vec<Vec<f64>>> {
    let of_launches = |launches: Vec<&[f64]>| launches.into_iter().map(kept).collect();
    experiments
        .all
        .iter()
        .map(|measured| of_launches(measured.observations(key)))
        .collect()
}

fn violins(
    experiments: &Experiments,
    title: &str,
    key: &GroupKey,
    kept: &[Vec<Vec<f64>>],
) -> Option<Picture> {
    // A sample sorts what it is made of, though these are sorted.
    let mut kept: Vec<Vec<Vec<f64>>> = kept.to_vec();
    let mut violins = Vec::new();
    for (series, launches) in kept.iter_mut().enumerate() {
        for (i, nanos) in launches.iter_mut().enumerate() {
            violins.extend(Sample::new(nanos).ok().map(|kept| Violin {
                series,
                launch: i + 1,
                kept,
            }));
        }
    }
    let all: usize = experiments
        .all
        .iter()
        .flat_map(|measured| measured.observations(key))
        .map(<[f64]>::len)
        .sum();
    let outliers = all
        - violins
            .iter()
            .map(|violin| violin.kept.len())
            .sum::<usize>();
    violin::picture(
        format!("{title}: each launch"),
        &experiments.names(),
        &violins,
        outliers,
    )
}
