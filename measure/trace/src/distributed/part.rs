//! Part of a trace on one rank, and its builder.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::super::channels::MarkId;
use super::super::definitions::{ChannelEnd, Definitions};
use super::super::teams::{Operations, Summary, Track, Tracks};
use super::super::trace::{Instance, LeftOut, Mark, NONE, Role, Slot};
use super::super::{
    Action, ClockMaps, CollectiveKind, CommunicatorId, EventId, Location, LocationId, Matching,
    Pattern, Place, Trace, TraceBuilder, TraceError,
};
use super::exchange::{boxes, exchange, heard, in_turns, others};
use super::{CorrectionError, Shares};

/// Makes a [`TracePart`], like a [`TraceBuilder`] for the events of some processes. All ranks add
/// all locations and communicators, and each rank adds the events of its own locations, with their
/// positions in the whole trace.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_trace::{Action, ControlledLogicalClock, Latencies, Matching, PartBuilder, CorrectionError, Place, Shares};
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
///     let message = [
///         (sender, 500, Action::Send { to: receiver, communicator: world, tag: 7 }),
///         (receiver, 300, Action::Receive { from: sender, communicator: world, tag: 7 }),
///     ];
///     for (position, (location, nanos, action)) in (0..).zip(message) {
///         if builder.owns(location) {
///             builder.push(position, location, Timestamp::from_nanos(nanos), action)?;
///         }
///     }
///     block_on_ready(async {
///         let part = builder.finish(comm).await?;
///         let corrected = ControlledLogicalClock::new(Latencies::ZERO).forward_part(&part, comm).await?;
///         Ok::<_, CorrectionError>(corrected.times()[comm.rank() as usize].clone())
///     })
/// })?;
/// // Each rank has the times of its own location.
/// assert_eq!(times, [Ok(vec![Timestamp::from_nanos(500)]), Ok(vec![Timestamp::from_nanos(500)])]);
/// # Ok(())
/// # }
/// ```
///
/// # Cost
/// A rank needs the memory of a trace for its own events, 20 bytes more for every message with
/// another rank, and another 16 while messages are matched. Every collective operation of a
/// communicator in which it has members takes about 150 bytes, regardless of the number of other
/// members, except that scans and exscans take 32 more for each of them.
#[derive(Debug)]
pub struct PartBuilder {
    builder: TraceBuilder,
    shares: Shares,
    rank: u32,
}

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
    pub(super) names: Vec<u64>,
    /// Ranks with which a replay exchanges messages, in [turns](in_turns).
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

/// Place of a rank in the tree in which many ranks summarize operations: upwards, and down again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TeamTree {
    /// `None` at the top.
    pub(super) parent: Option<u32>,
    pub(super) children: Vec<u32>,
}

impl TeamTree {
    /// Maximum number of owners that tell each other directly, which is one step instead of several.
    const DIRECT: usize = if cfg!(test) { 2 } else { 8 };
    const CHILDREN: usize = if cfg!(test) { 2 } else { 4 };

    /// Returns the place of a rank in the tree of these owners.
    fn new(owners: &[u32], rank: u32) -> Option<Self> {
        let index = owners.binary_search(&rank).ok()?;
        let children = (1..=Self::CHILDREN).map(|child| index * Self::CHILDREN + child);
        (owners.len() > Self::DIRECT).then(|| Self {
            parent: index
                .checked_sub(1)
                .map(|before| owners[before / Self::CHILDREN]),
            children: children
                .filter_map(|child| owners.get(child).copied())
                .collect(),
        })
    }

    fn neighbours(&self) -> impl Iterator<Item = &u32> {
        self.parent.iter().chain(&self.children)
    }
}

impl PartBuilder {
    /// Returns a builder for the processes of this rank.
    pub fn new(matching: Matching, shares: Shares, rank: u32) -> Self {
        Self {
            builder: TraceBuilder::new(matching),
            shares,
            rank,
        }
    }

