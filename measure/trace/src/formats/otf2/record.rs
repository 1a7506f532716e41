//! Records, which all files of an archive consist of. A record is a kind, a length and data, so
//! that records of unknown kinds can be skipped.

// Kinds since the first version of OTF2.
pub(super) const END_OF_CHUNK: u8 = 0;
pub(super) const END_OF_BUFFER: u8 = 1;
pub(super) const END_OF_FILE: u8 = 2;
pub(super) const CHUNK_HEADER: u8 = 3;
/// End of the last chunk.
pub(super) const END: [u8; 2] = [END_OF_FILE, END_OF_BUFFER];
/// In event files: the time of all following events, in eight bytes.
pub(super) const TIMESTAMP: u8 = 5;
/// In event files: attributes of the next event.
pub(super) const ATTRIBUTES: u8 = 6;

/// Size of a chunk header: kind, byte order, and the numbers of the first and of the last event.
pub(super) const HEADER: usize = 18;

/// Length code: the actual length follows in eight bytes.
pub(super) const LONG: u8 = 0xff;

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little = 0x42,
    Big = 0x23,
}

impl Order {
    /// Returns the byte order that a header names.
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Little, Self::Big]
            .into_iter()
            .find(|order| *order as u8 == byte)
    }

    /// Decodes a number of at most eight bytes.
    #[inline]
    pub(super) fn number(self, bytes: &[u8]) -> u64 {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }

    /// Decodes a number of eight bytes.
    #[inline]
    pub(super) fn full(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Adds a number of variable length; all ones are an undefined one.
    pub(super) fn put(self, number: u64, to: &mut Vec<u8>) {
        if number == u64::MAX {
            return to.push(LONG);
        }
        let length = 8 - number.leading_zeros() as usize / 8;
        to.push(length as u8);
        match self {
            Self::Little => to.extend(&number.to_le_bytes()[..length]),
            Self::Big => to.extend(&number.to_be_bytes()[8 - length..]),
        }
    }

    pub(super) fn bytes(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// Event of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventRecord<'a> {
    /// Recorded time in ticks.
    pub(super) time: u64,
    pub(super) kind: u8,
    /// Whole record, with its attributes.
    pub(super) bytes: &'a [u8],
    /// Data of the record without kind and length.
    pub(super) data: &'a [u8],
}

/// Returns the range of the data of the record at `at`; `None` if it is truncated.
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

/// Appends a whole record.
pub(super) fn put_record(kind: u8, data: &[u8], order: Order, to: &mut Vec<u8>) {
    to.push(kind);
    match u8::try_from(data.len()) {
        Ok(length) if length != LONG => to.push(length),
        _ => {
            to.push(LONG);
            to.extend(order.bytes(data.len() as u64));
        }
    }
    to.extend(data);
}

/// Data of a record that are not decoded yet. A field that is missing at the end was added by a later
/// version of the format.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, order }
    }

    /// Returns the fields that are not decoded.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns true if there are no more fields.
    pub(super) const fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// Decodes a number of variable length, or all ones for an undefined one.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        match self.byte()? {
            LONG => Some(u64::MAX),
            length if length <= 8 => {
                let (number, rest) = self.bytes.split_at_checked(usize::from(length))?;
                self.bytes = rest;
                Some(self.order.number(number))
            }
            _ => None,
        }
    }

    /// Decodes a number of variable length that has at most 32 bits.
    #[inline]
    pub(super) fn half(&mut self) -> Option<u32> {
        let number = self.number()?;
        if number == u64::MAX {
            Some(u32::MAX)
        } else {
            u32::try_from(number).ok()
        }
    }

    /// Decodes a number of eight bytes.
    pub(super) fn full(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(self.order.full(*number))
    }

    /// Decodes a string, which ends with a zero byte.
    pub(super) fn string(&mut self) -> Option<String> {
        let length = self.bytes.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = &rest[1..];
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// Splits a whole record into its kind and its data.
pub(super) fn parts(record: &[u8], order: Order) -> (u8, Fields<'_>) {
    let of_data = data(record, 0, order).and_then(|[start, end]| record.get(start..end));
    let kind = record.first().copied().unwrap_or_default();
    (kind, Fields::new(of_data.unwrap_or_default(), order))
}

/// Returns the byte order of a definition file.
pub(super) fn order(file: &[u8]) -> Option<Order> {
    file.get(1).and_then(|order| Order::from_byte(*order))
}

/// Iterates over all records of a definition file with this byte order and size of chunks.
pub(super) fn records(
    file: &[u8],
    order: Order,
    chunk: usize,
) -> impl Iterator<Item = Result<&[u8], String>> {
    let mut at = 0;
    let mut done = false;
    core::iter::from_fn(move || {
        if done {
            return None;
        }
        let record = next(file, &mut at, order, chunk).transpose();
        done = !matches!(record, Some(Ok(_)));
        record
    })
}

/// Returns the next record; `None` at the end of the file.
fn next<'a>(
    file: &'a [u8],
    at: &mut usize,
    order: Order,
    chunk: usize,
) -> Result<Option<&'a [u8]>, String> {
    loop {
        let wrong = |at: usize| Err(format!("byte {at} does not begin a record"));
        let begins_chunk = at.is_multiple_of(chunk);
        match *file.get(*at).ok_or(TRUNCATED)? {
            CHUNK_HEADER if begins_chunk && file.get(*at + 1) == Some(&(order as u8)) => {
                *at += HEADER;
            }
            _ if begins_chunk => return wrong(*at),
            END_OF_FILE if file[*at..] == END => return Ok(None),
            // The rest of the chunk is filled with zeros.
            END_OF_CHUNK => *at = at.next_multiple_of(chunk),
            END_OF_FILE | END_OF_BUFFER | CHUNK_HEADER => return wrong(*at),
            _ => {
                let end_of_chunk = at.next_multiple_of(chunk).min(file.len());
                let [_, end] = data(&file[..end_of_chunk], *at, order).ok_or(TRUNCATED)?;
                let record = &file[*at..end];
                *at = end;
                return Ok(Some(record));
            }
        }
    }
}

/// Tells of a file that ends in the middle of a record, or is another one.
pub(super) const TRUNCATED: &str = "the file is truncated, or is not part of an OTF2 archive";
