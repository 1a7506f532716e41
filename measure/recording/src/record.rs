//! Records of a rank: words that a tracer writes while the program runs.
//!
//! The first word of a record tells its kind; it is written last, so that a reader of shared memory never sees half a record. A
//! message that a call sends follows the enter of the call; what a call received or completed precedes its leave. So the times of
//! both are those of the call.

use downbeat_trace::CollectiveKind;
use downbeat_trace::formats::AccessKind;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A call is entered.
    Enter {
        /// Number of the call.
        call: u16,
        /// Communicator, if it is a collective operation of all its members.
        collective: Option<u32>,
        /// Reading of the counter.
        ticks: u64,
    },
    /// A call is left.
    Leave {
        /// Number of the call.
        call: u16,
        /// True if it returned an error.
        failed: bool,
        /// Reading of the counter.
        ticks: u64,
    },
    /// The call that was entered last sends a message.
    Send(Envelope),
    /// The call that is left next has received a message.
    Receive(Envelope),
    /// The call that is left next has posted a receive.
    Post {
        /// Id of the receive.
        request: u64,
    },
    /// The call that is left next has found a posted receive complete.
    Complete {
        /// The message.
        message: Envelope,
        /// Id of the receive.
        request: u64,
    },
    /// The call that is left next has ended a posted receive without a message.
    Cancel {
        /// Id of the receive.
        request: u64,
    },
    /// The call that is left next is a collective operation.
    Collective(Operation),
    /// The call that was entered last starts a collective operation.
    Start {
        /// Communicator.
        communicator: u32,
        /// Id of the operation.
        request: u64,
    },
    /// The call that is left next has found a collective operation complete.
    Finish {
        /// The operation.
        operation: Operation,
        /// Id of the operation.
        request: u64,
    },
    /// The call that was entered last issues a one-sided access.
    Access(Access),
    /// The call that is left next completes accesses at their origin.
    AccessesComplete {
        /// Communicator of the window.
        window: u32,
        /// Target of the accesses; all of them if there is none.
        target: Option<i32>,
        /// Id of the only access.
        request: Option<u64>,
    },
    /// Calls that found nothing complete, one after the other.
    Folded {
        /// Number of the call.
        call: u16,
        /// Enter of the first.
        first: u64,
        /// Leave of the last.
        last: u64,
        /// Number of calls.
        count: u64,
    },
    /// Calls that were not recorded, because memory was short.
    Dropped {
        /// Enter of the first.
        first: u64,
        /// Leave of the last.
        last: u64,
        /// Number of calls.
        count: u64,
    },
    /// A definition: see [`Definition`](crate::Definition).
    Text(&'a str),
}

/// Message at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Communicator.
    pub communicator: u32,
    /// Rank of the other end; in the remote group, if the communicator has one.
    pub peer: i32,
    /// Tag.
    pub tag: i32,
    /// Length, if it is known; never the greatest number.
    pub bytes: Option<u64>,
}

/// Collective operation, as one member takes part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Communicator.
    pub communicator: u32,
    /// Kind.
    pub kind: CollectiveKind,
    /// Rank of the root, if it has one.
    pub root: u32,
    /// True if this member contributed data.
    pub sent: bool,
    /// True if this member received data.
    pub received: bool,
    /// Length of what it contributed, if that is known.
    pub bytes: Option<u64>,
}

/// One-sided access to the memory of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Kind.
    pub kind: AccessKind,
    /// Communicator of the window.
    pub window: u32,
    /// Rank of the target in it.
    pub target: i32,
    /// Number of bytes that are accessed there.
    pub bytes: u64,
    /// Id, if it can be completed alone.
    pub request: Option<u64>,
}

