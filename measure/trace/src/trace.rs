//! Trace in memory: the events of all locations, and the dependencies between them.

use std::sync::OnceLock;

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::ids::{EventId, LocationId, Place};
use super::timeline::Timelines;
use super::{Array, ArrayStore, ClockOwner, CollectiveKind, DependencePattern, TraceError};

/// Events of all locations, with matched messages; built by a
/// [`TraceBuilder`](super::TraceBuilder).
///
/// All times are on one scale, but may be wrong: a message can seem to arrive before it was sent.
/// On each location they never decrease.
///
/// An event takes 8 bytes, and 12 more if other locations' events depend on it or it depends on
/// them.
#[derive(Debug)]
pub struct Trace {
    pub(super) locations: Vec<Location>,
    pub(super) instances: Array<Instance>,
    pub(super) slots: Array<Slot>,
    pub(super) left_out: UnmatchedEvents,
    /// Group of locations that share a clock; none if no clock has several.
    pub(super) clock_of: ClockOwner,
    /// Order of the events of every clock, once it is known.
    pub(super) timelines: OnceLock<Timelines>,
    /// Place of its arrays, and of those of its corrections.
    pub(super) store: ArrayStore,
}

/// Events of one location.
#[derive(Debug)]
pub struct Location {
    pub(super) place: Place,
    /// First location with the same clock.
    pub(super) clock: u32,
    /// Positions of events in the whole trace, each with the first event of a run of consecutive ones; only known
    /// if other locations share the clock.
    pub(super) positions: Array<(u32, u64)>,
    pub(super) shares_clock: bool,
    /// True if its times were mapped to another clock since they were read.
    pub(super) is_mapped: bool,
    pub(super) times: Array<Timestamp<Global>>,
    /// Events with dependencies to other locations, in order.
    pub(super) marks: Array<Mark>,
    /// Numbers of the events at the marks, which are ghosts: another rank has the
    /// location. The mark of a ghost states its index here in the place of the event.
    pub(super) ghost_events: Vec<u32>,
}

/// Numbers of incomplete messages and operations. Their events count as internal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct UnmatchedEvents {
    /// Sends without a receive.
    pub sends: u64,
    /// Receives without a send.
    pub receives: u64,
    /// Collective operations that some members did not enter or leave; the other members still
    /// count.
    pub collectives: u64,
}

/// A message between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Event that sent the message.
    pub send: EventId,
    /// Event that received the message.
    pub receive: EventId,
}

/// Collective operation, and the dependencies between its members.
#[derive(Clone, Copy, Debug)]
pub struct Collective<'a> {
    instance: &'a Instance,
    trace: &'a Trace,
}

/// Events of one member in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Location of the member.
    pub location: LocationId,
    /// Enter, if exits of others depend on it: the member contributed data, and the operation
    /// passes it on.
    pub enter: Option<u32>,
    /// Exit, if it depends on enters of others: the member received data.
    pub exit: Option<u32>,
}

/// Event with dependencies to other locations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) event: u32,
    /// The three low bits hold the role. The others hold, for a message, the location of its other
    /// end, or else the rank of the member.
    role_and_peer: u32,
    /// For a message, the mark at its other end; for a collective operation, its index.
    pub(super) partner: u32,
}

/// Role of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Send,
    Receive,
    /// Logical send of a collective operation.
    Enter,
    /// Logical receive of a collective operation.
    Exit,
    /// No dependency: the other end is missing, or there was no data.
    Nothing,
}

/// A collective operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) kind: CollectiveKind,
    pub(super) root: u32,
    /// Team of the operation.
    pub(super) team: u32,
    /// Index of the first member in the slots of the trace.
    pub(super) first: usize,
    pub(super) members: u32,
}

/// Marks of a member of a collective operation, [`NONE`] where no such event counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) location: u32,
    pub(super) enter: u32,
    pub(super) exit: u32,
}

/// No mark.
pub(super) const NONE: u32 = u32::MAX;

impl Mark {
    /// Maximum number of locations, which leaves one value unused.
    pub(super) const MOST_LOCATIONS: u32 = (1 << 29) - 1;

    pub(super) const fn new(event: u32, role: Role, peer: u32, partner: u32) -> Self {
        Self {
            event,
            role_and_peer: peer << 3 | role as u32,
            partner,
        }
    }

    pub(super) const fn role(self) -> Role {
        match self.role_and_peer & 7 {
            0 => Role::Send,
            1 => Role::Receive,
            2 => Role::Enter,
            3 => Role::Exit,
            _ => Role::Nothing,
        }
    }

