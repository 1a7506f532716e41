//! Selected call of all locations, by each clock.

use downbeat_clock_core::Duration;
use downbeat_common::Table;
use downbeat_common::units::time;

use super::panel::Panel;

/// Returns a table of the selected call; without rows if no call was selected.
pub(super) fn table(panels: &[Panel]) -> Table {
    let mut table = Table::of(panels.iter().filter_map(call_times))
        .column("clock", |(label, _)| (*label).to_owned())
        .column("locations", |(_, (locations, _))| locations.to_string());
    for (number, heading) in [
        "first to last enter",
        "first enter to last leave",
        "shortest",
        "median",
        "longest",
    ]
    .into_iter()
    .enumerate()
    {
        table = table.column(heading, |(_, (_, times))| {
            time(times[number].as_nanos() as f64)
        });
    }
    table.table()
}

/// Returns the label of a panel, the number of its locations that have the call, and the
/// times of these calls.
fn call_times(panel: &Panel) -> Option<(&str, (usize, [Duration; 5]))> {
    let calls: Vec<_> = panel.viewed.calls.iter().copied().flatten().collect();
    let enters = || calls.iter().map(|[enter, _]| *enter);
    let (first, last) = (enters().min()?, enters().max()?);
    let end = calls.iter().map(|[_, leave]| *leave).max()?;
    let mut lengths: Vec<Duration> = calls.iter().map(|[enter, leave]| *leave - *enter).collect();
    lengths.sort_unstable();
    let [shortest, median, longest] = [0, lengths.len() / 2, lengths.len() - 1].map(|i| lengths[i]);
    let times = [last - first, end - first, shortest, median, longest];
    Some((&panel.label, (calls.len(), times)))
}