mod kind {
    pub(super) const ENTER: u64 = 1;
    pub(super) const LEAVE: u64 = 2;
    pub(super) const SEND: u64 = 3;
    pub(super) const RECEIVE: u64 = 4;
    pub(super) const POST: u64 = 5;
    pub(super) const COMPLETE: u64 = 6;
    pub(super) const CANCEL: u64 = 7;
    pub(super) const COLLECTIVE: u64 = 8;
    pub(super) const START: u64 = 9;
    pub(super) const FINISH: u64 = 10;
    pub(super) const FOLDED: u64 = 11;
    pub(super) const DROPPED: u64 = 12;
    pub(super) const TEXT: u64 = 13;
    pub(super) const ACCESS: u64 = 14;
    pub(super) const THREAD: u64 = 15;
}

/// Flags of an access are its kind, or that accesses are complete.
const ACCESSES_COMPLETE: u64 = AccessKind::ALL.len() as u64;

/// Word of a length that is not known.
const UNKNOWN_LENGTH: u64 = u64::MAX;

/// Meaning of a word after the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Reading of the counter.
    Ticks,
    /// Peer and tag of a message.
    Ends,
    /// Any other number.
    Number,
}

/// Returns the words that follow the first one of a record that is not a text; `None` for an unknown kind.
pub(crate) const fn fields(head: u64) -> Option<&'static [Field]> {
    use Field::{Ends, Number, Ticks};
    Some(match head & 0xff {
        kind::ENTER | kind::LEAVE => &[Ticks],
        kind::SEND | kind::RECEIVE => &[Ends, Number],
        kind::COLLECTIVE if is_sized(head) => &[Number, Number],
        kind::FINISH if is_sized(head) => &[Number, Number, Number],
        kind::POST | kind::CANCEL | kind::COLLECTIVE | kind::START => &[Number],
        kind::COMPLETE => &[Ends, Number, Number],
        kind::FINISH => &[Number, Number],
        kind::FOLDED | kind::DROPPED => &[Ticks, Ticks, Number],
        kind::ACCESS if head >> 8 & 0xf == ACCESSES_COMPLETE => &[Number, Number],
        kind::ACCESS => &[Number, Number, Number],
        _ => return None,
    })
}

/// Returns true if a collective operation has a length.
const fn is_sized(head: u64) -> bool {
    head >> 10 & 1 == 1
}

/// Returns true if a record that begins with this word is a text.
pub(crate) const fn is_text(head: u64) -> bool {
    head & 0xff == kind::TEXT
}

/// Returns the number of calls that a record stands for.
pub(crate) const fn number_of_calls(head: u64, of: &[u64]) -> u64 {
    match (head & 0xff, of) {
        (kind::ENTER, _) => 1,
        (kind::FOLDED | kind::DROPPED, [_, _, count]) => *count,
        _ => 0,
    }
}

/// Returns the reading of the counter since which calls are missing, if a record states some.
pub(crate) const fn first_missing(head: u64, of: &[u64]) -> Option<u64> {
    match (head & 0xff, of) {
        (kind::DROPPED, [first, _, count]) if *count > 0 => Some(*first),
        _ => None,
    }
}

/// Returns the word after which the records in a block are those of another thread.
pub const fn thread_head(thread: u32) -> u64 {
    head(kind::THREAD, 0, 0, thread)
}

/// Returns the thread whose records follow this word, if it is such a word.
pub(crate) const fn thread_after(head: u64) -> Option<u32> {
    let thread = (head >> 32) as u32;
    if thread_head(thread) == head {
        Some(thread)
    } else {
        None
    }
}

const KINDS: [CollectiveKind; 12] = [
    CollectiveKind::Barrier,
    CollectiveKind::Broadcast,
    CollectiveKind::Scatter,
    CollectiveKind::Gather,
    CollectiveKind::Reduce,
    CollectiveKind::Allreduce,
    CollectiveKind::Allgather,
    CollectiveKind::Alltoall,
    CollectiveKind::Alltoallv,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Scan,
    CollectiveKind::Exscan,
];

/// Most words of a record that is not a text.
pub const MOST_WORDS: usize = 4;

/// Longest text in bytes.
pub const LONGEST_TEXT: usize = 1 << 16;

