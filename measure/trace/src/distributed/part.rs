//! Part of a trace on one rank.

use std::collections::BTreeSet;

use downbeat_sync::Comm;
use downbeat_sync::collective::all_reduce;

use super::super::presync::ClockMaps;
use super::super::trace::{Instance, Mark, NONE, Role, Slot};
use super::super::{Array, EventId, Location, LocationId, Pattern, Trace, TraceError};
use super::CorrectionError;
use super::agreement::agree;
use super::exchange::{boxes, exchange};
use super::tree::TeamTree;
use super::words::{event_of, word_of};

/// Events of some locations, and the other ends of their messages.
#[derive(Debug)]
pub struct TracePart {
    /// Locations of other ranks have no times; their marks are other ends of messages, and members
    /// of scans.
    pub(super) trace: Trace,
    pub(super) rank: u32,
    /// Rank that keeps the events of each location.
    pub(super) owners: Vec<u32>,
    pub(super) teams: Vec<Team>,
    /// For each collective operation in order, its name, which is the same on all ranks.
    pub(super) names: Array<u64>,
    /// Operations in which the ranks tell each other directly, by their names: a rank that waited for
    /// the summary of all would wait for itself.
    pub(super) direct: BTreeSet<u64>,
    /// Ranks with which a replay exchanges messages, in [turns](super::exchange::in_turns).
    pub(super) neighbours: Vec<u32>,
    /// All ranks whose events depend on events here or the other way around, in turns.
    pub(super) peers: Vec<u32>,
}

/// Communicator or team of threads.
#[derive(Debug)]
pub(super) struct Team {
    /// Locations of the members, by their ranks.
    pub(super) members: Vec<u32>,
    /// Ranks of the members that are kept here.
    pub(super) kept: Vec<u32>,
    /// Ranks of the program that keep members, in order.
    pub(super) owners: Vec<u32>,
    /// Place of this rank in the tree of owners; `None` if all owners tell each other directly, or
    /// this rank keeps no members.
    pub(super) tree: Option<TeamTree>,
}

/// Makes the only rank of a program keep all events.
impl From<Trace> for TracePart {
    fn from(trace: Trace) -> Self {
        let owners = vec![0; trace.locations.len()];
        Self {
            trace,
            rank: 0,
            owners,
            teams: vec![],
            names: Array::default(),
            direct: BTreeSet::new(),
            neighbours: vec![],
            peers: vec![],
        }
    }
}

/// Returns the kept events as a trace, in which locations of other ranks have no events.
impl AsRef<Trace> for TracePart {
    fn as_ref(&self) -> &Trace {
        &self.trace
    }
}

impl TracePart {
    /// Returns the kept events.
    pub(crate) fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Returns all locations, in the order of their ids; those of other ranks have no times.
    pub fn locations(&self) -> &[Location] {
        self.trace.locations()
    }

