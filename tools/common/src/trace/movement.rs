//! Movement of events by location and time, in memory that is limited by the size of a picture.

use std::cmp::Reverse;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::{Location, Trace};
use serde::Serialize;

use super::tables::short_name;

/// Maximum number of time slices.
const MOST_SLICES: u64 = 96;
/// Maximum number of rows; of more locations, neighbours share a row.
const MOST_ROWS: usize = 64;
/// Maximum number of locations that are listed.
const MOST_NAMED: usize = 10;

/// Movement of events by location and time.
#[derive(Debug, Serialize)]
pub struct Movement {
    /// Time slices of the trace.
    #[serde(skip)]
    pub slices: Slices,
    /// Number of locations per row.
    #[serde(skip)]
    pub shared: usize,
    /// Rows of cells, one per slice: the largest movement in nanoseconds of an event of these
    /// locations in this slice, forward if there is a tie; `None` without events.
    #[serde(skip)]
    pub cells: Vec<Option<i64>>,
    /// Locations that are moved the farthest, in descending order.
    pub farthest: Vec<LocationReport>,
}

/// Movement of the events of a location.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocationReport {
    /// Number of the location.
    pub location: usize,
    /// Shortened name.
    pub name: String,
    /// Number of events.
    pub events: u64,
    /// Number of events that are moved.
    pub moved: u64,
    /// Mean distance in either direction.
    pub mean_nanos: f64,
    /// Largest movement, negative if back.
    pub farthest_nanos: i64,
    /// Time of that event since the first event of the trace.
    pub at_nanos: u64,
}

/// Slices of equal length that cover a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Start of the first slice.
    pub begin: Timestamp<Global>,
    /// Length of a slice in nanoseconds.
    pub length: u64,
    /// Number of slices.
    pub count: usize,
}

impl Slices {
    /// Divides the time of a trace.
    pub fn new(trace: &Trace) -> Self {
        let ends =
            |location: &Location| Some([*location.times().first()?, *location.times().last()?]);
        let ends = || trace.locations().iter().filter_map(ends);
        let begin = ends()
            .map(|[first, _]| first)
            .min()
            .unwrap_or(Timestamp::from_nanos(0));
        let end = ends().map(|[_, last]| last).max().unwrap_or(begin);
        Self::between(begin, end)
    }

    /// Divides the time from the first event to the last.
    pub fn between(begin: Timestamp<Global>, end: Timestamp<Global>) -> Self {
        let whole = end.as_nanos().abs_diff(begin.as_nanos());
        let length = whole / MOST_SLICES + 1;
        Self {
            begin,
            length,
            count: (whole / length) as usize + 1,
        }
    }

    /// Returns the slice of a time; later times are in the last one.
    pub fn slice(&self, time: Timestamp<Global>) -> usize {
        ((self.since(time) / self.length) as usize).min(self.count.saturating_sub(1))
    }

    fn since(&self, time: Timestamp<Global>) -> u64 {
        time.as_nanos().abs_diff(self.begin.as_nanos())
    }
}

/// Collects movements event by event, in memory proportional to cells and locations.
#[derive(Debug)]
pub struct MovementWalk {
    slices: Slices,
    shared: usize,
    cells: Vec<Option<i64>>,
    locations: Vec<LocationWalk>,
}

/// State of a location.
#[derive(Debug)]
struct LocationWalk {
    report: LocationReport,
    total: u128,
    /// Slice of its last event, and the end of that slice.
    slice: usize,
    end: u64,
}

impl MovementWalk {
    /// Creates an empty state for locations with these names, and events within these slices.
    pub fn new(slices: Slices, names: &[String]) -> Self {
        let walk = |(location, name): (usize, &String)| {
            let name = short_name(name);
            let (events, moved, farthest_nanos, at_nanos) = (0, 0, 0, 0);
            let report = LocationReport {
                location,
                name,
                events,
                moved,
                mean_nanos: 0.0,
                farthest_nanos,
                at_nanos,
            };
            LocationWalk {
                report,
                total: 0,
                slice: 0,
                end: slices.length,
            }
        };
        let shared = names.len().div_ceil(MOST_ROWS).max(1);
        let cells = vec![None; names.len().div_ceil(shared) * slices.count];
        Self {
            slices,
            shared,
            cells,
            locations: names.iter().enumerate().map(walk).collect(),
        }
    }