    /// Adds a location, as [`TraceBuilder::add_location`] does.
    ///
    /// # Errors
    /// As [`TraceBuilder::add_location`].
    pub fn add_location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.builder.add_location(place)
    }

    /// Adds another thread of a process, as [`TraceBuilder::add_thread`] does.
    ///
    /// # Errors
    /// As [`TraceBuilder::add_thread`].
    pub fn add_thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.builder.add_thread(rank)
    }

    /// Adds a communicator, as [`TraceBuilder::add_communicator`] does.
    ///
    /// # Errors
    /// As [`TraceBuilder::add_communicator`].
    pub fn add_communicator(
        &mut self,
        members: &[LocationId],
    ) -> Result<CommunicatorId, TraceError> {
        self.builder.add_communicator(members)
    }

    /// Reserves memory for further events of a location, as [`TraceBuilder::reserve`] does.
    pub fn reserve(&mut self, location: LocationId, events: usize, marks: usize) {
        if self.owns(location) {
            self.builder.reserve(location, events, marks);
        }
    }

    /// Returns true if the events of this location belong to this rank.
    pub fn owns(&self, location: LocationId) -> bool {
        let process = self.builder.definitions.processes.get(location.index());
        process.is_some_and(|process| self.shares.owner(*process) == self.rank)
    }

    /// Adds an event of this rank; `position` is its position in the whole trace.
    ///
    /// # Errors
    /// As [`TraceBuilder::push`].
    #[inline]
    pub fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        self.builder.set_position(position);
        self.builder.push(location, time, action)
    }

    /// Removes everything that was added.
    pub(crate) fn clear(&mut self) {
        self.builder = TraceBuilder::new(self.builder.definitions.matching);
    }

    /// Returns this rank's part, after all ranks have added their events.
    ///
    /// # Errors
    /// As [`TraceBuilder::finish`], on all ranks; and if a rank is gone.
    pub async fn finish<C: Comm>(self, comm: &C) -> Result<TracePart, CorrectionError> {
        let Self {
            builder,
            shares,
            rank,
        } = self;
        let owner = |process: u32| shares.owner(process);
        let mut matched = builder.match_messages(1, |process| owner(process) == rank);
        let owners: Vec<u32> = matched
            .definitions
            .processes
            .iter()
            .map(|process| owner(*process))
            .collect();
        let owner_of = |location: u32| owners[location as usize];

        let mut abroad = BTreeMap::new();
        for (location, index) in (0..).zip(&matched.process_indices) {
            if matched.definitions.processes[location as usize] == location
                && owner_of(location) == rank
            {
                let all = matched.channels[*index as usize].all().into_iter();
                let others = all.filter(|(end, _)| owner_of(end.peer) != rank);
                abroad.extend(others.map(|(end, messages)| ((location, end), messages)));
            }
        }
        matched.channels.clear();
        pair_abroad(
            &mut matched.locations,
            &mut matched.unmatched,
            &abroad,
            owner_of,
            comm,
        )
        .await?;
        drop(abroad);

        let team = |members: &Vec<u32>| {
            let owners: BTreeSet<u32> = members.iter().map(|member| owner_of(*member)).collect();
            let kept = (0..)
                .zip(members)
                .filter(|(_, member)| owner_of(**member) == rank);
            let owners: Vec<u32> = owners.into_iter().collect();
            Team {
                members: members.clone(),
                kept: kept.map(|(rank, _)| rank).collect(),
                tree: TeamTree::new(&owners, rank),
                owners,
            }
        };
        let teams: Vec<Team> = matched.definitions.teams().iter().map(team).collect();
        merge_tracks(&mut matched.tracks, &matched.definitions, &teams, comm).await?;

        let disagreement = matched.tracks.first_disagreement();
        agree(
            comm,
            disagreement.map(|(position, why)| ([0, position, 0], Some(why))),
        )
        .await?;
        if !matched.definitions.matching.lenient {
            let first = matched.first_unmatched();
            agree(
                comm,
                first.map(|(event, why)| ([1, word_of(event), 0], Some(why))),
            )
            .await?;
            let first = matched
                .tracks
                .first_incomplete(&matched.definitions, &matched.locations);
            let key = |[team, track, index]: [u32; 3]| {
                [2, u64::from(team) << 32 | u64::from(track), index.into()]
            };
            agree(comm, first.map(|(of, why)| (key(of), why))).await?;
        }

        let mut left_out = LeftOut::default();
        matched.leave_unmatched_out(&mut left_out);
        let mut locations = matched.locations;
        let kept = |team: u32| Some(teams[team as usize].kept.clone());
        let assembled =
            matched
                .tracks
                .assemble(&matched.definitions, kept, &mut locations, &mut left_out)?;
        let trace = Trace {
            locations,
            instances: assembled.instances,
            slots: assembled.slots,
            left_out,
        };
        let names = assembled.names;
        let mut part = TracePart {
            trace,
            rank,
            owners,
            teams,
            names,
            neighbours: vec![],
            peers: vec![],
        };
        part.neighbours = in_turns(comm, part.find_neighbours(true));
        part.peers = in_turns(comm, part.find_neighbours(false));
        part.complete_ordered(comm).await?;
        Ok(part)
    }
}

