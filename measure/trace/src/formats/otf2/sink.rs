//! Destinations of an archive's events: a trace, or the items of a trace file.

use crate::builder::BuilderPart;
use crate::{Action, CommunicatorId, LocationId, PartBuilder, Place, TraceBuilder, TraceError};
use downbeat_clock_core::{Global, Timestamp};

use super::Otf2Error;
use super::events::Otf2Event;

/// Takes the events of an archive.
pub(super) trait EventSink {
    /// Reason of a refusal.
    type Error;

    /// Takes a communicator.
    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, Self::Error>;

    /// Announces at most this number of events of a location.
    fn reserve(&mut self, _location: LocationId, _events: usize) {}

    /// Takes an event, and what it is to other locations; `position` is that of the event in the archive.
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        event: Otf2Event,
    ) -> Result<(), Self::Error>;
}

/// Takes the locations and communicators of an archive, and then its events.
pub(super) trait Sink: EventSink {
    /// Takes a location, by its index in the archive.
    fn add_location(&mut self, index: usize, place: Place) -> Result<LocationId, Self::Error>;

    /// Takes a location that is another thread of the process of `rank`.
    fn add_thread(&mut self, index: usize, rank: LocationId) -> Result<LocationId, Self::Error>;

    /// One communicator for the messages of all processes to themselves, unless each is to have its own when it is used.
    fn own_communicator(&mut self) -> Result<Option<CommunicatorId>, Self::Error> {
        self.add_communicator(&[]).map(Some)
    }

    /// Announces that only events follow.
    fn begin_events(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl Sink for TraceBuilder {
    fn add_location(&mut self, _index: usize, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn add_thread(&mut self, _index: usize, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }
}

impl EventSink for TraceBuilder {
    type Error = TraceError;

    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }

    fn reserve(&mut self, location: LocationId, events: usize) {
        // Unused memory is not taken from the system, and freed at the end.
        self.reserve(location, events, events);
    }

    #[inline]
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        _event: Otf2Event,
    ) -> Result<(), TraceError> {
        self.set_position(position);
        self.push(location, time, action)
    }
}

/// All locations, and the events of one rank.
impl Sink for PartBuilder {
    fn add_location(&mut self, _index: usize, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn add_thread(&mut self, _index: usize, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }
}

impl EventSink for PartBuilder {
    type Error = TraceError;

    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }

    fn reserve(&mut self, location: LocationId, events: usize) {
        self.reserve(location, events, events);
    }

    #[inline]
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        _event: Otf2Event,
    ) -> Result<(), TraceError> {
        self.push(position, location, time, action)
    }
}

/// The events of some processes, of which everything else is known.
impl EventSink for BuilderPart<'_> {
    type Error = TraceError;

    fn add_communicator(&mut self, _: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        // All communicators were added before events were shared out.
        Err(TraceError::TooManyCollectives)
    }

    #[inline]
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        _event: Otf2Event,
    ) -> Result<(), TraceError> {
        self.push(position, location, time, action)
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
