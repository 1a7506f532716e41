//! Packets of a Perfetto trace: tracks, interned names, and events.
//!
//! Field numbers are those of Perfetto's `trace_packet.proto`, `interned_data.proto`, and the files
//! in `track_event/`.

use super::protobuf::{fixed64, message, number, text};
use crate::kind::{DATA_NAMES, data_index};
use crate::{AccessKind, CollectiveKind, Quantity};

/// Name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InternedName<'a> {
    /// Interned name.
    Number(u64),
    Text(&'a str),
}

/// Names of events other than regions; those of collective operations follow them.
const NAMES: [&str; 15] = [
    "collective",
    "send",
    "receive",
    "fork",
    "thread",
    "collective started",
    "receive posted",
    "receive cancelled",
    "signal",
    "wait",
    "put",
    "get",
    "atomic",
    "access complete",
    "send complete",
];

impl InternedName<'_> {
    pub(super) const COLLECTIVE: Self = Self::Number(1);
    pub(super) const SEND: Self = Self::Number(2);
    pub(super) const RECEIVE: Self = Self::Number(3);
    pub(super) const FORK: Self = Self::Number(4);
    pub(super) const THREAD: Self = Self::Number(5);
    pub(super) const COLLECTIVE_START: Self = Self::Number(6);
    pub(super) const POST: Self = Self::Number(7);
    pub(super) const CANCEL: Self = Self::Number(8);
    pub(super) const SIGNAL: Self = Self::Number(9);
    pub(super) const WAIT: Self = Self::Number(10);
    const ACCESS: u64 = 11;
    pub(super) const ACCESS_COMPLETE: Self = Self::Number(14);
    pub(super) const SEND_COMPLETE: Self = Self::Number(15);
    const KINDS: u64 = 1 + NAMES.len() as u64;
    const OTHERS: u64 = Self::KINDS + CollectiveKind::MPI_KINDS.len() as u64;

    pub(super) fn kind(kind: CollectiveKind) -> Self {
        Self::Number(Self::KINDS + kind as u64)
    }

    pub(super) fn access(kind: AccessKind) -> Self {
        Self::Number(Self::ACCESS + kind as u64)
    }

    /// Regions and notes alternate, as the number of either is not known in advance.
    pub(super) fn region(region: u32) -> Self {
        Self::Number(Self::OTHERS + 2 * u64::from(region))
    }

    pub(super) fn note(number: usize) -> Self {
        Self::Number(Self::OTHERS + 1 + 2 * number as u64)
    }
}

/// Category by which events can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Region = 1,
    Collective,
    Message,
    Thread,
    Note,
    Access,
}

const CATEGORIES: [&str; 6] = [
    "region",
    "collective",
    "message",
    "thread",
    "note",
    "access",
];

fn kind_names() -> impl Iterator<Item = &'static str> {
    CollectiveKind::MPI_KINDS
        .into_iter()
        .map(CollectiveKind::name)
}

/// Returns the predefined names of events, in the order of their numbers, from 1.
fn event_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(kind_names())
}

/// Returns the predefined words of annotations, in the order of their numbers, from 1. The names of
/// locations follow.
fn word_names() -> impl Iterator<Item = &'static str> {
    DATA_NAMES.into_iter().chain(kind_names())
}

/// Annotation of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Annotation {
    To(Word),
    From(Word),
    Communicator(u32),
    Tag(i32),
    Kind(Word),
    Root(u32),
    Data(Word),
    Team(u32),
    /// Marks an end without a beginning.
    NotBegun,
    Bytes(u64),
}

const ANNOTATIONS: [&str; 10] = [
    "to",
    "from",
    "communicator",
    "tag",
    "kind",
    "root",
    "data",
    "team",
    "not begun",
    "bytes",
];

