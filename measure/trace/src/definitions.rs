//! Locations, communicators and teams of threads that events refer to.

use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use super::teams::{Participation, Seat, Statement, Track};
use super::trace::Mark;
use super::{
    CollectiveKind, CommunicatorId, Event, EventId, LocationId, Matching, Place, TraceError,
};

/// Locations, communicators and teams of a trace.
#[derive(Debug)]
pub(crate) struct Definitions {
    pub(crate) matching: Matching,
    pub(crate) places: Vec<Place>,
    pub(crate) clocks: Clocks,
    /// For every location, the location that represents its process: mostly itself.
    pub(crate) processes: Vec<u32>,
    /// For every team, the locations of its members in the order of their ranks.
    members: Vec<Vec<u32>>,
    /// Ranks by team and location.
    ranks: FxHashMap<(u32, u32), u32>,
}

/// One end of a channel: messages to or from one process, in one communicator, with one tag, which
/// do not overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChannelEnd {
    /// Process at the other end, given by the location that represents it.
    pub(crate) peer: u32,
    pub(crate) communicator: u32,
    pub(crate) tag: i32,
    /// True for the sender's end.
    pub(crate) sends: bool,
}

impl ChannelEnd {
    /// Returns the end of the channel at the peer; `process` is at this end.
    pub(crate) const fn mirrored(self, process: u32) -> Self {
        Self {
            peer: process,
            sends: !self.sends,
            ..self
        }
    }
}

impl Definitions {
    pub(crate) fn new(matching: Matching) -> Self {
        Self {
            matching,
            places: vec![],
            clocks: Clocks::new(matching.clock_of, []),
            processes: vec![],
            members: vec![],
            ranks: FxHashMap::default(),
        }
    }

    pub(crate) fn add_location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        let id = self.places.len() as u32;
        if id == Mark::MOST_LOCATIONS {
            return Err(TraceError::TooManyLocations);
        }
        self.places.push(place);
        self.clocks.add(place);
        self.processes.push(id);
        Ok(LocationId(id))
    }

    pub(crate) fn add_thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        let place = *self
            .places
            .get(rank.index())
            .ok_or(TraceError::UnknownLocation(rank))?;
        let process = self.processes[rank.index()];
        let id = self.add_location(place)?;
        self.processes[id.index()] = process;
        Ok(id)
    }

    pub(crate) fn add_communicator(
        &mut self,
        members: &[LocationId],
    ) -> Result<CommunicatorId, TraceError> {
        if let Some(unknown) = members
            .iter()
            .find(|member| member.index() >= self.places.len())
        {
            return Err(TraceError::UnknownLocation(*unknown));
        }
        let team = u32::try_from(self.members.len()).map_err(|_| TraceError::TooManyCollectives)?;
        for (rank, member) in (0..).zip(members) {
            if self.ranks.insert((team, member.0), rank).is_some() {
                return Err(TraceError::MemberTwice(*member));
            }
        }
        self.members
            .push(members.iter().map(|member| member.0).collect());
        Ok(CommunicatorId(team))
    }

    /// Returns the members of every team.
    pub(crate) fn teams(&self) -> &[Vec<u32>] {
        &self.members
    }

    pub(crate) fn members(&self, team: u32) -> &[u32] {
        &self.members[team as usize]
    }

    /// Returns the channel of a send or receive, as seen by its own process.
    #[inline]
    pub(crate) fn channel(
        &self,
        event: EventId,
        sends: bool,
        peer: u32,
        communicator: u32,
        tag: i32,
    ) -> Result<ChannelEnd, TraceError> {
        let peer = *self
            .processes
            .get(peer as usize)
            .ok_or(TraceError::UnknownPeer(event))?;
        if communicator as usize >= self.members.len() {
            return Err(TraceError::NotAMember {
                event,
                communicator: CommunicatorId(communicator),
            });
        }
        Ok(ChannelEnd {
            peer,
            communicator,
            tag,
            sends,
        })
    }

    /// Returns the role of an event in the operations of a team; `None` if it has none.
    // Inlined because returning the result through memory takes longer than computing it.
    #[inline(always)]
    pub(crate) fn participation(
        &self,
        id: EventId,
        event: Event<'_>,
    ) -> Result<Option<Participation>, TraceError> {
        let (team, track, enters) = match event {
            Event::CollectiveBegin { communicator, .. } => (communicator, Track::Collective, true),
            Event::CollectiveEnd { communicator, .. } => (communicator, Track::Collective, false),
            Event::Fork { team } => (team, Track::Fork, true),
            Event::ThreadBegin { team } => (team, Track::Fork, false),
            Event::ThreadEnd { team } => (team, Track::Join, true),
            Event::Join { team } => (team, Track::Join, false),
            _ => return Ok(None),
        };
        let no_member = TraceError::NotAMember {
            event: id,
            communicator: CommunicatorId(team),
        };
        let seat = self.seat(team, id.location.0).ok_or(no_member)?;
        let by_root = |kind| {
            Some(Statement {
                kind,
                root: seat.rank,
                sent: true,
                received: true,
            })
        };
        let statement = match event {
            Event::CollectiveEnd {
                kind,
                root,
                sent,
                received,
                ..
            } => {
                if kind.has_root() && root as usize >= self.members(seat.team).len() {
                    return Err(TraceError::OtherRoot {
                        event: id,
                        other: id,
                    });
                }
                let counts = !(self.matching.skip_alltoallv && kind == CollectiveKind::Alltoallv);
                Some(Statement {
                    kind,
                    root,
                    sent: sent && counts,
                    received: received && counts,
                })
            }
            Event::Fork { .. } => by_root(CollectiveKind::Fork),
            Event::Join { .. } => by_root(CollectiveKind::Join),
            _ => None,
        };
        Ok(Some(Participation {
            track,
            seat,
            enters,
            statement,
            request: event.id(),
        }))
    }

    /// Returns the seat of a location in a team, or else that of the location that represents its
    /// process.
    fn seat(&self, team: u32, location: u32) -> Option<Seat> {
        let rank = |location| self.ranks.get(&(team, location)).copied();
        let rank = rank(location).or_else(|| rank(self.processes[location as usize]))?;
        Some(Seat { team, rank })
    }
}
