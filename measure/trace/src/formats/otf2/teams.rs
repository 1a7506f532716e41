//! Communicators and teams of an archive as those of a trace, and their members.

use std::collections::HashMap;

use crate::{CommunicatorId, Event, LocationId};
use downbeat_otf2::Paradigm;
use rustc_hash::FxHashMap;

use super::Otf2Error;
use super::definitions::{Otf2Communicator, Otf2Definitions};
use super::error::ReadError;
use super::unexamined::Relation;
use crate::formats::sink::{EventSink, TraceSink};

/// Communicator of an archive.
#[derive(Clone, Debug)]
pub(super) enum Otf2Team {
    Within {
        id: CommunicatorId,
        members: Vec<LocationId>,
    },
    /// A communicator of each location alone: one for all of them, unless each has its own.
    Own(Option<CommunicatorId>),
    Between {
        id: CommunicatorId,
        sides: [Vec<LocationId>; 2],
    },
}

/// Locations and communicators, shared by all locations while a trace is read.
#[derive(Clone, Debug)]
pub(super) struct Otf2Teams {
    teams: FxHashMap<u32, Otf2Team>,
    /// Communicators of the operations on RMA windows, which have an order of their own, and those of the archive that they were made
    /// from.
    windows: FxHashMap<u32, (CommunicatorId, u32)>,
    /// Communicators of one location each, created at their first use.
    own: FxHashMap<(u32, LocationId), CommunicatorId>,
    /// Locations in the order of the archive.
    pub(super) locations: Vec<LocationId>,
    /// Location with the MPI rank of each location's process, if there is one.
    ranks: FxHashMap<LocationId, LocationId>,
    /// Communicators of all MPI ranks for `MPI_Init` and `MPI_Finalize`.
    pub(super) starts: Option<CommunicatorId>,
    pub(super) ends: Option<CommunicatorId>,
    /// Number of communicators of an exact trace.
    communicators: u32,
}

impl Otf2Teams {
    /// Adds all locations and communicators of the archive.
    pub(super) fn new<S: TraceSink>(
        definitions: &Otf2Definitions,
        sink: &mut S,
    ) -> Result<Self, ReadError<S::Error>> {
        let mut all = ArchiveLocations::new(definitions);
        all.add(sink)?;
        let is_exact = definitions.exact.is_some();
        let (mut teams, mut within) = (FxHashMap::default(), 0);
        for (reference, communicator) in &definitions.communicators {
            let team = match *communicator {
                Otf2Communicator::Within(group) => match all.members_of(group)? {
                    Some(members) => Otf2Team::Within {
                        id: sink.add_communicator(&members).map_err(ReadError::Sink)?,
                        members,
                    },
                    None => Otf2Team::Own(sink.own_communicator().map_err(ReadError::Sink)?),
                },
                Otf2Communicator::Between([a, b]) => {
                    let [a, b] = [all.members_of(a)?, all.members_of(b)?];
                    let sides = [a.unwrap_or_default(), b.unwrap_or_default()];
                    let id = sink.add_communicator(&sides.concat());
                    let id = id.map_err(ReadError::Sink)?;
                    Otf2Team::Between { id, sides }
                }
            };
            within += u32::from(matches!(team, Otf2Team::Within { .. }));
            teams.insert(*reference, team);
        }
        let mut windows = FxHashMap::default();
        for (reference, communicator) in &definitions.windows {
            if let Some(Otf2Team::Within { id, members }) = teams.get(communicator) {
                // In an exact trace, a window is its communicator.
                let id = match is_exact {
                    true => *id,
                    false => sink.add_communicator(members).map_err(ReadError::Sink)?,
                };
                windows.insert(*reference, (id, *communicator));
            }
        }
        let ranks = all.of_ranks();
        let mut add_all = || sink.add_communicator(&ranks).map_err(ReadError::Sink);
        let [starts, ends] = if ranks.is_empty() || is_exact {
            [None; 2]
        } else {
            [Some(add_all()?), Some(add_all()?)]
        };
        Ok(Self {
            teams,
            windows,
            own: FxHashMap::default(),
            locations: all.locations,
            ranks: all.ranks,
            starts,
            ends,
            communicators: within,
        })
    }

    /// Returns true if an exact trace has what an event refers to.
    pub(super) fn has_ends_of(&self, event: Event<'_>) -> bool {
        let has_peer = |peer: u32| (peer as usize) < self.locations.len();
        event.peer().is_none_or(has_peer)
            && event
                .communicator()
                .is_none_or(|number| number < self.communicators)
    }

    /// Returns the communicator, if its members can wait for each other.
    pub(super) fn within(&self, communicator: u32) -> Option<CommunicatorId> {
        match self.teams.get(&communicator)? {
            Otf2Team::Within { id, .. } => Some(*id),
            Otf2Team::Own(_) | Otf2Team::Between { .. } => None,
        }
    }

    /// Returns the communicator of operations on an RMA window, and its members.
    pub(super) fn window(&self, window: u32) -> Option<(CommunicatorId, &[LocationId])> {
        let (id, communicator) = self.windows.get(&window)?;
        match self.teams.get(communicator)? {
            Otf2Team::Within { members, .. } => Some((*id, members)),
            Otf2Team::Own(_) | Otf2Team::Between { .. } => None,
        }
    }

    /// Returns the kind of relation of operations in a communicator that are not examined; `None` for
    /// that of each location alone, in which there are no relations.
    pub(super) fn unexamined(&self, communicator: u32) -> Option<Relation> {
        match self.teams.get(&communicator) {
            None => Some(Relation::UndefinedPeer),
            Some(Otf2Team::Between { .. }) => Some(Relation::Intercommunicator),
            Some(Otf2Team::Own(_) | Otf2Team::Within { .. }) => None,
        }
    }

