//! Sample sizes as a page: one picture for each operation and number of ranks.

use downbeat_common::page::axis::Axis;
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::svg::Picture;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::{Table, units};
use downbeat_records::GroupKey;
use downbeat_records::analysis::ObservationsNeeded;
use downbeat_records::stats::{MeansOfSize, SampleSizeCheck};

/// A group and what its launches need.
pub(super) type Needed<'a> = (&'a GroupKey, &'a [(&'a str, ObservationsNeeded)]);

pub(super) fn page<'a>(
    check: &SampleSizeCheck,
    found: impl IntoIterator<Item = Needed<'a>>,
    table: &Table,
    notes: &[String],
    explanation: &str,
) -> Page {
    let mut page = Page::default();
    page.section("sizes", "Observations from which on means are normal");
    page.note(
        "Each dot is a launch: the number of observations from which on random means of them pass a normality test. A launch without a \
         dot passes at no size that was tested.",
    );
    let groups: Vec<Needed<'a>> = found.into_iter().collect();
    let of_one = |(key, _): &Needed<'_>| (key.operation.clone(), key.ranks);
    page.pictures(
        groups
            .chunk_by(|one, two| of_one(one) == of_one(two))
            .map(|groups| {
                let (operation, ranks) = of_one(&groups[0]);
                let ranks_text = units::counted(ranks as usize, "rank", "ranks");
                (
                    format!("sizes-{operation}-{ranks}"),
                    picture(format!("{operation}, {ranks_text}"), check, groups),
                )
            }),
    );
    for note in notes {
        page.note(&format!("Note: {note}."));
    }
    page.section("table", "Launches");
    page.table(&HtmlTable::of_table("Sample sizes", table));
    for line in explanation.lines() {
        page.note(line);
    }
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