/// Messages of this rank's processes in channels to other ranks, by process and channel.
type Abroad = BTreeMap<(u32, ChannelEnd), Vec<MarkId>>;

/// Pairs messages with other ranks, which exchange the events at their ends of shared channels. The
/// other ends become marks of locations of other ranks, in the order of their events.
async fn pair_abroad<C: Comm>(
    locations: &mut [Location],
    unmatched: &mut Vec<MarkId>,
    abroad: &Abroad,
    owner_of: impl Fn(u32) -> u32,
    comm: &C,
) -> Result<(), CommError> {
    let (mut out, mut inbox) = (boxes(comm), boxes(comm));
    for ((process, end), messages) in abroad {
        let to = &mut out[owner_of(end.peer) as usize];
        let within = u64::from(end.communicator) << 32 | u64::from(end.tag as u32);
        let count = messages.len() as u64 | u64::from(end.sends) << 63;
        to.extend([
            u64::from(*process) << 32 | u64::from(end.peer),
            within,
            count,
        ]);
        to.extend(messages.iter().map(|id| {
            let mark = locations[id.location as usize].marks[id.mark as usize];
            word_of(EventId {
                location: LocationId(id.location),
                event: mark.event,
            })
        }));
    }
    exchange(comm, &others(comm), &mut out, &mut inbox).await?;
    let mut others: HashMap<(u32, ChannelEnd), &[u64]> = HashMap::new();
    for mut words in inbox.iter().map(Vec::as_slice) {
        while let [ends, within, count, rest @ ..] = words {
            let end = ChannelEnd {
                peer: *ends as u32,
                communicator: (within >> 32) as u32,
                tag: *within as u32 as i32,
                sends: count >> 63 == 1,
            };
            let process = (ends >> 32) as u32;
            let count = ((count << 1 >> 1) as usize).min(rest.len());
            let (events, rest) = rest.split_at(count);
            // Seen from this rank's process.
            others.insert((end.peer, end.mirrored(process)), events);
            words = rest;
        }
    }
    let mut ends: Vec<(EventId, MarkId, Role)> = vec![];
    for ((process, end), messages) in abroad {
        let events = others.get(&(*process, *end)).copied().unwrap_or_default();
        let role = if end.sends { Role::Receive } else { Role::Send };
        let paired = messages.iter().zip(events);
        ends.extend(paired.map(|(id, event)| (event_of(*event), *id, role)));
        unmatched.extend(messages.iter().skip(events.len()));
    }
    ends.sort_unstable_by_key(|(event, ..)| *event);
    for (
        EventId {
            location: LocationId(location),
            event,
        },
        id,
        role,
    ) in ends
    {
        let marks = &mut locations[location as usize].marks;
        let other = marks.len() as u32;
        marks.push(Mark::new(event, role, id.location, id.mark));
        let mark = &mut locations[id.location as usize].marks[id.mark as usize];
        *mark = mark.with(location, other);
    }
    Ok(())
}

