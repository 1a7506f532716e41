//! Records of files of definitions, markers and thumbnails.

use super::{
    CHUNK_HEADER, Decoder, END, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, HEADER, LONG, Order,
    TRUNCATED,
};

/// Record of a file of definitions, markers or thumbnails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Kind of the record.
    pub kind: u8,
    /// Whole record.
    pub bytes: &'a [u8],
    /// Data of the record without kind and length.
    pub data: &'a [u8],
    /// Byte order of the file.
    pub order: Order,
}

impl<'a> Record<'a> {
    /// Returns a decoder of the data.
    pub const fn fields(&self) -> Decoder<'a> {
        Decoder::new(self.data, self.order)
    }
}

/// Returns the range of the data of the record at `at`, which ends with the record; `None` if it is
/// truncated.
#[inline]
pub fn record_range(bytes: &[u8], at: usize, order: Order) -> Option<[usize; 2]> {
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
pub fn put_record(kind: u8, data: &[u8], order: Order, to: &mut Vec<u8>) {
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

/// Iterates over all records of a file of definitions, markers or thumbnails with chunks of this size.
/// After an error there is no further record.
pub fn records(file: &[u8], chunk: usize) -> impl Iterator<Item = Result<Record<'_>, String>> {
    let order = Order::of_file(file);
    let mut at = 0;
    let mut done = false;
    core::iter::from_fn(move || {
        if done {
            return None;
        }
        let record = match order {
            Some(order) => next(file, &mut at, order, chunk).transpose(),
            None => Some(Err(TRUNCATED.to_owned())),
        };
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
) -> Result<Option<Record<'a>>, String> {
    loop {
        let wrong = |at: usize| Err(format!("byte {at} does not begin a record"));
        let begins_chunk = at.checked_rem(chunk).unwrap_or(*at) == 0;
        match *file.get(*at).ok_or(TRUNCATED)? {
            CHUNK_HEADER if begins_chunk && file.get(*at + 1) == Some(&(order as u8)) => {
                *at += HEADER;
            }
            _ if begins_chunk => return wrong(*at),
            END_OF_FILE if file[*at..] == END => return Ok(None),
            // The rest of the chunk is filled with zeros.
            END_OF_CHUNK => *at = at.next_multiple_of(chunk),
            END_OF_FILE | END_OF_BUFFER | CHUNK_HEADER => return wrong(*at),
            kind => {
                let end_of_chunk = at.next_multiple_of(chunk).min(file.len());
                let [start, end] =
                    record_range(&file[..end_of_chunk], *at, order).ok_or(TRUNCATED)?;
                let bytes = &file[*at..end];
                *at = end;
                return Ok(Some(Record {
                    kind,
                    bytes,
                    data: &file[start..end],
                    order,
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::RecordWriter;

    const CHUNK: usize = 256;

    fn file(order: Order, count: u8) -> Vec<u8> {
        let mut to = RecordWriter::new(vec![], CHUNK, order);
        for number in 0..count {
            to.add(&[&[99, 27, number][..], &[7; 26]].concat()).unwrap();
        }
        to.finish().unwrap()
    }

    fn all(file: &[u8], chunk: usize) -> Result<Vec<u8>, String> {
        let number = |record: Result<Record<'_>, _>| record.map(|record| record.data[0]);
        records(file, chunk).map(number).collect()
    }

    #[test]
    fn chunks_are_full_and_records_whole() {
        for order in [Order::Little, Order::Big] {
            for count in 0..100 {
                let file = file(order, count);
                assert_eq!(all(&file, CHUNK), Ok((0..count).collect()));
                let begins = |chunk: &[u8]| chunk[..2] == [CHUNK_HEADER, order as u8];
                assert!(file.chunks(CHUNK).all(begins));
            }
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        let file = file(Order::Little, 30);
        for length in 0..file.len() {
            assert!(all(&file[..length], CHUNK).is_err(), "{length}");
        }
        // Chunks end where they should, and all have the same byte order.
        assert!(all(&file, 2 * CHUNK).is_err());
        let mut other = file.clone();
        other[CHUNK + 1] = Order::Big as u8;
        assert!(all(&other, CHUNK).is_err());
        assert!(all(&[&file[..], &[0]].concat(), CHUNK).is_err());
        assert!(all(b"some text", CHUNK).is_err());
    }

    #[test]
    fn records_are_not_larger_than_chunks() {
        let mut to = RecordWriter::new(vec![], CHUNK, Order::Little);
        // Fills a chunk, and leaves no room for the end.
        let large = [&[99, 236][..], &[0; 236]].concat();
        let why = to.add(&large).unwrap_err();
        assert_eq!(
            why.to_string(),
            "a record of 238 bytes is larger than a chunk"
        );
        assert!(to.add(&large[..236]).is_ok());
    }
}
