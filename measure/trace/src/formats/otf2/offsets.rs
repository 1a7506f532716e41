//! Replacement of the clock offsets in a file of local definitions.

use downbeat_otf2::ClockOffset;
use downbeat_otf2::raw::{CLOCK_OFFSET, Order, RecordWriter};

use super::records::copy_records;
use crate::knots::OffsetKnot;

/// Returns the content of the file with these clock offsets; without a file, one that contains
/// nothing else.
pub(super) fn with_offsets(
    file: Option<&[u8]>,
    chunk: usize,
    knots: &[OffsetKnot],
) -> Result<Vec<u8>, String> {
    // Offsets that are replaced.
    let mut old: Vec<ClockOffset> = vec![];
    let (order, mut to) = match file {
        None => (
            Order::Little,
            RecordWriter::new(vec![], chunk, Order::Little),
        ),
        Some(file) => {
            let order = Order::of_file(file).ok_or("this is not a file of local definitions")?;
            let copied = copy_records(file, chunk, |record| match record.kind {
                CLOCK_OFFSET => {
                    old.extend(ClockOffset::decode(record.fields()));
                    Ok(None)
                }
                _ => Ok(Some(record.bytes.into())),
            });
            (order, copied?)
        }
    };
    let mut record = vec![];
    for knot in knots {
        // The standard deviation is that of the nearest measurement.
        let time = knot.at.max(0) as u64;
        let next = old.partition_point(|old| old.time < time);
        let around = old[next.saturating_sub(1)..].iter().take(2);
        let nearest = around.min_by_key(|old| old.time.abs_diff(time));
        let offset = ClockOffset {
            time,
            offset: knot.offset,
            deviation: nearest.map_or(0.0, |old| old.deviation),
        };
        record.clear();
        offset.write_to(order, &mut record);
        to.add(&record).map_err(|why| why.to_string())?;
    }
    to.finish().map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use downbeat_otf2::raw::records;

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

    fn record(knot: OffsetKnot, deviation: f64, order: Order) -> Vec<u8> {
        let mut record = vec![];
        let offset = ClockOffset {
            time: knot.at as u64,
            offset: knot.offset,
            deviation,
        };
        offset.write_to(order, &mut record);
        record
    }

    fn all(file: &[u8]) -> Vec<&[u8]> {
        let records = records(file, CHUNK).map(|record| record.map(|record| record.bytes));
        records.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_new_file_equals_that_of_otf2() {
        // Copied from a file of OTF2 3.0.2.
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
    fn offsets_are_replaced_and_everything_else_is_kept() {
        for order in [Order::Little, Order::Big] {
            let long = [&[99, 0xff][..], &order.bytes(220), &[7; 220]].concat();
            let mut old = RecordWriter::new(vec![], CHUNK, order);
            let other: [&[u8]; 4] = [&[5, 3, 1, 2, 0], &long, &[200, 0], &[5, 1, 0]];
            for kept in other {
                old.add(kept).unwrap();
                let offset = OffsetKnot { at: 5, offset: 6 };
                old.add(&record(offset, 0.5, order)).unwrap();
            }
            let new = with_offsets(Some(&old.finish().unwrap()), CHUNK, &knots(20)).unwrap();
            assert_eq!(Order::of_file(&new), Some(order));
            assert_eq!(all(&new)[..4], other);
            let expected = knots(20).into_iter().map(|knot| record(knot, 0.5, order));
            assert!(all(&new)[4..].iter().copied().eq(expected));
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        let file = with_offsets(None, CHUNK, &knots(30)).unwrap();
        let is_refused = |file: &[u8]| with_offsets(Some(file), CHUNK, &[]).is_err();
        for length in 0..file.len() {
            assert!(is_refused(&file[..length]), "{length}");
        }
        assert!(with_offsets(Some(b"some text"), CHUNK, &[]).is_err());
    }
}