/// Interned word of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    const LOCATIONS: u64 = 1 + (DATA_NAMES.len() + CollectiveKind::MPI_KINDS.len()) as u64;

    pub(super) fn data(sent: bool, received: bool) -> Self {
        Self(1 + data_index(sent, received) as u64)
    }

    pub(super) fn kind(kind: CollectiveKind) -> Self {
        Self(1 + DATA_NAMES.len() as u64 + kind as u64)
    }

    pub(super) fn location(location: u32) -> Self {
        Self(Self::LOCATIONS + u64::from(location))
    }
}

/// Values of a metric that a location recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter<'a> {
    /// Number of the counter among all.
    pub(super) number: u32,
    pub(super) location: u32,
    pub(super) name: &'a str,
    pub(super) unit: &'a str,
}

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackEventKind {
    SliceBegin = 1,
    SliceEnd,
    Instant,
}

/// Event.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackEvent<'a> {
    pub(super) kind: TrackEventKind,
    pub(super) time: u64,
    pub(super) location: u32,
    /// Name and category; none for the end of a slice.
    pub(super) name: Option<(InternedName<'a>, Category)>,
    pub(super) annotations: &'a [Annotation],
    pub(super) flow: Option<u64>,
}

// Fields of packets.
const PACKET: u32 = 1;
const SEQUENCE: u32 = 10;
const INTERNED: u32 = 12;
const FLAGS: u32 = 13;
const TRACK: u32 = 60;
/// Flag: interned data are reset.
const CLEARED: u64 = 1;
/// Flag: earlier interned data are needed.
const NEEDED: u64 = 2;

/// Adds a packet. All packets belong to one sequence, which defines the numbers of names.
fn packet(to: &mut Vec<u8>, flags: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    message(to, PACKET, |to| {
        fill(to);
        number(to, SEQUENCE, 1);
        number(to, FLAGS, flags);
    });
}

/// Adds the first packets: predefined names, and the order of tracks.
pub(super) fn begin(to: &mut Vec<u8>) {
    packet(to, CLEARED, |to| {
        // First packet on the sequence.
        number(to, 87, 1);
        message(to, INTERNED, |to| {
            let mut all = |field, names: &mut dyn Iterator<Item = &str>| {
                (1..)
                    .zip(names)
                    .for_each(|(number, name)| interned(to, field, number, name));
            };
            all(CATEGORY_NAME, &mut CATEGORIES.into_iter());
            all(EVENT_NAME, &mut event_names());
            all(ANNOTATION_NAME, &mut ANNOTATIONS.into_iter());
            all(WORD, &mut word_names());
        });
    });
    packet(to, NEEDED, |to| {
        message(to, TRACK, |to| {
            // Root of all tracks.
            number(to, 1, 0);
            let explicit = 1;
            number(to, 19, explicit);
            number(to, 20, explicit);
        });
    });
}

// Fields of interned data.
const CATEGORY_NAME: u32 = 1;
const EVENT_NAME: u32 = 2;
const ANNOTATION_NAME: u32 = 3;
const WORD: u32 = 29;

fn interned(to: &mut Vec<u8>, field: u32, iid: u64, name: &str) {
    message(to, field, |to| {
        number(to, 1, iid);
        text(to, 2, name);
    });
}

/// Adds a packet that interns a name of events.
pub(super) fn name(to: &mut Vec<u8>, number: InternedName<'_>, name: &str) {
    if let InternedName::Number(iid) = number {
        packet(to, NEEDED, |to| {
            message(to, INTERNED, |to| interned(to, EVENT_NAME, iid, name));
        });
    }
}

/// A process is identified by its first location. As on Linux, its PID is the TID of its first
/// thread; 0 is reserved for the kernel.
fn pid(location: u32) -> u64 {
    u64::from(location) + 1
}

fn process_track(first: u32) -> u64 {
    2 * u64::from(first) + 2
}

fn thread_track(location: u32) -> u64 {
    2 * u64::from(location) + 1
}

/// Tracks of counters follow those of all locations.
fn counter_track(counter: u32) -> u64 {
    (1 << 40) + u64::from(counter)
}

