//! Data about a stream that must be known before its events can be corrected one by one.

use core::fmt;

use rustc_hash::FxHashSet;

use super::super::definitions::Definitions;
use super::super::latencies::{Site, levels_of};
use super::super::teams::{Track, Turns, sends};
use super::super::{CollectiveKind, EventId, LeftOut, LocationId, Place, TraceError};
use super::posted::Overtaking;

/// Error of the correction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The events are not a valid trace in any order.
    Trace(TraceError),
    /// The event waits for another one that comes later in the stream.
    Disorder(EventId),
    /// Events of one clock are not in the order of time.
    ClockDisorder {
        /// Event with the later time.
        last: EventId,
        /// Event of another location with the same clock, which comes next in the stream.
        next: EventId,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(why) => why.fmt(f),
            Self::ClockDisorder { last, next } => write!(
                f,
                "{next} comes after {last}, which is later on the clock that they share: correct \
                 such a trace in memory, or with one clock per location"
            ),
            Self::Disorder(event) => {
                write!(
                    f,
                    "{event} waits for what comes after it here: correct such a trace in memory"
                )
            }
        }
    }
}

impl core::error::Error for StreamError {}

impl From<TraceError> for StreamError {
    fn from(why: TraceError) -> Self {
        Self::Trace(why)
    }
}

/// Operation of a team: the team, the track, and the index there.
pub(super) type Which = (u32, Track, u32);

/// Collective operation, and its number of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamedOperation {
    pub(crate) number: u64,
    pub(crate) members: u32,
    pub(crate) rank: u32,
    /// Key in the census; `None` after it was in a record.
    pub(super) which: Option<Which>,
    /// True for the first event of the operation.
    pub(super) is_first: bool,
    /// True for the last event of the operation.
    pub(crate) is_last: bool,
}

/// Operations of a track so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) begun: u32,
    /// Operations that every member has entered and left; empty before the first one.
    pub(super) members: Vec<Turns>,
}

/// Contents of a stream: its locations, the numbers of their events, and the properties of
/// collective operations that are known only at their ends.
///
/// It takes 16 bytes for every member of a communicator, and some more for each member that
/// contributed no data to a collective operation in which others waited for data, and for each
/// receive that completed before one of its channel that was posted earlier.
#[derive(Debug)]
pub struct Census {
    /// Locations, communicators and teams.
    pub(crate) definitions: Definitions,
    /// For all teams, by track: operations that every member enters and leaves.
    pub(super) counts: Vec<[Counts; 3]>,
    pub(super) overtaking: Overtaking,
    /// Members that contributed no data: the operation, and the rank.
    pub(super) withheld: FxHashSet<(u64, u32)>,
    /// Number of messages that every location receives; the last locations are omitted if they
    /// receive none.
    pub(super) received: Vec<u64>,
    /// Number of events.
    pub events: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of collective operations.
    pub collectives: u64,
    /// Numbers of incomplete messages and operations; zero unless the builder was lenient.
    pub left_out: LeftOut,
}

impl Census {
    /// Returns the places of all locations.
    pub fn places(&self) -> Vec<Place> {
        self.definitions.places.clone()
    }

    /// Returns, for every location, the index of the first one with the same clock.
    pub fn clocks(&self) -> &[u32] {
        self.definitions.clocks.readers()
    }

    /// Returns the ids of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        (0..self.definitions.places.len() as u32).map(LocationId)
    }

    pub(crate) fn site(&self, location: u32) -> Site {
        Site {
            clock: self.clocks()[location as usize],
            place: self.definitions.places[location as usize],
        }
    }

    /// Does the same as [`Trace::levels`](super::super::Trace::levels).
    pub fn levels(&self) -> [bool; 3] {
        levels_of(self.ids().map(|location| self.site(location.0)))
    }

    /// Returns the operations that each member enters and leaves.
    fn of(&self, (team, track, _): Which) -> &[Turns] {
        self.counts
            .get(team as usize)
            .map_or(&[], |tracks| &tracks[track as usize].members)
    }

    /// Returns the number of events of an operation.
    pub(super) fn events_of(&self, which: Which) -> u32 {
        let events = |of: &Turns| u32::from(of.entered > which.2) + u32::from(of.has_left(which.2));
        self.of(which).iter().map(events).sum()
    }

    /// Returns true if the operation has a fork.
    pub(super) fn is_forked(&self, which: Which) -> bool {
        self.of(which).iter().any(|of| of.entered > which.2)
    }

    /// Returns the location of a member of an operation.
    pub(super) fn member(&self, of: StreamedOperation, rank: u32) -> Option<u32> {
        let (team, ..) = of.which?;
        self.definitions.members(team).get(rank as usize).copied()
    }

    /// Returns true if exits of a collective operation wait for the enter of the member of this
    /// rank.
    pub(super) fn counts(
        &self,
        of: StreamedOperation,
        kind: CollectiveKind,
        root: u32,
        rank: u32,
    ) -> bool {
        let enters = |which| {
            self.of(which)
                .get(rank as usize)
                .is_some_and(|of| of.entered > which.2)
        };
        sends(kind, root, rank)
            && of.which.is_some_and(enters)
            && !self.withheld.contains(&(of.number, rank))
    }
}