    /// Returns the location of the other end of a message, or the rank of the member of a
    /// collective operation.
    pub(super) const fn peer(self) -> u32 {
        self.role_and_peer >> 3
    }

    /// Returns the same event with another partner.
    pub(super) const fn with(self, peer: u32, partner: u32) -> Self {
        Self {
            event: self.event,
            role_and_peer: peer << 3 | (self.role_and_peer & 7),
            partner,
        }
    }

    /// Returns the same event without dependencies.
    pub(super) const fn alone(self) -> Self {
        Self::new(self.event, Role::Nothing, 0, NONE)
    }
}

impl Location {
    /// Returns a location without events, whose clock is that of the location `clock`.
    pub(super) fn new(place: Place, clock: u32, store: &ArrayStore) -> Self {
        Self {
            place,
            clock,
            positions: Array::new(store.clone()),
            shares_clock: false,
            is_mapped: false,
            times: Array::new(store.clone()),
            marks: Array::new(store.clone()),
            ghost_events: vec![],
        }
    }

    /// Adds an event; `position` is that of the event in the whole trace.
    #[inline]
    pub(super) fn add(
        &mut self,
        this: LocationId,
        position: u64,
        time: Timestamp<Global>,
    ) -> Result<EventId, TraceError> {
        if self.times.len() >= NONE as usize {
            return Err(TraceError::TooManyEvents(this));
        }
        let event = EventId {
            location: this,
            event: self.times.len() as u32,
        };
        check_time(self.times.last().copied(), time, event)?;
        if self.shares_clock {
            let last = self.positions.last();
            let expected = last.map(|(first, of)| of + u64::from(event.event - first));
            if expected != Some(position) {
                self.positions.push((event.event, position))?;
            }
        }
        self.times.push(time)?;
        Ok(event)
    }

    /// Returns the place of the location.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the times of the events.
    pub fn times(&self) -> &[Timestamp<Global>] {
        &self.times
    }
}

impl Trace {
    /// Returns the times of the first and the last event; `None` without events.
    pub fn span(&self) -> Option<[Timestamp<Global>; 2]> {
        let ends = |of: &Location| Some([*of.times().first()?, *of.times().last()?]);
        let spans = self.locations().iter().filter_map(ends);
        spans.reduce(|one, other| [one[0].min(other[0]), one[1].max(other[1])])
    }

