//! What must be known of a stream before its events can be corrected one by one.

use core::fmt;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashSet;

use super::super::definitions::Definitions;
use super::super::latencies::Site;
use super::super::teams::sends;
use super::super::trace::check_time;
use super::super::{
    Action, CollectiveKind, EventId, LeftOut, LocationId, Place, TraceBuilder, TraceError,
};
use super::matcher::{Counts, Links, Ongoing, Which};
use super::{Link, Operation};

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

/// Looks at all events of a stream once, as a [`TraceBuilder`] does; but it does not keep them.
///
/// Locations and communicators are added to a builder, which is asked for them.
#[derive(Debug, Default)]
pub struct Survey {
    links: Links,
    last: Vec<Option<Timestamp<Global>>>,
    withheld: FxHashSet<(u64, u32)>,
    received: Vec<u64>,
    events: u64,
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
    counts: Vec<[Counts; 3]>,
    /// Members that gave no data: the operation, and the rank.
    withheld: FxHashSet<(u64, u32)>,
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

impl Survey {
    /// The next event; `builder` has the locations and communicators that it names.
    ///
    /// # Errors
    /// As of [`TraceBuilder::push`], and when a message is received before it comes.
    pub fn push(
        &mut self,
        builder: &TraceBuilder,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), StreamError> {
        let definitions = &builder.definitions;
        if location.index() >= definitions.places.len() {
            return Err(TraceError::UnknownLocation(location).into());
        }
        if self.last.len() <= location.index() {
            self.last.resize(location.index() + 1, None);
            self.received.resize(location.index() + 1, 0);
        }
        let id = self.links.next(location)?;
        let last = &mut self.last[location.index()];
        check_time(*last, time, id)?;
        *last = Some(time);
        self.events += 1;
        let link = self.links.link(definitions, None, id, action)?;
        if matches!(link, Link::Receive { .. }) {
            self.received[location.index()] += 1;
        }
        self.withheld
            .extend(self.links.over.take().iter().flat_map(Ongoing::withheld));
        Ok(())
    }

    /// All that there is; `builder` has the locations and communicators that the events named.
    ///
    /// # Errors
    /// As of [`TraceBuilder::finish`].
    pub fn finish(mut self, builder: TraceBuilder) -> Result<Census, StreamError> {
        let definitions = builder.definitions;
        let lenient = definitions.matching.lenient;
        let early = || self.links.early.values().flatten().copied();
        let alone = self.links.sent().map(|event| {
            (
                event,
                TraceError::UnmatchedSend as fn(EventId) -> TraceError,
            )
        });
        let alone = alone.chain(early().map(|event| (event, TraceError::UnmatchedReceive as _)));
        if let Some((event, why)) = alone.min_by_key(|(event, _)| *event).filter(|_| !lenient) {
            return Err(why(event).into());
        }
        let sends = self.links.sent().count() as u64;
        let mut left_out = LeftOut {
            sends,
            receives: early().count() as u64,
            collectives: 0,
        };
        let mut ongoing: Vec<_> = self.links.ongoing.iter().collect();
        ongoing.sort_unstable_by_key(|((team, track, index), _)| (*team, *track as u32, *index));
        for ((team, track, index), ongoing) in ongoing {
            self.withheld.extend(ongoing.withheld());
            if ongoing.progress.is_complete(&ongoing.instance) {
                continue;
            }
            if !lenient {
                let counts = &self.links.counts[*team as usize][*track as usize].members;
                let members = definitions.members(*team);
                let refusal = ongoing
                    .progress
                    .refusal(*track, *index, members, counts, |rank| ongoing.enters[rank]);
                return Err(refusal
                    .unwrap_or(TraceError::NotLeft(ongoing.progress.seen))
                    .into());
            }
            left_out.collectives += 1;
        }
        let Links {
            operations, counts, ..
        } = self.links;
        let Self {
            withheld,
            events,
            received,
            ..
        } = self;
        let messages = received.iter().sum();
        Ok(Census {
            definitions,
            counts,
            withheld,
            received,
            events,
            messages,
            collectives: operations,
            left_out,
        })
    }
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
