//! Traces that ranks share, written with other times: every rank encodes the times of its own
//! locations, and rank 0 writes them to the file.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::{Checksums, FileError};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError, block_on_ready};

use super::blocks::{CopiedChunk, EncodedChunk, Layout, copy_with, encode};
use super::sessions::{Sessions, changed};
use super::{TraceFile, TraceFormat, requests, write_corrected};
use crate::array::Access;
use crate::distributed::TracePart;
use crate::{Array, LocationId};

/// Times of one rank in a chunk: the encoded times of its blocks, each after its length.
type Encoded = Vec<u8>;

impl TraceFile<()> {
    /// Writes the same trace to another file, as [`TraceFile::write_corrected`] does; collective,
    /// with the times of each rank's own locations. A single rank works on `workers` threads. Of a
    /// binary file, each rank encodes its own times; otherwise rank 0 writes alone.
    ///
    /// # Errors
    /// If a rank is gone. An error of writing the file is returned on rank 0 only.
    pub async fn write_part<C: Comm>(
        &self,
        part: &TracePart,
        (to, format): (&Path, TraceFormat),
        times: &[Array<Timestamp<Global>>],
        sessions: &Sessions,
        workers: usize,
        comm: &C,
    ) -> Result<Result<(), FileError>, CommError> {
        if comm.size() == 1 {
            // In the order of the file.
            part.as_ref().store.expect(Access::InTurns);
            let paths = [&self.path, to];
            return Ok(write_corrected(paths, format, times, sessions, workers));
        }
        if format == TraceFormat::Binary
            && let Some(written) = self.write_chunks(part, to, times, sessions, comm).await?
        {
            return Ok(written);
        }
        match comm.rank() {
            0 => requests::write(self, part, (to, format), times, sessions, comm).await,
            _ => requests::serve(times, comm).await.map(Ok),
        }
    }

    /// Writes a binary file. Returns `None` on all ranks if the events of the original are not in
    /// chunks.
    async fn write_chunks<C: Comm>(
        &self,
        part: &TracePart,
        to: &Path,
        times: &[Array<Timestamp<Global>>],
        sessions: &Sessions,
        comm: &C,
    ) -> Result<Option<Result<(), FileError>>, CommError> {
        // It was verified when it was read.
        let layout = Layout::read(&self.path, Checksums::Ignore, |_| Ok(()));
        let layout = layout.ok().filter(|layout| {
            let loads = layout.loads.iter().map(|load| load.events);
            loads.eq(self.loads.iter().map(|load| load.events))
        });
        if all_reduce(comm, u64::from(layout.is_some()), u64::min).await? == 0 {
            return Ok(None);
        }
        let Some(layout) = layout else {
            return Ok(None);
        };
        let mut next = vec![0; layout.loads.len()];
        if comm.rank() > 0 {
            for chunk in &layout.chunks {
                let encoded = encode_own(part, &chunk.blocks, times, &mut next);
                comm.send(0, encoded.len() as u64).await?;
                comm.send_bytes(0, &encoded).await?;
            }
            return Ok(Some(Ok(())));
        }
        let (mut received, mut lost) = (0, None);
        let mut chunk = |chunk: &CopiedChunk| -> EncodedChunk {
            received += 1;
            let blocks = chunk
                .head
                .blocks
                .iter()
                .map(|block| (block.location, block.events));
            let blocks: Vec<_> = blocks.collect();
            let mut all = vec![encode_own(part, &blocks, times, &mut next)];
            match block_on_ready(receive(comm)) {
                Ok(others) => all.extend(others),
                Err(why) => lost = lost.or(Some(why)),
            }
            chunk.with(&sort(part, &blocks, &all))
        };
        let written = copy_with([&self.path, to], &layout, sessions, 1, |chunks| {
            Ok(chunks.iter().map(&mut chunk).collect())
        });
        // Other ranks send all chunks, even if the file cannot be written.
        for _ in received..layout.chunks.len() {
            receive(comm).await?;
        }
        match lost {
            Some(why) => Err(why),
            None => Ok(Some(written.unwrap_or_else(|_| Err(changed(&self.path))))),
        }
    }
}

fn owner(part: &TracePart, location: u32) -> Option<u32> {
    part.owner(LocationId(location))
}

fn encode_own(
    part: &TracePart,
    blocks: &[(u32, u32)],
    times: &[Array<Timestamp<Global>>],
    next: &mut [usize],
) -> Encoded {
    let (mut all, mut encoded) = (vec![], vec![]);
    for (location, events) in blocks {
        let at = *location as usize;
        if owner(part, *location) == Some(part.rank()) {
            encoded.clear();
            encode(&mut encoded, &times[at][next[at]..], *events);
            all.extend((encoded.len() as u32).to_le_bytes());
            all.extend_from_slice(&encoded);
            next[at] += *events as usize;
        }
    }
    all
}

/// Returns the encoded times of all blocks, from those of all ranks.
fn sort<'a>(part: &TracePart, blocks: &[(u32, u32)], all: &'a [Encoded]) -> Vec<&'a [u8]> {
    let mut rest: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let mut next = |owner: u32| -> Option<&'a [u8]> {
        let rest = rest.get_mut(owner as usize)?;
        let (length, behind) = rest.split_first_chunk()?;
        let (times, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        *rest = behind;
        Some(times)
    };
    let times = blocks
        .iter()
        .map(|(location, _)| next(owner(part, *location)?));
    times.map(Option::unwrap_or_default).collect()
}

/// Receives the encoded times of a chunk from all other ranks.
async fn receive<C: Comm>(comm: &C) -> Result<Vec<Encoded>, CommError> {
    let mut all = vec![];
    for other in 1..comm.size() {
        let length: u64 = comm.recv(other).await?;
        let mut encoded = vec![0; length as usize];
        comm.recv_bytes(other, &mut encoded).await?;
        all.push(encoded);
    }
    Ok(all)
}
