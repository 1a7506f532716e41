//! Events of a binary trace in chunks. In each chunk, the events of a location are together, and
//! times are separate from the rest, so that a reader can skip locations, and a writer can replace
//! times without decoding the rest.
//!
//! ```text
//! chunk  number of blocks; for each block: location, events, bytes of times, bytes of actions,
//!        checksum of both; bytes of the order; the order; checksum of everything in the file before
//!        it, except for times, actions and such checksums; for each block: times, actions
//! order  runs of events of one block: (events - 1) * blocks + index of the block
//! times  differences to the event of the block before, from 0
//! ```
//!
//! A checksum is a CRC-32 in four bytes, the lowest first. Version 2 has none.

mod events;

use std::ops::Range;

use std::io::Read;

use downbeat_files::checksum::WRONG_CHECKSUM;
use downbeat_files::{Crc32, Flaw};

use super::action::write_action;
use super::bytes::{Bytes, Input, put, put_signed};
use super::checksum::RunningChecksum;
use super::item::What;

pub(super) use events::ChunkEvents;

/// Last version without checksums.
pub(super) const UNSEALED: u8 = 2;

/// Length of a checksum.
pub(super) const CHECKSUM: u64 = 4;

/// Maximum number of events in a chunk.
const MOST_EVENTS: usize = 1 << 16;

/// Collects events until they fill a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkWriter {
    /// For every location, its events in this chunk.
    blocks: Vec<BlockWriter>,
    /// Locations with events in this chunk.
    used: Vec<u32>,
    /// Runs of events of one location.
    runs: Vec<(u32, u32)>,
    events: usize,
}

#[derive(Debug, Default)]
struct BlockWriter {
    events: u32,
    last: i64,
    times: Vec<u8>,
    actions: Vec<u8>,
}

impl ChunkWriter {
    /// Adds an event; returns true if the chunk must be written now.
    pub(super) fn push(&mut self, location: u32, time: i64, what: What<'_>) -> bool {
        if self.blocks.len() <= location as usize {
            self.blocks
                .resize_with(location as usize + 1, BlockWriter::default);
        }
        let block = &mut self.blocks[location as usize];
        if block.events == 0 {
            self.used.push(location);
        }
        block.events += 1;
        put_signed(&mut block.times, time.wrapping_sub(block.last));
        block.last = time;
        write_action(&mut block.actions, what);
        match self.runs.last_mut() {
            Some((last, count)) if *last == location => *count += 1,
            _ => self.runs.push((location, 1)),
        }
        self.events += 1;
        self.events == MOST_EVENTS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Writes the chunk, and begins the next one.
    pub(super) fn write(&mut self, to: &mut Vec<u8>, checksum: &mut RunningChecksum) {
        let mut used = std::mem::take(&mut self.used);
        used.sort_unstable();
        let blocks = used.len() as u64;
        put(to, blocks);
        for location in &used {
            let block = &self.blocks[*location as usize];
            let [times, actions] = [&block.times, &block.actions];
            put_block(to, (*location, block.events), times, actions);
        }
        let mut order = Vec::with_capacity(self.runs.len() * 2);
        let mut indices = vec![0; self.blocks.len()];
        for (index, location) in (0..).zip(&used) {
            indices[*location as usize] = index;
        }
        for (location, events) in self.runs.drain(..) {
            put(
                &mut order,
                u64::from(events - 1) * blocks + indices[location as usize],
            );
        }
        put(to, order.len() as u64);
        to.append(&mut order);
        checksum.put(to);
        for location in used {
            let block = &mut self.blocks[location as usize];
            to.append(&mut block.times);
            to.append(&mut block.actions);
            (block.events, block.last) = (0, 0);
        }
        checksum.leave_out(to);
        self.events = 0;
    }
}

/// Appends the header of a block.
fn put_block(to: &mut Vec<u8>, (location, events): (u32, u32), times: &[u8], actions: &[u8]) {
    put(to, location.into());
    put(to, events.into());
    put(to, times.len() as u64);
    put(to, actions.len() as u64);
    let mut checksum = Crc32::default();
    checksum.add(times);
    checksum.add(actions);
    to.extend(checksum.value().to_le_bytes());
}

/// Block of a chunk: the events of one location.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) location: u32,
    pub(super) events: u32,
    /// Range of its times in the data of the chunk.
    pub(super) times: Range<usize>,
    pub(super) actions: Range<usize>,
    /// Checksum of both; `None` if it is not verified.
    checksum: Option<u32>,
}

