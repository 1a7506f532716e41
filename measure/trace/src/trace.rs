//! A trace in memory: what its locations did, and which of their events depend on each other.

use downbeat_clock_core::{Global, Timestamp};

use super::ids::{EventId, LocationId, Place};
use super::{CollectiveKind, TraceError};

/// What all locations did, matched: built by a [`TraceBuilder`](super::TraceBuilder).
///
/// Times are those of one scale, on which they may be wrong: a message can seem to arrive before it set out. On
/// each location they never decrease.
///
/// An event takes 8 bytes, and 12 more if it depends on others or others on it.
#[derive(Debug)]
pub struct Trace {
    pub(super) locations: Vec<Location>,
    pub(super) instances: Vec<Instance>,
    pub(super) slots: Vec<Slot>,
    pub(super) left_out: LeftOut,
}

/// What one location did.
#[derive(Debug)]
pub struct Location {
    pub(super) place: Place,
    pub(super) times: Vec<Timestamp<Global>>,
    /// Of the events that others depend on or that depend on others, in order.
    pub(super) marks: Vec<Mark>,
}

/// How many events a lenient builder left without what they belong to. They are as internal events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Messages that nobody receives.
    pub sends: u64,
    /// Messages that nobody sent.
    pub receives: u64,
    /// Collective operations that not all members entered and left; their other members count.
    pub collectives: u64,
}

/// A message between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Where it set out.
    pub send: EventId,
    /// Where it arrived.
    pub receive: EventId,
}

/// One collective operation, and what its members had to do with each other.
#[derive(Clone, Copy, Debug)]
pub struct Collective<'a> {
    kind: CollectiveKind,
    root: u32,
    slots: &'a [Slot],
    trace: &'a Trace,
}

/// What a member had to do with the others in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Who it is.
    pub location: LocationId,
    /// Its enter, if that must come before exits of others: it gave data, in an operation where that matters.
    pub enter: Option<u32>,
    /// Its exit, if enters of others must come before it: it was given data.
    pub exit: Option<u32>,
}

/// An event that others depend on, or that depends on others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) event: u32,
    /// Three low bits say what it is; the others, for a message, where its other end is, or else the rank of the member.
    role_and_peer: u32,
    /// For a message, the mark at its other end, and for a collective operation its number.
    pub(super) partner: u32,
}

/// What a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Send,
    Receive,
    /// A logical send.
    Enter,
    /// A logical receive.
    Exit,
    /// Nothing any more: the other end is missing, or there was no data.
    Nothing,
}

/// A collective operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) kind: CollectiveKind,
    pub(super) root: u32,
    /// Whose it is.
    pub(super) team: u32,
    /// Where its members are in the slots of the trace.
    pub(super) first: usize,
    pub(super) members: u32,
}

/// A member of a collective operation; its marks, or [`NONE`] where it has none that count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) location: u32,
    pub(super) enter: u32,
    pub(super) exit: u32,
}

/// No mark.
pub(super) const NONE: u32 = u32::MAX;

impl Mark {
    /// So many locations can be told apart, and one value is left.
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

    /// For a message, the location of its other end; for a collective operation, the rank of the member.
    pub(super) const fn peer(self) -> u32 {
        self.role_and_peer >> 3
    }

    /// The same event, with another end.
    pub(super) const fn with(self, peer: u32, partner: u32) -> Self {
        Self {
            event: self.event,
            role_and_peer: peer << 3 | (self.role_and_peer & 7),
            partner,
        }
    }

    /// The same event, which has nothing to do with others any more.
    pub(super) const fn alone(self) -> Self {
        Self::new(self.event, Role::Nothing, 0, NONE)
    }
}

impl Location {
    /// Adds an event.
    #[inline]
    pub(super) fn add(
        &mut self,
        this: LocationId,
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
        self.times.push(time);
        Ok(event)
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// When its events were.
    pub fn times(&self) -> &[Timestamp<Global>] {
        &self.times
    }
}

impl Trace {
    /// All locations, in the order of their numbers.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// The numbers of all locations.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        (0..self.locations.len() as u32).map(LocationId)
    }

    /// How many events all locations have.
    pub fn events(&self) -> u64 {
        self.locations
            .iter()
            .map(|location| location.times.len() as u64)
            .sum()
    }

    /// When an event was; `None` if there is no such event.
    pub fn time(&self, id: EventId) -> Option<Timestamp<Global>> {
        self.locations
            .get(id.location.index())?
            .times
            .get(id.event as usize)
            .copied()
    }

    /// What has no partner; nothing, unless the builder was lenient.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// All messages, by their receivers.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.ids()
            .flat_map(move |location| self.received_by(location).map(|(message, _)| message))
    }

    /// The messages that a location receives, and the marks of their sends.
    pub(super) fn received_by(
        &self,
        location: LocationId,
    ) -> impl Iterator<Item = (Message, u32)> + '_ {
        let marks = &self.locations[location.index()].marks;
        marks
            .iter()
            .filter(|mark| mark.role() == Role::Receive)
            .map(move |mark| {
                let peer = LocationId(mark.peer());
                let event = self.locations[peer.index()].marks[mark.partner as usize].event;
                let send = EventId {
                    location: peer,
                    event,
                };
                (
                    Message {
                        send,
                        receive: EventId {
                            location,
                            event: mark.event,
                        },
                    },
                    mark.partner,
                )
            })
    }

    /// All collective operations.
    pub fn collectives(&self) -> impl ExactSizeIterator<Item = Collective<'_>> + '_ {
        self.instances.iter().map(move |instance| Collective {
            kind: instance.kind,
            root: instance.root,
            slots: self.slots_of(instance),
            trace: self,
        })
    }

    /// Replaces the times of a location, as a correction of its clock does: every time by `f` of it.
    ///
    /// # Errors
    /// Where times would decrease, or be more than 146 years from the origin. The times before that are replaced.
    pub fn map_times(
        &mut self,
        location: LocationId,
        mut f: impl FnMut(Timestamp<Global>) -> Timestamp<Global>,
    ) -> Result<(), TraceError> {
        let Some(found) = self.locations.get_mut(location.index()) else {
            return Err(TraceError::UnknownLocation(location));
        };
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

    pub(super) fn slots_of(&self, instance: &Instance) -> &[Slot] {
        &self.slots[instance.first..instance.first + instance.members as usize]
    }
}

/// Whether a time may follow another on a location.
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

/// Times are within 146 years of the origin, so that what they are moved by fits, too.
const REACH: u64 = 1 << 62;

impl<'a> Collective<'a> {
    /// Which operation it is.
    pub fn kind(&self) -> CollectiveKind {
        self.kind
    }

    /// Which of the members is its root, counted from 0; none, if that took no part. Meaningless where
    /// [`CollectiveKind::has_root`] is false.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// All members of the communicator that took part, in the order of their ranks: all, unless the builder was lenient.
    ///
    /// Which enters come before which exits is said by the [`Pattern`](super::Pattern) of the kind.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member> + use<'a> {
        let trace = self.trace;
        self.slots.iter().map(move |slot| {
            let marks = &trace.locations[slot.location as usize].marks;
            let event = |mark: u32| marks.get(mark as usize).map(|mark| mark.event);
            Member {
                location: LocationId(slot.location),
                enter: event(slot.enter),
                exit: event(slot.exit),
            }
        })
    }
}
