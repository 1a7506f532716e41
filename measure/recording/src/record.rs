//! Records of a rank: words that a tracer writes while the program runs.
//!
//! The first word of a record tells its kind; it is written last, so that a reader of
//! shared memory never sees half a record. A message that a call sends follows the enter
//! of the call; what a call received or completed precedes its leave. So the times of
//! both are those of the call.

use downbeat_trace::AccessKind;
use downbeat_trace::CollectiveKind;

/// Kinds of records: the lowest bits of the first word.
pub(crate) mod kind {
    pub(crate) const ENTER: u64 = 1;
    pub(crate) const LEAVE: u64 = 2;
    pub(crate) const SEND: u64 = 3;
    pub(crate) const RECEIVE: u64 = 4;
    pub(crate) const POST: u64 = 5;
    pub(crate) const COMPLETE: u64 = 6;
    pub(crate) const CANCEL: u64 = 7;
    pub(crate) const COLLECTIVE: u64 = 8;
    pub(crate) const START: u64 = 9;
    pub(crate) const FINISH: u64 = 10;
    pub(crate) const FOLDED: u64 = 11;
    pub(crate) const DROPPED: u64 = 12;
    pub(crate) const TEXT: u64 = 13;
    pub(crate) const ACCESS: u64 = 14;
    pub(crate) const THREAD: u64 = 15;
}

/// Most words of a record, apart from the bytes of a text.
pub const MOST_WORDS: usize = 4;

/// Flags of a record of accesses that are complete; those of an access are its kind.
const ACCESSES_COMPLETE: u64 = AccessKind::ALL.len() as u64;

/// Flag of a collective operation whose length is known.
const IS_SIZED: u64 = 4;

/// Word of a length that is not known.
const UNKNOWN_LENGTH: u64 = u64::MAX;

/// One record, as its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// First word: kind, flags, number of the call, and another number.
    pub head: u64,
    /// Other words; those after the first `count` are 0.
    pub rest: [u64; MOST_WORDS - 1],
    /// Number of other words.
    pub count: usize,
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

const fn head(kind: u64, flags: u64, call: u16, value: u32) -> u64 {
    kind | flags << 8 | (call as u64) << 16 | (value as u64) << 32
}

/// Returns the word of a number that may be absent: the greatest number is not used.
#[inline(always)]
fn optional(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.wrapping_add(1))
}

/// Returns the word of a rank or a tag.
pub(crate) const fn rank(rank: i32) -> u64 {
    rank as u32 as u64
}

/// Defines constructors of records by their first word and the other ones.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident($($part:ident: $type:ty),*) = $head:expr, $rest:expr;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($part: $type),*) -> Self {
                Self::new($head, $rest)
            }
        )*
    };
}

/// Records, as a tracer makes them.
impl Record {
    constructors! {
        /// A call is entered: a collective operation of all members of a communicator, or
        /// another.
        call_entered(call: u16, communicator: Option<u32>, ticks: u64) =
            head(kind::ENTER, 0, call, optional(communicator.map(u64::from)) as u32), [ticks];
        /// A call is left, after it returned an error or not.
        call_left(call: u16, failed: bool, ticks: u64) =
            head(kind::LEAVE, failed.into(), call, 0), [ticks];
        /// The call that was entered last sends a message.
        message_sent(message: Envelope) =
            head(kind::SEND, 0, 0, message.communicator), [message.ends(), message.length()];
        /// The call that is left next has received a message.
        message_received(message: Envelope) =
            head(kind::RECEIVE, 0, 0, message.communicator), [message.ends(), message.length()];
        /// The call that is left next has posted the receive with this id.
        receive_posted(request: u64) = kind::POST, [request];
        /// The call that is left next has found a posted receive complete.
        receive_completed(message: Envelope, request: u64) =
            head(kind::COMPLETE, 0, 0, message.communicator),
            [message.ends(), message.length(), request];
        /// The call that is left next has ended a posted receive without a message.
        receive_cancelled(request: u64) = kind::CANCEL, [request];
        /// The call that was entered last starts the collective operation with this id.
        operation_started(communicator: u32, request: u64) =
            head(kind::START, 0, 0, communicator), [request];
        /// The call that was entered last issues a one-sided access.
        access_issued(access: Access) =
            head(kind::ACCESS, access.kind as u64, 0, access.window),
            [rank(access.target), access.bytes, optional(access.request)];
        /// The call that is left next completes accesses at their origin: those to one
        /// target or all, or only the one with this id.
        accesses_completed(window: u32, target: Option<i32>, request: Option<u64>) =
            head(kind::ACCESS, ACCESSES_COMPLETE, 0, window),
            [optional(target.map(rank)), optional(request)];
        /// Calls that found nothing complete, one after the other: enter of the first,
        /// leave of the last, and their number.
        calls_folded(call: u16, first: u64, last: u64, count: u64) =
            head(kind::FOLDED, 0, call, 0), [first, last, count];
        /// Calls that were not recorded, because memory was short, as
        /// [`Self::calls_folded`].
        calls_dropped(first: u64, last: u64, count: u64) = kind::DROPPED, [first, last, count];
        /// A text of this number of bytes, which follow: see
        /// [`Definition`](crate::Definition).
        text(bytes: usize) = head(kind::TEXT, 0, 0, bytes as u32), [];
        /// The records that follow in a block are those of another thread.
        of_thread(thread: u32) = head(kind::THREAD, 0, 0, thread), [];
    }

