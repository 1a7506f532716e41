//! What times of a clock mean on another one.

use core::cmp::Ordering;

use downbeat_clock_core::{
    ClockModel, ConstrainedSpline, Duration, Global, Knot, Local, Timestamp,
};

use super::super::trace::check_time;
use super::super::{Census, EventId, LocationId, Trace, TraceError};

/// What the clock of a location and that of the master showed at one instant.
pub type ClockSample = Knot<Local, Global>;

/// What a clock's times mean on the master's.
#[derive(Clone, Debug)]
pub struct ClockMap {
    pub(super) shape: MapShape,
}

#[derive(Clone, Debug)]
pub(super) enum MapShape {
    Line(ClockModel<Local, Global>),
    /// The knots of a spline.
    Curve(Vec<ClockSample>),
}

/// What the times of all locations mean on the master's clock.
#[derive(Clone, Debug)]
pub struct ClockMaps {
    pub(super) maps: Vec<ClockMap>,
    /// Of every location, its map.
    pub(super) of: Vec<usize>,
    /// How many locations a lenient pre-synchronization took as right, for want of samples.
    pub unknown: usize,
    /// How many sessions it left out.
    pub left_out: usize,
}

impl ClockMap {
    /// Of a clock that is right.
    pub(super) const SAME: Self = Self {
        shape: MapShape::Line(ClockModel::IDENTITY),
    };

    /// What the master shows when this clock shows `at`, to the nearest nanosecond. It never decreases.
    pub fn apply(&self, at: Timestamp<Local>) -> Timestamp<Global> {
        self.prepared()(at)
    }

    /// A spline looks at its knots before it is asked for anything, and most times are on one piece with those before them.
    fn prepared(&self) -> impl FnMut(Timestamp<Local>) -> Timestamp<Global> + '_ {
        let (line, curve) = match &self.shape {
            MapShape::Line(line) => (*line, None),
            // Its knots are in order, or they would not have been taken.
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

    /// As [`apply`](Self::apply), for the times of one location in their order: where they increase, so does what is made
    /// of them. Two that are a nanosecond apart and would be rounded to one are kept that nanosecond apart.
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
    /// That of a location; of one that there is not, that of a clock that is right.
    pub fn for_location(&self, location: LocationId) -> &ClockMap {
        &self.maps[self.of.get(location.index()).copied().unwrap_or(0)]
    }

    /// Corrects all times of a trace, which are those of its locations' own clocks, [in order](ClockMap::in_order).
    ///
    /// # Errors
    /// When a time is more than 146 years from the origin; the trace is then of no use any more.
    pub fn correct(&self, trace: &mut Trace) -> Result<(), TraceError> {
        for location in trace.ids() {
            let mut map = self.for_location(location).in_order();
            trace.map_times(location, |time| map(Timestamp::from_nanos(time.as_nanos())))?;
        }
        Ok(())
    }

    /// The same of the times of a stream, of so many locations.
    pub fn streamed(&self, census: &Census) -> StreamedMaps<'_> {
        let map = |location| {
            let mut map = self.for_location(location).in_order();
            Box::new(move |time: Timestamp<Global>| map(Timestamp::from_nanos(time.as_nanos())))
                as _
        };
        StreamedMaps {
            maps: census.ids().map(|location| (map(location), None)).collect(),
        }
    }
}

type MapFunction<'a> = Box<dyn FnMut(Timestamp<Global>) -> Timestamp<Global> + 'a>;

/// Corrects times of a stream, which are those of locations' own clocks.
pub struct StreamedMaps<'a> {
    /// Of all locations, with the last time.
    maps: Vec<(MapFunction<'a>, Option<Timestamp<Global>>)>,
}

impl core::fmt::Debug for StreamedMaps<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StreamedMaps")
            .field("locations", &self.maps.len())
            .finish_non_exhaustive()
    }
}

impl StreamedMaps<'_> {
    /// The time of the next event.
    ///
    /// # Errors
    /// As of [`ClockMaps::correct`].
    #[inline]
    pub fn apply(
        &mut self,
        event: EventId,
        time: Timestamp<Global>,
    ) -> Result<Timestamp<Global>, TraceError> {
        let unknown = TraceError::UnknownLocation(event.location);
        let (map, last) = self.maps.get_mut(event.location.index()).ok_or(unknown)?;
        let mapped = map(time);
        check_time(*last, mapped, event)?;
        *last = Some(mapped);
        Ok(mapped)
    }
}
