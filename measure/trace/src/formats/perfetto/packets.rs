//! Packets of a Perfetto trace: tracks, interned names, and events.
//!
//! Field numbers are those of Perfetto's `trace_packet.proto`, `interned_data.proto`, and the files
//! in `track_event/`.

use super::protobuf::{fixed64, message, number, text};
use crate::kind::DATA_NAMES;
use crate::named::named;
use crate::{CollectiveKind, Quantity};

/// Name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InternedName<'a> {
    Fixed(FixedName),
    /// Number of an interned name behind those.
    Number(u64),
    /// Name that is not interned.
    Text(&'a str),
}

named! {
    /// Name of an event that is none of a region; those of collective operations follow
    /// them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum FixedName {
        Collective = "collective",
        Send = "send",
        Receive = "receive",
        Fork = "fork",
        Thread = "thread",
        CollectiveStarted = "collective started",
        ReceivePosted = "receive posted",
        ReceiveCancelled = "receive cancelled",
        Signal = "signal",
        Wait = "wait",
        Put = "put",
        Get = "get",
        Atomic = "atomic",
        AccessComplete = "access complete",
        SendComplete = "send complete",
    }

    /// Returns the name.
    fn name
}

impl InternedName<'_> {
    const KINDS: u64 = 1 + FixedName::ALL.len() as u64;
    const OTHERS: u64 = Self::KINDS + CollectiveKind::MPI_KINDS.len() as u64;

    pub(super) fn kind(kind: CollectiveKind) -> Self {
        Self::Number(Self::KINDS + kind as u64)
    }

    /// Regions and notes alternate, as the number of either is not known in advance.
    pub(super) fn region(region: u32) -> Self {
        Self::Number(Self::OTHERS + 2 * u64::from(region))
    }

    pub(super) fn note(number: usize) -> Self {
        Self::Number(Self::OTHERS + 1 + 2 * number as u64)
    }
}

named! {
    /// Category by which events can be selected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Category {
        Region = "region",
        Collective = "collective",
        Message = "message",
        Thread = "thread",
        Note = "note",
        Access = "access",
    }

    /// Returns the name.
    fn name
}

/// Annotation of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Annotation {
    /// Location to which something is sent.
    To(u32),
    /// Location from which something is received.
    From(u32),
    Communicator(u32),
    Tag(i32),
    Kind(CollectiveKind),
    Root(u32),
    /// Index of [`DATA_NAMES`].
    Data(usize),
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

/// Number of the first word of annotations that is the name of a location.
const LOCATIONS: u64 = 1 + (DATA_NAMES.len() + CollectiveKind::MPI_KINDS.len()) as u64;

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackEventKind {
    SliceBegin = 1,
    SliceEnd,
    Instant,
}

/// Name and category of an event.
pub(super) type EventName<'a> = (InternedName<'a>, Category);

/// Event.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackEvent<'a> {
    pub(super) time: u64,
    /// Name, which the end of a slice does not need.
    pub(super) name: EventName<'a>,
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
        let kinds = CollectiveKind::MPI_KINDS.map(CollectiveKind::name);
        let tables = [
            (CATEGORY_NAME, Category::ALL.map(Category::name).to_vec()),
            (
                EVENT_NAME,
                [&FixedName::ALL.map(FixedName::name)[..], &kinds].concat(),
            ),
            (ANNOTATION_NAME, ANNOTATIONS.to_vec()),
            (WORD, [&DATA_NAMES[..], &kinds].concat()),
        ];
        message(to, INTERNED, |to| {
            for (field, names) in tables {
                for (number, name) in (1..).zip(names) {
                    interned(to, field, number, name);
                }
            }
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

/// Adds the track of the counter with this number: values with a name and a unit that a
/// location recorded.
pub(super) fn counter(to: &mut Vec<u8>, counter: u32, location: u32, [name, unit]: &[String; 2]) {
    packet(to, NEEDED, |to| {
        message(to, TRACK, |to| {
            number(to, 1, counter_track(counter));
            text(to, 2, name);
            number(to, 5, thread_track(location));
            message(to, 8, |to| {
                if !unit.is_empty() {
                    text(to, 6, unit);
                }
            });
        });
    });
}

/// Adds a value of a counter.
pub(super) fn value(to: &mut Vec<u8>, counter: u32, time: u64, value: Quantity) {
    const COUNTER: u64 = 4;
    packet(to, NEEDED, |to| {
        number(to, 8, time);
        message(to, 11, |to| {
            number(to, 9, COUNTER);
            number(to, 11, counter_track(counter));
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
            interned(to, WORD, LOCATIONS + u64::from(location), name);
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

/// Adds an event of a location.
#[inline]
pub(super) fn event(to: &mut Vec<u8>, location: u32, kind: TrackEventKind, event: &TrackEvent<'_>) {
    packet(to, NEEDED, |to| {
        number(to, 8, event.time);
        message(to, 11, |to| {
            number(to, 9, kind as u64);
            number(to, 11, thread_track(location));
            if kind != TrackEventKind::SliceEnd {
                let (name, category) = event.name;
                match name {
                    InternedName::Fixed(name) => number(to, 10, 1 + name as u64),
                    InternedName::Number(iid) => number(to, 10, iid),
                    InternedName::Text(name) => text(to, 23, name),
                }
                number(to, 3, 1 + category as u64);
            }
            for added in event.annotations {
                annotation(to, *added);
            }
            if let Some(flow) = event.flow {
                // Flow 0 is not valid.
                fixed64(to, 47, flow + 1);
            }
        });
    });
}

fn annotation(to: &mut Vec<u8>, added: Annotation) {
    // Types of values: they have different fields.
    const BOOLEAN: u32 = 2;
    const UNSIGNED: u32 = 3;
    const SIGNED: u32 = 4;
    const INTERNED_WORD: u32 = 17;
    // Number of the name, field of the value, and the value.
    let (name, field, value) = match added {
        Annotation::To(location) => (1, INTERNED_WORD, LOCATIONS + u64::from(location)),
        Annotation::From(location) => (2, INTERNED_WORD, LOCATIONS + u64::from(location)),
        Annotation::Communicator(communicator) => (3, UNSIGNED, communicator.into()),
        Annotation::Tag(tag) => (4, SIGNED, i64::from(tag) as u64),
        Annotation::Kind(kind) => (5, INTERNED_WORD, 1 + DATA_NAMES.len() as u64 + kind as u64),
        Annotation::Root(root) => (6, UNSIGNED, root.into()),
        Annotation::Data(index) => (7, INTERNED_WORD, 1 + index as u64),
        Annotation::Team(team) => (8, UNSIGNED, team.into()),
        Annotation::NotBegun => (9, BOOLEAN, 1),
        Annotation::Bytes(bytes) => (10, UNSIGNED, bytes),
    };
    message(to, 4, |to| {
        number(to, 1, name);
        number(to, field, value);
    });
}
