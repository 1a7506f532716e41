//! View of a trace, ready to be drawn.

use downbeat_clock_core::{Global, Timestamp};

use super::bins::{Bar, BinContent, LocationBins, add};

/// Limits on what a view contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewLimits {
    /// Number of bars.
    pub bars: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of messages.
    pub messages: usize,
}

/// View of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewContent {
    /// Begin and end of what is shown.
    pub interval: [Timestamp<Global>; 2],
    /// Times of the first and the last event of the whole trace.
    pub span: [Timestamp<Global>; 2],
    /// True if bars are single calls, false if they are shares of bins.
    pub is_detailed: bool,
    /// Rows of locations.
    pub rows: Vec<ViewRow>,
    /// Messages that begin or end in the interval; none if there are too many.
    pub messages: Vec<ViewMessage>,
    /// Number of messages that were left out.
    pub left_out: u64,
    /// Begin and end of the selected call of each location.
    pub calls: Vec<Option<[Timestamp<Global>; 2]>>,
    /// Indices of the first and last event of each location in a selected interval.
    pub events: Vec<Option<[u64; 2]>>,
}

/// Row of one location, or of several neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewRow {
    /// First location.
    pub first: u32,
    /// Number of locations.
    pub locations: u32,
    /// Bars in the order of time; they do not overlap.
    pub bars: Vec<ViewBar>,
    /// Begin and end of what is known, if more happened.
    pub known: Option<[Timestamp<Global>; 2]>,
}

/// Call of a region, or share of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewBar {
    /// Begin and end.
    pub times: [Timestamp<Global>; 2],
    /// Number of the region; in a bin, that which takes most time.
    pub region: u32,
    /// Share of the time that the region takes, in percent: 25, 50, 75 or 100, rounded up.
    pub percent: u8,
}

/// Message between two locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewMessage {
    /// Sender and receiver.
    pub locations: [u32; 2],
    /// Times of the send and the receive.
    pub times: [Timestamp<Global>; 2],
}

/// Most bins in a row.
const COLUMNS: usize = 1_024;
/// Fewest bins in a row.
const FEWEST_COLUMNS: usize = 64;
/// Number of rows at which locations share rows.
const SHARED_ROWS: usize = 128;

/// Returns a row for each location: single bars in the interval. With too many locations, only each n-th one has a row.
pub(super) fn single(bars: Vec<Vec<Bar>>, [low, high]: [i64; 2], rows: usize) -> Vec<ViewRow> {
    let every = bars.len().div_ceil(rows.max(1)).max(1);
    let shown = |bar: Bar| {
        let is_visible = bar.times[0] <= high && bar.times[1] >= low;
        let times = bar.times.map(|time| time.clamp(low, high));
        is_visible.then(|| ViewBar {
            times: times.map(Timestamp::from_nanos),
            region: bar.region,
            percent: 100,
        })
    };
    let row = |(first, bars): (u32, Vec<Bar>)| ViewRow {
        first,
        locations: 1,
        bars: bars.into_iter().filter_map(shown).collect(),
        known: None,
    };
    (0..).zip(bars).step_by(every).map(row).collect()
}

/// Returns rows of bins for all locations, which share rows if there are many.
pub(super) fn binned(
    mut locations: Vec<LocationBins>,
    interval: [i64; 2],
    limits: &ViewLimits,
) -> Vec<ViewRow> {
    let most_rows = limits.rows.clamp(1, SHARED_ROWS);
    let shared = locations.len().div_ceil(most_rows).max(1);
    let rows = locations.len().div_ceil(shared).max(1);
    let columns = (limits.bars / rows).clamp(FEWEST_COLUMNS, COLUMNS) as i64;
    let bins = |shift: u32| (interval[1] >> shift).saturating_sub(interval[0] >> shift);
    let known = locations.iter().map(LocationBins::shift).max().unwrap_or(0);
    let shift = (known..63)
        .find(|shift| bins(*shift) < columns)
        .unwrap_or(62);
    for bins in &mut locations {
        bins.coarsen_to(shift);
    }
    let groups = (0..).step_by(shared).zip(locations.chunks(shared));
    groups
        .map(|(first, group)| row(first, group, shift, interval))
        .collect()
}