    /// Returns the ids of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        self.trace.ids()
    }

    /// Returns the rank that keeps the events of a location; `None` if there is no such location.
    pub fn owner(&self, location: LocationId) -> Option<u32> {
        self.owners.get(location.index()).copied()
    }

    /// Checks on all ranks that another part has the same numbers of events.
    pub(crate) async fn agree_on_events<C: Comm>(
        &self,
        other: &Self,
        comm: &C,
    ) -> Result<(), CorrectionError> {
        let counts = |part: &Self| {
            let counts = part.locations().iter().map(|of| of.times().len());
            counts.collect::<Vec<_>>()
        };
        let is_same = u64::from(counts(self) == counts(other));
        match all_reduce(comm, is_same, u64::min).await? {
            1 => Ok(()),
            _ => Err(CorrectionError::OtherTruth),
        }
    }

    /// Corrects the times of all events, which must be those of their locations' own clocks, as
    /// [`ClockMaps::correct`] does.
    ///
    /// # Errors
    /// If a time is more than 146 years from the origin, or a rank is gone. The part cannot be used
    /// any more then.
    pub async fn correct<C: Comm>(
        &mut self,
        maps: &ClockMaps,
        comm: &C,
    ) -> Result<(), CorrectionError> {
        let fault = maps.correct(&mut self.trace).err().map(|why| match why {
            TraceError::Decreasing(event) | TraceError::TooFar(event) => (word_of(event), why),
            _ => (u64::MAX, why),
        });
        agree(comm, fault).await
    }

    /// Returns the locations whose events are kept here.
    pub(super) fn own(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.owners)
            .filter(|(_, owner)| **owner == self.rank)
            .map(|(location, _)| location)
    }

    pub(super) fn is_own(&self, location: u32) -> bool {
        self.owners[location as usize] == self.rank
    }

    /// Returns the first location with the same clock.
    pub(super) fn clock_of(&self, location: u32) -> u32 {
        self.trace.locations[location as usize].clock
    }

    pub(super) fn instance(&self, instance: u32) -> &Instance {
        &self.trace.instances[instance as usize]
    }

    pub(super) fn team(&self, instance: u32) -> &Team {
        &self.teams[self.instance(instance).team as usize]
    }

    /// Returns the name of an operation, which is the same on all ranks; names are in the order of
    /// operations.
    pub(super) fn name(&self, instance: u32) -> u64 {
        let name = self.names.get(instance as usize).copied();
        name.unwrap_or(instance.into())
    }

    /// Returns the index of the operation with this name, if it is known here.
    pub(super) fn named(&self, name: u64) -> Option<u32> {
        // The names are sorted.
        self.names
            .binary_search(&name)
            .ok()
            .map(|instance| instance as u32)
    }

    /// Returns the collective operations in which members of other ranks take part, too.
    pub(super) fn shared(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.trace.instances.len() as u32).filter(|instance| self.is_shared(*instance))
    }

    pub(super) fn is_shared(&self, instance: u32) -> bool {
        let team = self.teams.get(self.instance(instance).team as usize);
        team.is_some_and(|team| team.owners.len() > 1)
    }

    /// Returns true if members wait only for lower ranks, so that each of them must be known
    /// separately.
    pub(super) fn is_ordered(&self, instance: u32) -> bool {
        self.instance(instance).kind.pattern() == Pattern::ToLater
    }

    /// Returns the ranks whose members others may wait for.
    pub(super) fn givers(&self, instance: u32) -> &[u32] {
        self.some(instance, Pattern::FromRoot)
    }

    /// Returns the ranks whose members may wait for others.
    pub(super) fn takers(&self, instance: u32) -> &[u32] {
        self.some(instance, Pattern::ToRoot)
    }

    /// Returns all ranks that take part, or only the root's for the pattern `alone`.
    fn some(&self, instance: u32, alone: Pattern) -> &[u32] {
        let (found, team) = (self.instance(instance), self.team(instance));
        if found.kind.pattern() != alone {
            return &team.owners;
        }
        // The root is a member, otherwise the operation would not exist.
        std::slice::from_ref(&self.owners[team.members[found.root as usize] as usize])
    }

    /// Returns the place of this rank in the tree of an operation that ranks share; `None` if they
    /// tell each other directly.
    pub(super) fn tree(&self, instance: u32) -> Option<&TeamTree> {
        let tree = self
            .teams
            .get(self.instance(instance).team as usize)?
            .tree
            .as_ref();
        let is_direct = self.direct.contains(&self.name(instance));
        tree.filter(|_| !is_direct && !self.is_ordered(instance))
    }

    /// Returns the ranks at the other ends of messages, and those with members of collective
    /// operations: all of them, or only those next to this one in trees.
    pub(super) fn find_neighbours(&self, in_trees: bool) -> BTreeSet<u32> {
        let marks = self
            .own()
            .flat_map(|location| &self.trace.locations[location as usize].marks);
        let messages = marks.filter(|mark| matches!(mark.role(), Role::Send | Role::Receive));
        let mut found: BTreeSet<u32> = messages
            .map(|mark| self.owners[mark.peer() as usize])
            .collect();
        let shared = self.shared().map(|instance| {
            let in_tree = in_trees && self.tree(instance).is_some();
            (self.instance(instance).team as usize, in_tree)
        });
        for (team, in_tree) in shared.collect::<BTreeSet<_>>() {
            let team = &self.teams[team];
            match team.tree.as_ref().filter(|_| in_tree) {
                Some(tree) => found.extend(tree.neighbours()),
                None => found.extend(&team.owners),
            }
        }
        found.remove(&self.rank);
        found
    }

    /// Exchanges which members count in scans and exscans, where the order of the ranks matters.
    pub(super) async fn complete_ordered<C: Comm>(
        &mut self,
        comm: &C,
    ) -> Result<(), CorrectionError> {
        let ordered: Vec<u32> = self
            .shared()
            .filter(|instance| self.is_ordered(*instance))
            .collect();
        let (mut out, mut inbox) = (boxes(comm), boxes(comm));
        for instance in &ordered {
            let (found, name) = (*self.instance(*instance), self.names[*instance as usize]);
            let team = &self.teams[found.team as usize];
            let mut slots = vec![];
            slots.extend(team.members.iter().map(|location| Slot {
                location: *location,
                enter: NONE,
                exit: NONE,
            }));
            for (rank, slot) in team.kept.iter().zip(self.trace.slots_of(&found)) {
                slots[*rank as usize] = *slot;
                let Some(mark) = self.trace.locations[slot.location as usize]
                    .marks
                    .get(slot.enter as usize)
                else {
                    continue;
                };
                let event = EventId {
                    location: LocationId(slot.location),
                    event: mark.event,
                };
                for owner in team.owners.iter().filter(|owner| **owner != self.rank) {
                    out[*owner as usize].extend([name, (*rank).into(), word_of(event)]);
                }
            }
            let renewed = &mut self.trace.instances[*instance as usize];
            (renewed.first, renewed.members) = (self.trace.slots.len(), slots.len() as u32);
            self.trace.slots.extend_from_slice(&slots)?;
        }
        exchange(comm, &self.peers, &mut out, &mut inbox).await?;
        for [name, rank, event] in inbox.iter().flat_map(|words| words.as_chunks().0) {
            let Some(instance) = self.named(*name) else {
                continue;
            };
            let (at, event) = (
                self.instance(instance).first + *rank as usize,
                event_of(*event),
            );
            let marks = &mut self.trace.locations[event.location.index()].marks;
            self.trace.slots[at].location = event.location.0;
            self.trace.slots[at].enter = marks.len() as u32;
            marks.push(Mark::new(event.event, Role::Enter, *rank as u32, instance))?;
        }
        Ok(())
    }
}