    /// Returns all locations, in the order of their ids.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Returns the ids of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        (0..self.locations.len() as u32).map(LocationId)
    }

    /// Returns, for every location, the index of the first one with the same clock.
    pub fn clocks(&self) -> Vec<u32> {
        let clocks = self.locations.iter().map(|location| location.clock);
        clocks.collect()
    }

    /// Returns the group of locations that share a clock; locations that share none have one each.
    pub(super) fn clock_of(&self) -> ClockOwner {
        self.clock_of
    }

    /// Returns the number of events of all locations.
    pub fn events(&self) -> u64 {
        self.locations
            .iter()
            .map(|location| location.times.len() as u64)
            .sum()
    }

    /// Returns the time of an event; `None` if there is no such event.
    pub fn time(&self, id: EventId) -> Option<Timestamp<Global>> {
        let times = &self.locations.get(id.location.index())?.times;
        times.get(id.event as usize).copied()
    }

    /// Returns the numbers of incomplete messages and operations, which were left out.
    pub fn left_out(&self) -> UnmatchedEvents {
        self.left_out
    }

    /// Returns all messages, ordered by their receivers.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        let received = self.ids().flat_map(|location| self.received_by(location));
        received.map(|message| self.named_by_events(message))
    }

    /// Returns the messages that a location receives; their sends may be ghosts.
    pub(super) fn received_by(&self, location: LocationId) -> impl Iterator<Item = Message> + '_ {
        let marks = self.locations[location.index()].marks.iter();
        let receives = marks.filter(|mark| mark.role() == Role::Receive);
        receives.map(move |mark| {
            let of = |location, mark: &Mark| EventId {
                location,
                event: mark.event,
            };
            let peer = LocationId(mark.peer());
            let send = &self.locations[peer.index()].marks[mark.partner as usize];
            Message {
                send: of(peer, send),
                receive: of(location, mark),
            }
        })
    }

    /// Returns the message with the event of its send, if that is a ghost.
    pub(super) fn named_by_events(&self, Message { send, receive }: Message) -> Message {
        let send = self.event_of_ghost(send);
        Message { send, receive }
    }

    /// Returns the event of a mark; `None` if there is no such mark.
    pub(super) fn event_of_mark(&self, location: u32, mark: u32) -> Option<EventId> {
        let mark = self.locations[location as usize].marks.get(mark as usize)?;
        Some(self.event_of_ghost(EventId {
            location: LocationId(location),
            event: mark.event,
        }))
    }

    /// Returns the event of a ghost; of other events, the same.
    #[inline]
    pub(super) fn event_of_ghost(&self, id: EventId) -> EventId {
        let ghosts = &self.locations[id.location.index()].ghost_events;
        let event = ghosts.get(id.event as usize).copied();
        EventId {
            event: event.unwrap_or(id.event),
            ..id
        }
    }

    /// Returns all collective operations.
    pub fn collectives(&self) -> impl ExactSizeIterator<Item = Collective<'_>> + '_ {
        let trace = self;
        let instances = self.instances.iter();
        instances.map(move |instance| Collective { instance, trace })
    }

    /// Adds the same to all times.
    ///
    /// # Errors
    /// As [`map_times`](Self::map_times).
    pub(super) fn shift(&mut self, by: Duration) -> Result<(), TraceError> {
        for location in self.ids() {
            self.locations[location.index()].is_mapped = true;
            self.map_times(location, |time| time + by)?;
        }
        Ok(())
    }

    /// Replaces every time of a location by the result of `f`, as a correction of its clock does.
    ///
    /// # Errors
    /// If times would decrease, or are more than 146 years from the origin. The times before the
    /// failing one are replaced.
    pub fn map_times(
        &mut self,
        location: LocationId,
        mut f: impl FnMut(Timestamp<Global>) -> Timestamp<Global>,
    ) -> Result<(), TraceError> {
        let Some(found) = self.locations.get_mut(location.index()) else {
            return Err(TraceError::UnknownLocation(location));
        };
        self.timelines = OnceLock::new();
        let mut last = None;
        for (event, time) in found.times.iter_mut().enumerate() {
            let mapped = f(*time);
            check_time(
                last,
                mapped,
                EventId {
                    location,
                    event: event as u32,
                },
            )?;
            *time = mapped;
            last = Some(mapped);
        }
        Ok(())
    }

    /// Returns the members whose enters the exit of the member of this rank depends on,
    /// if it depends on any.
    pub(super) fn awaited_by(&self, instance: &Instance, rank: u32) -> &[Slot] {
        let slots = self.slots_of(instance);
        match instance.kind.pattern() {
            DependencePattern::ToLater => slots.get(..rank as usize).unwrap_or(slots),
            _ => slots,
        }
    }

    pub(super) fn slots_of(&self, instance: &Instance) -> &[Slot] {
        &self.slots[instance.first..instance.first + instance.members as usize]
    }
}

/// Checks that a time may follow another one on a location.
pub(super) fn check_time(
    last: Option<Timestamp<Global>>,
    time: Timestamp<Global>,
    event: EventId,
) -> Result<(), TraceError> {
    if time.as_nanos().unsigned_abs() > REACH {
        return Err(TraceError::TooFar(event));
    }
    if last.is_some_and(|last| time < last) {
        return Err(TraceError::Decreasing(event));
    }
    Ok(())
}

/// Times are within 146 years of the origin, so that distances between them fit, too.
const REACH: u64 = 1 << 62;

impl<'a> Collective<'a> {
    /// Returns the kind of the operation.
    pub fn kind(&self) -> CollectiveKind {
        self.instance.kind
    }

    /// Returns the index of the root among the members, counted from 0; `u32::MAX` if it took no
    /// part. Meaningless if [`CollectiveKind::has_root`] is false.
    pub fn root(&self) -> u32 {
        self.instance.root
    }

    /// Returns all members of the communicator that took part, in the order of their
    /// ranks. Members are missing if their recordings ended early.
    ///
    /// The [`DependencePattern`](super::DependencePattern) of the kind determines which exits depend on which enters.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member> + use<'a> {
        let trace = self.trace;
        trace.slots_of(self.instance).iter().map(move |slot| {
            let event = |mark| Some(trace.event_of_mark(slot.location, mark)?.event);
            Member {
                location: LocationId(slot.location),
                enter: event(slot.enter),
                exit: event(slot.exit),
            }
        })
    }
}
