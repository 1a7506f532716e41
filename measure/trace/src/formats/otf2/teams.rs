//! Communicators and teams of an archive as those of a trace, and their members.

use downbeat_otf2::Paradigm;
use rustc_hash::FxHashMap;

use super::definitions::{Otf2Communicator, Otf2Definitions};
use super::unexamined::Relation;
use super::{Archive, Otf2Error};
use crate::{CommunicatorId, Event, LocationId, TraceBuilder, TraceError};

/// Communicator of an archive.
#[derive(Debug)]
enum Otf2Team {
    Within {
        id: CommunicatorId,
        members: Vec<LocationId>,
    },
    /// A communicator of each location alone: one without members for all of them.
    Own(CommunicatorId),
    Between {
        id: CommunicatorId,
        sides: [Vec<LocationId>; 2],
    },
}

/// Locations and communicators, shared by all locations while a trace is read.
#[derive(Debug)]
pub(super) struct Otf2Teams {
    teams: FxHashMap<u32, Otf2Team>,
    /// Communicators of the operations on RMA windows, which have an order of their own,
    /// and those of the archive that they were made from.
    windows: FxHashMap<u32, (CommunicatorId, u32)>,
    /// Number of communicators that have members. Those of each location alone follow
    /// them.
    pub(super) with_members: u32,
    /// Locations in the order of the archive.
    pub(super) locations: Vec<LocationId>,
    /// Location with the MPI rank of each location's process, if there is one.
    ranks: FxHashMap<LocationId, LocationId>,
    /// Communicators of all MPI ranks for `MPI_Init` and `MPI_Finalize`.
    pub(super) starts: Option<CommunicatorId>,
    pub(super) ends: Option<CommunicatorId>,
}

impl Otf2Teams {
    /// Adds all locations and communicators of the archive to an empty builder.
    ///
    /// # Errors
    /// If the definitions are inconsistent.
    pub(super) fn new(archive: &Archive, builder: &mut TraceBuilder) -> Result<Self, Otf2Error> {
        let bad = |why| Otf2Error::Trace {
            path: archive.anchor().to_owned(),
            why,
            named: vec![],
        };
        let definitions = &archive.definitions;
        let all = ArchiveLocations::new(definitions)?;
        let (locations, ranks) = all.add(builder).map_err(bad)?;
        let members = |group| all.members_of(group, &locations);
        let (mut teams, mut windows) = (FxHashMap::default(), FxHashMap::default());
        for (reference, communicator) in &definitions.communicators {
            let team = match *communicator {
                Otf2Communicator::Within(group) => {
                    let Some(members) = members(group)? else {
                        continue;
                    };
                    let id = builder.add_communicator(&members).map_err(bad)?;
                    Otf2Team::Within { id, members }
                }
                Otf2Communicator::Between([a, b]) => {
                    let sides = [members(a)?, members(b)?].map(Option::unwrap_or_default);
                    let id = builder.add_communicator(&sides.concat()).map_err(bad)?;
                    Otf2Team::Between { id, sides }
                }
            };
            teams.insert(*reference, team);
        }
        for (reference, communicator) in &definitions.windows {
            if let Some(Otf2Team::Within { id, members }) = teams.get(communicator) {
                // In an exact trace, a window is its communicator.
                let id = match definitions.exact.is_some() {
                    true => *id,
                    false => builder.add_communicator(members).map_err(bad)?,
                };
                windows.insert(*reference, (id, *communicator));
            }
        }
        let all_ranks: Vec<_> = all.ranks.iter().map(|index| locations[*index]).collect();
        let is_started = !all_ranks.is_empty() && definitions.exact.is_none();
        let mut add_all = || builder.add_communicator(&all_ranks).map_err(bad);
        let starts = is_started.then(&mut add_all).transpose()?;
        let ends = is_started.then(add_all).transpose()?;
        let with_members = builder.definitions.teams.len() as u32;
        for reference in definitions.communicators.keys() {
            if !teams.contains_key(reference) {
                let id = builder.add_communicator(&[]).map_err(bad)?;
                teams.insert(*reference, Otf2Team::Own(id));
            }
        }
        Ok(Self {
            teams,
            windows,
            with_members,
            locations,
            ranks,
            starts,
            ends,
        })
    }

