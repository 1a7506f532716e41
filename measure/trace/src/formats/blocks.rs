//! Binary traces in chunks: reads some locations only, on several threads or ranks, and copies
//! traces with other times without decoding the rest.
//!
//! Errors are only detected here; their messages come from reading the file in its order.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::{Checksums, FileError, Flaw, NewFile, open};

use super::action::tag;
use super::binary::{self, ReadState, Scratch, WriteState};
use super::bytes::{Bytes, Input, put_signed};
use super::chunk::{Block, ChunkEvents, ChunkHead};
use super::definitions::{FileDefinitions, Known};
use super::index::{LocationLoad, TraceIndex};
use super::item::Item;
use super::numbers::FileNumbers;
use super::sessions::{Sessions, changed, samples_of};
use super::target::EventTarget;
use crate::distributed::Load;
use crate::workers::{balanced, deal, share};

/// First version with chunks.
const FIRST_CHUNKED: u8 = binary::FLAT + 1;

/// Error: the file must be read in its order.
#[derive(Debug)]
pub(super) struct InOrder;

impl<E: Into<Flaw>> From<E> for InOrder {
    fn from(_: E) -> Self {
        Self
    }
}

/// Chunk of a file.
#[derive(Clone, Debug)]
pub(super) struct ChunkPlace {
    /// Locations of its blocks, and their numbers of events.
    pub(super) blocks: Vec<(u32, u32)>,
    /// Offset of its header.
    offset: u64,
    /// Position of its first event in the trace.
    position: u64,
    known: Known,
}

/// Chunks of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) chunks: Vec<ChunkPlace>,
    pub(super) loads: Vec<LocationLoad>,
    checksums: Checksums,
}

/// Opens a file behind its first bytes, if its events are in chunks; returns its version, too.
fn open_chunked(path: &Path, checksums: Checksums) -> Result<(Bytes<File>, u8), InOrder> {
    let mut bytes = Bytes::new(open(path).map_err(|_| InOrder)?);
    bytes.set_checksums(checksums);
    let start = bytes.block(binary::MAGIC.len() as u64 + 1)?;
    match start.strip_prefix(&binary::MAGIC) {
        Some([version]) if (FIRST_CHUNKED..=binary::VERSION).contains(version) => {
            Ok((bytes, *version))
        }
        _ => Err(InOrder),
    }
}

