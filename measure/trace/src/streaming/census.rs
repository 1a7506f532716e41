//! What must be known of a stream before its events can be corrected one by one.

use core::fmt;

use rustc_hash::FxHashSet;

use super::super::definitions::Definitions;
use super::super::latencies::Site;
use super::super::teams::{Track, sends};
use super::super::{CollectiveKind, EventId, LeftOut, LocationId, Place, TraceError};

/// Why a stream cannot be corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The events are no trace, in whatever order.
    Trace(TraceError),
    /// What the event waits for comes later in the stream.
    Disorder(EventId),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(why) => why.fmt(f),
            Self::Disorder(event) => {
                write!(
                    f,
                    "{event} waits for what comes after it here: such a trace is to be corrected in memory"
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

/// Which of the operations of a team: the team, the track, and its number there.
pub(super) type Which = (u32, Track, u32);

/// A collective operation, and who takes part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) number: u64,
    pub(crate) members: u32,
    pub(crate) rank: u32,
    /// Where a census knows of it; nothing, after it was in a record.
    pub(super) which: Option<Which>,
    /// Whether this is the first event of the operation.
    pub(super) is_first: bool,
    /// Whether it is the last.
    pub(crate) is_last: bool,
}

/// Operations of a track so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) begun: u32,
    /// How many every member has entered, and left; nothing as long as there are none.
    pub(super) members: Vec<(u32, u32)>,
}

/// What there is in a stream: locations, what events of them there are, and what of collective operations can be known
/// only at their ends.
///
/// It takes 8 bytes for every member of a communicator, and some more for each that gave no data in a collective operation
/// where others waited for data.
#[derive(Debug)]
pub struct Census {
    /// Without events.
    pub(super) definitions: Definitions,
    /// Of all teams, for their tracks: how many operations every member enters and leaves.
    pub(super) counts: Vec<[Counts; 3]>,
    /// Members that gave no data: the operation, and the rank.
    pub(super) withheld: FxHashSet<(u64, u32)>,
    /// How many messages every location receives; nothing, for the last ones, if none.
    pub(super) received: Vec<u64>,
    /// How many events there are.
    pub events: u64,
    /// How many messages.
    pub messages: u64,
    /// How many collective operations.
    pub collectives: u64,
    /// What has no partner; nothing, unless the builder was lenient.
    pub left_out: LeftOut,
}

impl Census {
    /// Where all locations are.
    pub fn places(&self) -> Vec<Place> {
        self.definitions.places.clone()
    }

    /// The numbers of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        (0..self.definitions.places.len() as u32).map(LocationId)
    }

    pub(crate) fn site(&self, location: u32) -> Site {
        Site {
            location,
            place: self.definitions.places[location as usize],
        }
    }

    /// How many operations a member enters and leaves.
    fn of(&self, (team, track, _): Which) -> &[(u32, u32)] {
        self.counts
            .get(team as usize)
            .map_or(&[], |tracks| &tracks[track as usize].members)
    }

    /// How many events an operation has.
    pub(super) fn events_of(&self, which: Which) -> u32 {
        let has = |count: &u32| u32::from(*count > which.2);
        self.of(which)
            .iter()
            .map(|(entered, left)| has(entered) + has(left))
            .sum()
    }

    /// Whether threads are started there at all.
    pub(super) fn is_forked(&self, which: Which) -> bool {
        self.of(which).iter().any(|(entered, _)| *entered > which.2)
    }

    /// Whether exits of a collective operation wait for the enter of the member of this rank.
    pub(super) fn counts(&self, of: Operation, kind: CollectiveKind, root: u32, rank: u32) -> bool {
        let enters = |which| {
            self.of(which)
                .get(rank as usize)
                .is_some_and(|(entered, _)| *entered > which.2)
        };
        sends(kind, root, rank)
            && of.which.is_some_and(enters)
            && !self.withheld.contains(&(of.number, rank))
    }
}
