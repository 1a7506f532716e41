//! Receivers of a trace: builders, parts of them, and other users of its events.

use std::fmt::Display;

use downbeat_clock_core::{Global, Timestamp};

use crate::builder::BuilderPart;
use crate::distributed::PartBuilder;
use crate::{Action, CommunicatorId, LocationId, Place, TraceBuilder, TraceError};

/// Receiver of the events of some locations.
pub(super) trait EventTarget {
    /// Reason of a refusal.
    type Error: Display;

    /// Returns true if the events of this location are wanted.
    fn has(&self, location: LocationId) -> bool;

    /// Takes an event; `position` is its position in the whole trace.
    fn take(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), Self::Error>;
}

/// Receiver of all locations and communicators, and of the events of some locations.
pub(super) trait TraceTarget: EventTarget {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError>;
    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError>;
    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError>;
}

impl EventTarget for TraceBuilder {
    type Error = TraceError;

    fn has(&self, _: LocationId) -> bool {
        true
    }

    #[inline]
    fn take(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        self.set_position(position);
        self.push(location, time, action)
    }
}

impl TraceTarget for TraceBuilder {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }
}

/// Events of one thread's processes, of which everything else is known.
impl EventTarget for BuilderPart<'_> {
    type Error = TraceError;

    fn has(&self, location: LocationId) -> bool {
        self.has(location)
    }

    #[inline]
    fn take(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        self.push(position, location, time, action)
    }
}

/// Events of one rank.
impl EventTarget for PartBuilder {
    type Error = TraceError;

    fn has(&self, location: LocationId) -> bool {
        self.owns(location)
    }

    #[inline]
    fn take(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        self.push(position, location, time, action)
    }
}

impl TraceTarget for PartBuilder {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }
}