    /// Returns true if an exact trace has what an event refers to.
    pub(super) fn has_ends_of(&self, event: Event<'_>) -> bool {
        let has_peer = |peer: u32| (peer as usize) < self.locations.len();
        event.peer().is_none_or(has_peer)
            && event
                .communicator()
                .is_none_or(|number| number < self.with_members)
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
    #[inline]
    pub(super) fn peer(
        &self,
        location: LocationId,
        communicator: u32,
        rank: u32,
    ) -> Option<(LocationId, CommunicatorId)> {
        let (peer, id) = match self.teams.get(&communicator)? {
            Otf2Team::Within { id, members } => (members.get(rank as usize), id),
            Otf2Team::Between { id, sides } => {
                let other = usize::from(sides[0].contains(&self.rank_of(location)));
                (sides[other].get(rank as usize), id)
            }
            Otf2Team::Own(id) => return (rank == 0).then(|| (self.rank_of(location), *id)),
        };
        Some((*peer?, *id))
    }
}

/// Locations of an archive by their references.
struct ArchiveLocations<'a> {
    definitions: &'a Otf2Definitions,
    /// Indices of the locations in the archive.
    indices: FxHashMap<u64, usize>,
    /// Indices of those with an MPI rank, in the order of the ranks.
    ranks: Vec<usize>,
}

/// Locations in the order of the archive, and the location with the MPI rank of each
/// location's process, if there is one.
type AddedLocations = (Vec<LocationId>, FxHashMap<LocationId, LocationId>);

impl<'a> ArchiveLocations<'a> {
    fn new(definitions: &'a Otf2Definitions) -> Result<Self, Otf2Error> {
        let ids = definitions.locations.iter().map(|found| found.reference.0);
        let mut all = Self {
            definitions,
            indices: ids.zip(0..).collect(),
            ranks: vec![],
        };
        let ranks = definitions.ranks(Paradigm::MPI).iter();
        let ranks = ranks.map(|rank| all.index_of(*rank, "MPI's ranks"));
        all.ranks = ranks.collect::<Result<_, _>>()?;
        Ok(all)
    }

    /// Returns the index of a location that a group contains.
    fn index_of(&self, location: u64, group: &str) -> Result<usize, Otf2Error> {
        self.indices.get(&location).copied().ok_or_else(|| {
            let why = format!("{group} include location {location}, which is not defined");
            Otf2Error::content(&self.definitions.path, why)
        })
    }

    /// Adds all locations. Ranks are added first, as other threads refer to the rank of
    /// their process; in an exact trace, they are before their threads.
    fn add(&self, builder: &mut TraceBuilder) -> Result<AddedLocations, TraceError> {
        let definitions = self.definitions;
        let mut is_rank = vec![false; definitions.locations.len()];
        let mut rank_of_process: FxHashMap<u32, usize> = FxHashMap::default();
        for &rank in &self.ranks {
            is_rank[rank] = true;
            let process = definitions.locations[rank].group.0;
            rank_of_process.entry(process).or_insert(rank);
        }
        let is_exact = definitions.exact.is_some();
        let (first, second): (Vec<usize>, Vec<usize>) =
            (0..is_rank.len()).partition(|&index| is_exact || is_rank[index]);
        let mut ranks = FxHashMap::default();
        // Locations of processes without a rank.
        let mut first_of_process: FxHashMap<u32, LocationId> = FxHashMap::default();
        let mut ids: Vec<Option<LocationId>> = vec![None; is_rank.len()];
        for index in first.into_iter().chain(second) {
            let process = definitions.locations[index].group.0;
            let rank = rank_of_process.get(&process).and_then(|&rank| ids[rank]);
            let first = rank.or_else(|| first_of_process.get(&process).copied());
            let id = match first {
                Some(first) if !is_rank[index] => builder.add_thread(first)?,
                _ => builder.add_location(definitions.place_of(process))?,
            };
            ids[index] = Some(id);
            first_of_process.entry(process).or_insert(id);
            if is_rank[index] || rank.is_some() {
                let rank = rank.filter(|_| !is_rank[index]);
                ranks.insert(id, rank.unwrap_or(id));
            }
        }
        Ok((ids.into_iter().flatten().collect(), ranks))
    }

    /// Returns the members of a group; `None` if there is none, or if it is that of each
    /// location alone.
    fn members_of(
        &self,
        group: u32,
        locations: &[LocationId],
    ) -> Result<Option<Vec<LocationId>>, Otf2Error> {
        let Some(members) = self.definitions.members(group) else {
            return Ok(None);
        };
        let known = |id: &u64| Ok(locations[self.index_of(*id, "a communicator")?]);
        members
            .iter()
            .map(known)
            .collect::<Result<_, _>>()
            .map(Some)
    }
}