    /// The call that is left next is a collective operation, or found the one with this
    /// id complete.
    #[inline(always)]
    pub fn operation_ended(operation: Operation, request: Option<u64>) -> Self {
        let [sent, received] = [operation.sent, operation.received].map(u64::from);
        let (flags, root) = (sent | received << 1, u64::from(operation.root));
        let kind = request.map_or(kind::COLLECTIVE, |_| kind::FINISH);
        let bare = head(kind, flags, operation.kind as u16, operation.communicator);
        let sized = bare | IS_SIZED << 8;
        match (request, operation.bytes) {
            (None, None) => Self::new(bare, [root]),
            (None, Some(bytes)) => Self::new(sized, [root, bytes]),
            (Some(request), None) => Self::new(bare, [root, request]),
            (Some(request), Some(bytes)) => Self::new(sized, [root, request, bytes]),
        }
    }

    #[inline(always)]
    pub(crate) fn new<const N: usize>(head: u64, words: [u64; N]) -> Self {
        let (mut rest, count) = ([0; MOST_WORDS - 1], N);
        rest[..N].copy_from_slice(&words);
        Self { head, rest, count }
    }
}

impl Envelope {
    const fn ends(self) -> u64 {
        rank(self.peer) | rank(self.tag) << 32
    }

    #[inline(always)]
    fn length(self) -> u64 {
        self.bytes.unwrap_or(UNKNOWN_LENGTH)
    }
}

/// Number of words of the bytes of a text.
pub const fn text_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>())
}

/// Words after the first one, by kind: `t` is a reading of the counter, `e` peer and tag
/// of a message, `n` any other number.
const LAYOUTS: [&str; 16] = [
    "", "t", "t", "en", "en", "n", "enn", "n", "n", "n", "nn", "ttn", "ttn", "", "nnn", "",
];

/// Returns the layout of a record with this first word, as in [`LAYOUTS`]; `None` for an
/// unknown kind.
pub(crate) fn layout(head: u64) -> Option<&'static [u8]> {
    let (kind, flags) = (head & 0xff, head >> 8 & 0xf);
    let layout = match (kind, flags) {
        (kind::COLLECTIVE, IS_SIZED..) => "nn",
        (kind::FINISH, IS_SIZED..) => "nnn",
        (kind::ACCESS, ACCESSES_COMPLETE) => "nn",
        (kind::ACCESS, IS_SIZED..) | (0, _) => return None,
        _ => LAYOUTS.get(kind as usize)?,
    };
    Some(layout.as_bytes())
}

/// Parts of a record, for a reader. Those that a record of its kind lacks have no
/// meaning.
impl Record {
    pub(crate) const fn kind(&self) -> u64 {
        self.head & 0xff
    }

