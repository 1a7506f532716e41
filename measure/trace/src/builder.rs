//! Builds a trace with matched messages and collective operations from the events of all locations.

use std::ops::Range;
use std::sync::OnceLock;

use downbeat_clock_core::{Global, Timestamp};

use super::array::Access;
use super::channels::{Cursor, MarkId, ProcessChannels};
use super::definitions::Definitions;
use super::events::{Columns, ProcessEvents};
use super::matching::Matching;
use super::ranks::LocationShares;
use super::teams::{Column, Tracks};
use super::trace::{Location, Mark, Role};
use super::workers::{balanced, deal, share};
use super::{
    ArrayStore, CommunicatorId, Event, LocationId, NoRoom, Place, Trace, TraceError,
    UnmatchedEvents,
};

/// Makes a [`Trace`] of events. The events of each location are added in their order; locations may
/// alternate in any order. After an error, the builder cannot be used any more.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_trace::{Event, Matching, Place, TraceBuilder};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let sender = builder.add_location(Place { node: 0, process: 0 })?;
/// let receiver = builder.add_location(Place { node: 1, process: 1 })?;
/// let world = builder.add_communicator(&[sender, receiver])?;
/// builder.push(sender, Timestamp::from_nanos(5_000), Event::Send { to: receiver.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// builder.push(receiver, Timestamp::from_nanos(3_000), Event::Receive { from: sender.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
///
/// let trace = builder.finish()?;
/// let message = trace.messages().next().expect("one message");
/// assert!(trace.time(message.receive) < trace.time(message.send));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceBuilder {
    pub(super) definitions: Definitions,
    /// Processes, in the order of the locations that represent them.
    processes: Vec<ProcessEvents>,
    store: ArrayStore,
    /// For every location, the index of its process, and the index of the location in the process.
    pub(super) indices: Vec<[u32; 2]>,
    /// Position of the next event in the whole trace.
    position: u64,
    /// Rank that takes events, and the shares of all ranks; none if there is one rank.
    share: Option<(u32, LocationShares)>,
}

/// Events of some processes: a part of a builder, for one thread.
pub(crate) struct BuilderPart<'a> {
    definitions: &'a Definitions,
    indices: &'a [[u32; 2]],
    processes: &'a mut [ProcessEvents],
    first: u32,
}

/// Events of all processes, by process, with the messages of each sorted by channel.
pub(super) struct SortedEvents {
    /// Builder without events.
    pub(super) builder: TraceBuilder,
    /// Processes of each thread.
    groups: Vec<Range<usize>>,
    pub(super) channels: Vec<ProcessChannels>,
    pub(super) columns: Vec<Columns>,
    pub(super) events: Vec<Vec<(LocationId, Location)>>,
}

impl TraceBuilder {
    /// Returns a builder of a trace without locations.
    pub fn new(matching: Matching) -> Self {
        Self {
            definitions: Definitions::new(matching),
            processes: vec![],
            store: ArrayStore::MEMORY,
            indices: vec![],
            position: 0,
            share: None,
        }
    }

    /// Takes only the events of the locations of this rank.
    #[must_use]
    pub fn for_rank(self, rank: u32, shares: LocationShares) -> Self {
        let share = Some((rank, shares));
        Self { share, ..self }
    }

    /// Returns the rank of a location: 0 if there is one rank.
    pub(super) fn owner(&self, location: LocationId) -> u32 {
        let process = self.definitions.processes.get(location.index());
        let share = self.share.as_ref().zip(process);
        share.map_or(0, |((_, shares), process)| shares.owner(*process))
    }

    /// Returns true if the events of a location are to be added: all if there is one
    /// rank.
    #[inline]
    pub fn owns(&self, location: LocationId) -> bool {
        let share = self.share.as_ref();
        share.is_none_or(|(rank, _)| *rank == self.owner(location))
    }

    /// Puts the arrays of the trace, and of its corrections, into this store. Call it
    /// before locations are added.
    #[must_use]
    pub fn in_store(self, store: ArrayStore) -> Self {
        Self { store, ..self }
    }

