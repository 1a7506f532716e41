//! Sample sizes as a page: one picture for each operation and number of ranks.

use downbeat_common::page::Page;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::svg::Picture;
use downbeat_common::units;
use downbeat_records::GroupKey;
use downbeat_records::analysis::ObservationsNeeded;
use downbeat_records::stats::{MeansOfSize, SampleSizeCheck};

use crate::experiments::{ResultTable, pictures_of_operations};

/// A group and what its launches need.
pub(super) type Needed<'a> = (&'a GroupKey, &'a [(&'a str, ObservationsNeeded)]);

pub(super) fn page<'a>(
    check: &SampleSizeCheck,
    found: impl IntoIterator<Item = Needed<'a>>,
    results: &ResultTable,
) -> Page {
    let mut page = Page::default();
    page.section("sizes", "Observations from which on means are normal");
    let groups: Vec<Needed<'a>> = found.into_iter().collect();
    let pictures = pictures_of_operations(
        &groups,
        |(key, _)| key,
        "sizes",
        |title, groups| picture(title, check, groups),
    );
    let pictures: Vec<_> = pictures.collect();
    page.note(match pictures.iter().any(|(_, picture)| picture.is_some()) {
        true => {
            "Each dot is a launch: the number of observations from which on random means of them pass a normality test. A launch without a \
             dot passes at no size that was tested."
        }
        false => "No launch passes at any size that was tested.",
    });
    page.pictures(pictures);
    results.add_to(&mut page, "Launches", "Sample sizes");
    page
}

fn picture(title: String, check: &SampleSizeCheck, groups: &[Needed<'_>]) -> Option<Picture> {
    let most = check.sizes.iter().copied().max()? as f64;
    let rows = groups.iter().map(|(key, launches)| {
        let size = units::bytes(key.bytes);
        let dot = |(name, needed): &(&str, ObservationsNeeded)| {
            let passes = needed.smallest.as_ref().ok()?.as_ref()?;
            let text = format!(
                "{name}, {size}: from {} of {} observations on",
                passes.size(),
                needed.observations
            );
            Some(Dot {
                series: 0,
                value: MeansOfSize::size(passes) as f64,
                text,
            })
        };
        DotRow {
            label: size.clone(),
            dots: launches.iter().filter_map(dot).collect(),
        }
    });
    let rows: Vec<DotRow> = rows.collect();
    let passing: usize = rows.iter().map(|row| row.dots.len()).sum();
    let all: usize = groups.iter().map(|(_, launches)| launches.len()).sum();
    dot_rows::picture(
        title,
        format!("{passing} of {all} launches pass from some size on."),
        Axis::from_zero("observations of a mean", most, 1.0, 6),
        "size of a message",
        &[],
        &rows,
    )
}