    /// Number of the call.
    pub(crate) const fn call(&self) -> u16 {
        (self.head >> 16) as u16
    }

    /// Communicator of a message, of an operation that starts or ends, or of a window; of
    /// a call that is entered, 0, or 1 more than the communicator of its collective
    /// operation; number of the bytes of a text, or of a thread.
    pub(crate) const fn communicator(&self) -> u32 {
        (self.head >> 32) as u32
    }

    /// Flags: of a call that is left, 1 if it returned an error.
    pub(crate) const fn flags(&self) -> u64 {
        self.head >> 8 & 0xf
    }

    /// First reading of the counter.
    pub(crate) fn ticks(&self) -> Option<u64> {
        layout(self.head)?.starts_with(b"t").then_some(self.rest[0])
    }

    /// Number of calls that the record stands for.
    pub(crate) const fn calls(&self) -> u64 {
        match self.kind() {
            kind::ENTER => 1,
            kind::FOLDED | kind::DROPPED => self.rest[2],
            _ => 0,
        }
    }

    /// Reading of the counter since which calls are missing, if the record states some.
    pub(crate) fn gap(&self) -> Option<u64> {
        (self.kind() == kind::DROPPED && self.calls() > 0).then_some(self.rest[0])
    }

    pub(crate) fn message(&self) -> Envelope {
        let [ends, bytes, _] = self.rest;
        Envelope {
            communicator: self.communicator(),
            peer: ends as u32 as i32,
            tag: (ends >> 32) as u32 as i32,
            bytes: (bytes != UNKNOWN_LENGTH).then_some(bytes),
        }
    }

    /// Collective operation that ends; `None` if its kind is unknown.
    pub(crate) fn operation(&self) -> Option<Operation> {
        let is_sized = self.flags() & IS_SIZED > 0;
        Some(Operation {
            communicator: self.communicator(),
            kind: *CollectiveKind::MPI_KINDS.get(usize::from(self.call()))?,
            root: self.rest[0] as u32,
            sent: self.flags() & 1 == 1,
            received: self.flags() & 2 == 2,
            bytes: is_sized.then_some(self.rest[self.count - 1]),
        })
    }
}

/// Records in the words of a block, up to the first one that is not whole, each with its
/// text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a>(pub(crate) &'a [u64]);