fn row(first: u32, group: &[LocationBins], shift: u32, interval: [i64; 2]) -> ViewRow {
    let [low, high] = interval.map(|time| time >> shift);
    let mut sums: Vec<BinContent> = vec![vec![]; (high.saturating_sub(low) + 1).max(0) as usize];
    for (bin, content) in group.iter().flat_map(LocationBins::all) {
        if let Some(sum) = sums.get_mut(bin.saturating_sub(low).max(-1) as usize) {
            content
                .iter()
                .for_each(|(region, time)| add(sum, *region, *time));
        }
    }
    let whole = u128::from(1_u64 << shift) * group.len() as u128;
    let mut bars: Vec<ViewBar> = vec![];
    for (bin, sum) in (low..).zip(&sums) {
        let Some((region, time)) = sum.iter().max_by_key(|(_, time)| *time) else {
            continue;
        };
        let edges = [bin << shift, (bin + 1) << shift];
        let times = edges.map(|edge| Timestamp::from_nanos(edge.clamp(interval[0], interval[1])));
        let quarters = (4 * u128::from(*time)).div_ceil(whole);
        let percent = quarters.clamp(1, 4) as u8 * 25;
        match bars.last_mut() {
            Some(last)
                if last.times[1] == times[0]
                    && (last.region, last.percent) == (*region, percent) =>
            {
                last.times[1] = times[1];
            }
            _ => bars.push(ViewBar {
                times,
                region: *region,
                percent,
            }),
        }
    }
    ViewRow {
        first,
        locations: group.len() as u32,
        bars,
        known: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ViewLimits = ViewLimits {
        bars: 10_000,
        rows: 1_000,
        messages: 100,
    };

    fn bar(region: u32, times: [i64; 2]) -> Bar {
        Bar { region, times }
    }

    fn seen(row: &ViewRow) -> Vec<(u32, [i64; 2], u8)> {
        let bars = row.bars.iter();
        bars.map(|bar| (bar.region, bar.times.map(Timestamp::as_nanos), bar.percent))
            .collect()
    }

    #[test]
    fn single_bars_end_at_the_interval() {
        let all = vec![vec![bar(0, [0, 10]), bar(1, [20, 40]), bar(0, [50, 60])]; 3];
        let rows = single(all, [25, 50], 2);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].first, 2);
        assert_eq!(seen(&rows[0]), [(1, [25, 40], 100), (0, [50, 50], 100)]);
    }

    #[test]
    fn a_bin_shows_the_region_that_takes_most_time() {
        let mut bins = LocationBins::default();
        for begin in (0..4_096).step_by(16) {
            bins.add(bar(7, [begin, begin + 4]), 1 << 13);
            bins.add(bar(8, [begin + 4, begin + 10]), 1 << 13);
        }
        let limits = ViewLimits { bars: 64, ..LIMITS };
        let rows = binned(vec![bins], [0, 4_096], &limits);
        assert_eq!(seen(&rows[0]), [(8, [0, 4_096], 50)]);
    }

    #[test]
    fn many_locations_share_rows() {
        let one = |region| {
            let mut bins = LocationBins::default();
            bins.add(bar(region, [0, 1_000]), 1 << 10);
            bins
        };
        let locations = (0..1_000).map(|location| one(location % 8 / 7)).collect();
        let rows = binned(locations, [0, 1_000], &LIMITS);
        assert_eq!(rows.len(), 125);
        assert_eq!((rows[1].first, rows[1].locations), (8, 8));
        assert_eq!(seen(&rows[0])[0].0, 0);
    }
}
