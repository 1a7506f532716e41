//! Binary traces: the contents of the text format, with numbers of variable length.
//!
//! Version 7 has events in [chunks](super::chunk), and an [index](super::index) at its
//! end. Earlier versions can only be read: version 6 has no completions of sends, version
//! 5 no accesses, version 4 no numbers of bytes, version 3 no requests and signals,
//! version 2 no checksums either, and in version 1 events follow each other in the order
//! of the file, with a location item where the location changes.

use std::io::Read;

use crate::Place;
use downbeat_clock_core::Timestamp;

use super::action::{event, location, tag, unknown};
use super::bytes::{Bytes, Input, put, put_signed, put_text};
use super::checksum::RunningChecksum;
use super::chunk::{ChunkEvents, ChunkHead, ChunkWriter};
use super::definitions::{FileDefinitions, LONGEST_NAME};
use super::index::TraceIndex;
use super::item::Item;
use downbeat_files::Flaw;

/// Magic number. No text begins like this, and any conversion of line ends destroys it.
pub(super) const MAGIC: [u8; 8] = *b"\x89dbt\r\n\x1a\n";
/// Version that is written.
pub(super) const VERSION: u8 = 7;
/// First version, without chunks.
pub(super) const FLAT: u8 = 1;

/// The state of a reader between two items.
#[derive(Debug)]
pub(super) struct ReadState {
    version: u8,
    /// In version 1, the location of the next event, and the time of the last event of each
    /// location.
    at: u32,
    last: Vec<i64>,
    /// In later versions, the chunk whose events are read, and the index that the chunks so far imply.
    chunk: Option<ChunkEvents>,
    index: TraceIndex,
}

impl ReadState {
    pub(super) fn new(version: u8) -> Self {
        let index = TraceIndex::default();
        Self {
            version,
            at: 0,
            last: vec![],
            chunk: None,
            index,
        }
    }
}

/// Buffers for names and lists that are read.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    text: String,
    members: Vec<u32>,
}

/// Reads the next item and its offset; at the end of a file, its number of events.
pub(super) fn read<'a, R: Read>(
    bytes: &mut Bytes<R>,
    state: &mut ReadState,
    definitions: &FileDefinitions,
    scratch: &'a mut Scratch,
    offset: &mut u64,
) -> Result<Result<Item<'a>, u64>, Flaw> {
    // The location item before an event counts as its beginning.
    let mut start = None;
    let (at, tag) = loop {
        if let Some(chunk) = &mut state.chunk {
            if let Some(block) = chunk.next_block()? {
                let location = chunk.location(block);
                let (at, time, what) = chunk.event(block, &mut scratch.text)?;
                *offset = at;
                state.index.count(location, what);
                let time = Timestamp::from_nanos(time);
                return Ok(Ok(Item::Event {
                    location,
                    time,
                    what,
                }));
            }
            (0..chunk.blocks()).try_for_each(|block| chunk.check_end(block))?;
            state.chunk = None;
        }
        let here = bytes.offset();
        *offset = *start.get_or_insert(here);
        match bytes.byte()? {
            tag::AT if state.version == FLAT => state.at = location(bytes)?,
            tag::CHUNK if state.version != FLAT => {
                state.index.chunks.push(*offset);
                let head = ChunkHead::read(bytes, state.version, definitions.locations())?;
                let data = bytes.data(head.data as u64)?;
                (0..head.blocks.len()).try_for_each(|block| head.check(block, &data, 0))?;
                state.chunk = Some(ChunkEvents::new(head, data, 0));
            }
            tag => break (here, tag),
        }
    };
    if tag >= tag::ENTER && state.version == FLAT {
        let last = state.last.get(state.at as usize).copied().unwrap_or(0);
        let time = last.wrapping_add(bytes.signed()?);
        let what = event(bytes, tag, at, &mut scratch.text)?;
        if let Some(last) = state.last.get_mut(state.at as usize) {
            *last = time;
        }
        let (location, time) = (state.at, Timestamp::from_nanos(time));
        return Ok(Ok(Item::Event {
            location,
            time,
            what,
        }));
    }
    if tag == tag::END {
        let events = bytes.number()?;
        if state.version != FLAT {
            let start = bytes.offset();
            let index = TraceIndex::read(bytes, state.version)?;
            state
                .index
                .locations
                .resize(definitions.locations() as usize, Default::default());
            if index != state.index {
                let why = "the index does not agree with the events".to_owned();
                return Err(Flaw::Byte(start, why));
            }
        }
        return Ok(Err(events));
    }
    definition(bytes, tag, at, state, definitions, scratch).map(Ok)
}