    /// Adds a location: a process with one thread, or a thread that messages are addressed to.
    ///
    /// # Errors
    /// If there are too many locations.
    pub fn add_location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        let id = self.definitions.add_location(place)?;
        self.processes.push(ProcessEvents::new(&self.store));
        self.add(id, self.processes.len() as u32 - 1);
        Ok(id)
    }

    /// Adds another thread of the process represented by `rank`. In communicators that the thread
    /// is not a member of itself, its sends, receives and collective operations count as those of
    /// `rank`.
    ///
    /// # Errors
    /// If there are too many locations, or `rank` is unknown.
    pub fn add_thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        let id = self.definitions.add_thread(rank)?;
        self.add(id, self.indices[rank.index()][0]);
        Ok(id)
    }

    fn add(&mut self, id: LocationId, process: u32) {
        let place = self.definitions.places[id.index()];
        let clock = self.definitions.clocks.readers()[id.index()];
        let index = self.processes[process as usize].add(id, place, clock);
        self.indices.push([process, index]);
        if clock != id.0 {
            for location in [id.0, clock] {
                let [process, index] = self.indices[location as usize];
                let of = &mut self.processes[process as usize].locations[index as usize];
                of.events.shares_clock = true;
            }
        }
    }

    /// Adds a communicator, or a team of threads; `members` are in the order of their ranks.
    ///
    /// # Errors
    /// If there are too many communicators, a member is unknown, or a member is listed twice.
    pub fn add_communicator(
        &mut self,
        members: &[LocationId],
    ) -> Result<CommunicatorId, TraceError> {
        self.definitions.add_communicator(members)
    }

    /// Reserves room for this number of further events of a location, of which `marks`
    /// are not internal.
    ///
    /// # Errors
    /// If there is not so much room.
    pub fn reserve(
        &mut self,
        location: LocationId,
        events: usize,
        marks: usize,
    ) -> Result<(), TraceError> {
        let Some([process, index]) = self.indices.get(location.index()) else {
            return Err(TraceError::UnknownLocation(location));
        };
        let of = &mut self.processes[*process as usize].locations[*index as usize];
        of.events.times.reserve_exact(events)?;
        Ok(of.events.marks.reserve_exact(marks)?)
    }

    /// Adds an event to a location.
    ///
    /// # Errors
    /// If it cannot follow the events that were added before.
    #[inline]
    pub fn push(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        let Some([process, index]) = self.indices.get(location.index()) else {
            return Err(TraceError::UnknownLocation(location));
        };
        let position = self.position;
        self.position += 1;
        let process = &mut self.processes[*process as usize];
        process.push(&self.definitions, *index, position, time, event)
    }

    /// Sets the position of the next event in the whole trace, for events that are not added
    /// in the order of the trace. Collective operations that threads of a process enter at the same
    /// time are in the order of their positions.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Returns parts of the builder for this number of threads, each with neighbouring processes;
    /// `loads` are the numbers of events of all locations.
    pub(crate) fn split(&mut self, threads: usize, loads: &[u64]) -> Vec<BuilderPart<'_>> {
        let mut of_processes = vec![0; self.processes.len()];
        for ([process, _], load) in self.indices.iter().zip(loads) {
            of_processes[*process as usize] += load;
        }
        let Self {
            definitions,
            processes,
            indices,
            ..
        } = self;
        let mut rest = &mut processes[..];
        let groups = balanced(&of_processes, threads);
        groups
            .into_iter()
            .map(|Range { start, end }| {
                let (processes, others) = std::mem::take(&mut rest).split_at_mut(end - start);
                rest = others;
                BuilderPart {
                    definitions,
                    indices,
                    processes,
                    first: start as u32,
                }
            })
            .collect()
    }

    /// Returns the trace of all events that were added. Incomplete messages and
    /// collective operations are left out and counted: see [`Trace::left_out`].
    ///
    /// # Errors
    /// If members state different kinds or roots of a collective operation, or complete one that
    /// they did not enter.
    pub fn finish(self) -> Result<Trace, TraceError> {
        self.finish_on(1)
    }

    /// Does the same as [`finish`](Self::finish) on this number of threads.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_on(self, workers: usize) -> Result<Trace, TraceError> {
        let mut sorted = self.sort_events(workers)?;
        let tracks = sorted.take_tracks()?;
        match tracks.first_error() {
            Some((_, why)) => Err(why),
            None => sorted.into_trace(tracks, |_| true),
        }
    }

    /// Sorts the messages of each process, on this number of threads.
    pub(super) fn sort_events(mut self, workers: usize) -> Result<SortedEvents, NoRoom> {
        self.store.expect(Access::InOrder);
        let processes = std::mem::take(&mut self.processes);
        let marks = |process: &ProcessEvents| {
            let marks = process.locations.iter().map(|of| of.events.marks.len());
            marks.sum::<usize>() as u64
        };
        let loads: Vec<u64> = processes.iter().map(marks).collect();
        let groups = balanced(&loads, workers);
        let sorted = share(deal(processes, &groups), |_, processes| {
            let sorted = processes.into_iter();
            let sorted = sorted.map(|process| sort_messages(process, &self.store));
            sorted.collect::<Result<Vec<_>, NoRoom>>()
        });
        let sorted: Vec<_> = sorted.into_iter().collect::<Result<_, _>>()?;
        let (channels, columns, events) = sorted.into_iter().flatten().collect();
        Ok(SortedEvents {
            builder: self,
            groups,
            channels,
            columns,
            events,
        })
    }
}

impl SortedEvents {
    /// Collects the collective operations of all processes.
    pub(super) fn take_tracks(&mut self) -> Result<Tracks, NoRoom> {
        Tracks::new(std::mem::take(&mut self.columns), &self.builder.store)
    }

