//! Mapping of a location's clock to the master's clock.

use core::cell::Cell;
use core::cmp::Ordering;

use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_clock_core::{ClockModel, Duration, Global, Local, Timestamp};

use super::super::trace::check_time;
use super::super::{LocationId, Trace, TraceError};

/// Readings of a location's clock and of the master's at one instant.
pub type ClockSample = SplineKnot<Local, Global>;

/// Samples of clock comparisons with the master: for every location, its sessions, each with its
/// samples.
pub type Sessions = Vec<Vec<Vec<ClockSample>>>;

/// Mapping of one clock to the master's.
#[derive(Clone, Debug)]
pub struct ClockMap {
    pub(super) shape: MapShape,
}

#[derive(Clone, Debug)]
pub(super) enum MapShape {
    Line(ClockModel<Local, Global>),
    /// Knots of a spline.
    Curve(Vec<ClockSample>),
}

/// Mappings of the clocks of all locations to the master's clock.
#[derive(Clone, Debug)]
pub struct ClockMaps {
    pub(super) maps: Vec<ClockMap>,
    /// Index of each location's map.
    pub(super) map_indices: Vec<usize>,
    /// Number of locations taken as correct for lack of samples.
    pub unknown: usize,
    /// Number of sessions left out because they contradict the one before.
    pub left_out: usize,
    /// Upper limit of the errors of all known clocks while messages were exchanged, if these limit
    /// it and the offsets of clocks are lines.
    pub bound: Option<Duration>,
}

impl ClockMap {
    /// Map of a correct clock.
    pub(super) const SAME: Self = Self {
        shape: MapShape::Line(ClockModel::IDENTITY),
    };

    /// Returns the master's time when this clock shows `at`, to the nearest nanosecond. It never
    /// decreases.
    pub fn apply(&self, at: Timestamp<Local>) -> Timestamp<Global> {
        self.prepared()(at)
    }

    /// Returns a function that applies the map. A spline is prepared once, and the current piece is
    /// kept, as most times are on the same piece as their predecessor.
    fn prepared(&self) -> impl FnMut(Timestamp<Local>) -> Timestamp<Global> + '_ {
        let (line, curve) = match &self.shape {
            MapShape::Line(line) => (*line, None),
            // The knots were checked for order when the map was made.
            MapShape::Curve(knots) => (ClockModel::IDENTITY, ConstrainedSpline::new(knots).ok()),
        };
        let mut curve = curve.map(|curve| (curve, curve.piece_at(Timestamp::ORIGIN)));
        move |at| {
            let Some((curve, piece)) = &mut curve else {
                return line.apply(at);
            };
            if !piece.holds(at) {
                *piece = curve.piece_at(at);
            }
            piece.apply(at)
        }
    }

    /// As [`apply`](Self::apply), for the times of one location in order: where they increase, so
    /// do the results. Two times a nanosecond apart that would be rounded to the same result stay a
    /// nanosecond apart.
    pub fn in_order(&self) -> impl FnMut(Timestamp<Local>) -> Timestamp<Global> + '_ {
        let mut apply = self.prepared();
        let mut last = None;
        move |at| {
            let mut image = apply(at);
            if let Some((before, shown)) = last {
                match at.cmp(&before) {
                    Ordering::Greater => image = image.max(shown + Duration::from_nanos(1)),
                    Ordering::Equal => image = shown,
                    Ordering::Less => {}
                }
            }
            last = Some((at, image));
            image
        }
    }
}

impl ClockMaps {
    /// Takes the clocks of this number of locations as correct.
    pub(crate) fn unchanged(locations: usize) -> Self {
        Self {
            maps: vec![ClockMap::SAME],
            map_indices: vec![0; locations],
            unknown: 0,
            left_out: 0,
            bound: None,
        }
    }

    /// Returns true if a clock was found that is not the master's.
    pub fn are_needed(&self) -> bool {
        self.map_indices.iter().any(|index| *index > 0)
    }

    /// Returns true if the clock of a location is not the master's.
    pub(crate) fn changes(&self, location: LocationId) -> bool {
        let index = self.map_indices.get(location.index());
        index.is_some_and(|index| *index > 0)
    }

    /// Returns the map of a location; for an unknown location, the map of a correct clock.
    pub fn for_location(&self, location: LocationId) -> &ClockMap {
        &self.maps[self.map_indices.get(location.index()).copied().unwrap_or(0)]
    }

    /// Corrects all times of a trace, which must be those of its locations' own clocks, [in
    /// order](ClockMap::in_order) of the events of each clock.
    ///
    /// # Errors
    /// When a time is more than 146 years from the origin; the trace is unusable after that.
    pub fn correct(&self, trace: &mut Trace) -> Result<(), TraceError> {
        for location in trace.ids() {
            trace.locations[location.index()].is_mapped |= self.changes(location);
        }
        let first = Cell::new(None);
        trace.map_clocks(|clock| {
            let (mut map, first) = (self.for_location(clock).in_order(), &first);
            move |event, time| {
                let mapped = map(Timestamp::from_nanos(time.as_nanos()));
                if check_time(None, mapped, event).is_err() {
                    first.set(first.get().into_iter().chain([event]).min());
                }
                mapped
            }
        });
        first
            .get()
            .map_or(Ok(()), |event| Err(TraceError::TooFar(event)))
    }

    /// Maps the local times of samples, so that another correction of the corrected trace does not
    /// apply the same maps again.
    pub fn correct_samples(&self, sessions: &mut [Vec<Vec<ClockSample>>]) {
        for (location, sessions) in (0..).zip(sessions) {
            let map = self.for_location(LocationId(location));
            for sample in sessions.iter_mut().flatten() {
                sample.at = Timestamp::from_nanos(map.apply(sample.at).as_nanos());
            }
        }
    }
}