/// Words of a record: those that count, and their number.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// First word, which is written last.
    pub head: u64,
    /// Other words.
    pub rest: [u64; MOST_WORDS - 1],
    /// Number of other words.
    pub count: usize,
}

#[inline(always)]
const fn head(kind: u64, flags: u64, call: u16, value: u32) -> u64 {
    kind | flags << 8 | (call as u64) << 16 | (value as u64) << 32
}

/// Returns the word of a number that may be absent: the greatest number is not used.
#[inline(always)]
const fn optional(number: Option<u64>) -> u64 {
    match number {
        Some(number) => number.wrapping_add(1),
        None => 0,
    }
}

#[inline(always)]
const fn words<const N: usize>(head: u64, of: [u64; N]) -> Words {
    let mut rest = [0; MOST_WORDS - 1];
    let mut i = 0;
    while i < N {
        rest[i] = of[i];
        i += 1;
    }
    Words {
        head,
        rest,
        count: N,
    }
}

impl Envelope {
    #[inline(always)]
    const fn ends(self) -> u64 {
        self.peer as u32 as u64 | (self.tag as u32 as u64) << 32
    }

    const fn new(communicator: u32, ends: u64, bytes: u64) -> Self {
        Self {
            communicator,
            peer: ends as u32 as i32,
            tag: (ends >> 32) as u32 as i32,
            bytes: if bytes == UNKNOWN_LENGTH {
                None
            } else {
                Some(bytes)
            },
        }
    }

    #[inline(always)]
    const fn length(self) -> u64 {
        match self.bytes {
            Some(bytes) => bytes,
            None => UNKNOWN_LENGTH,
        }
    }
}

impl Operation {
    #[inline(always)]
    const fn head(self, kind: u64) -> u64 {
        let is_sized = self.bytes.is_some();
        let flags = self.sent as u64 | (self.received as u64) << 1 | (is_sized as u64) << 2;
        head(kind, flags, self.number(), self.communicator)
    }

    #[inline(always)]
    const fn number(self) -> u16 {
        let mut number = 0;
        while number < KINDS.len() && KINDS[number] as u32 != self.kind as u32 {
            number += 1;
        }
        number as u16
    }

    fn read(head: u64, root: u64, bytes: Option<u64>) -> Option<Self> {
        Some(Self {
            communicator: (head >> 32) as u32,
            kind: *KINDS.get((head >> 16 & 0xffff) as usize)?,
            root: root as u32,
            sent: head >> 8 & 1 == 1,
            received: head >> 9 & 1 == 1,
            bytes,
        })
    }
}