/// Header of a chunk: everything but the times and actions.
#[derive(Debug)]
pub(super) struct ChunkHead {
    pub(super) blocks: Vec<Block>,
    pub(super) order: Vec<u8>,
    /// Number of bytes of times and actions, and their offset in the file.
    pub(super) data: usize,
    pub(super) offset: u64,
}

impl ChunkHead {
    /// Reads a header and its checksum; `locations` is the number of locations.
    pub(super) fn read<R: Read>(
        input: &mut Bytes<R>,
        version: u8,
        locations: u32,
    ) -> Result<Self, Flaw> {
        let head = Self::read_again(input, version, locations)?;
        if version > UNSEALED {
            input.check_checksum()?;
        }
        Ok(head)
    }

    /// Reads a header that was read before; does not check its checksum.
    pub(super) fn read_again<R: Read>(
        input: &mut Bytes<R>,
        version: u8,
        locations: u32,
    ) -> Result<Self, Flaw> {
        let start = input.offset();
        let bad = |why: &str| Flaw::Byte(start, format!("a chunk of events {why}"));
        let count = input.number()?;
        if count == 0 || count > locations.into() {
            return Err(bad("has no block, or more blocks than there are locations"));
        }
        let (mut blocks, mut data, mut next) = (Vec::new(), 0_usize, 0);
        for _ in 0..count {
            let location = input.u32("the number of a location")?;
            let events = input.u32("a number of events")?;
            if location < next || location >= locations || events == 0 {
                return Err(bad("has blocks that are empty or out of order"));
            }
            next = location + 1;
            let mut part = || -> Result<Range<usize>, Flaw> {
                let length = usize::try_from(input.number()?).ok();
                let end = length.and_then(|length| data.checked_add(length));
                let end = end.filter(|end| *end <= isize::MAX as usize);
                let range = data..end.ok_or_else(|| bad("is too long"))?;
                data = range.end;
                Ok(range)
            };
            let (times, actions) = (part()?, part()?);
            let least = times.len().min(actions.len());
            if (events as usize) > least {
                return Err(bad("has more events than bytes"));
            }
            let mut checksum = None;
            if version > UNSEALED {
                let bytes = input.block(CHECKSUM)?;
                let bytes = bytes.first_chunk().filter(|_| input.verifies());
                checksum = bytes.map(|bytes| u32::from_le_bytes(*bytes));
            }
            blocks.push(Block {
                location,
                events,
                times,
                actions,
                checksum,
            });
        }
        let order = input.number()?;
        let order = input.block(order)?;
        let checksum = if version > UNSEALED { CHECKSUM } else { 0 };
        Ok(Self {
            blocks,
            order,
            data,
            offset: input.offset() + checksum,
        })
    }

    /// Checks the checksum of a block; `data` are the bytes of blocks from an offset on.
    pub(super) fn check(&self, block: usize, data: &[u8], start: usize) -> Result<(), Flaw> {
        let block = &self.blocks[block];
        let Some(checksum) = block.checksum else {
            return Ok(());
        };
        let found = data.get(block.times.start - start..block.actions.end - start);
        match found.is_some_and(|found| Crc32::of(found) == checksum) {
            true => Ok(()),
            false => Err(Flaw::Byte(
                self.offset + block.times.start as u64,
                WRONG_CHECKSUM.to_owned(),
            )),
        }
    }

    /// Writes the header without its checksum, with other times; `actions` returns the actions of a
    /// block.
    pub(super) fn write<'a>(
        &self,
        to: &mut Vec<u8>,
        times: &[impl AsRef<[u8]>],
        actions: impl Fn(&Block) -> &'a [u8],
    ) {
        put(to, self.blocks.len() as u64);
        for (block, times) in self.blocks.iter().zip(times) {
            let events = (block.location, block.events);
            put_block(to, events, times.as_ref(), actions(block));
        }
        put(to, self.order.len() as u64);
        to.extend_from_slice(&self.order);
    }

    pub(super) fn events(&self) -> u64 {
        self.blocks
            .iter()
            .map(|block| u64::from(block.events))
            .sum()
    }
}
