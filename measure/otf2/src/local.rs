//! Local definitions of a location: mappings of its references, and offsets of its clock.

use crate::field::{Field, FixedTime};
use crate::raw::{Decoder, Order, put_record, records};
use crate::references::Mappings;

/// Local definitions of a location.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalDefinitions {
    /// Mappings of the location's own references to those of the archive.
    pub mappings: Mappings,
    /// Offsets of the clock, in the order of the file.
    pub offsets: Vec<ClockOffset>,
}

/// Offset of the clock of a location at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// Recorded time in ticks.
    pub time: u64,
    /// Ticks to add to it.
    pub offset: i64,
    /// Standard deviation of the offset.
    pub deviation: f64,
}

impl ClockOffset {
    /// Appends a whole record.
    pub fn write_to(&self, order: Order, to: &mut Vec<u8>) {
        let mut data = order.bytes(self.time).to_vec();
        self.offset.encode(order, &mut data);
        data.extend(order.bytes(self.deviation.to_bits()));
        put_record(crate::raw::CLOCK_OFFSET, &data, order, to);
    }

    /// Decodes the data of a record; `None` if they are truncated.
    pub fn decode(mut from: Decoder<'_>) -> Option<Self> {
        let FixedTime(time) = Field::decode(&mut from)?;
        Some(Self {
            time,
            offset: Field::decode(&mut from)?,
            // It is never needed.
            deviation: from.fixed(8).map_or(0.0, f64::from_bits),
        })
    }
}

/// Kind of the record of a mapping.
const MAPPING_TABLE: u8 = 5;

impl LocalDefinitions {
    /// Parses a file with chunks of this size; records of other kinds are skipped.
    ///
    /// # Errors
    /// If the file does not consist of whole records, or a record cannot be decoded.
    pub fn parse(file: &[u8], chunk: usize) -> Result<Self, String> {
        let mut found = Self::default();
        for (number, record) in (0..).zip(records(file, chunk)) {
            let record = record?;
            let taken = match record.kind {
                crate::raw::CLOCK_OFFSET => {
                    ClockOffset::decode(record.fields()).map(|offset| found.offsets.push(offset))
                }
                MAPPING_TABLE => found.mappings.add(record.fields()),
                _ => Some(()),
            };
            let kind = record.kind;
            taken.ok_or_else(|| format!("definition {number} (kind {kind}) cannot be decoded"))?;
        }
        Ok(found)
    }

    /// Returns a recorded time with the offset of the clock, exactly as OTF2's reader does: along the line
    /// between the offsets around it, or outside of all offsets with the nearest one. OTF2 ignores a
    /// single offset.
    pub fn corrected(&self, time: u64) -> u64 {
        let [_, inner @ .., _] = &self.offsets[..] else {
            return time;
        };
        let line = inner.partition_point(|offset| offset.time < time);
        let ends = [line, line + 1].map(|at| {
            let ClockOffset { time, offset, .. } = self.offsets[at];
            (time as i64, offset)
        });
        interpolated(ends, time as i64) as u64
    }
}

/// Returns a time with the offset on the line through two times with their offsets, rounded exactly as
/// OTF2's reader does.
pub fn interpolated([from, to]: [(i64, i64); 2], time: i64) -> i64 {
    let difference = |a: i64, b: i64| (i128::from(a) - i128::from(b)) as f64;
    // OTF2's reader also rounds twice, and ties to even.
    let slope = difference(to.1, from.1) / difference(to.0, from.0);
    let moved = (slope * difference(time, from.0)).round_ties_even();
    time.wrapping_add(from.1).wrapping_add(moved as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::RecordWriter;
    use crate::{CommRef, RegionRef};

    const CHUNK: usize = 256;

    /// Bytes of records of OTF2 3.0.2, in the order of little numbers.
    const RECORDS: [&[u8]; 4] = [
        // Regions 0 to 3 are global ones.
        &[5, 12, 3, 1, 4, 0, 1, 5, 1, 6, 1, 7, 1, 8],
        // Communicators 2 and 300.
        &[5, 15, 6, 1, 2, 1, 1, 2, 1, 9, 2, 0x2c, 1, 3, 0x70, 0x11, 1],
        // An offset of -7 at 1,000, and one of 258 at 2,000, as OTF2 writes positive ones.
        &[
            6, 25, 0xe8, 3, 0, 0, 0, 0, 0, 0, 8, 0xf9, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0,
            0, 0, 0, 0xe0, 0x3f,
        ],
        &[
            6, 19, 0xd0, 7, 0, 0, 0, 0, 0, 0, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f,
        ],
    ];

    fn file(records: &[&[u8]]) -> Vec<u8> {
        let mut to = RecordWriter::new(vec![], CHUNK, Order::Little);
        records.iter().for_each(|record| to.add(record).unwrap());
        to.finish().unwrap()
    }

    #[test]
    fn offsets_and_mappings_are_those_that_otf2_writes() {
        let found = LocalDefinitions::parse(&file(&RECORDS), CHUNK).unwrap();
        let expected = [(1_000, -7), (2_000, 258)].map(|(time, offset)| ClockOffset {
            time,
            offset,
            deviation: 0.5,
        });
        assert_eq!(found.offsets, expected);
        let region = |local: u8| {
            let bytes = [1, local];
            RegionRef::decode(&mut Decoder::mapped(&bytes, Order::Little, &found.mappings))
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(region),
            [5, 6, 7, 8, 4].map(|all| Some(RegionRef(all)))
        );
        let communicator = |bytes: &[u8]| {
            CommRef::decode(&mut Decoder::mapped(bytes, Order::Little, &found.mappings))
        };
        let mapped = [&[1, 2][..], &[2, 0x2c, 1], &[1, 3], &[0xff]].map(communicator);
        let expected = [9, 70_000, 3, u32::MAX].map(|all| Some(CommRef(all)));
        assert_eq!(mapped, expected);
        for (offset, record) in found.offsets.iter().zip(&RECORDS[2..]) {
            let mut written = vec![];
            offset.write_to(Order::Little, &mut written);
            assert_eq!(written, *record);
        }
    }

    #[test]
    fn times_between_offsets_are_interpolated() {
        let mut found = LocalDefinitions::default();
        assert_eq!(found.corrected(7), 7);
        for (time, offset) in [(1_000, -100), (2_000, 100), (3_000, 100)] {
            found.offsets.push(ClockOffset {
                time,
                offset,
                deviation: 0.0,
            });
        }
        let times = [500, 1_000, 1_500, 2_000, 2_500, 4_000];
        let expected = [300, 900, 1_500, 2_100, 2_600, 4_100];
        assert_eq!(times.map(|time| found.corrected(time)), expected);
        found.offsets.truncate(1);
        assert_eq!(found.corrected(1_500), 1_500);
    }

    #[test]
    fn damaged_definitions_are_errors() {
        let whole = file(&RECORDS);
        for length in 0..whole.len() {
            assert!(
                LocalDefinitions::parse(&whole[..length], CHUNK).is_err(),
                "{length}"
            );
        }
        // More entries than there are.
        let many = file(&[&[5, 6, 3, 1, 200, 0, 1, 5]]);
        let found = LocalDefinitions::parse(&many, CHUNK).unwrap_err();
        assert_eq!(found, "definition 0 (kind 5) cannot be decoded");
    }
}
