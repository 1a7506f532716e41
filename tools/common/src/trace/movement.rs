//! Which locations a correction moves when, and how far, in as much memory as a picture of it takes.

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::postmortem::{Location, Trace};
use serde::Serialize;

use super::tables::short_name;

/// In so many slices time is cut at most.
const MOST_SLICES: u64 = 96;
/// Of more locations than these, neighbours are one row.
const MOST_ROWS: usize = 64;
/// So many locations are named at most.
const MOST_NAMED: usize = 10;

/// Which locations are moved when, and how far.
#[derive(Debug, Serialize)]
pub struct Movement {
    /// The time that a trace takes, in slices.
    #[serde(skip)]
    pub slices: Slices,
    /// How many locations a row has.
    #[serde(skip)]
    pub shared: usize,
    /// Rows of slices: of all events of such locations in such a time, by how many nanoseconds the one is moved that is moved
    /// the farthest, forward or back; nothing where there is no event.
    #[serde(skip)]
    pub cells: Vec<Option<i64>>,
    /// The locations that are moved the farthest, in that order.
    pub farthest: Vec<LocationReport>,
}

/// How far the events of a location are moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocationReport {
    /// Its number.
    pub location: usize,
    /// What it is called, in short.
    pub name: String,
    /// How many it has.
    pub events: u64,
    /// Those that are moved.
    pub moved: u64,
    /// How far on average, either way.
    pub mean_nanos: f64,
    /// By how much the one is moved that is moved the farthest.
    pub farthest_nanos: i64,
    /// When that was, counted from the first event of all.
    pub at_nanos: u64,
}

/// A time in slices of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// When it begins.
    pub begin: Timestamp<Global>,
    /// The nanoseconds of a slice.
    pub length: u64,
    /// How many there are.
    pub count: usize,
}

impl Slices {
    /// From the first event to the last.
    pub fn of(trace: &Trace) -> Self {
        let ends = |location: &Location| Some([*location.times().first()?, *location.times().last()?]);
        let ends = || trace.locations().iter().filter_map(ends);
        let begin = ends().map(|[first, _]| first).min().unwrap_or(Timestamp::from_nanos(0));
        let end = ends().map(|[_, last]| last).max().unwrap_or(begin);
        let whole = end.as_nanos().abs_diff(begin.as_nanos());
        let length = whole / MOST_SLICES + 1;
        Self { begin, length, count: (whole / length) as usize + 1 }
    }

    /// In which slice a time is.
    pub fn slice(&self, time: Timestamp<Global>) -> usize {
        (self.since(time) / self.length) as usize
    }

    fn since(&self, time: Timestamp<Global>) -> u64 {
        time.as_nanos().abs_diff(self.begin.as_nanos())
    }
}

impl Movement {
    /// What becomes of the times of `trace` when they are replaced by `times`, of all events of all locations. They have such
    /// names.
    pub fn between<T: AsRef<[Timestamp<Global>]>>(trace: &Trace, times: &[T], names: &[String]) -> Self {
        let slices = Slices::of(trace);
        let shared = trace.locations().len().div_ceil(MOST_ROWS).max(1);
        let mut cells = vec![None; trace.locations().len().div_ceil(shared) * slices.count];
        let mut all = vec![];
        for (location, (before, after)) in trace.locations().iter().zip(times).enumerate() {
            let name = names.get(location).map_or_else(String::new, |name| short_name(name));
            let row = &mut cells[location / shared * slices.count..][..slices.count];
            all.push(LocationReport { location, name, ..walk(&slices, row, before.times(), after.as_ref()) });
        }
        all.retain(|location| location.moved > 0);
        // The first of those that are moved as far comes first.
        all.sort_by_key(|location| std::cmp::Reverse(location.farthest_nanos.unsigned_abs()));
        all.truncate(MOST_NAMED);
        Self { slices, shared, cells, farthest: all }
    }
}

