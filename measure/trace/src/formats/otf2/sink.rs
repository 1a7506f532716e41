//! What becomes of an archive: a trace, or what the file of a trace would say.

use crate::{Action, CommunicatorId, LocationId, Place, TraceBuilder, TraceError};
use downbeat_clock_core::{Global, Timestamp};

use super::Otf2Error;
use super::events::Otf2Event;

/// Takes what an archive has.
pub(super) trait Sink {
    /// Why something cannot be taken.
    type Error;

    /// Takes a location, by its place in the archive.
    fn add_location(&mut self, index: usize, place: Place) -> Result<LocationId, Self::Error>;

    /// Takes a location that is another thread of the process of `rank`.
    fn add_thread(&mut self, index: usize, rank: LocationId) -> Result<LocationId, Self::Error>;

    /// Takes a communicator.
    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, Self::Error>;

    /// From now on, events come.
    fn begin_events(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// So many events of a location come at most.
    fn reserve(&mut self, _location: LocationId, _events: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Takes an event, and what it is to other locations.
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
        // Memory that is not used is not taken from the system, and given back at the end.
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

/// Why an archive is not read to its end.
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
    /// As an error of the archive.
    pub(super) fn into_error<F: From<Otf2Error>>(self, sink: impl FnOnce(E) -> F) -> F {
        match self {
            Self::Archive(why) => why.into(),
            Self::Sink(why) => sink(why),
        }
    }
}