impl Record<'_> {
    /// Returns the words of a record; of a text, only the first one.
    #[inline(always)]
    pub const fn words(&self) -> Words {
        match *self {
            Self::Enter {
                call,
                collective,
                ticks,
            } => {
                // The last communicator is not used.
                let value = match collective {
                    Some(communicator) => communicator.wrapping_add(1),
                    None => 0,
                };
                words(head(kind::ENTER, 0, call, value), [ticks])
            }
            Self::Leave {
                call,
                failed,
                ticks,
            } => words(head(kind::LEAVE, failed as u64, call, 0), [ticks]),
            Self::Send(message) => {
                let head = head(kind::SEND, 0, 0, message.communicator);
                words(head, [message.ends(), message.length()])
            }
            Self::Receive(message) => {
                let head = head(kind::RECEIVE, 0, 0, message.communicator);
                words(head, [message.ends(), message.length()])
            }
            Self::Post { request } => words(head(kind::POST, 0, 0, 0), [request]),
            Self::Complete { message, request } => {
                let head = head(kind::COMPLETE, 0, 0, message.communicator);
                words(head, [message.ends(), message.length(), request])
            }
            Self::Cancel { request } => words(head(kind::CANCEL, 0, 0, 0), [request]),
            Self::Collective(operation) => {
                let head = operation.head(kind::COLLECTIVE);
                match operation.bytes {
                    Some(bytes) => words(head, [operation.root as u64, bytes]),
                    None => words(head, [operation.root as u64]),
                }
            }
            Self::Start {
                communicator,
                request,
            } => words(head(kind::START, 0, 0, communicator), [request]),
            Self::Finish { operation, request } => {
                let head = operation.head(kind::FINISH);
                match operation.bytes {
                    Some(bytes) => words(head, [operation.root as u64, request, bytes]),
                    None => words(head, [operation.root as u64, request]),
                }
            }
            Self::Access(access) => {
                let head = head(kind::ACCESS, access.kind as u64, 0, access.window);
                let target = access.target as u32 as u64;
                words(head, [target, access.bytes, optional(access.request)])
            }
            Self::AccessesComplete {
                window,
                target,
                request,
            } => {
                let target = match target {
                    Some(target) => Some(target as u32 as u64),
                    None => None,
                };
                let head = head(kind::ACCESS, ACCESSES_COMPLETE, 0, window);
                words(head, [optional(target), optional(request)])
            }
            Self::Folded {
                call,
                first,
                last,
                count,
            } => words(head(kind::FOLDED, 0, call, 0), [first, last, count]),
            Self::Dropped { first, last, count } => {
                words(head(kind::DROPPED, 0, 0, 0), [first, last, count])
            }
            Self::Text(text) => words(head(kind::TEXT, 0, 0, text.len() as u32), []),
        }
    }
}

/// Number of words of the bytes of a text.
pub const fn text_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>())
}

/// Reads the record at the start of some words, and returns it with the words after it; `None` where there is none, or half of one.
/// The bytes of a text are put into `text`.
pub fn read<'a, 'w>(words: &'w [u64], text: &'a mut String) -> Option<(Record<'a>, &'w [u64])> {
    let (&head, rest) = words.split_first()?;
    if is_text(head) {
        let (of, rest) = read_text(head, rest)?;
        *text = of;
        return Some((Record::Text(text), rest));
    }
    let (of, rest) = rest.split_at_checked(fields(head)?.len())?;
    Some((read_fields(head, of)?, rest))
}

/// Returns the text whose first word is `head`, and the words after it.
fn read_text(head: u64, rest: &[u64]) -> Option<(String, &[u64])> {
    let length = (head >> 32) as usize;
    let (words, rest) = rest.split_at_checked(text_words(length))?;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take(length).collect();
    Some((String::from_utf8_lossy(&bytes).into_owned(), rest))
}

