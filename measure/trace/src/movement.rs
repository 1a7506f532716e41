//! Movement of events by location and time, in memory that is limited by the size of a picture.

use std::cmp::Reverse;

use downbeat_clock_core::{Global, Timestamp};

use super::workers::{groups, share};
use super::{Location, Trace};

/// Maximum number of time slices.
const MOST_SLICES: u64 = 96;
/// Maximum number of rows; of more locations, neighbours share a row.
const MOST_ROWS: usize = 64;

/// Movement of events by location and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    /// Time slices of the trace.
    pub slices: TimeSlices,
    /// Number of locations per row.
    pub shared: usize,
    /// Rows of cells, one per slice: the largest movement in nanoseconds of an event of these
    /// locations in this slice, forward if there is a tie; `None` without events.
    pub cells: Vec<Option<i64>>,
    /// Locations that are moved the farthest, in descending order: at most
    /// [`MOST_LISTED`](Self::MOST_LISTED).
    pub farthest: Vec<LocationMovement>,
}

/// Movement of the events of a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocationMovement {
    /// Index of the location.
    pub location: usize,
    /// Number of events.
    pub events: u64,
    /// Number of events that are moved.
    pub moved: u64,
    /// Sum of all distances in either direction, in nanoseconds.
    pub total: u128,
    /// Largest movement in nanoseconds, negative if back.
    pub farthest: i64,
    /// Time of that event since the first event of the trace, in nanoseconds.
    pub at: u64,
}

/// Slices of equal length that cover a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSlices {
    /// Start of the first slice.
    pub begin: Timestamp<Global>,
    /// Length of a slice in nanoseconds.
    pub length: u64,
    /// Number of slices.
    pub count: usize,
}

impl TimeSlices {
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

impl Trace {
    /// Returns the times of the first and the last event; `None` without events.
    pub fn span(&self) -> Option<[Timestamp<Global>; 2]> {
        let ends = |of: &Location| Some([*of.times().first()?, *of.times().last()?]);
        let spans = self.locations().iter().filter_map(ends);
        spans.reduce(|one, other| [one[0].min(other[0]), one[1].max(other[1])])
    }
}

/// Collects movements event by event, in memory proportional to cells and locations.
pub(super) struct MovementWalk {
    slices: TimeSlices,
    shared: usize,
    cells: Vec<Option<i64>>,
    locations: Vec<LocationWalk>,
}

/// State of a location.
#[derive(Clone, Copy)]
struct LocationWalk {
    found: LocationMovement,
    /// Slice of its last event, and the end of that slice.
    slice: usize,
    end: u64,
}

impl MovementWalk {
    /// Creates an empty state for this number of locations, and events within these slices.
    fn new(slices: TimeSlices, locations: usize) -> Self {
        let shared = locations.div_ceil(MOST_ROWS).max(1);
        let walk = |location| LocationWalk {
            found: LocationMovement {
                location,
                ..LocationMovement::default()
            },
            slice: 0,
            end: slices.length,
        };
        Self {
            slices,
            shared,
            cells: vec![None; locations.div_ceil(shared) * slices.count],
            locations: (0..locations).map(walk).collect(),
        }
    }

    /// Takes the next event of a location: its time before and after.
    fn take(&mut self, location: usize, before: Timestamp<Global>, after: Timestamp<Global>) {
        let Some(LocationWalk { found, slice, end }) = self.locations.get_mut(location) else {
            return;
        };
        let (by, since) = ((after - before).as_nanos(), self.slices.since(before));
        if since >= *end {
            *slice = self.slices.slice(before);
            *end = (*slice as u64 + 1).saturating_mul(self.slices.length);
        }
        let cell = location / self.shared * self.slices.count + *slice;
        if let Some(cell) = self.cells.get_mut(cell) {
            widen(cell, by);
        }
        if by.unsigned_abs() > found.farthest.unsigned_abs() {
            (found.farthest, found.at) = (by, since);
        }
        found.events += 1;
        found.moved += u64::from(by != 0);
        found.total += u128::from(by.unsigned_abs());
    }

