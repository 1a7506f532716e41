//! From the events of all locations to a trace whose messages and collective operations are matched.

use downbeat_clock_core::{Global, Timestamp};

use super::{Action, CommunicatorId, LocationId, Place, Trace, TraceError};

/// How strictly events are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Whether messages without another end, and collective operations without some members, are counted as
    /// [`LeftOut`](super::LeftOut) rather than an error.
    pub lenient: bool,
    /// Whether `MPI_Alltoallv` is taken as nothing that members wait for. A trace does not say who gave data to whom, so
    /// it may be corrected for messages that there never were.
    pub skip_alltoallv: bool,
}

/// Makes a [`Trace`] of events, which are added in the order of each location, and in any order of locations.
#[derive(Debug)]
pub struct TraceBuilder {
    matching: Matching,
}

impl TraceBuilder {
    /// Nothing yet.
    pub fn new(matching: Matching) -> Self {
        Self { matching }
    }

    /// Adds a location: a process with one thread, or a thread that messages are addressed to.
    ///
    /// # Errors
    /// When there are too many.
    pub fn add_location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        todo!()
    }

    /// Adds another thread of the process whose location is `rank`: what it sends, receives and does with others counts
    /// as done by that one, wherever it is no member itself.
    ///
    /// # Errors
    /// When there are too many, or no such rank.
    pub fn add_thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        todo!()
    }

    /// Adds a communicator, or a team of threads, of these members in the order of their ranks.
    ///
    /// # Errors
    /// When there are too many, a member is unknown, or is there twice.
    pub fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        todo!()
    }

    /// Says that a location will have about so many events, and so many that have to do with others: this saves memory.
    pub fn reserve(&mut self, location: LocationId, events: usize, marks: usize) {
        todo!()
    }

    /// Adds an event to a location.
    ///
    /// # Errors
    /// When it cannot follow what was added before.
    pub fn push(&mut self, location: LocationId, time: Timestamp<Global>, action: Action) -> Result<(), TraceError> {
        todo!()
    }

    /// The trace, now that all events are there.
    ///
    /// # Errors
    /// When something has no partner; of several, the first one of the first location.
    pub fn finish(self) -> Result<Trace, TraceError> {
        todo!()
    }
}
