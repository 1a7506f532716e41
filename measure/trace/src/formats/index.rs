//! Index at the end of a binary trace: the offsets of its chunks, and the number of events of each
//! location.
//!
//! ```text
//! index  number of chunks; for each: its offset, as the difference to that before;
//!        number of locations; for each: events, and how many of them others have to do with;
//!        checksum, as that of a [chunk](super::chunk); the offset of the index in 8 bytes, the
//!        lowest first; "dbtindex"
//! ```

use std::io::Read;

use downbeat_files::Flaw;

use super::bytes::{Bytes, Input, put};
use super::checksum::RunningChecksum;
use super::chunk;
use super::item::What;

/// Last bytes of a file.
const MAGIC: [u8; 8] = *b"dbtindex";

/// Length of the part behind the numbers.
const TRAILER: u64 = 16;

/// Index of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceIndex {
    pub(super) chunks: Vec<u64>,
    pub(super) locations: Vec<LocationLoad>,
}

/// Number of events of a location, and of those that are not internal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LocationLoad {
    pub(super) events: u64,
    pub(super) marks: u64,
}

impl TraceIndex {
    /// Counts an event.
    #[inline]
    pub(super) fn count(&mut self, location: u32, what: What<'_>) {
        if self.locations.len() <= location as usize {
            self.locations
                .resize(location as usize + 1, LocationLoad::default());
        }
        let load = &mut self.locations[location as usize];
        load.events += 1;
        let internal = matches!(
            what,
            What::Enter { .. }
                | What::Leave { .. }
                | What::Note(_)
                | What::CompleteSend { .. }
                | What::Access { .. }
                | What::AccessComplete { .. }
        );
        load.marks += u64::from(!internal);
    }

    /// Appends the index, which begins at an offset of the file.
    pub(super) fn write(&self, to: &mut Vec<u8>, offset: u64, checksum: &mut RunningChecksum) {
        put(to, self.chunks.len() as u64);
        let mut last = 0;
        for chunk in &self.chunks {
            put(to, chunk - last);
            last = *chunk;
        }
        put(to, self.locations.len() as u64);
        for load in &self.locations {
            put(to, load.events);
            put(to, load.marks);
        }
        checksum.put(to);
        to.extend_from_slice(&offset.to_le_bytes());
        to.extend_from_slice(&MAGIC);
    }

    /// Reads the index.
    pub(super) fn read<R: Read>(input: &mut Bytes<R>, version: u8) -> Result<Self, Flaw> {
        let start = input.offset();
        let mut index = Self::default();
        let mut last = 0_u64;
        for _ in 0..input.number()? {
            last = last.saturating_add(input.number()?);
            index.chunks.push(last);
        }
        for _ in 0..input.number()? {
            let (events, marks) = (input.number()?, input.number()?);
            index.locations.push(LocationLoad { events, marks });
        }
        if version > chunk::UNSEALED {
            input.check_checksum()?;
        }
        let trailer = input.block(TRAILER)?;
        if !trailer.starts_with(&start.to_le_bytes()) || !trailer.ends_with(&MAGIC) {
            return Err(Flaw::Byte(
                start,
                "the index does not end as it should".to_owned(),
            ));
        }
        Ok(index)
    }
}