/// Goes through the events of a location.
fn walk(
    slices: &Slices,
    row: &mut [Option<i64>],
    before: &[Timestamp<Global>],
    after: &[Timestamp<Global>],
) -> LocationReport {
    let (mut moved, mut total, mut farthest, mut at) = (0, 0_u128, 0_i64, 0);
    let (mut from, mut pairs) = (0, before.iter().zip(after));
    for (slice, cell) in row.iter_mut().enumerate() {
        // Times never decrease.
        let events = before[from..].partition_point(|time| slices.slice(*time) <= slice);
        for (before, after) in pairs.by_ref().take(events) {
            let by = (*after - *before).as_nanos();
            let so_far = cell.get_or_insert(by);
            if by.unsigned_abs() > so_far.unsigned_abs() {
                *so_far = by;
            }
            if by.unsigned_abs() > farthest.unsigned_abs() {
                (farthest, at) = (by, slices.since(*before));
            }
            moved += u64::from(by != 0);
            total += u128::from(by.unsigned_abs());
        }
        from += events;
    }
    LocationReport {
        location: 0,
        name: String::new(),
        events: before.len() as u64,
        moved,
        mean_nanos: total as f64 / before.len().max(1) as f64,
        farthest_nanos: farthest,
        at_nanos: at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::postmortem::{Action, Matching, Place, TraceBuilder};

    fn trace(locations: &[Vec<i64>]) -> Trace {
        let mut builder = TraceBuilder::new(Matching::default());
        for (i, times) in (0..).zip(locations) {
            let location = builder.add_location(Place { node: i, process: i }).unwrap();
            for time in times {
                builder.push(location, Timestamp::from_nanos(*time), Action::Internal).unwrap();
            }
        }
        builder.finish().unwrap()
    }

    fn movement(before: &[Vec<i64>], after: &[Vec<i64>]) -> Movement {
        let after: Vec<Vec<_>> =
            after.iter().map(|times| times.iter().copied().map(Timestamp::from_nanos).collect()).collect();
        let names: Vec<String> = (0..before.len()).map(|i| format!("rank {i}")).collect();
        Movement::between(&trace(before), &after, &names)
    }

    /// Every cell by looking at all events.
    #[test]
    fn cells_are_those_of_the_definition() {
        let mut rng = fastrand::Rng::with_seed(5);
        for locations in [1_usize, 3, 64, 65, 200] {
            let mut times = |from: i64| {
                let mut times: Vec<i64> = (0..rng.usize(0..40)).map(|_| rng.i64(from..from + 5_000)).collect();
                times.sort_unstable();
                times
            };
            let before: Vec<Vec<i64>> = (0..locations).map(|_| times(-700)).collect();
            let after: Vec<Vec<i64>> =
                before.iter().map(|times| times.iter().map(|time| time + rng.i64(-9..10)).collect()).collect();
            let found = movement(&before, &after);
            let Slices { begin, length, count } = found.slices;
            assert!(count <= 96 && found.cells.len() <= 64 * count, "{count}");
            assert_eq!(found.cells.len() / count, locations.div_ceil(found.shared));
            for (at, cell) in found.cells.iter().enumerate() {
                let [row, slice] = [at / count, at % count];
                let from = begin.as_nanos() + slice as i64 * length as i64;
                let here = (row * found.shared..locations.min((row + 1) * found.shared))
                    .flat_map(|location| before[location].iter().zip(&after[location]))
                    .filter(|(before, _)| (from..from + length as i64).contains(before));
                let expected = here.map(|(before, after)| (after - before).abs()).max();
                assert_eq!(cell.map(i64::abs), expected, "{row} {slice}");
            }
        }
    }

    #[test]
    fn the_locations_that_are_moved_the_farthest_are_named() {
        let before = vec![vec![0, 10, 20], vec![5, 6], vec![7], vec![]];
        let found = movement(&before, &[vec![0, 13, 21], vec![5, 0], vec![7], vec![]].map(|times| times.clone()));
        let location = |location: usize, events, moved, mean_nanos, farthest_nanos, at_nanos| LocationReport {
            location,
            name: format!("rank {location}"),
            events,
            moved,
            mean_nanos,
            farthest_nanos,
            at_nanos,
        };
        assert_eq!(found.farthest, [location(1, 2, 1, 3.0, -6, 6), location(0, 3, 2, 4.0 / 3.0, 3, 10)]);
        assert_eq!((found.slices.length, found.slices.count), (1, 21));
        let none = movement(&[], &[]);
        assert!(none.farthest.is_empty() && none.cells.is_empty());
    }
}
