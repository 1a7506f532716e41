//! Destinations of an archive's events: a trace, or the items of a trace file.

use crate::{Action, CommunicatorId, LocationId, Place, TraceBuilder, TraceError};
use downbeat_clock_core::{Global, Timestamp};

use super::Otf2Error;
use super::events::Otf2Event;

/// Destination of definitions and events of an archive.
pub(super) trait Sink {
    /// Error of the destination.
    type Error;

    /// Adds a location with its index in the archive.
    fn add_location(&mut self, index: usize, place: Place) -> Result<LocationId, Self::Error>;

    /// Adds a location that is another thread of the process of `rank`.
    fn add_thread(&mut self, index: usize, rank: LocationId) -> Result<LocationId, Self::Error>;

    /// Adds a communicator.
    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, Self::Error>;

    /// Signals the end of the definitions.
    fn begin_events(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Reserves memory for at most this number of events of a location.
    fn reserve(&mut self, _location: LocationId, _events: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Adds an event, with its action.
    fn push(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        event: Otf2Event,
    ) -> Result<(), Self::Error>;
}

impl Sink for TraceBuilder {
    type Error = TraceError;

    fn add_location(&mut self, _index: usize, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn add_thread(&mut self, _index: usize, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }

    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }

    fn reserve(&mut self, location: LocationId, events: usize) -> Result<(), TraceError> {
        // Unused memory is not taken from the system, and freed at the end.
        self.reserve(location, events, events);
        Ok(())
    }

    #[inline]
    fn push(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        _event: Otf2Event,
    ) -> Result<(), TraceError> {
        self.push(location, time, action)
    }
}

/// Error of reading an archive into a sink.
pub(super) enum ReadError<E> {
    Archive(Otf2Error),
    Sink(E),
}

impl<E> From<Otf2Error> for ReadError<E> {
    fn from(why: Otf2Error) -> Self {
        Self::Archive(why)
    }
}

impl<E> ReadError<E> {
    /// Converts to another error, given the conversion of the sink's errors.
    pub(super) fn into_error<F: From<Otf2Error>>(self, sink: impl FnOnce(E) -> F) -> F {
        match self {
            Self::Archive(why) => why.into(),
            Self::Sink(why) => sink(why),
        }
    }
}