impl Iterator for Records<'_> {
    type Item = (Record, String);

    fn next(&mut self) -> Option<(Record, String)> {
        let (&head, rest) = self.0.split_first()?;
        let mut record = Record::new(head, []);
        record.count = layout(head)?.len();
        let (words, rest) = rest.split_at_checked(record.count)?;
        record.rest[..record.count].copy_from_slice(words);
        let length = usize::from(record.kind() == kind::TEXT) * record.communicator() as usize;
        let (text, rest) = rest.split_at_checked(text_words(length))?;
        // A rank that was killed may have written the first word only.
        if record.ticks() == Some(0) {
            return None;
        }
        self.0 = rest;
        let bytes = text.iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.take(length).collect();
        let text = String::from_utf8_lossy(&bytes);
        Some((record, text.trim_end().to_owned()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Texts that follow the [`examples`].
    const TEXTS: [&str; 2] = ["process 1 2 häuschen", ""];

    /// Returns one record of each kind.
    pub(crate) fn examples() -> Vec<Record> {
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
        let get = Access {
            kind: AccessKind::Get,
            window: 3,
            target: 2,
            bytes: 1 << 33,
            request: Some(6),
        };
        let atomic = Access {
            kind: AccessKind::Atomic,
            window: u32::MAX,
            target: -7,
            bytes: 0,
            request: None,
        };
        vec![
            Record::call_entered(619, Some(0), 1_000),
            Record::message_sent(message),
            Record::operation_started(3, 8),
            Record::message_received(message),
            Record::receive_posted(u64::MAX),
            Record::receive_completed(message, 9),
            Record::receive_completed(without_status, 10),
            Record::receive_cancelled(4),
            Record::operation_ended(operation, None),
            Record::operation_ended(operation, Some(5)),
            Record::operation_ended(without_length, None),
            Record::operation_ended(without_length, Some(6)),
            Record::access_issued(get),
            Record::access_issued(atomic),
            Record::accesses_completed(3, Some(0), Some(6)),
            Record::accesses_completed(3, None, None),
            Record::call_left(619, true, 1_700),
            Record::calls_folded(2, 1_800, 1_900, 17),
            Record::calls_dropped(2_000, 1 << 50, 1),
            Record::call_entered(0, None, 1 << 60),
        ]
    }

    /// Returns the words of records, as a tracer writes them.
    pub(crate) fn written(records: &[Record]) -> Vec<u64> {
        let words = |record: &Record| {
            let rest = record.rest.into_iter().take(record.count);
            std::iter::once(record.head).chain(rest)
        };
        records.iter().flat_map(words).collect()
    }

    /// Returns the words of a text, as a tracer writes them.
    fn written_text(text: &str) -> Vec<u64> {
        let mut all = vec![Record::text(text.len()).head];
        for bytes in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            all.push(u64::from_le_bytes(word));
        }
        all
    }

    /// Returns the words of the [`examples`], with two texts behind them.
    pub(crate) fn example_words() -> Vec<u64> {
        let texts = TEXTS.map(written_text).concat();
        [written(&examples()), texts].concat()
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let records = examples().into_iter().map(|record| (record, String::new()));
        let texts = TEXTS.map(|text| (Record::text(text.len()), text.to_owned()));
        let all = example_words();
        let mut found = Records(&all);
        for expected in records.chain(texts) {
            assert_eq!(found.next(), Some(expected));
        }
        assert!(found.0.is_empty());
    }

    #[test]
    fn parts_of_records_are_what_they_were_made_of() {
        let parts = examples();
        let [entered, left] = [parts[0], parts[16]];
        assert_eq!((entered.call(), entered.communicator()), (619, 1));
        assert_eq!((entered.ticks(), left.ticks()), (Some(1_000), Some(1_700)));
        assert!(left.flags() == 1 && parts[19].communicator() == 0);
        let message = parts[1].message();
        assert_eq!(
            (message.communicator, message.peer, message.tag),
            (7, -2, i32::MAX)
        );
        assert_eq!(
            (message.bytes, parts[6].message().bytes),
            (Some(1 << 40), None)
        );
        let places = [(2, 0), (4, 0), (5, 2), (7, 0), (9, 1), (11, 1)];
        let requests = places.map(|(index, word)| parts[index].rest[word]);
        assert_eq!(requests, [8, u64::MAX, 9, 4, 5, 6]);
        for (index, bytes) in [
            (8, Some(1 << 33)),
            (9, Some(1 << 33)),
            (10, None),
            (11, None),
        ] {
            let operation = parts[index].operation().unwrap();
            assert_eq!(
                (operation.kind, operation.bytes),
                (CollectiveKind::Exscan, bytes)
            );
            assert_eq!((operation.root, operation.communicator), (12, 3));
            assert!(operation.sent && !operation.received);
        }
        let accesses = [12, 13, 14, 15].map(|index| (parts[index].flags(), parts[index].rest));
        let kinds = [AccessKind::Get as u64, AccessKind::Atomic as u64, 3, 3];
        assert_eq!(accesses.map(|access| access.0), kinds);
        let target = u64::from(-7_i32 as u32);
        let words = [[2, 1 << 33, 7], [target, 0, 0], [1, 7, 0], [0, 0, 0]];
        assert_eq!(accesses.map(|access| access.1), words);
        assert_eq!(parts[13].communicator(), u32::MAX);
        assert_eq!([17, 18].map(|index| parts[index].calls()), [17, 1]);
        assert_eq!(
            [17, 18].map(|index| parts[index].gap()),
            [None, Some(2_000)]
        );
    }

    #[test]
    fn half_a_record_is_none() {
        let texts = TEXTS.map(written_text);
        let records = examples().into_iter().map(|record| written(&[record]));
        for all in records.chain(texts) {
            for end in 0..all.len() {
                assert!(Records(&all[..end]).next().is_none());
            }
        }
        assert!(Records(&[0, 0, 0]).next().is_none());
        assert!(Records(&[255, 0, 0]).next().is_none());
    }
}
