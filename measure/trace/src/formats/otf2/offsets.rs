//! Replacement of the clock offsets in a file of local definitions; everything else is copied byte
//! by byte.
//!
//! OTF2 can only write whole archives, and an archive may contain definitions that the installed
//! version does not know.

use crate::OffsetKnot;

use super::chunks::RecordWriter;
use super::record::{Order, order, parts, records};

/// Kind of the definitions that are replaced.
pub(super) const CLOCK_OFFSET: u8 = 6;

/// Time, offset with its length, and standard deviation.
const CLOCK_OFFSET_DATA: u8 = 8 + 9 + 8;

/// Returns the content of the file with these clock offsets; without a file, one that contains
/// nothing else.
pub(super) fn with_offsets(
    file: Option<&[u8]>,
    chunk: usize,
    knots: &[OffsetKnot],
) -> Result<Vec<u8>, String> {
    let order = match file {
        Some(file) => order(file).ok_or("this is not a file of local definitions")?,
        None => Order::Little,
    };
    let mut to = RecordWriter::new(vec![], chunk, order);
    // Times and standard deviations of the offsets that are replaced.
    let mut old: Vec<(u64, u64)> = vec![];
    if let Some(file) = file {
        for record in records(file, order, chunk) {
            let record = record?;
            match parts(record, order) {
                (CLOCK_OFFSET, mut data) => {
                    let (time, _) = (data.full(), data.number());
                    old.extend(time.zip(data.full()));
                }
                _ => to.add(record).map_err(|why| why.to_string())?,
            }
        }
    }
    for knot in knots {
        // That of the nearest measurement.
        let at = knot.at.max(0) as u64;
        let next = old.partition_point(|(time, _)| *time < at);
        let around = old[next.saturating_sub(1)..].iter().take(2);
        let nearest = around.min_by_key(|(time, _)| time.abs_diff(at));
        let deviation = nearest.map_or(0, |(_, deviation)| *deviation);
        to.add(&clock_offset(*knot, deviation, order))
            .map_err(|why| why.to_string())?;
    }
    to.end().map_err(|why| why.to_string())
}

/// Returns the record of an offset; the standard deviation is given by its bits.
fn clock_offset(
    knot: OffsetKnot,
    deviation: u64,
    order: Order,
) -> [u8; 2 + CLOCK_OFFSET_DATA as usize] {
    let [time, offset] = [knot.at, knot.offset].map(|number| order.bytes(number as u64));
    let mut record = [0; 2 + CLOCK_OFFSET_DATA as usize];
    record[..2].copy_from_slice(&[CLOCK_OFFSET, CLOCK_OFFSET_DATA]);
    record[2..10].copy_from_slice(&time);
    record[10] = 8;
    record[11..19].copy_from_slice(&offset);
    record[19..].copy_from_slice(&order.bytes(deviation));
    record
}

#[cfg(test)]
mod tests {
    use super::super::record::{HEADER, LONG};
    use super::*;

    const CHUNK: usize = 256;

    fn knots(count: i64) -> Vec<OffsetKnot> {
        (0..count)
            .map(|i| OffsetKnot {
                at: i * 1_000,
                offset: -i * 7,
            })
            .collect()
    }

    fn all(file: &[u8]) -> Vec<&[u8]> {
        records(file, order(file).unwrap(), CHUNK)
            .collect::<Result<_, _>>()
            .unwrap()
    }

    #[test]
    fn a_new_file_equals_that_of_otf2() {
        // Copied from a file of OTF2 3.0.2, except for the offset, which OTF2 writes in one byte.
        let header = [3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let record = [
            6, 25, 0xe8, 3, 0, 0, 0, 0, 0, 0, 8, 0xf9, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0,
            0, 0, 0, 0, 0,
        ];
        let file = with_offsets(None, CHUNK, &knots(2)[1..]).unwrap();
        assert_eq!(file, [&header[..], &record, &[2, 1]].concat());
        assert_eq!(
            with_offsets(None, CHUNK, &[]).unwrap(),
            [&header[..], &[2, 1]].concat()
        );
    }

    #[test]
    fn chunks_are_full_and_records_whole() {
        for count in 0..100 {
            let file = with_offsets(None, CHUNK, &knots(count)).unwrap();
            let expected: Vec<_> = knots(count)
                .into_iter()
                .map(|knot| clock_offset(knot, 0, Order::Little))
                .collect();
            assert_eq!(all(&file), expected);
            assert!(file.chunks(CHUNK).all(|chunk| chunk[..2] == [3, 0x42]));
        }
    }

    #[test]
    fn offsets_are_replaced_and_everything_else_is_kept() {
        for order in [Order::Little, Order::Big] {
            let long = [&[99, LONG][..], &order.bytes(220), &[7; 220]].concat();
            let mut old = RecordWriter::new(vec![], CHUNK, order);
            let other: [&[u8]; 4] = [&[5, 3, 1, 2, 0], &long, &[200, 0], &[5, 1, 0]];
            for record in other {
                old.add(record).unwrap();
                let offset = OffsetKnot { at: 5, offset: 6 };
                old.add(&clock_offset(offset, 0.5_f64.to_bits(), order))
                    .unwrap();
            }
            let new = with_offsets(Some(&old.end().unwrap()), CHUNK, &knots(20)).unwrap();
            assert_eq!(super::order(&new), Some(order));
            assert_eq!(all(&new)[..4], other);
            assert_eq!(
                all(&new)[4..],
                knots(20)
                    .into_iter()
                    .map(|knot| clock_offset(knot, 0.5_f64.to_bits(), order))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        let file = with_offsets(None, CHUNK, &knots(30)).unwrap();
        let is_refused = |file: &[u8]| with_offsets(Some(file), CHUNK, &[]).is_err();
        for length in 0..file.len() {
            assert!(is_refused(&file[..length]), "{length}");
        }
        // Chunks end where they should, and all have the same byte order.
        assert!(with_offsets(Some(&file), 2 * CHUNK, &[]).is_err());
        let mut other = file.clone();
        other[CHUNK + 1] = Order::Big as u8;
        assert!(is_refused(&other));
        assert!(is_refused(&[&file[..], &[0]].concat()));
        assert!(with_offsets(Some(b"some text"), CHUNK, &[]).is_err());
        // Fills a chunk, and leaves no room for the end.
        let (header, data) = (&file[..HEADER], [0; CHUNK - HEADER - 2]);
        let large = [header, &[99, 236], &data, header, &[2, 1]].concat();
        assert_eq!(
            with_offsets(Some(&large), CHUNK, &[]).unwrap_err(),
            "a record of 238 bytes is larger than a chunk"
        );
    }
}
