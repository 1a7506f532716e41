//! Destinations of an archive's events: a trace, or the items of a trace file.

use crate::formats::What;
use crate::formats::target::{EventTarget, TraceTarget};
use crate::{Action, CommunicatorId, LocationId, Place, TraceError};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::MetricValue;

use super::Otf2Error;
use super::events::Otf2Event;

/// Takes the events of an archive.
pub(super) trait EventSink {
    /// Reason of a refusal.
    type Error;

    /// Returns a new communicator for the messages of a process to itself, if each is to have its
    /// own when it is used.
    fn communicator_of(
        &mut self,
        _process: LocationId,
    ) -> Result<Option<CommunicatorId>, Self::Error> {
        Ok(None)
    }

    /// Takes the values of the metrics of a class or instance; the event itself comes next.
    fn values(
        &mut self,
        _location: LocationId,
        _time: Timestamp<Global>,
        _metric: u32,
        _values: &mut dyn Iterator<Item = MetricValue>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Takes a one-sided access or its completion, `None` if its window or target are undefined; the event itself comes next.
    fn access(
        &mut self,
        _location: LocationId,
        _time: Timestamp<Global>,
        _what: Option<What<'static>>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

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

    /// Takes a communicator.
    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, Self::Error>;

    /// One communicator for the messages of all processes to themselves, unless each is to have its own when it is used.
    fn own_communicator(&mut self) -> Result<Option<CommunicatorId>, Self::Error> {
        self.add_communicator(&[]).map(Some)
    }

    /// Announces that only events follow.
    fn begin_events(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Builders, and parts of them, need not know the events of the archive.
impl<T: EventTarget<Error = TraceError>> EventSink for T {
    type Error = TraceError;

    #[inline]
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        _event: Otf2Event,
    ) -> Result<(), TraceError> {
        self.take(position, location, time, action)
    }
}

impl<T: TraceTarget<Error = TraceError>> Sink for T {
    fn add_location(&mut self, _index: usize, place: Place) -> Result<LocationId, TraceError> {
        self.location(place)
    }

    fn add_thread(&mut self, _index: usize, rank: LocationId) -> Result<LocationId, TraceError> {
        self.thread(rank)
    }

    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.communicator(members)
    }
}

/// Takes events, and does nothing with them.
pub(super) struct NoSink;

impl EventSink for NoSink {
    type Error = core::convert::Infallible;

    fn push(
        &mut self,
        _position: u64,
        _location: LocationId,
        _time: Timestamp<Global>,
        _action: Action,
        _event: Otf2Event,
    ) -> Result<(), Self::Error> {
        Ok(())
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