    /// Returns true if the location has an MPI rank of its own.
    pub(super) fn is_rank(&self, location: LocationId) -> bool {
        self.ranks.get(&location) == Some(&location)
    }

    /// Returns the location with the MPI rank of a location's process; the location itself, if
    /// there is none.
    pub(super) fn rank_of(&self, location: LocationId) -> LocationId {
        self.ranks.get(&location).copied().unwrap_or(location)
    }

    /// Returns the other end of a message, and its communicator; `None` if it does not exist.
    pub(super) fn peer<S: EventSink>(
        &mut self,
        sink: &mut S,
        location: LocationId,
        communicator: u32,
        rank: u32,
    ) -> Result<Option<(LocationId, CommunicatorId)>, S::Error> {
        let own = self.rank_of(location);
        let rank = rank as usize;
        Ok(match self.teams.get(&communicator) {
            None => None,
            Some(Otf2Team::Within { id, members }) => members.get(rank).map(|&peer| (peer, *id)),
            Some(Otf2Team::Between { id, sides }) => {
                let other = usize::from(sides[0].contains(&own));
                sides[other].get(rank).map(|&peer| (peer, *id))
            }
            Some(Otf2Team::Own(Some(id))) if rank == 0 => Some((own, *id)),
            Some(Otf2Team::Own(None)) if rank == 0 => {
                let id = match self.own.get(&(communicator, own)) {
                    Some(id) => Some(*id),
                    None => sink.communicator_of(own)?,
                };
                self.own.extend(id.map(|id| ((communicator, own), id)));
                id.map(|id| (own, id))
            }
            Some(Otf2Team::Own(_)) => None,
        })
    }
}

/// Locations of an archive while they are added.
struct ArchiveLocations<'a> {
    definitions: &'a Otf2Definitions,
    /// Indices of the locations of the archive.
    at: HashMap<u64, usize>,
    /// Those that were added, in the order of the archive.
    locations: Vec<LocationId>,
    /// As in [`Otf2Teams`].
    ranks: FxHashMap<LocationId, LocationId>,
}

impl<'a> ArchiveLocations<'a> {
    fn new(definitions: &'a Otf2Definitions) -> Self {
        let ids = definitions.locations.iter().map(|found| found.id);
        Self {
            definitions,
            at: ids.zip(0..).collect(),
            locations: vec![],
            ranks: FxHashMap::default(),
        }
    }

    /// Adds all locations. Ranks are added first, as other threads refer to the rank of
    /// their process; in an exact trace, they are before their threads.
    fn add<S: TraceSink>(&mut self, sink: &mut S) -> Result<(), ReadError<S::Error>> {
        let definitions = self.definitions;
        let mut is_rank = vec![false; definitions.locations.len()];
        let mut rank_of_process: HashMap<u32, usize> = HashMap::new();
        for rank in definitions.ranks(Paradigm::MPI) {
            let i = *self
                .at
                .get(rank)
                .ok_or_else(|| self.undefined("MPI's ranks", *rank))?;
            is_rank[i] = true;
            let process = definitions.locations[i].process;
            rank_of_process.entry(process).or_insert(i);
        }
        let is_exact = definitions.exact.is_some();
        let (first, second): (Vec<usize>, Vec<usize>) =
            (0..is_rank.len()).partition(|&i| is_exact || is_rank[i]);
        // Locations of processes without a rank.
        let mut first_of_process: HashMap<u32, LocationId> = HashMap::new();
        let mut ids: Vec<Option<LocationId>> = vec![None; is_rank.len()];
        for i in first.into_iter().chain(second) {
            let process = definitions.locations[i].process;
            let rank = rank_of_process.get(&process).and_then(|&rank| ids[rank]);
            let first = rank.or_else(|| first_of_process.get(&process).copied());
            let id = match first {
                Some(first) if !is_rank[i] => sink.add_thread(i, first),
                _ => sink.add_location(i, definitions.place_of(process)),
            };
            let id = id.map_err(ReadError::Sink)?;
            ids[i] = Some(id);
            first_of_process.entry(process).or_insert(id);
            if is_rank[i] || rank.is_some() {
                let rank = rank.filter(|_| !is_rank[i]);
                self.ranks.insert(id, rank.unwrap_or(id));
            }
        }
        self.locations = ids.into_iter().flatten().collect();
        Ok(())
    }

    /// Returns the members of a group; `None` if there is none, or if it is that of each
    /// location alone.
    fn members_of(&self, group: u32) -> Result<Option<Vec<LocationId>>, Otf2Error> {
        let Some(members) = self.definitions.members(group) else {
            return Ok(None);
        };
        let known = |id: &u64| {
            let index = self
                .at
                .get(id)
                .ok_or_else(|| self.undefined("a communicator", *id))?;
            Ok(self.locations[*index])
        };
        members
            .iter()
            .map(known)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Returns the locations with an MPI rank, in the order of the ranks.
    fn of_ranks(&self) -> Vec<LocationId> {
        let ranks = self.definitions.ranks(Paradigm::MPI).iter();
        let indices = ranks.filter_map(|rank| self.at.get(rank));
        indices.map(|index| self.locations[*index]).collect()
    }

    fn undefined(&self, group: &str, location: u64) -> Otf2Error {
        Otf2Error::content(
            &self.definitions.path,
            format!("{group} include location {location}, which is not defined"),
        )
    }
}
