//! Builder of a part of a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::Comm;

use super::super::trace::LeftOut;
use super::super::{CommunicatorId, Event, LocationId, Place, Trace, TraceBuilder, TraceError};
use super::agreement::agree;
use super::exchange::{gather_everywhere, in_turns};
use super::pairing::{merge_tracks, pair_abroad};
use super::part::{Team, TracePart};
use super::tree::TeamTree;
use super::{CorrectionError, Shares};

/// Makes a [`TracePart`], like a [`TraceBuilder`] for the events of some processes. All ranks add
/// all locations and communicators, and each rank adds the events of its own locations, with their
/// positions in the whole trace.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
/// use downbeat_trace::Place;
/// use downbeat_trace::distributed::{CorrectionError, Load};
/// use downbeat_trace::distributed::{PartBuilder, Shares};
/// use downbeat_trace::{Event, ClockOwner, ControlledLogicalClock, Latencies, Matching, TraceBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // Two processes with one thread and one event each, for two ranks.
/// let places = [0, 1].map(|number| Place { node: number, process: number });
/// let loads = places.map(|place| Load { process: place.process, place, events: 1 });
/// let shares = Shares::new(2, ClockOwner::Process, &loads);
/// let times = ThreadCluster::new(2).run(|comm| {
///     let mut builder = PartBuilder::new(TraceBuilder::new(Matching::default()), shares.clone(), comm.rank());
///     let sender = builder.add_location(places[0])?;
///     let receiver = builder.add_location(places[1])?;
///     let world = builder.add_communicator(&[sender, receiver])?;
///     let message = [
///         (sender, 500, Event::Send { to: receiver.into(), communicator: world.into(), tag: 7, request: None, bytes: None }),
///         (receiver, 300, Event::Receive { from: sender.into(), communicator: world.into(), tag: 7, request: None, bytes: None }),
///     ];
///     for (position, (location, nanos, event)) in (0..).zip(message) {
///         if builder.owns(location) {
///             builder.push(position, location, Timestamp::from_nanos(nanos), event)?;
///         }
///     }
///     block_on_ready(async {
///         let part = builder.finish(comm).await?;
///         let corrected = ControlledLogicalClock::new(Latencies::ZERO).forward_part(&part, comm).await?;
///         Ok::<_, CorrectionError>(corrected.times()[comm.rank() as usize].to_vec())
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

impl PartBuilder {
    /// Returns a builder for the processes of this rank, whose events go to an empty
    /// `builder`.
    pub fn new(builder: TraceBuilder, shares: Shares, rank: u32) -> Self {
        Self {
            builder,
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

    /// Reserves room for further events of a location, as [`TraceBuilder::reserve`] does.
    ///
    /// # Errors
    /// As [`TraceBuilder::reserve`].
    pub fn reserve(
        &mut self,
        location: LocationId,
        events: usize,
        marks: usize,
    ) -> Result<(), TraceError> {
        match self.owns(location) {
            true => self.builder.reserve(location, events, marks),
            false => Ok(()),
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
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        self.builder.set_position(position);
        self.builder.push(location, time, event)
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
        let mut matched = builder.match_messages(1, |process| owner(process) == rank)?;
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
        merge_tracks(&mut matched.tracks, &teams, comm).await?;

        agree(comm, matched.tracks.first_disagreement()).await?;
        let mut left_out = LeftOut::default();
        matched.leave_unmatched_out(&mut left_out);
        let mut locations = matched.locations;
        let kept = |team: u32| Some(teams[team as usize].kept.clone());
        let assembled = matched.tracks.assemble(
            &matched.definitions,
            kept,
            &mut locations,
            &mut left_out,
            &matched.store,
        )?;
        let trace = Trace {
            locations,
            instances: assembled.instances,
            slots: assembled.slots,
            left_out,
            clock_of: matched.definitions.clocks.groups(),
            timelines: OnceLock::new(),
            store: matched.store,
        };
        let names = assembled.names;
        let mut part = TracePart {
            trace,
            rank,
            owners,
            teams,
            names,
            direct: BTreeSet::new(),
            neighbours: vec![],
            peers: vec![],
        };
        part.peers = in_turns(comm, part.find_neighbours(false));
        part.complete_ordered(comm).await?;
        let early = part.trace.left_early().into_iter();
        let early = early.map(|instance| part.name(instance)).collect();
        let early = gather_everywhere(comm, early).await?;
        part.direct = early.into_iter().flatten().collect();
        part.neighbours = in_turns(comm, part.find_neighbours(true));
        Ok(part)
    }
}