impl Layout {
    /// Reads everything but events; definitions are passed to `take`.
    pub(super) fn read(
        path: &Path,
        checksums: Checksums,
        mut take: impl FnMut(&Item<'_>) -> Result<(), String>,
    ) -> Result<Self, InOrder> {
        let (mut bytes, version) = open_chunked(path, checksums)?;
        let length = std::fs::metadata(path)?.len();
        let (mut state, mut scratch) = (ReadState::new(version), Scratch::default());
        let (mut definitions, mut position) = (FileDefinitions::default(), 0_u64);
        let (mut chunks, mut found) = (vec![], TraceIndex::default());
        loop {
            let offset = bytes.offset();
            match bytes.byte()? {
                tag::CHUNK => {
                    found.chunks.push(offset);
                    let (offset, known) = (bytes.offset(), definitions.known());
                    let head = ChunkHead::read(&mut bytes, version, definitions.locations())?;
                    let blocks = head
                        .blocks
                        .iter()
                        .map(|block| (block.location, block.events));
                    let blocks = blocks.collect();
                    chunks.push(ChunkPlace {
                        blocks,
                        offset,
                        position,
                        known,
                    });
                    position += head.events();
                    found
                        .locations
                        .resize(definitions.locations() as usize, Default::default());
                    for block in &head.blocks {
                        found.locations[block.location as usize].events += u64::from(block.events);
                    }
                    let end = head.offset + head.data as u64;
                    if end > length {
                        return Err(InOrder);
                    }
                    bytes.go_to(end)?;
                }
                tag::END => {
                    let events = bytes.number()?;
                    let index = TraceIndex::read(&mut bytes, version)?;
                    found
                        .locations
                        .resize(definitions.locations() as usize, Default::default());
                    let fits = |(found, load): (&LocationLoad, &LocationLoad)| {
                        found.events == load.events && load.marks <= load.events
                    };
                    let agrees = events == position
                        && index.chunks == found.chunks
                        && index.locations.len() == found.locations.len()
                        && found.locations.iter().zip(&index.locations).all(fits);
                    if !agrees || bytes.next()?.is_some() {
                        return Err(InOrder);
                    }
                    return Ok(Self {
                        chunks,
                        loads: index.locations,
                        checksums,
                    });
                }
                tag => {
                    let item = binary::definition(
                        &mut bytes,
                        tag,
                        offset,
                        &mut state,
                        &definitions,
                        &mut scratch,
                    )?;
                    definitions
                        .take(&item)
                        .and_then(|()| take(&item))
                        .map_err(|_| InOrder)?;
                }
            }
        }
    }

    /// Reads the events of the locations that the target wants; `processes` are the numbers of the
    /// locations that represent the processes of all locations.
    pub(super) fn read_events(
        &self,
        path: &Path,
        numbers: &FileNumbers,
        processes: &[Load],
        target: &mut impl EventTarget,
    ) -> Result<(), InOrder> {
        let (mut bytes, version) = open_chunked(path, self.checksums)?;
        let (mut text, mut wanted) = (String::new(), vec![]);
        for chunk in &self.chunks {
            bytes.go_to(chunk.offset)?;
            let head = ChunkHead::read_again(&mut bytes, version, self.loads.len() as u32)?;
            wanted.clear();
            wanted.extend(head.blocks.iter().map(|block| {
                let location = numbers.location(block.location)?;
                let process = processes[block.location as usize].process;
                target.has(location).then_some(process)
            }));
            let blocks = head.blocks.iter().zip(&wanted);
            let mut blocks = blocks.filter_map(|(block, wanted)| wanted.map(|_| block));
            let Some(first) = blocks.next() else { continue };
            let (start, end) = (
                first.times.start,
                blocks.next_back().unwrap_or(first).actions.end,
            );
            bytes.go_to(head.offset + start as u64)?;
            let data = bytes.data((end - start) as u64)?;
            for (block, wanted) in wanted.iter().enumerate() {
                if wanted.is_some() {
                    head.check(block, &data, start)?;
                }
            }
            let mut events = ChunkEvents::new(head, data, start);
            for run in events.runs(chunk.position, &wanted)? {
                let location = events.location(run.block);
                let mut of_block = events.block(run.block);
                for position in run.position..run.position + u64::from(run.count) {
                    let time = Timestamp::from_nanos(of_block.time()?);
                    let what = of_block.what(&mut text)?;
                    chunk.known.event(location, what).map_err(|_| InOrder)?;
                    let (location, action) = numbers.of(location, what).ok_or(InOrder)?;
                    target
                        .take(position, location, time, action)
                        .map_err(|_| InOrder)?;
                }
                let at = of_block.position();
                events.go_to(run.block, at);
            }
            for (block, wanted) in wanted.iter().enumerate() {
                if wanted.is_some() {
                    events.check_end(block)?;
                }
            }
        }
        Ok(())
    }
}

/// Copies a trace with other times of events and other local times of samples, on this number of
/// threads; everything else is unchanged.
pub(super) fn copy(
    paths: [&Path; 2],
    times: &[impl AsRef<[Timestamp<Global>]> + Sync],
    sessions: &Sessions,
    workers: usize,
) -> Result<Result<(), FileError>, InOrder> {
    // It was verified when it was read.
    let layout = Layout::read(paths[0], Checksums::Ignore, |_| Ok(()))?;
    let fits =
        |(load, times): (&LocationLoad, &[Timestamp<Global>])| load.events == times.len() as u64;
    let mut all = layout.loads.iter().zip(times.iter().map(AsRef::as_ref));
    if layout.loads.len() != times.len() || !all.all(fits) {
        return Ok(Err(changed(paths[0])));
    }
    // A chunk has few times of each of many locations, which are far apart in memory.
    let chunks = (layout.loads.len() / 128).clamp(1, 8);
    copy_with(paths, &layout, sessions, chunks * workers, |chunks| {
        let groups = balanced(&vec![1; chunks.len()], workers);
        let copied = share(deal(chunks, &groups), |_, chunks| {
            encode_all(&chunks, times)
        });
        Ok(copied.into_iter().flatten().collect())
    })
}

/// Returns chunks with other times, which are read location by location.
fn encode_all(
    chunks: &[CopiedChunk],
    times: &[impl AsRef<[Timestamp<Global>]>],
) -> Vec<EncodedChunk> {
    let blocks = chunks.iter().enumerate().flat_map(|(number, chunk)| {
        let blocks = chunk.head.blocks.iter().enumerate();
        blocks.map(move |(index, block)| (block.location, number, index))
    });
    let mut blocks: Vec<_> = blocks.collect();
    blocks.sort_unstable();
    let ranges = |chunk: &CopiedChunk| vec![0..0; chunk.head.blocks.len()];
    let mut ranges: Vec<Vec<Range<usize>>> = chunks.iter().map(ranges).collect();
    let mut encoded = vec![];
    for (location, number, index) in blocks {
        let chunk = &chunks[number];
        let times = &times[location as usize].as_ref()[chunk.starts[index]..];
        let start = encoded.len();
        encode(&mut encoded, times, chunk.head.blocks[index].events);
        ranges[number][index] = start..encoded.len();
    }
    let copied = chunks.iter().zip(ranges).map(|(chunk, ranges)| {
        let times = ranges.into_iter().map(|range| &encoded[range]);
        chunk.with(&times.collect::<Vec<_>>())
    });
    copied.collect()
}

/// Appends the times of a block.
pub(super) fn encode(to: &mut Vec<u8>, times: &[Timestamp<Global>], events: u32) {
    let mut last = 0;
    for time in &times[..events as usize] {
        put_signed(to, time.as_nanos().wrapping_sub(last));
        last = time.as_nanos();
    }
}

/// Copies a trace; `encode` makes chunks with other times, up to `most` at once.
pub(super) fn copy_with(
    [from, to]: [&Path; 2],
    layout: &Layout,
    sessions: &Sessions,
    most: usize,
    mut encode: impl FnMut(Vec<CopiedChunk>) -> Result<Vec<EncodedChunk>, FileError>,
) -> Result<Result<(), FileError>, InOrder> {
    let mut samples = samples_of(sessions);
    let (mut bytes, version) = open_chunked(from, layout.checksums)?;
    let mut file = match NewFile::create(to) {
        Ok(file) => file,
        Err(why) => return Ok(Err(why)),
    };
    let mut writing = WriteState::default();
    let mut buffer = binary::MAGIC.to_vec();
    buffer.push(binary::VERSION);
    let (mut state, mut scratch) = (ReadState::new(version), Scratch::default());
    let mut definitions = FileDefinitions::default();
    let mut next = vec![0_usize; layout.loads.len()];
    let mut batch: Vec<CopiedChunk> = vec![];
    loop {
        let offset = bytes.offset();
        let tag = bytes.byte()?;
        if tag == tag::CHUNK {
            let head = ChunkHead::read(&mut bytes, version, definitions.locations())?;
            let data = bytes.data(head.data as u64)?;
            let starts = head.blocks.iter().map(|block| {
                let next = &mut next[block.location as usize];
                *next += block.events as usize;
                *next - block.events as usize
            });
            let starts = starts.collect();
            batch.push(CopiedChunk { head, data, starts });
        }
        if tag != tag::CHUNK || batch.len() == most.max(1) {
            let encoded = match encode(std::mem::take(&mut batch)) {
                Ok(encoded) => encoded,
                Err(why) => return Ok(Err(why)),
            };
            for mut chunk in encoded {
                writing.begin_chunk(&mut buffer);
                buffer.append(&mut chunk.head);
                writing.checksum.put(&mut buffer);
                writing.flush(&buffer);
                writing.written += chunk.data.len() as u64;
                let written = file.write(&mut buffer);
                if let Err(why) = written.and_then(|()| file.write(&mut chunk.data)) {
                    return Ok(Err(why));
                }
            }
        }
        match tag {
            tag::CHUNK => {}
            tag::END => {
                if samples.iter_mut().any(|rest| rest.next().is_some()) {
                    return Ok(Err(changed(from)));
                }
                let events = layout.loads.iter().map(|load| load.events).sum();
                // Locations were counted as they were defined, and their numbers of events are
                // those of the file.
                writing.index.locations.clone_from(&layout.loads);
                binary::write_end(&mut buffer, events, &mut writing);
                return Ok(file.write(&mut buffer).and_then(|()| file.finish()));
            }
            tag => {
                let mut item = binary::definition(
                    &mut bytes,
                    tag,
                    offset,
                    &mut state,
                    &definitions,
                    &mut scratch,
                )?;
                definitions.take(&item).map_err(|_| InOrder)?;
                if let Item::Sample {
                    location, local, ..
                } = &mut item
                {
                    let samples = samples.get_mut(*location as usize).ok_or(InOrder)?;
                    *local = samples.next().ok_or(InOrder)?.at;
                }
                binary::write(&mut buffer, &item, &mut writing);
            }
        }
    }
}

/// Chunk that is copied.
#[derive(Debug)]
pub(super) struct CopiedChunk {
    pub(super) head: ChunkHead,
    data: Vec<u8>,
    /// For each block, the index of its first time among those of its location.
    pub(super) starts: Vec<usize>,
}

impl CopiedChunk {
    /// Returns the chunk with other times of its blocks.
    pub(super) fn with(&self, times: &[impl AsRef<[u8]>]) -> EncodedChunk {
        let actions = |block: &Block| &self.data[block.actions.clone()];
        let mut head = Vec::with_capacity(self.head.order.len() + 20 * self.head.blocks.len());
        self.head.write(&mut head, times, actions);
        let mut data = Vec::with_capacity(self.data.len());
        for (block, times) in self.head.blocks.iter().zip(times) {
            data.extend_from_slice(times.as_ref());
            data.extend_from_slice(actions(block));
        }
        EncodedChunk { head, data }
    }
}

/// Chunk that is written: its header without the checksum, and its times and actions.
#[derive(Debug)]
pub(super) struct EncodedChunk {
    head: Vec<u8>,
    data: Vec<u8>,
}
