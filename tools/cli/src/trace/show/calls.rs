//! Selected call of all locations, by each clock.

use downbeat_common::page::HtmlTable;
use downbeat_common::units::time;

use super::panel::Panel;

/// Returns a table of the selected call; without rows if no call was selected.
pub(super) fn table(panels: &[Panel]) -> HtmlTable {
    let mut table = HtmlTable::of_numbers(
        "The selected call, by each clock",
        [
            "clock",
            "locations",
            "first to last enter",
            "first enter to last leave",
            "shortest",
            "median",
            "longest",
        ],
    );
    for Panel { label, viewed, .. } in panels {
        let calls: Vec<_> = viewed.calls.iter().copied().flatten().collect();
        let enters = || calls.iter().map(|[enter, _]| *enter);
        let leaves = calls.iter().map(|[_, leave]| *leave).max();
        let (Some(first), Some(last), Some(end)) = (enters().min(), enters().max(), leaves) else {
            continue;
        };
        let mut lengths: Vec<i64> = calls
            .iter()
            .map(|[enter, leave]| (*leave - *enter).as_nanos())
            .collect();
        lengths.sort_unstable();
        let nanos = |nanos: i64| time(nanos as f64);
        table.row([
            label.clone(),
            calls.len().to_string(),
            nanos((last - first).as_nanos()),
            nanos((end - first).as_nanos()),
            nanos(lengths.first().copied().unwrap_or(0)),
            nanos(lengths[lengths.len() / 2]),
            nanos(lengths.last().copied().unwrap_or(0)),
        ]);
    }
    table
}