    /// Takes the next event of a location: its time before and after.
    pub fn take(&mut self, location: usize, before: Timestamp<Global>, after: Timestamp<Global>) {
        let Some(LocationWalk {
            report,
            total,
            slice,
            end,
        }) = self.locations.get_mut(location)
        else {
            return;
        };
        let (by, since) = ((after - before).as_nanos(), self.slices.since(before));
        if since >= *end {
            *slice = self.slices.slice(before);
            *end = (*slice as u64 + 1).saturating_mul(self.slices.length);
        }
        if let Some(cell) = self
            .cells
            .get_mut(location / self.shared * self.slices.count + *slice)
        {
            widen(cell, by);
        }
        if by.unsigned_abs() > report.farthest_nanos.unsigned_abs() {
            (report.farthest_nanos, report.at_nanos) = (by, since);
        }
        report.events += 1;
        report.moved += u64::from(by != 0);
        *total += u128::from(by.unsigned_abs());
    }

    /// Returns the state, for another walk to [`learn`](Self::learn) that took events of other
    /// locations of the same trace. Both have states of the same length.
    pub fn known(&self) -> Vec<u64> {
        let cells = self
            .cells
            .iter()
            .flat_map(|cell| [cell.is_some().into(), cell.unwrap_or(0) as u64]);
        let locations = self
            .locations
            .iter()
            .flat_map(|LocationWalk { report, total, .. }| {
                let LocationReport {
                    events,
                    moved,
                    farthest_nanos,
                    at_nanos,
                    ..
                } = *report;
                [
                    events,
                    moved,
                    *total as u64,
                    (*total >> 64) as u64,
                    farthest_nanos as u64,
                    at_nanos,
                ]
            });
        cells.chain(locations).collect()
    }

    /// Merges the state of another walk.
    pub fn learn(&mut self, known: &[u64]) {
        let (cells, locations) = known
            .split_at_checked(2 * self.cells.len())
            .unwrap_or_default();
        for (cell, [is_there, by]) in self.cells.iter_mut().zip(cells.as_chunks().0) {
            if *is_there != 0 {
                widen(cell, *by as i64);
            }
        }
        let found = locations
            .as_chunks::<6>()
            .0
            .iter()
            .zip(&mut self.locations)
            .filter(|([events, ..], _)| *events > 0);
        for ([events, moved, low, high, farthest, at], LocationWalk { report, total, .. }) in found
        {
            (report.events, report.moved) = (*events, *moved);
            *total = u128::from(*high) << 64 | u128::from(*low);
            (report.farthest_nanos, report.at_nanos) = (*farthest as i64, *at);
        }
    }

    /// Returns the movement of all events.
    pub fn finish(self) -> Movement {
        let Self {
            slices,
            shared,
            cells,
            locations,
        } = self;
        let mean = |LocationWalk { report, total, .. }: LocationWalk| {
            let mean_nanos = total as f64 / report.events.max(1) as f64;
            LocationReport {
                mean_nanos,
                ..report
            }
        };
        let mut farthest: Vec<_> = locations
            .into_iter()
            .map(mean)
            .filter(|location| location.moved > 0)
            .collect();
        // Stable sort: of equal distances, the first location comes first.
        farthest.sort_by_key(|location| Reverse(location.farthest_nanos.unsigned_abs()));
        farthest.truncate(MOST_NAMED);
        Movement {
            slices,
            shared,
            cells,
            farthest,
        }
    }
}

/// Adds an event to a cell; the result does not depend on the order of events.
fn widen(cell: &mut Option<i64>, by: i64) {
    let far = |by: i64| (by.unsigned_abs(), by);
    if cell.is_none_or(|old| far(by) > far(old)) {
        *cell = Some(by);
    }
}