/// Number of integers that encode a [`Summary`].
const SUMMARY: usize = 9;

/// Merges the operations of all ranks with members in a team.
async fn merge_tracks<C: Comm>(
    tracks: &mut Tracks,
    definitions: &Definitions,
    teams: &[Team],
    comm: &C,
) -> Result<(), CommError> {
    let (mut out, mut inbox) = (boxes(comm), boxes(comm));
    let others = others(comm);
    for ((team, track), operations) in &tracks.0 {
        let mut words = vec![u64::from(*team) << 32 | *track as u64, 0, 0];
        for (rank, (entered, left)) in (0..).zip(&operations.counts) {
            if (*entered, *left) != (0, 0) {
                words.extend([rank, u64::from(*entered) << 32 | u64::from(*left)]);
                words[1] += 1;
            }
        }
        words[2] = operations.summaries.len() as u64;
        words.extend(operations.summaries.iter().flat_map(words_of_summary));
        let owners = &teams[*team as usize].owners;
        for owner in owners.iter().filter(|owner| **owner != comm.rank()) {
            out[*owner as usize].extend_from_slice(&words);
        }
    }
    exchange(comm, &others, &mut out, &mut inbox).await?;
    for mut words in inbox.iter().map(Vec::as_slice) {
        while let [of, counts, summaries, rest @ ..] = words {
            let (team, track) = ((of >> 32) as u32, Track::ALL[(*of as u32 as usize).min(2)]);
            let members = definitions.members(team).len();
            let operations = tracks
                .0
                .entry((team, track))
                .or_insert_with(|| Operations::new(members));
            let (counts, rest) = rest.split_at((*counts as usize * 2).min(rest.len()));
            for [rank, both] in counts.as_chunks().0 {
                operations.counts[*rank as usize] = ((both >> 32) as u32, *both as u32);
            }
            let (summaries, rest) = rest.split_at((*summaries as usize * SUMMARY).min(rest.len()));
            for (index, summary) in (0..).zip(summaries.as_chunks().0) {
                operations.merge(index, &summary_of(summary));
            }
            words = rest;
        }
    }
    Ok(())
}

fn words_of_summary(summary: &Summary) -> [u64; SUMMARY] {
    let stated = |stated: Option<(u64, EventId, CollectiveKind, u32)>| {
        stated.map_or([u64::MAX; 3], |(position, event, kind, root)| {
            [
                position,
                word_of(event),
                (kind as u64) << 32 | u64::from(root),
            ]
        })
    };
    let (position, event) = summary.first;
    let [s0, s1, s2] = stated(summary.stated);
    let [c0, c1, c2] = stated(summary.conflict);
    let counts = u64::from(summary.enters) << 32 | u64::from(summary.exits);
    [position, word_of(event), s0, s1, s2, c0, c1, c2, counts]
}

fn summary_of(words: &[u64; SUMMARY]) -> Summary {
    let stated = |position: u64, event: u64, says: u64| {
        let kind = CollectiveKind::from_number(says >> 32)?;
        (position != u64::MAX).then_some((position, event_of(event), kind, says as u32))
    };
    let [position, event, s0, s1, s2, c0, c1, c2, counts] = *words;
    Summary {
        first: (position, event_of(event)),
        stated: stated(s0, s1, s2),
        conflict: stated(c0, c1, c2),
        enters: (counts >> 32) as u32,
        exits: counts as u32,
    }
}

