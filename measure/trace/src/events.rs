//! Events of one process while they are added. Everything that does not depend on other processes
//! is done here, so that threads and ranks can add events of different processes at the same time.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::channels::{LocationEvents, LocationMessages, MarkId};
use super::definitions::Definitions;
use super::posts::Posts;
use super::signals::Signals;
use super::teams::{Column, Track};
use super::trace::{Location, Mark, NONE, Role};
use super::{ArrayStore, Event, EventId, LocationId, Place, TraceError};

/// Operations of the members of a process: by team, track and rank.
pub(super) type Columns = FxHashMap<(u32, Track, u32), Column>;

/// Events of all locations of a process.
#[derive(Debug)]
pub(crate) struct ProcessEvents {
    store: ArrayStore,
    pub(super) locations: Vec<LocationEvents>,
    pub(super) columns: Columns,
    pub(super) posts: Posts,
    pub(super) signals: Signals,
}

impl ProcessEvents {
    /// Returns a process without locations.
    pub(super) fn new(store: &ArrayStore) -> Self {
        Self {
            store: store.clone(),
            locations: vec![],
            columns: Columns::default(),
            posts: Posts::default(),
            signals: Signals::new(store),
        }
    }

    /// Adds a location, whose clock is that of the location `clock`, and returns its index in the
    /// process.
    pub(super) fn add(&mut self, id: LocationId, place: Place, clock: u32) -> u32 {
        self.locations.push(LocationEvents {
            id,
            events: Location::new(place, clock, &self.store),
            messages: LocationMessages::new(&self.store),
        });
        self.locations.len() as u32 - 1
    }

    /// Adds an event to the location with this index; `position` is that of the event in the whole
    /// trace.
    #[inline]
    pub(super) fn push(
        &mut self,
        definitions: &Definitions,
        index: u32,
        position: u64,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        let found = &mut self.locations[index as usize];
        let id = found.events.add(found.id, position, time)?;
        let (sends, peer, communicator, tag) = match event {
            Event::Enter { .. }
            | Event::Leave { .. }
            | Event::Note(_)
            | Event::Opaque(_)
            | Event::Metric { .. }
            | Event::CompleteSend { .. }
            | Event::Access { .. }
            | Event::AccessComplete { .. } => return Ok(()),
            Event::Send {
                to,
                communicator,
                tag,
                ..
            } => (true, to, communicator, tag),
            Event::Receive {
                from,
                communicator,
                tag,
                request,
                ..
            } => {
                let messages = &mut found.messages;
                messages.complete_post(&mut self.posts, request, index)?;
                (false, from, communicator, tag)
            }
            Event::PostReceive { request } => {
                self.posts.post(request, (time, id.event), index);
                return Ok(());
            }
            Event::CancelReceive { request } => {
                self.posts.cancel(request);
                return Ok(());
            }
            Event::Signal { id: signal } => return self.add_signal(index, id, signal, true),
            Event::Wait { id: signal } => return self.add_signal(index, id, signal, false),
            Event::CollectiveBegin { .. }
            | Event::CollectiveEnd { .. }
            | Event::Fork { .. }
            | Event::ThreadBegin { .. }
            | Event::ThreadEnd { .. }
            | Event::Join { .. } => {
                return self.collective(definitions, index, (time, position), id, event);
            }
        };
        let end = definitions.channel(id, sends, peer, communicator, tag)?;
        let mark = found.messages.add(id.event, end);
        Ok(found.events.marks.push(mark)?)
    }

    /// Adds a signal, or else a wait for it.
    fn add_signal(
        &mut self,
        index: u32,
        id: EventId,
        signal: u64,
        signals: bool,
    ) -> Result<(), TraceError> {
        let marks = &mut self.locations[index as usize].events.marks;
        let mark = MarkId {
            location: id.location.0,
            mark: marks.len() as u32,
        };
        marks.push(Mark::new(id.event, Role::Nothing, 0, NONE))?;
        Ok(self.signals.add(signal, mark, signals)?)
    }

    fn collective(
        &mut self,
        definitions: &Definitions,
        index: u32,
        (time, position): (Timestamp<Global>, u64),
        id: EventId,
        event: Event<'_>,
    ) -> Result<(), TraceError> {
        let Some(part) = definitions.participation(id, event)? else {
            return Ok(());
        };
        let rank = part.rank;
        let column = self.columns.entry((part.team, part.track, rank));
        let column = column.or_insert_with(|| Column::new(&self.store));
        let Some(operation) = column.add(&part, id, (time.as_nanos(), position))? else {
            return Ok(());
        };
        let marks = &mut self.locations[index as usize].events.marks;
        let mark = marks.len() as u32;
        if part.enters {
            (operation.enter, operation.entered) = (mark, true);
            marks.push(Mark::new(id.event, Role::Enter, rank, NONE))?;
            return Ok(());
        }
        operation.left = true;
        let [sends, receives] = part.roles;
        if !sends && operation.enter != NONE {
            let mark = &mut marks[operation.enter as usize];
            *mark = mark.alone();
            operation.enter = NONE;
        }
        if receives {
            operation.exit = mark;
            marks.push(Mark::new(id.event, Role::Exit, rank, NONE))?;
        }
        Ok(())
    }
}
