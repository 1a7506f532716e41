//! Receivers of the events of a trace: builders, parts of them, and readers of items.

use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::MetricValue;

use crate::builder::BuilderPart;
use crate::{CommunicatorId, Event, LocationId, Place, TraceBuilder, TraceError};

/// Takes the events of some locations.
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

    /// Takes the values of the metrics of a class or instance of an archive; the event
    /// itself comes next.
    fn values(
        &mut self,
        _location: LocationId,
        _time: Timestamp<Global>,
        _metric: u32,
        _values: &mut dyn Iterator<Item = MetricValue>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Takes an event of an archive by itself, and what it means to other locations, which
    /// comes next as an event.
    fn item(
        &mut self,
        _location: LocationId,
        _time: Timestamp<Global>,
        _event: Event<'_>,
        _meaning: Option<Event<'_>>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Takes an event; `position` is its position in the whole trace.
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), Self::Error>;
}

/// Takes all locations and communicators of a trace, and then the events of some locations.
pub(super) trait TraceSink: EventSink {
    /// Takes a location, by its index in the file.
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

impl EventSink for TraceBuilder {
    type Error = TraceError;

    #[inline]
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        self.set_position(position);
        self.push(location, time, event)
    }
}

/// Events of one thread's processes, of which everything else is known.
impl EventSink for BuilderPart<'_> {
    type Error = TraceError;

    #[inline]
    fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        self.push(position, location, time, event)
    }
}

impl TraceSink for TraceBuilder {
    fn add_location(&mut self, _: usize, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn add_thread(&mut self, _: usize, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }

    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
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
        _event: Event<'_>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
}
