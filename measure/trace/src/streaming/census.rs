//! Data about a stream that must be known before its events can be corrected one by one.

use core::fmt;

use rustc_hash::FxHashMap;

use super::super::definitions::Definitions;
use super::super::latencies::{Site, levels_of};
use super::super::teams::{Track, Turns, sends};
use super::super::{CollectiveKind, EventId, LeftOut, LocationId, Place, TraceError};

/// Error of the correction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The events are not a valid trace in any order.
    Trace(TraceError),
    /// The event waits for others that wait for it.
    Cycle(EventId),
    /// The receive completed before another location posted it, in the order of the stream.
    LatePost(EventId),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(why) => why.fmt(f),
            Self::Cycle(event) => write!(
                f,
                "{event} waits for events that wait for it: correct such a trace in memory, which shows \
                 them"
            ),
            Self::LatePost(event) => write!(
                f,
                "{event} completes a receive that another location posts after it here: correct such a \
                 trace in memory"
            ),
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
pub(crate) type Which = (u32, Track, u32);

/// Collective operation, and the member that takes part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamedOperation {
    pub(crate) which: Which,
    pub(crate) members: u32,
    pub(crate) rank: u32,
    /// True for the first event of the operation.
    pub(super) is_first: bool,
    /// True for the last event of the operation.
    pub(crate) is_last: bool,
}

/// For each track of a team, operations that every member has entered and left; empty before the
/// first one.
pub(super) type TeamTurns = [Vec<Turns>; 3];

/// Contents of a stream: its locations, the numbers of their events, and the properties of
/// collective operations that are known only at their ends.
///
/// It takes 16 bytes for every member of a communicator, and 4 more for each time that a member
/// contributed no data to a collective operation that passes it on.
#[derive(Debug)]
pub struct Census {
    /// Locations, communicators and teams.
    pub(crate) definitions: Definitions,
    /// For all teams, operations that every member enters and leaves.
    pub(super) turns: Vec<TeamTurns>,
    /// Members that contributed no data.
    pub(super) withheld: Withheld,
    /// Number of messages that every location receives after they were sent, in causal order.
    pub(super) received: Vec<u64>,
    /// Largest number of messages under way at a time.
    pub(super) under_way: u32,
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

    /// Returns, for each location that is the first one with its clock, true if there are others.
    pub(crate) fn shared_clocks(&self) -> Vec<bool> {
        let mut is_shared = vec![false; self.clocks().len()];
        for (location, clock) in self.clocks().iter().enumerate() {
            is_shared[*clock as usize] |= location != *clock as usize;
        }
        is_shared
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
        self.turns
            .get(team as usize)
            .map_or(&[], |tracks| &tracks[track as usize])
    }

    /// Returns, for each member of an operation, two flags: it enters, and it leaves.
    pub(super) fn roles(&self, which: Which) -> impl Iterator<Item = [bool; 2]> {
        self.of(which)
            .iter()
            .map(move |of| [of.entered > which.2, of.has_left(which.2)])
    }

    /// Returns true if the member of this rank enters the operation.
    fn enters(&self, which: Which, rank: u32) -> bool {
        let of = self.of(which).get(rank as usize);
        of.is_some_and(|of| of.entered > which.2)
    }

    /// Returns the clock of a member of an operation.
    pub(super) fn clock_of_member(&self, (team, ..): Which, rank: u32) -> Option<u32> {
        let member = self.definitions.members(team).get(rank as usize)?;
        self.clocks().get(*member as usize).copied()
    }

    /// Returns true if exits of a collective operation wait for the enter of the member of this
    /// rank.
    pub(super) fn counts(&self, which: Which, kind: CollectiveKind, root: u32, rank: u32) -> bool {
        sends(kind, root, rank) && self.enters(which, rank) && !self.withheld.has(which, rank)
    }

    /// Does the same as [`counts`](Self::counts) for an exit that states no kind and root, too.
    pub(super) fn is_awaited(
        &self,
        which: Which,
        kind: CollectiveKind,
        root: u32,
        rank: u32,
    ) -> bool {
        match which.1 {
            // The member that enters a fork is its root.
            Track::Fork => self.enters(which, rank),
            _ => self.counts(which, kind, root, rank),
        }
    }
}

/// Members that contributed no data to operations that pass it on: by team, track and rank, the
/// indices of the operations in order.
#[derive(Debug, Default)]
pub(super) struct Withheld(FxHashMap<(u32, Track, u32), Vec<u32>>);

impl Withheld {
    pub(super) fn add(&mut self, (team, track, index): Which, rank: u32) {
        let indices = self.0.entry((team, track, rank)).or_default();
        // Operations mostly end in their order.
        let place = indices.iter().rposition(|other| *other < index);
        indices.insert(place.map_or(0, |place| place + 1), index);
    }

    fn has(&self, (team, track, index): Which, rank: u32) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let indices = self.0.get(&(team, track, rank));
        indices.is_some_and(|indices| indices.binary_search(&index).is_ok())
    }
}