/// Key for the order in which errors are reported: disagreements, then messages, then collective
/// operations.
type FaultKey = [u64; 3];

/// Makes all ranks fail with the first of all errors, if there is any. A rank that knows only the
/// position of that error leaves it to the others.
async fn agree<C: Comm>(
    comm: &C,
    fault: Option<(FaultKey, Option<TraceError>)>,
) -> Result<(), CorrectionError> {
    const NOTHING: [u64; 4] = [u64::MAX; 4];
    let (mine, why) = match fault {
        Some(([a, b, c], why)) => {
            let speaker = if why.is_some() {
                comm.rank().into()
            } else {
                u64::MAX
            };
            ([a, b, c, speaker], why)
        }
        None => (NOTHING, None),
    };
    let first = all_reduce(comm, mine, Ord::min).await?;
    if first == NOTHING {
        return Ok(());
    }
    let words = why.filter(|_| mine == first).map_or([0; 3], words_of);
    Err(CorrectionError::Trace(error_of(
        all_reduce(comm, words, heard).await?,
    )))
}

/// Encodes an event as an integer.
pub(super) fn word_of(event: EventId) -> u64 {
    u64::from(event.location.0) << 32 | u64::from(event.event)
}

/// Decodes an event.
pub(super) fn event_of(word: u64) -> EventId {
    EventId {
        location: LocationId((word >> 32) as u32),
        event: word as u32,
    }
}

/// Encodes an error that is found after all events were added.
fn words_of(why: TraceError) -> [u64; 3] {
    match why {
        TraceError::UnmatchedSend(event) => [0, word_of(event), 0],
        TraceError::UnmatchedReceive(event) => [1, word_of(event), 0],
        TraceError::NotEntered(event) => [2, word_of(event), 0],
        TraceError::Absent { event, absent } => [3, word_of(event), absent.0.into()],
        TraceError::Decreasing(event) => [4, word_of(event), 0],
        TraceError::TooFar(event) => [5, word_of(event), 0],
        TraceError::NotLeft(event) => [6, word_of(event), 0],
        TraceError::OtherKind { event, other } => [7, word_of(event), word_of(other)],
        TraceError::OtherRoot { event, other } => [8, word_of(event), word_of(other)],
        other => {
            debug_assert!(false, "{other} is found when events are added");
            [u64::MAX; 3]
        }
    }
}

fn error_of([kind, word, other]: [u64; 3]) -> TraceError {
    let event = event_of(word);
    match kind {
        0 => TraceError::UnmatchedSend(event),
        1 => TraceError::UnmatchedReceive(event),
        2 => TraceError::NotEntered(event),
        3 => TraceError::Absent {
            event,
            absent: LocationId(other as u32),
        },
        4 => TraceError::Decreasing(event),
        5 => TraceError::TooFar(event),
        7 => TraceError::OtherKind {
            event,
            other: event_of(other),
        },
        8 => TraceError::OtherRoot {
            event,
            other: event_of(other),
        },
        _ => TraceError::NotLeft(event),
    }
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
            names: vec![],
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
    /// Returns all locations, in the order of their ids; those of other ranks have no times.
    pub fn locations(&self) -> &[Location] {
        self.trace.locations()
    }

    /// Returns the ids of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        self.trace.ids()
    }

    /// Returns this rank.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
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
            TraceError::Decreasing(event) | TraceError::TooFar(event) => {
                ([0, word_of(event), 0], Some(why))
            }
            _ => ([1, 0, 0], Some(why)),
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
        tree.filter(|_| !self.is_ordered(instance))
    }

    /// Returns the ranks at the other ends of messages, and those with members of collective
    /// operations: all of them, or only those next to this one in trees.
    fn find_neighbours(&self, in_trees: bool) -> BTreeSet<u32> {
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
            marks.push(Mark::new(event.event, Role::Enter, *rank as u32, instance));
        }
        Ok(())
    }
}