fn read_fields(head: u64, of: &[u64]) -> Option<Record<'static>> {
    let call = (head >> 16) as u16;
    let value = (head >> 32) as u32;
    Some(match (head & 0xff, of) {
        (kind::ENTER, &[ticks]) => Record::Enter {
            call,
            collective: value.checked_sub(1),
            ticks,
        },
        (kind::LEAVE, &[ticks]) => Record::Leave {
            call,
            failed: head >> 8 & 1 == 1,
            ticks,
        },
        (kind::SEND, &[ends, bytes]) => Record::Send(Envelope::new(value, ends, bytes)),
        (kind::RECEIVE, &[ends, bytes]) => Record::Receive(Envelope::new(value, ends, bytes)),
        (kind::POST, &[request]) => Record::Post { request },
        (kind::COMPLETE, &[ends, bytes, request]) => Record::Complete {
            message: Envelope::new(value, ends, bytes),
            request,
        },
        (kind::CANCEL, &[request]) => Record::Cancel { request },
        (kind::COLLECTIVE, &[root, ref bytes @ ..]) => {
            Record::Collective(Operation::read(head, root, bytes.first().copied())?)
        }
        (kind::START, &[request]) => Record::Start {
            communicator: value,
            request,
        },
        (kind::FINISH, &[root, request, ref bytes @ ..]) => Record::Finish {
            operation: Operation::read(head, root, bytes.first().copied())?,
            request,
        },
        (kind::ACCESS, &[target, bytes, request]) => Record::Access(Access {
            kind: *AccessKind::ALL.get((head >> 8 & 0xf) as usize)?,
            window: value,
            target: target as u32 as i32,
            bytes,
            request: request.checked_sub(1),
        }),
        (kind::ACCESS, &[target, request]) => Record::AccessesComplete {
            window: value,
            target: target.checked_sub(1).map(|target| target as u32 as i32),
            request: request.checked_sub(1),
        },
        (kind::FOLDED, &[first, last, count]) => Record::Folded {
            call,
            first,
            last,
            count,
        },
        (kind::DROPPED, &[first, last, count]) => Record::Dropped { first, last, count },
        _ => return None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns one record of each kind.
    pub(crate) fn examples() -> Vec<Record<'static>> {
        let message = Envelope {
            communicator: 7,
            peer: -2,
            tag: i32::MAX,
            bytes: Some(1 << 40),
        };
        let without_status = Envelope {
            bytes: None,
            ..message
        };
        let operation = Operation {
            communicator: 3,
            kind: CollectiveKind::Exscan,
            root: 12,
            sent: true,
            received: false,
            bytes: Some(1 << 33),
        };
        let without_length = Operation {
            bytes: None,
            ..operation
        };
        vec![
            Record::Enter {
                call: 619,
                collective: Some(0),
                ticks: 1_000,
            },
            Record::Send(message),
            Record::Start {
                communicator: 3,
                request: 8,
            },
            Record::Receive(message),
            Record::Post { request: u64::MAX },
            Record::Complete {
                message,
                request: 9,
            },
            Record::Complete {
                message: without_status,
                request: 10,
            },
            Record::Cancel { request: 4 },
            Record::Collective(operation),
            Record::Finish {
                operation,
                request: 5,
            },
            Record::Collective(without_length),
            Record::Finish {
                operation: without_length,
                request: 6,
            },
            Record::Access(Access {
                kind: AccessKind::Get,
                window: 3,
                target: 2,
                bytes: 1 << 33,
                request: Some(6),
            }),
            Record::Access(Access {
                kind: AccessKind::Atomic,
                window: u32::MAX,
                target: -7,
                bytes: 0,
                request: None,
            }),
            Record::AccessesComplete {
                window: 3,
                target: Some(0),
                request: Some(6),
            },
            Record::AccessesComplete {
                window: 3,
                target: None,
                request: None,
            },
            Record::Leave {
                call: 619,
                failed: true,
                ticks: 1_700,
            },
            Record::Folded {
                call: 2,
                first: 1_800,
                last: 1_900,
                count: 17,
            },
            Record::Dropped {
                first: 2_000,
                last: 1 << 50,
                count: 1,
            },
            Record::Enter {
                call: 0,
                collective: None,
                ticks: 1 << 60,
            },
            Record::Text("process 1 2 häuschen"),
            Record::Text(""),
        ]
    }

    /// Returns the words of records, as a tracer writes them.
    pub(crate) fn written(records: &[Record<'_>]) -> Vec<u64> {
        let mut all = vec![];
        for record in records {
            let words = record.words();
            all.push(words.head);
            all.extend(&words.rest[..words.count]);
            if let Record::Text(text) = record {
                for bytes in text.as_bytes().chunks(8) {
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    all.push(u64::from_le_bytes(word));
                }
            }
        }
        all
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let records = examples();
        let all = written(&records);
        let (mut rest, mut text) = (&all[..], String::new());
        for expected in &records {
            let (record, after) = read(rest, &mut text).unwrap();
            assert_eq!(record, *expected);
            rest = after;
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn half_a_record_is_none() {
        for record in examples() {
            let all = written(&[record]);
            for end in 0..all.len() {
                assert!(read(&all[..end], &mut String::new()).is_none());
            }
        }
        assert!(read(&[0, 0, 0], &mut String::new()).is_none());
        assert!(read(&[255, 0, 0], &mut String::new()).is_none());
    }
}