    /// Pairs the messages between all processes, and returns the trace. Messages without
    /// a partner become internal events; those of the locations of this rank are counted.
    ///
    /// # Errors
    /// If there are too many operations, or there is no room for them.
    pub(super) fn into_trace(
        mut self,
        tracks: Tracks,
        is_own: impl Fn(u32) -> bool,
    ) -> Result<Trace, TraceError> {
        let events = std::mem::take(&mut self.events);
        let paired = share(deal(events, &self.groups), |worker, mut processes| {
            let unmatched = self.pair_messages(worker, &mut processes);
            (processes, unmatched)
        });
        let mut locations: Vec<_> = self.builder.indices.iter().map(|_| None).collect();
        let mut unmatched = vec![];
        for (processes, others) in paired {
            unmatched.extend(others);
            for (id, location) in processes.into_iter().flatten() {
                locations[id.index()] = Some(location);
            }
        }
        // Every location belongs to a process.
        let mut locations: Vec<Location> = locations.into_iter().flatten().collect();
        let mut left_out = UnmatchedEvents::default();
        for id in unmatched {
            let location = &mut locations[id.location as usize];
            let mark: &mut Mark = &mut location.marks[id.mark as usize];
            let count = u64::from(is_own(id.location));
            match mark.role() {
                Role::Send => left_out.sends += count,
                _ => left_out.receives += count,
            }
            *mark = mark.alone();
        }
        let TraceBuilder {
            definitions, store, ..
        } = self.builder;
        let assembled = store.in_turns(|| {
            tracks.assemble(&definitions, is_own, &mut locations, &mut left_out, &store)
        })?;
        Ok(Trace {
            locations,
            instances: assembled.instances,
            slots: assembled.slots,
            left_out,
            clock_of: definitions.clocks.groups(),
            timelines: OnceLock::new(),
            store,
        })
    }

    /// Pairs the messages of the processes of a thread, given by their locations. Returns
    /// those without a partner.
    fn pair_messages(
        &self,
        worker: usize,
        processes: &mut [Vec<(LocationId, Location)>],
    ) -> Vec<MarkId> {
        let number_of = |process: u32| self.builder.indices[process as usize][0] as usize;
        let mut unmatched = vec![];
        let mut cursors: Vec<_> = self.channels.iter().map(Cursor::new).collect();
        for (process, locations) in self.groups[worker].clone().zip(processes) {
            // The first location of a process represents it.
            let LocationId(id) = locations[0].0;
            self.channels[process].pair(id, &mut cursors, number_of, |id, partner| {
                let [_, index] = self.builder.indices[id.location as usize];
                let mark = locations[index as usize].1.marks.get_mut(id.mark as usize);
                match (mark, partner) {
                    (Some(mark), Some(partner)) => {
                        *mark = mark.with(partner.location, partner.mark);
                    }
                    (Some(_), None) => unmatched.push(id),
                    // A receive of another rank, of which nothing is known here.
                    (None, _) => {}
                }
            });
            for (_, location) in locations {
                location.times.shrink_to_fit();
                location.marks.shrink_to_fit();
            }
        }
        unmatched
    }
}

type Sorted = (ProcessChannels, Columns, Vec<(LocationId, Location)>);

/// Sorts the messages of a process by channel, and pairs its signals.
fn sort_messages(process: ProcessEvents, store: &ArrayStore) -> Result<Sorted, NoRoom> {
    let ProcessEvents {
        mut locations,
        mut columns,
        posts,
        signals,
        ..
    } = process;
    columns.values_mut().for_each(Column::sort_threads);
    for ([location, message], turn) in posts.late() {
        let messages = &mut locations[location as usize].messages;
        messages.posted.push((message, turn))?;
    }
    let channels = ProcessChannels::new(&mut locations, store)?;
    let mut end = |this: MarkId, role: Role, other: MarkId| {
        // Locations of a process are few, and in order.
        let found = locations.binary_search_by_key(&this.location, |of| of.id.0);
        let mark = &mut locations[found.unwrap_or(0)].events.marks[this.mark as usize];
        *mark = Mark::new(mark.event, role, other.location, other.mark);
    };
    for [signal, wait] in signals.pairs.iter().copied() {
        end(signal, Role::Send, wait);
        end(wait, Role::Receive, signal);
    }
    let events = locations.into_iter().map(|of| (of.id, of.events)).collect();
    Ok((channels, columns, events))
}

impl BuilderPart<'_> {
    /// Returns true if the events of this location belong to this part.
    pub(crate) fn has(&self, location: LocationId) -> bool {
        self.index(location).is_some()
    }

    /// Returns the index of the process in this part, and that of the location in the process.
    fn index(&self, location: LocationId) -> Option<(usize, u32)> {
        let [process, index] = *self.indices.get(location.index())?;
        let process = process.checked_sub(self.first)? as usize;
        (process < self.processes.len()).then_some((process, index))
    }

    /// Adds an event to a location of this part; `position` is its position in the whole trace.
    ///
    /// # Errors
    /// If it cannot follow the events that were added before.
    #[inline]
    pub(crate) fn push(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        let found = self
            .index(location)
            .ok_or(TraceError::UnknownLocation(location))?;
        self.processes[found.0].push(self.definitions, found.1, position, time, event)
    }
}

#[cfg(test)]
mod tests;