/// Adds the track of a counter of a location.
pub(super) fn counter(to: &mut Vec<u8>, counter: Counter<'_>) {
    packet(to, NEEDED, |to| {
        message(to, TRACK, |to| {
            number(to, 1, counter_track(counter.number));
            text(to, 2, counter.name);
            number(to, 5, thread_track(counter.location));
            message(to, 8, |to| {
                if !counter.unit.is_empty() {
                    text(to, 6, counter.unit);
                }
            });
        });
    });
}

/// Adds a value of a counter.
pub(super) fn value(to: &mut Vec<u8>, counter: Counter<'_>, time: u64, value: Quantity) {
    const COUNTER: u64 = 4;
    packet(to, NEEDED, |to| {
        number(to, 8, time);
        message(to, 11, |to| {
            number(to, 9, COUNTER);
            number(to, 11, counter_track(counter.number));
            match value {
                Quantity::Whole(value) => number(to, 30, value as u64),
                Quantity::Real(value) => fixed64(to, 44, value.to_bits()),
            }
        });
    });
}

/// Adds the track of a process.
pub(super) fn process(to: &mut Vec<u8>, first: u32, name: &str) {
    packet(to, NEEDED, |to| {
        message(to, TRACK, |to| {
            number(to, 1, process_track(first));
            number(to, 12, first.into());
            message(to, 3, |to| {
                number(to, 1, pid(first));
                text(to, 6, name);
            });
        });
    });
}

/// Adds the track of a location as a thread of a process; in that, it has the name `shown`.
pub(super) fn thread(to: &mut Vec<u8>, location: u32, first: u32, [name, shown]: [&str; 2]) {
    packet(to, NEEDED, |to| {
        message(to, INTERNED, |to| {
            interned(to, WORD, Word::location(location).0, name);
        });
        message(to, TRACK, |to| {
            number(to, 1, thread_track(location));
            number(to, 5, process_track(first));
            number(to, 12, location.into());
            message(to, 4, |to| {
                number(to, 1, pid(first));
                number(to, 2, pid(location));
                text(to, 5, shown);
            });
        });
    });
}

/// Adds an event.
#[inline]
pub(super) fn event(to: &mut Vec<u8>, event: &TrackEvent<'_>) {
    packet(to, NEEDED, |to| {
        number(to, 8, event.time);
        message(to, 11, |to| {
            number(to, 9, event.kind as u64);
            number(to, 11, thread_track(event.location));
            if let Some((name, category)) = event.name {
                match name {
                    InternedName::Number(iid) => number(to, 10, iid),
                    InternedName::Text(name) => text(to, 23, name),
                }
                number(to, 3, category as u64);
            }
            event
                .annotations
                .iter()
                .for_each(|added| annotation(to, *added));
            if let Some(flow) = event.flow {
                // Flow 0 is not valid.
                fixed64(to, 47, flow + 1);
            }
        });
    });
}

fn annotation(to: &mut Vec<u8>, added: Annotation) {
    // Number of the name, and field of the value by its type: boolean, unsigned, signed, or
    // interned word.
    let (name, field, value) = match added {
        Annotation::To(Word(word)) => (1, 17, word),
        Annotation::From(Word(word)) => (2, 17, word),
        Annotation::Communicator(communicator) => (3, 3, communicator.into()),
        Annotation::Tag(tag) => (4, 4, i64::from(tag) as u64),
        Annotation::Kind(Word(word)) => (5, 17, word),
        Annotation::Root(root) => (6, 3, root.into()),
        Annotation::Data(Word(word)) => (7, 17, word),
        Annotation::Team(team) => (8, 3, team.into()),
        Annotation::NotBegun => (9, 2, 1),
        Annotation::Bytes(bytes) => (10, 3, bytes),
    };
    message(to, 4, |to| {
        number(to, 1, name);
        number(to, field, value);
    });
}
