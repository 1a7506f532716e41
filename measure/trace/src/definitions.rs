//! Locations, communicators and teams of threads that events refer to.

use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use super::teams::{Participation, Track};
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
    pub(crate) teams: Vec<Vec<u32>>,
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
            teams: vec![],
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
        let team = u32::try_from(self.teams.len()).map_err(|_| TraceError::TooManyCollectives)?;
        for (rank, member) in (0..).zip(members) {
            if self.ranks.insert((team, member.0), rank).is_some() {
                return Err(TraceError::MemberTwice(*member));
            }
        }
        self.teams
            .push(members.iter().map(|member| member.0).collect());
        Ok(CommunicatorId(team))
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
        if communicator as usize >= self.teams.len() {
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
        let rank_of = |location| self.ranks.get(&(team, location)).copied();
        let location = id.location.0;
        let rank = rank_of(location).or_else(|| rank_of(self.processes[location as usize]));
        let rank = rank.ok_or(no_member)?;
        let (stated, roles) = match event {
            Event::CollectiveEnd {
                kind,
                root,
                sent,
                received,
                ..
            } => {
                if kind.has_root() && root as usize >= self.teams[team as usize].len() {
                    return Err(TraceError::OtherRoot {
                        event: id,
                        other: id,
                    });
                }
                let is_skipped = self.matching.skip_alltoallv && kind == CollectiveKind::Alltoallv;
                let has_data = |has: bool| kind == CollectiveKind::Barrier || has && !is_skipped;
                let [sends, receives] = kind.roles(root, rank);
                let roles = [sends && has_data(sent), receives && has_data(received)];
                (Some((kind, root)), roles)
            }
            Event::Fork { .. } => (Some((CollectiveKind::Fork, rank)), [true; 2]),
            Event::Join { .. } => (Some((CollectiveKind::Join, rank)), [false, true]),
            _ => (None, [true; 2]),
        };
        Ok(Some(Participation {
            track,
            team,
            rank,
            enters,
            stated,
            roles,
            request: event.id(),
        }))
    }
}