impl Movement {
    /// Compares the times of `trace` with `times`, which replace them, for all events of all
    /// locations.
    pub fn between<T: AsRef<[Timestamp<Global>]>>(
        trace: &Trace,
        times: &[T],
        names: &[String],
    ) -> Self {
        let mut walk = MovementWalk::new(Slices::new(trace), names);
        for (location, (before, after)) in trace.locations().iter().zip(times).enumerate() {
            for (before, after) in before.times().iter().zip(after.as_ref()) {
                walk.take(location, *before, *after);
            }
        }
        walk.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_trace::{Action, Matching, Place, TraceBuilder};

    fn trace(locations: &[Vec<i64>]) -> Trace {
        let mut builder = TraceBuilder::new(Matching::default());
        for (i, times) in (0..).zip(locations) {
            let location = builder
                .add_location(Place {
                    node: i,
                    process: i,
                })
                .unwrap();
            for time in times {
                builder
                    .push(location, Timestamp::from_nanos(*time), Action::Internal)
                    .unwrap();
            }
        }
        builder.finish().unwrap()
    }

    fn movement(before: &[Vec<i64>], after: &[Vec<i64>]) -> Movement {
        let after: Vec<Vec<_>> = after
            .iter()
            .map(|times| times.iter().copied().map(Timestamp::from_nanos).collect())
            .collect();
        let names: Vec<String> = (0..before.len()).map(|i| format!("rank {i}")).collect();
        Movement::between(&trace(before), &after, &names)
    }

    /// Computes the movement by two walks that are merged.
    fn shared(before: &[Vec<i64>], after: &[Vec<i64>]) -> Movement {
        let names: Vec<String> = (0..before.len()).map(|i| format!("rank {i}")).collect();
        let mut walks = [(); 2].map(|()| MovementWalk::new(Slices::new(&trace(before)), &names));
        for (location, (before, after)) in before.iter().zip(after).enumerate() {
            for (before, after) in before.iter().zip(after) {
                let [before, after] = [*before, *after].map(Timestamp::from_nanos);
                walks[usize::from(location % 3 == 1)].take(location, before, after);
            }
        }
        let [mut one, other] = walks;
        one.learn(&other.known());
        one.finish()
    }

    /// Compares every cell with a search over all events.
    #[test]
    fn cells_follow_the_definition() {
        let mut rng = fastrand::Rng::with_seed(5);
        for locations in [1_usize, 3, 64, 65, 200] {
            let mut times = |from: i64| {
                let mut times: Vec<i64> = (0..rng.usize(0..40))
                    .map(|_| rng.i64(from..from + 5_000))
                    .collect();
                times.sort_unstable();
                times
            };
            let before: Vec<Vec<i64>> = (0..locations).map(|_| times(-700)).collect();
            let after: Vec<Vec<i64>> = before
                .iter()
                .map(|times| times.iter().map(|time| time + rng.i64(-9..10)).collect())
                .collect();
            let found = movement(&before, &after);
            let shared = shared(&before, &after);
            assert_eq!(
                (&shared.cells, &shared.farthest),
                (&found.cells, &found.farthest)
            );
            let Slices {
                begin,
                length,
                count,
            } = found.slices;
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
        let found = movement(
            &before,
            &[vec![0, 13, 21], vec![5, 0], vec![7], vec![]].map(|times| times.clone()),
        );
        let location =
            |location: usize, events, moved, mean_nanos, farthest_nanos, at_nanos| LocationReport {
                location,
                name: format!("rank {location}"),
                events,
                moved,
                mean_nanos,
                farthest_nanos,
                at_nanos,
            };
        assert_eq!(
            found.farthest,
            [
                location(1, 2, 1, 3.0, -6, 6),
                location(0, 3, 2, 4.0 / 3.0, 3, 10)
            ]
        );
        assert_eq!((found.slices.length, found.slices.count), (1, 21));
        let none = movement(&[], &[]);
        assert!(none.farthest.is_empty() && none.cells.is_empty());
    }
}
