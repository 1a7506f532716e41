//! What one rank keeps of a trace.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use super::super::builder::FaultKey;
use super::super::trace::{Instance, Mark, NONE, Role, Slot};
use super::super::{
    ClockMaps, EventId, Location, LocationId, Matching, Pattern, Trace, TraceBuilder, TraceError,
};
use super::PartError;
use super::exchange::{boxes, exchange, heard, in_turns};
use super::keeping::{Keeping, Shares};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Makes a [`TracePart`] of the events of all locations: a [`TraceBuilder`] that keeps those of some of them. All ranks add
/// the same, in the same order. Where that fails on one, the others may not notice, so that ranks must tell each other:
/// what came first is what one rank alone would have found.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_trace::{Action, ControlledLogicalClock, Latencies, Matching, PartBuilder, PartError, Place, Shares};
/// use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // Two processes with one thread and one event each, for two ranks.
/// let shares = Shares::new(2, &[(0, 1), (1, 1)]);
/// let times = ThreadCluster::new(2).run(|comm| {
///     let mut builder = PartBuilder::new(Matching::default(), shares.clone(), comm.rank());
///     let sender = builder.add_location(Place { node: 0, process: 0 })?;
///     let receiver = builder.add_location(Place { node: 1, process: 1 })?;
///     let world = builder.add_communicator(&[sender, receiver])?;
///     builder.push(sender, Timestamp::from_nanos(500), Action::Send { to: receiver, communicator: world, tag: 7 })?;
///     builder.push(receiver, Timestamp::from_nanos(300), Action::Receive { from: sender, communicator: world, tag: 7 })?;
///     block_on_ready(async {
///         let part = builder.finish(comm).await?;
///         let corrected = ControlledLogicalClock::new(Latencies::ZERO).forward_part(&part, comm).await?;
///         Ok::<_, PartError>(corrected.times()[comm.rank() as usize].clone())
///     })
/// })?;
/// // Either rank has its own.
/// assert_eq!(times, [Ok(vec![Timestamp::from_nanos(500)]), Ok(vec![Timestamp::from_nanos(500)])]);
/// # Ok(())
/// # }
/// ```
///
/// # Cost
/// A rank needs memory for its own events as for a trace; 32 bytes more for every message while latencies are measured; 20
/// for every message with another rank, and 32 while they tell each other of all of these; about 150 bytes for every
/// collective operation of a communicator in which it has members, however many others there are, but for scans and
/// exscans 32 more for each of these. Beside that it keeps some 200 bytes for each location, and the members of
/// communicators.
///
/// Ranks exchange what they have for each other whenever all of them wait: so this takes as many steps as there are
/// messages between ranks that wait for one another, one by one.
#[derive(Debug)]
pub struct PartBuilder {
    builder: TraceBuilder,
}

/// The events of some locations, and the other ends of their messages.
#[derive(Debug)]
pub struct TracePart {
    /// Locations of other ranks have no times; their marks are other ends of messages, and members of scans.
    pub(super) trace: Trace,
    pub(super) rank: u32,
    /// Who keeps the events of every location.
    pub(super) owners: Vec<u32>,
    pub(super) teams: Vec<Team>,
    /// Of each collective operation, in their order, what all ranks call it.
    pub(super) names: Vec<u64>,
    /// The ranks that events here depend on, or that depend on these, in [turns](in_turns).
    pub(super) neighbours: Vec<u32>,
}

/// A communicator, or a team of threads.
#[derive(Debug)]
pub(super) struct Team {
    /// By their ranks in it.
    pub(super) members: Vec<u32>,
    /// Ranks in it of those that are kept here.
    pub(super) kept: Vec<u32>,
    /// Who keeps members; in order.
    pub(super) owners: Vec<u32>,
}

impl Deref for PartBuilder {
    type Target = TraceBuilder;

    fn deref(&self) -> &TraceBuilder {
        &self.builder
    }
}

impl DerefMut for PartBuilder {
    fn deref_mut(&mut self) -> &mut TraceBuilder {
        &mut self.builder
    }
}

impl PartBuilder {
    /// Nothing yet, of what this rank is to keep.
    pub fn new(matching: Matching, shares: Shares, rank: u32) -> Self {
        let mut builder = TraceBuilder::new(matching);
        builder.keeping = Some(Keeping::new(shares, rank));
        Self { builder }
    }

