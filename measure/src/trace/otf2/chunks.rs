//! A file of local definitions with other clock offsets, all else of it as it was, byte by byte.
//!
//! OTF2 can only write whole archives, and an archive may hold definitions that this version knows nothing of. The file
//! itself is simple: chunks of one size, but for the last one, which begin with a header and are full of records. A
//! record is its kind, its length and its data, so that any record can be told from the next.

use downbeat_sync::postmortem::Knot;

// As OTF2 has them, since its first version.
const END_OF_CHUNK: u8 = 0;
const END_OF_BUFFER: u8 = 1;
const END_OF_FILE: u8 = 2;
const CHUNK_HEADER: u8 = 3;
const CLOCK_OFFSET: u8 = 6;
const LITTLE_ENDIAN: u8 = 0x42;
const BIG_ENDIAN: u8 = 0x23;

/// The kind, the byte order, and two numbers that count events: here 1 and 0, as there are none.
const HEADER: usize = 18;

/// Follows a kind where the length of the data does not fit in a byte; then it is in eight.
const LONG: u8 = 0xff;

/// Time, offset with its own length, and standard deviation.
const CLOCK_OFFSET_DATA: u8 = 8 + 9 + 8;

/// The file's content with these clock offsets; without a file, one with nothing else. Why it is not possible, in words.
pub(super) fn with_offsets(file: Option<&[u8]>, chunk: usize, knots: &[Knot]) -> Result<Vec<u8>, String> {
    let order = match file {
        Some([_, order @ (LITTLE_ENDIAN | BIG_ENDIAN), ..]) => *order,
        None => LITTLE_ENDIAN,
        Some(_) => return Err("this is no file of local definitions".into()),
    };
    let mut to = Chunks { bytes: vec![], chunk, order, begun: 0 };
    to.begin();
    if let Some(file) = file {
        for record in records(file, order) {
            let record = record?;
            if record[0] != CLOCK_OFFSET {
                to.add(record)?;
            }
        }
    }
    for knot in knots {
        to.add(&clock_offset(*knot, order))?;
    }
    Ok(to.end())
}

fn clock_offset(knot: Knot, order: u8) -> [u8; 2 + CLOCK_OFFSET_DATA as usize] {
    let [time, offset] = [knot.at, knot.offset].map(|number| in_order(number as u64, order));
    let mut record = [0; 2 + CLOCK_OFFSET_DATA as usize];
    record[..2].copy_from_slice(&[CLOCK_OFFSET, CLOCK_OFFSET_DATA]);
    record[2..10].copy_from_slice(&time);
    record[10] = 8;
    record[11..19].copy_from_slice(&offset);
    // The standard deviation is 0.
    record
}

fn in_order(number: u64, order: u8) -> [u8; 8] {
    if order == BIG_ENDIAN { number.to_be_bytes() } else { number.to_le_bytes() }
}

/// All records, whole.
fn records(file: &[u8], order: u8) -> impl Iterator<Item = Result<&[u8], String>> {
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
fn next<'a>(file: &'a [u8], at: &mut usize, order: u8) -> Result<Option<&'a [u8]>, String> {
    let cut = || "the file is cut short".to_owned();
    loop {
        match *file.get(*at).ok_or_else(cut)? {
            CHUNK_HEADER => *at += HEADER,
            END_OF_FILE => return Ok(None),
            // What is left of the chunk is zeros, and so ends of chunks.
            END_OF_CHUNK => *at += 1,
            END_OF_BUFFER => return Err(format!("byte {at} is no record")),
            _ => {
                let (start, data) = match *file.get(*at + 1).ok_or_else(cut)? {
                    LONG => {
                        let bytes = file.get(*at + 2..*at + 10).and_then(|bytes| bytes.try_into().ok());
                        let bytes: [u8; 8] = bytes.ok_or_else(cut)?;
                        let length =
                            if order == BIG_ENDIAN { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) };
                        (10, usize::try_from(length).map_err(|_| cut())?)
                    }
                    length => (2, usize::from(length)),
                };
                let end = (*at + start).checked_add(data).ok_or_else(cut)?;
                let record = file.get(*at..end).ok_or_else(cut)?;
                *at = end;
                return Ok(Some(record));
            }
        }
    }
}

