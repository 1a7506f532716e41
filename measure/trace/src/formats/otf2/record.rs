//! Records, of which all files of an archive are full: a kind, a length and data, so that any record can be told from the
//! next, also one of a kind that is not known.

// As OTF2 has them, since its first version.
pub(super) const END_OF_CHUNK: u8 = 0;
pub(super) const END_OF_BUFFER: u8 = 1;
pub(super) const END_OF_FILE: u8 = 2;
pub(super) const CHUNK_HEADER: u8 = 3;
/// In files of events: the time of all that follow, in eight bytes.
pub(super) const TIMESTAMP: u8 = 5;
/// In files of events: what the next one has besides.
pub(super) const ATTRIBUTES: u8 = 6;

/// The kind, the byte order, and the numbers of the first and of the last event.
pub(super) const HEADER: usize = 18;

/// Follows a kind where the length of the data does not fit in a byte; then it is in eight.
pub(super) const LONG: u8 = 0xff;

/// The order of the bytes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little = 0x42,
    Big = 0x23,
}

impl Order {
    /// The one that a header names.
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Little, Self::Big]
            .into_iter()
            .find(|order| *order as u8 == byte)
    }

    /// Of at most eight bytes.
    #[inline]
    pub(super) fn number(self, bytes: &[u8]) -> u64 {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }

    /// Of just as many.
    #[inline]
    pub(super) fn full(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    pub(super) fn bytes(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// An event, of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventRecord<'a> {
    /// When it was, in ticks, as recorded.
    pub(super) time: u64,
    pub(super) kind: u8,
    /// All of it, with its attributes.
    pub(super) bytes: &'a [u8],
    /// What it says besides its kind.
    pub(super) data: &'a [u8],
}

/// Where the data of the record begin that begins at `at`, and where they end; `None` if not all of it is there.
#[inline]
pub(super) fn data(bytes: &[u8], at: usize, order: Order) -> Option<[usize; 2]> {
    let (start, length) = match *bytes.get(at + 1)? {
        LONG => (
            at + 10,
            usize::try_from(order.number(bytes.get(at + 2..at + 10)?)).ok()?,
        ),
        length => (at + 2, usize::from(length)),
    };
    let end = start.checked_add(length)?;
    (end <= bytes.len()).then_some([start, end])
}

/// All records of a file of definitions, whole.
pub(super) fn records(file: &[u8], order: Order) -> impl Iterator<Item = Result<&[u8], String>> {
    let mut at = 0;
    let mut done = false;
    core::iter::from_fn(move || {
        if done {
            return None;
        }
        let record = next(file, &mut at, order).transpose();
        done = !matches!(record, Some(Ok(_)));
        record
    })
}

/// The next record; `None` at the end of the file.
fn next<'a>(file: &'a [u8], at: &mut usize, order: Order) -> Result<Option<&'a [u8]>, String> {
    let cut = || "the file is cut short".to_owned();
    loop {
        match *file.get(*at).ok_or_else(cut)? {
            CHUNK_HEADER => *at += HEADER,
            END_OF_FILE => return Ok(None),
            // What is left of the chunk is zeros, and so ends of chunks.
            END_OF_CHUNK => *at += 1,
            END_OF_BUFFER => return Err(format!("byte {at} is no record")),
            _ => {
                let [_, end] = data(file, *at, order).ok_or_else(cut)?;
                let record = &file[*at..end];
                *at = end;
                return Ok(Some(record));
            }
        }
    }
}