    /// Takes all events of a trace, on this number of threads: `times` replace their times.
    pub(super) fn of<T: AsRef<[Timestamp<Global>]> + Sync>(
        slices: TimeSlices,
        trace: &Trace,
        times: &[T],
        workers: usize,
    ) -> Self {
        let parts = share(groups(trace, workers), |_, locations| {
            let mut walk = Self::new(slices, trace.locations().len());
            for location in locations {
                let before = trace.locations()[location].times();
                let events = before.iter().zip(times[location].as_ref());
                events.for_each(|(before, after)| walk.take(location, *before, *after));
            }
            walk
        });
        let merged = parts.into_iter().reduce(|mut all, part| {
            all.absorb(&part.words());
            all
        });
        merged.unwrap_or_else(|| Self::new(slices, 0))
    }

    /// Encodes the state for another walk that took events of other locations of the same trace.
    /// Both have states of the same length.
    pub(super) fn words(&self) -> Vec<u64> {
        let cells = self
            .cells
            .iter()
            .flat_map(|cell| [cell.is_some().into(), cell.unwrap_or(0) as u64]);
        let locations = self
            .locations
            .iter()
            .flat_map(|LocationWalk { found, .. }| {
                let LocationMovement {
                    location: _,
                    events,
                    moved,
                    total,
                    farthest,
                    at,
                } = *found;
                [
                    events,
                    moved,
                    total as u64,
                    (total >> 64) as u64,
                    farthest as u64,
                    at,
                ]
            });
        cells.chain(locations).collect()
    }

    /// Merges the state of another walk.
    pub(super) fn absorb(&mut self, words: &[u64]) {
        let (cells, locations) = words
            .split_at_checked(2 * self.cells.len())
            .unwrap_or_default();
        for (cell, [is_there, by]) in self.cells.iter_mut().zip(cells.as_chunks().0) {
            if *is_there != 0 {
                widen(cell, *by as i64);
            }
        }
        let others = self.locations.iter_mut().zip(locations.as_chunks::<6>().0);
        for (LocationWalk { found, .. }, words) in others.filter(|(_, words)| words[0] > 0) {
            let [events, moved, low, high, farthest, at] = *words;
            let total = u128::from(high) << 64 | u128::from(low);
            let (location, farthest) = (found.location, farthest as i64);
            *found = LocationMovement {
                location,
                events,
                moved,
                total,
                farthest,
                at,
            };
        }
    }

    /// Returns the movement of all events.
    pub(super) fn finish(self) -> Movement {
        let Self {
            slices,
            shared,
            cells,
            locations,
        } = self;
        let all = locations.into_iter().map(|walk| walk.found);
        let mut farthest: Vec<_> = all.filter(|found| found.moved > 0).collect();
        // Stable sort: of equal distances, the first location comes first.
        farthest.sort_by_key(|found| Reverse(found.farthest.unsigned_abs()));
        farthest.truncate(Movement::MOST_LISTED);
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
    /// Maximum number of locations that are listed.
    pub const MOST_LISTED: usize = 10;

    /// Compares the times of `trace` with `times`, which replace them, for all events of all
    /// locations.
    pub fn between<T: AsRef<[Timestamp<Global>]> + Sync>(trace: &Trace, times: &[T]) -> Self {
        let [begin, end] = trace.span().unwrap_or([Timestamp::ORIGIN; 2]);
        MovementWalk::of(TimeSlices::between(begin, end), trace, times, 1).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Matching, Place, TraceBuilder};

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
        Movement::between(&trace(before), &after)
    }

    /// Computes the movement by two walks that are merged.
    fn shared(before: &[Vec<i64>], after: &[Vec<i64>]) -> Movement {
        let [begin, end] = trace(before).span().unwrap_or([Timestamp::ORIGIN; 2]);
        let slices = TimeSlices::between(begin, end);
        let mut walks = [(); 2].map(|()| MovementWalk::new(slices, before.len()));
        for (location, (before, after)) in before.iter().zip(after).enumerate() {
            for (before, after) in before.iter().zip(after) {
                let [before, after] = [*before, *after].map(Timestamp::from_nanos);
                walks[usize::from(location % 3 == 1)].take(location, before, after);
            }
        }
        let [mut one, other] = walks;
        one.absorb(&other.words());
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
            let TimeSlices {
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
        let location = |location, events, moved, total, farthest, at| LocationMovement {
            location,
            events,
            moved,
            total,
            farthest,
            at,
        };
        let expected = [location(1, 2, 1, 6, -6, 6), location(0, 3, 2, 4, 3, 10)];
        assert_eq!(found.farthest, expected);
        assert_eq!((found.slices.length, found.slices.count), (1, 21));
        let none = movement(&[], &[]);
        assert!(none.farthest.is_empty() && none.cells.is_empty());
    }
}