/// A file of chunks that is made.
struct Chunks {
    bytes: Vec<u8>,
    /// How large each of them is.
    chunk: usize,
    order: u8,
    /// Where the last one begins.
    begun: usize,
}

impl Chunks {
    fn begin(&mut self) {
        self.begun = self.bytes.len();
        self.bytes.extend([CHUNK_HEADER, self.order]);
        self.bytes.extend([1, 0].map(|number| in_order(number, self.order)).as_flattened());
    }

    fn add(&mut self, record: &[u8]) -> Result<(), String> {
        // Two bytes end the last chunk.
        if self.bytes.len() + record.len() + 2 > self.begun + self.chunk {
            if HEADER + record.len() + 2 > self.chunk {
                return Err(format!("a definition of {} bytes is larger than a chunk", record.len()));
            }
            self.bytes.resize(self.begun + self.chunk, END_OF_CHUNK);
            self.begin();
        }
        self.bytes.extend(record);
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.extend([END_OF_FILE, END_OF_BUFFER]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 256;

    fn knots(count: i64) -> Vec<Knot> {
        (0..count).map(|i| Knot { at: i * 1_000, offset: -i * 7 }).collect()
    }

    fn all(file: &[u8]) -> Vec<&[u8]> {
        records(file, file[1]).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_new_file_is_as_otf2_writes_it() {
        // Of a file that OTF2 3.0.2 wrote, but for the offset, which it writes in one byte.
        let header = [3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let record =
            [6, 25, 0xe8, 3, 0, 0, 0, 0, 0, 0, 8, 0xf9, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
        let file = with_offsets(None, CHUNK, &knots(2)[1..]).unwrap();
        assert_eq!(file, [&header[..], &record, &[2, 1]].concat());
        assert_eq!(with_offsets(None, CHUNK, &[]).unwrap(), [&header[..], &[2, 1]].concat());
    }

    #[test]
    fn chunks_are_full_and_records_whole() {
        for count in 0..100 {
            let file = with_offsets(None, CHUNK, &knots(count)).unwrap();
            let expected: Vec<_> = knots(count).into_iter().map(|knot| clock_offset(knot, LITTLE_ENDIAN)).collect();
            assert_eq!(all(&file), expected);
            assert!(file.chunks(CHUNK).all(|chunk| chunk[..2] == [3, 0x42]));
        }
    }

    #[test]
    fn everything_else_is_kept_and_offsets_are_replaced() {
        for order in [LITTLE_ENDIAN, BIG_ENDIAN] {
            let long = [&[99, LONG][..], &in_order(220, order), &[7; 220]].concat();
            let mut old = Chunks { bytes: vec![], chunk: CHUNK, order, begun: 0 };
            old.begin();
            let other: [&[u8]; 4] = [&[5, 3, 1, 2, 0], &long, &[200, 0], &[5, 1, 0]];
            for record in other {
                old.add(record).unwrap();
                old.add(&clock_offset(Knot { at: 5, offset: 6 }, order)).unwrap();
            }
            let new = with_offsets(Some(&old.end()), CHUNK, &knots(20)).unwrap();
            assert_eq!(new[1], order);
            assert_eq!(all(&new)[..4], other);
            assert_eq!(all(&new)[4..], knots(20).into_iter().map(|knot| clock_offset(knot, order)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn files_that_are_cut_short_or_something_else_are_not_taken() {
        let file = with_offsets(None, CHUNK, &knots(30)).unwrap();
        for length in 0..file.len() - 1 {
            assert!(length == file.len() - 1 || with_offsets(Some(&file[..length]), CHUNK, &[]).is_err(), "{length}");
        }
        assert!(with_offsets(Some(b"some text"), CHUNK, &[]).is_err());
        let large = [&file[..HEADER], &[99, 250], &[0; 250], &[2, 1]].concat();
        assert_eq!(
            with_offsets(Some(&large), CHUNK, &[]).unwrap_err(),
            "a definition of 252 bytes is larger than a chunk"
        );
    }
}