    /// How many events were added, of all locations, also if they are not kept.
    pub fn added(&self) -> u64 {
        self.builder.keeping.as_ref().map_or(0, Keeping::added)
    }

    /// The part, now that all events are there, on all ranks.
    ///
    /// # Errors
    /// As [`TraceBuilder::finish`], on all ranks; and when a rank is gone.
    pub async fn finish<C: Comm>(self, comm: &C) -> Result<TracePart, PartError> {
        let left = self.builder.channels.left(&self.builder.locations);
        agree(comm, self.builder.first_fault(&left)).await?;
        let (trace, matched, processes, keeping) = self.builder.close(left);
        let owner = |process: &u32| {
            keeping
                .as_ref()
                .map_or(0, |keeping| keeping.shares.owner(*process))
        };
        let owners: Vec<u32> = processes.iter().map(owner).collect();
        let team = |(members, kept): (Vec<u32>, Option<Vec<u32>>)| {
            let owners: BTreeSet<u32> = members
                .iter()
                .map(|member| owners[*member as usize])
                .collect();
            Team {
                members,
                kept: kept.unwrap_or_default(),
                owners: owners.into_iter().collect(),
            }
        };
        let teams = matched.teams.into_iter().map(team).collect();
        let names = matched.names;
        let mut part = TracePart {
            trace,
            rank: comm.rank(),
            owners,
            teams,
            names,
            neighbours: vec![],
        };
        part.neighbours = in_turns(comm, part.find_neighbours());
        part.complete_ordered(comm).await?;
        Ok(part)
    }
}

/// All ranks fail with the first of all faults, or none does.
async fn agree<C: Comm>(
    comm: &C,
    fault: Option<(FaultKey, Option<TraceError>)>,
) -> Result<(), PartError> {
    const NOTHING: [u64; 3] = [u64::MAX; 3];
    let (mine, why) = match fault {
        Some(([a, b, c, d], why)) => {
            let speaker = if why.is_some() {
                comm.rank().into()
            } else {
                u64::MAX
            };
            (
                [
                    u64::from(a) << 32 | u64::from(b),
                    u64::from(c) << 32 | u64::from(d),
                    speaker,
                ],
                why,
            )
        }
        None => (NOTHING, None),
    };
    let first = all_reduce(comm, mine, Ord::min).await?;
    if first == NOTHING {
        return Ok(());
    }
    let words = why.filter(|_| mine == first).map_or([0; 3], words_of);
    Err(PartError::Trace(error_of(
        all_reduce(comm, words, heard).await?,
    )))
}

/// An event in a word.
pub(super) fn word_of(event: EventId) -> u64 {
    u64::from(event.location.0) << 32 | u64::from(event.event)
}

/// The event of a word.
pub(super) fn event_of(word: u64) -> EventId {
    EventId {
        location: LocationId((word >> 32) as u32),
        event: word as u32,
    }
}

/// Of those errors that are found when all events are there.
fn words_of(why: TraceError) -> [u64; 3] {
    match why {
        TraceError::UnmatchedSend(event) => [0, word_of(event), 0],
        TraceError::UnmatchedReceive(event) => [1, word_of(event), 0],
        TraceError::NotEntered(event) => [2, word_of(event), 0],
        TraceError::Absent { event, absent } => [3, word_of(event), absent.0.into()],
        TraceError::Decreasing(event) => [4, word_of(event), 0],
        TraceError::TooFar(event) => [5, word_of(event), 0],
        TraceError::NotLeft(event) => [6, word_of(event), 0],
        other => {
            debug_assert!(false, "{other} is found when events are added");
            [u64::MAX; 3]
        }
    }
}

fn error_of([kind, event, absent]: [u64; 3]) -> TraceError {
    let event = event_of(event);
    match kind {
        0 => TraceError::UnmatchedSend(event),
        1 => TraceError::UnmatchedReceive(event),
        2 => TraceError::NotEntered(event),
        3 => TraceError::Absent {
            event,
            absent: LocationId(absent as u32),
        },
        4 => TraceError::Decreasing(event),
        5 => TraceError::TooFar(event),
        _ => TraceError::NotLeft(event),
    }
}

/// The events that are kept, as a trace: locations of other ranks have none.
impl AsRef<Trace> for TracePart {
    fn as_ref(&self) -> &Trace {
        &self.trace
    }
}

