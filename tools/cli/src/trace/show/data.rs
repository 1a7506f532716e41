//! Data of the script of the page: the same bars and messages as in the picture.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::page::svg::fitting;
use downbeat_trace::CallKind;
use downbeat_trace::view::{ViewBar, ViewRow};
use serde::Serialize;

use super::colours::{class, message_class};
use super::layout::{Layout, PanelPlace};
use super::panel::Panel;

/// Most width of the name of a region.
const NAME: f64 = 400.0;
/// Largest number of a time; longer intervals have coarser units than nanoseconds.
const LARGEST: f64 = 2_147_483_647.0;

/// Data of all panels.
#[derive(Debug, Serialize)]
pub(super) struct TimelineData {
    left: f64,
    width: f64,
    /// Classes of each kind, for the shares of 25, 50, 75 and 100 %.
    classes: Vec<[String; 4]>,
    /// Classes of messages, and of those that are received before they are sent.
    messages: [&'static str; 2],
    panels: Vec<PanelData>,
}

#[derive(Debug, Serialize)]
struct PanelData {
    label: String,
    top: f64,
    row: f64,
    bar: f64,
    /// Baseline of the axis, if there is one.
    axis: Option<f64>,
    /// True if bars are single calls.
    single: bool,
    /// Nanoseconds per unit of time, and units from the left end to the right one.
    unit: f64,
    length: f64,
    /// Units from the left end to the end of the interval.
    end: i64,
    /// Names and kinds of regions.
    regions: Vec<(String, usize)>,
    /// Names and bars of rows. Each bar has the time since the last one, its length, and 4 times its region plus its
    /// share in quarters minus 1.
    rows: Vec<(String, String)>,
    /// Rows and times of messages.
    messages: Vec<[i64; 4]>,
}

impl TimelineData {
    pub(super) fn new(panels: &[Panel], layout: &Layout) -> Self {
        let panel = |(panel, place): (&Panel, &PanelPlace)| PanelData::new(panel, place);
        Self {
            left: layout.left,
            width: layout.width,
            classes: CallKind::ALL
                .iter()
                .map(|kind| [25, 50, 75, 100].map(|percent| class(*kind, percent)))
                .collect(),
            messages: [false, true].map(message_class),
            panels: panels.iter().zip(&layout.places).map(panel).collect(),
        }
    }
}

impl PanelData {
    fn new(panel: &Panel, place: &PanelPlace) -> Self {
        let unit = (place.nanos / LARGEST).max(1.0).ceil();
        let quantum =
            |time: Timestamp<Global>| ((time - place.low).as_nanos() as f64 / unit).round() as i64;
        let rows = panel.viewed.rows.iter();
        let bars_of_all = rows.clone().flat_map(|row| &row.bars);
        let regions: BTreeSet<u32> = bars_of_all.map(|bar| bar.region).collect();
        let regions: Vec<u32> = regions.into_iter().collect();
        let rows = rows.map(|row| {
            let name = panel.walked.name_of(row.first);
            let name = match row.locations {
                1 => name.to_owned(),
                several => format!("{name} and {} others", several - 1),
            };
            let percent = |bar: &ViewBar| panel.percent(row, bar);
            (fitting(&name, NAME), bars(row, quantum, percent, &regions))
        });
        let numbers = panel.row_numbers();
        let row_of = |location| Some(*numbers.get(&location)? as i64);
        let messages = panel.viewed.messages.iter().filter_map(|message| {
            let [from, to] = message.locations.map(row_of);
            let [send, receive] = message.times.map(quantum);
            Some([from?, to?, send, receive])
        });
        let name = |region: &u32| {
            let kind = panel.walked.names.kind(*region);
            let place = CallKind::ALL.iter().position(|known| *known == kind);
            (
                fitting(panel.walked.names.region(*region), NAME),
                place.unwrap_or(0),
            )
        };
        Self {
            label: panel.label.clone(),
            top: place.top,
            row: place.row,
            bar: place.bars(0).1,
            axis: place.has_axis.then(|| place.bottom() + 3.0),
            single: panel.viewed.is_detailed,
            unit,
            length: place.nanos / unit,
            end: quantum(panel.viewed.interval[1]),
            rows: rows.collect(),
            messages: messages.collect(),
            regions: regions.iter().map(name).collect(),
        }
    }
}

fn bars(
    row: &ViewRow,
    quantum: impl Fn(Timestamp<Global>) -> i64,
    percent: impl Fn(&ViewBar) -> u8,
    regions: &[u32],
) -> String {
    let (mut text, mut last) = (String::new(), 0);
    for bar in &row.bars {
        let [begin, end] = bar.times.map(&quantum);
        let share = usize::from(percent(bar) / 25).clamp(1, 4) - 1;
        let look = 4 * regions.partition_point(|region| *region < bar.region) + share;
        // Writing to a string cannot fail.
        let _ = write!(text, "{} {} {look} ", begin - last, end - begin);
        last = end;
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_differences() {
        let bar = |region, times: [i64; 2], percent| ViewBar {
            times: times.map(Timestamp::from_nanos),
            region,
            percent,
        };
        let row = ViewRow {
            bars: vec![
                bar(70, [5, 10], 100),
                bar(71, [10, 10], 25),
                bar(70, [20, 21], 50),
            ],
            ..ViewRow::default()
        };
        let percent = |bar: &ViewBar| bar.percent;
        let text = bars(&row, Timestamp::as_nanos, percent, &[70, 71]);
        assert_eq!(text, "5 5 3 0 0 4 10 1 1");
    }
}