/// Reads what follows the tag of a definition.
pub(super) fn definition<'a>(
    bytes: &mut impl Input,
    tag: u8,
    offset: u64,
    state: &mut ReadState,
    definitions: &FileDefinitions,
    scratch: &'a mut Scratch,
) -> Result<Item<'a>, Flaw> {
    Ok(match tag {
        tag::LOCATION => {
            state.last.push(0);
            let place = Place {
                node: bytes.u32("the number of a node")?,
                process: bytes.u32("the number of a process")?,
            };
            bytes.text(LONGEST_NAME, &mut scratch.text)?;
            Item::Location {
                place,
                name: &scratch.text,
            }
        }
        tag::THREAD => {
            state.last.push(0);
            let rank = location(bytes)?;
            bytes.text(LONGEST_NAME, &mut scratch.text)?;
            Item::Thread {
                rank,
                name: &scratch.text,
            }
        }
        tag::COMMUNICATOR => {
            let members = bytes.number()?;
            if members > definitions.locations().into() {
                let why = format!(
                    "a communicator has {members} members, which is more than there are locations"
                );
                return Err(Flaw::Byte(offset, why));
            }
            scratch.members.clear();
            for _ in 0..members {
                scratch.members.push(location(bytes)?);
            }
            Item::Communicator {
                members: &scratch.members,
            }
        }
        tag::REGION => {
            bytes.text(LONGEST_NAME, &mut scratch.text)?;
            Item::Region {
                name: &scratch.text,
            }
        }
        tag::MASTER => Item::Master {
            location: location(bytes)?,
        },
        tag::SAMPLE => Item::Sample {
            location: location(bytes)?,
            session: bytes.u32("the number of a session")?,
            local: Timestamp::from_nanos(bytes.signed()?),
            master: Timestamp::from_nanos(bytes.signed()?),
        },
        _ => return Err(unknown(offset, tag)),
    })
}

/// The state of a writer between two items.
#[derive(Debug, Default)]
pub(super) struct WriteState {
    chunk: ChunkWriter,
    pub(super) index: TraceIndex,
    /// Number of bytes that were taken out of the buffer.
    pub(super) written: u64,
    pub(super) checksum: RunningChecksum,
}

impl WriteState {
    /// Writes the events collected so far as a chunk.
    fn write_chunk(&mut self, to: &mut Vec<u8>) {
        if !self.chunk.is_empty() {
            self.begin_chunk(to);
            self.chunk.write(to, &mut self.checksum);
        }
    }

    /// Takes note that the buffer is now written and cleared.
    pub(super) fn flush(&mut self, buffer: &[u8]) {
        self.written += buffer.len() as u64;
        self.checksum.flush(buffer);
    }

    /// Writes the tag of a chunk.
    pub(super) fn begin_chunk(&mut self, to: &mut Vec<u8>) {
        self.index.chunks.push(self.written + to.len() as u64);
        to.push(tag::CHUNK);
    }
}

/// Appends an item whose names have been defined.
pub(super) fn write(to: &mut Vec<u8>, item: &Item<'_>, state: &mut WriteState) {
    if let Item::Event {
        location,
        time,
        what,
    } = *item
    {
        state.index.count(location, what);
        if state.chunk.push(location, time.as_nanos(), what) {
            state.write_chunk(to);
        }
        return;
    }
    state.write_chunk(to);
    match *item {
        Item::Location {
            place: Place { node, process },
            name,
        } => {
            state.index.locations.push(Default::default());
            numbers(to, tag::LOCATION, &[node, process]);
            put_text(to, name);
        }
        Item::Thread { rank, name } => {
            state.index.locations.push(Default::default());
            numbers(to, tag::THREAD, &[rank]);
            put_text(to, name);
        }
        Item::Communicator { members } => {
            to.push(tag::COMMUNICATOR);
            put(to, members.len() as u64);
            members.iter().for_each(|member| put(to, (*member).into()));
        }
        Item::Region { name } => {
            to.push(tag::REGION);
            put_text(to, name);
        }
        Item::Master { location } => numbers(to, tag::MASTER, &[location]),
        Item::Sample {
            location,
            session,
            local,
            master,
        } => {
            numbers(to, tag::SAMPLE, &[location, session]);
            put_signed(to, local.as_nanos());
            put_signed(to, master.as_nanos());
        }
        // Metrics were refused.
        Item::Event { .. } | Item::Metric { .. } | Item::Value { .. } => {}
    }
}

/// Appends the end of the trace.
pub(super) fn write_end(to: &mut Vec<u8>, events: u64, state: &mut WriteState) {
    state.write_chunk(to);
    to.push(tag::END);
    put(to, events);
    let start = state.written + to.len() as u64;
    state.index.write(to, start, &mut state.checksum);
}

fn numbers(to: &mut Vec<u8>, tag: u8, numbers: &[u32]) {
    to.push(tag);
    numbers.iter().for_each(|number| put(to, (*number).into()));
}
