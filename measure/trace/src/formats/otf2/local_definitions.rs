//! Local definitions of a location: offsets of its clock, and mappings of its references.

use crate::OffsetKnot;

use super::events::Mappings;
use super::offsets::CLOCK_OFFSET;
use super::record::{Fields, TRUNCATED, order, parts, records};

/// Local definitions of a location that are used.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalDefinitions {
    pub(super) offsets: Vec<OffsetKnot>,
    pub(super) mappings: Mappings,
}

const MAPPING_TABLE: u8 = 5;

/// Kinds of references that are mapped.
const REGIONS: u8 = 3;
const COMMUNICATORS: u8 = 6;
const WINDOWS: u8 = 8;

/// Layout of a table: the global references of 0, 1, 2 and so on, or pairs.
const DENSE: u8 = 0;

impl LocalDefinitions {
    /// Parses a file of local definitions; records of other kinds are skipped.
    ///
    /// # Errors
    /// If the file does not consist of whole records, or a record cannot be decoded.
    pub(super) fn parse(file: &[u8], chunk: usize) -> Result<Self, String> {
        let order = order(file).ok_or(TRUNCATED)?;
        let mut found = Self::default();
        for (number, record) in (0..).zip(records(file, order, chunk)) {
            let (kind, data) = parts(record?, order);
            let taken = match kind {
                CLOCK_OFFSET => found.clock_offset(data),
                MAPPING_TABLE => found.mapping_table(data),
                _ => Some(()),
            };
            taken.ok_or_else(|| format!("definition {number} (kind {kind}) cannot be decoded"))?;
        }
        Ok(found)
    }

    fn clock_offset(&mut self, mut data: Fields<'_>) -> Option<()> {
        let at = i64::try_from(data.full()?).ok()?;
        // A negative number takes eight bytes.
        let offset = data.number()? as i64;
        self.offsets.push(OffsetKnot { at, offset });
        Some(())
    }

    fn mapping_table(&mut self, mut data: Fields<'_>) -> Option<()> {
        let mapping = match data.byte()? {
            REGIONS => &mut self.mappings.regions,
            COMMUNICATORS => &mut self.mappings.communicators,
            WINDOWS => &mut self.mappings.windows,
            _ => return Some(()),
        };
        let (count, layout) = (data.number()?, data.byte()?);
        // An entry has a byte at least, so a wrong count takes no memory.
        for number in 0..count {
            let local = match layout {
                DENSE => u32::try_from(number).ok()?,
                _ => data.half()?,
            };
            mapping.insert(local, data.half()?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunks::RecordWriter;
    use super::super::record::Order;
    use super::*;

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
        to.end().unwrap()
    }

    #[test]
    fn offsets_and_mappings_are_those_that_otf2_writes() {
        let found = LocalDefinitions::parse(&file(&RECORDS), CHUNK).unwrap();
        let offsets = [(1_000, -7), (2_000, 258)].map(|(at, offset)| OffsetKnot { at, offset });
        assert_eq!(found.offsets, offsets);
        let sorted = |mapping: &rustc_hash::FxHashMap<u32, u32>| {
            let mut pairs: Vec<_> = mapping
                .iter()
                .map(|(local, global)| (*local, *global))
                .collect();
            pairs.sort_unstable();
            pairs
        };
        assert_eq!(
            sorted(&found.mappings.regions),
            [(0, 5), (1, 6), (2, 7), (3, 8)]
        );
        assert_eq!(
            sorted(&found.mappings.communicators),
            [(2, 9), (300, 70_000)]
        );
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
