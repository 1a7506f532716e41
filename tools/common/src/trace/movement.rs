//! Report on the movement of events by location and time.

use downbeat_trace::movement::{LocationMovement, Movement, TimeSlices};
use serde::Serialize;

use super::tables::short_name;

/// Movement of events by location and time.
#[derive(Debug, Serialize)]
pub struct MovementReport {
    /// Time slices of the trace.
    #[serde(skip)]
    pub slices: TimeSlices,
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

impl MovementReport {
    /// Creates the report, with names of locations.
    pub fn new(found: &Movement, names: &[String]) -> Self {
        let report = |found: &LocationMovement| LocationReport {
            location: found.location,
            name: names
                .get(found.location)
                .map(|name| short_name(name))
                .unwrap_or_default(),
            events: found.events,
            moved: found.moved,
            mean_nanos: found.total as f64 / found.events.max(1) as f64,
            farthest_nanos: found.farthest,
            at_nanos: found.at,
        };
        Self {
            slices: found.slices,
            shared: found.shared,
            cells: found.cells.clone(),
            farthest: found.farthest.iter().map(report).collect(),
        }
    }
}