impl TracePart {
    /// All locations, in the order of their numbers; those of other ranks have no times.
    pub fn locations(&self) -> &[Location] {
        self.trace.locations()
    }

    /// The numbers of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        self.trace.ids()
    }

    /// Which rank keeps the events of a location; `None` if there is no such location.
    pub fn owner(&self, location: LocationId) -> Option<u32> {
        self.owners.get(location.index()).copied()
    }

    /// Corrects the times of all events, which are those of their locations' own clocks, as [`ClockMaps::correct`] does.
    ///
    /// # Errors
    /// When a time is more than 146 years from the origin, and when a rank is gone. The part is then of no use any more.
    pub async fn correct<C: Comm>(&mut self, maps: &ClockMaps, comm: &C) -> Result<(), PartError> {
        let fault = maps.correct(&mut self.trace).err().map(|why| match why {
            TraceError::Decreasing(event) | TraceError::TooFar(event) => {
                ([0, event.location.0, event.event, 0], Some(why))
            }
            _ => ([1, 0, 0, 0], Some(why)),
        });
        agree(comm, fault).await
    }

    /// Those whose events are kept here.
    pub(super) fn own(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.owners)
            .filter(|(_, owner)| **owner == self.rank)
            .map(|(location, _)| location)
    }

    pub(super) fn is_own(&self, location: u32) -> bool {
        self.owners[location as usize] == self.rank
    }

    pub(super) fn instance(&self, instance: u32) -> &Instance {
        &self.trace.instances[instance as usize]
    }

    pub(super) fn team(&self, instance: u32) -> &Team {
        &self.teams[self.instance(instance).team as usize]
    }

    /// What a name stands for here.
    pub(super) fn named(&self, name: u64) -> Option<u32> {
        // They were given in order.
        self.names
            .binary_search(&name)
            .ok()
            .map(|instance| instance as u32)
    }

    /// Collective operations in which members of other ranks take part, too.
    pub(super) fn shared(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.trace.instances.len() as u32).filter(|instance| self.is_shared(*instance))
    }

    pub(super) fn is_shared(&self, instance: u32) -> bool {
        self.team(instance).owners.len() > 1
    }

    /// Whether members wait only for those before them, so that each of them is known by itself.
    pub(super) fn is_ordered(&self, instance: u32) -> bool {
        self.instance(instance).kind.pattern() == Pattern::ToLater
    }

    /// The ranks whose members others may wait for.
    pub(super) fn givers(&self, instance: u32) -> &[u32] {
        self.some(instance, Pattern::FromRoot)
    }

    /// The ranks whose members may wait for others.
    pub(super) fn takers(&self, instance: u32) -> &[u32] {
        self.some(instance, Pattern::ToRoot)
    }

    /// All ranks that take part, or the root's where it is alone in such a pattern.
    fn some(&self, instance: u32, alone: Pattern) -> &[u32] {
        let (found, team) = (self.instance(instance), self.team(instance));
        if found.kind.pattern() != alone {
            return &team.owners;
        }
        // A root is a member, or its operation would not be there.
        std::slice::from_ref(&self.owners[team.members[found.root as usize] as usize])
    }

    fn find_neighbours(&self) -> BTreeSet<u32> {
        let of_messages = self
            .own()
            .flat_map(|location| &self.trace.locations[location as usize].marks);
        let of_messages =
            of_messages.filter(|mark| matches!(mark.role(), Role::Send | Role::Receive));
        let mut found: BTreeSet<u32> = of_messages
            .map(|mark| self.owners[mark.peer() as usize])
            .collect();
        let teams: BTreeSet<u32> = self
            .shared()
            .map(|instance| self.instance(instance).team)
            .collect();
        found.extend(
            teams
                .into_iter()
                .flat_map(|team| &self.teams[team as usize].owners),
        );
        found.remove(&self.rank);
        found
    }

    /// Has ranks tell each other which of their members count in scans and exscans: there it matters who is before whom.
    async fn complete_ordered<C: Comm>(&mut self, comm: &C) -> Result<(), CommError> {
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
            self.trace.slots.append(&mut slots);
        }
        exchange(comm, &self.neighbours, &mut out, &mut inbox).await?;
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
            marks.push(Mark::new(event.event, Role::Enter, *rank as u32, instance));
        }
        Ok(())
    }
}
