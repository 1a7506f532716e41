//! One trace from the files of all ranks.

mod accesses;
mod definitions;
mod error;
mod operations;
mod stream;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_clock_core::{Global, Local, Timestamp};
use downbeat_files::FileError;
use downbeat_trace::Place;
use downbeat_trace::formats::Item;
use rustc_hash::FxHashMap;

use crate::Definition;
use crate::rank_file::{ENDING, RankFile};
pub use definitions::ClockError;
use definitions::{Definitions, Rank};
pub use error::MergeError;
use stream::ThreadStream;

/// Recording of all ranks of a program.
///
/// Only definitions are in memory; records are read when they are merged.
#[derive(Debug)]
pub struct Recording {
    definitions: Definitions,
    /// Ranks without a file.
    missing: Vec<u32>,
    /// Ranks that did not get through `MPI_Init`, with how they ended: they have no clock.
    uninitialized: Vec<(u32, String)>,
}

/// Numbers of a merged trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeSummary {
    /// Number of events.
    pub events: u64,
    /// Number of calls that were entered, also of those that are folded.
    pub calls: u64,
    /// Number of messages that were sent.
    pub sent: u64,
    /// Number of messages that were received.
    pub received: u64,
    /// Number of one-sided accesses of each kind, in the order of [`AccessKind::ALL`](downbeat_trace::formats::AccessKind::ALL).
    pub accesses: [u64; 3],
    /// Number of calls that were not recorded, because memory or the disk was short.
    pub dropped: u64,
    /// Number of messages and operations that are left out because calls of their rank are
    /// missing before them: their partners are not known.
    pub cut_off: u64,
}

/// End of a rank other than by `MPI_Finalize` and exit code 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ending<'a> {
    /// The rank.
    pub rank: u32,
    /// Exit code or signal; `None` if its recording has no end.
    pub how: Option<&'a str>,
    /// True if it called `MPI_Finalize`.
    pub is_finalized: bool,
    /// Number of calls that could not be written.
    pub lost: u64,
    /// True if no calls are missing.
    pub is_complete: bool,
}

/// Region of the time in which calls were not recorded.
const NOT_RECORDED: &str = "(not recorded)";

/// Returns the files of a recording in a folder, in any order.
///
/// # Errors
/// If the folder cannot be read.
pub fn rank_files(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = fs::read_dir(folder).map_err(FileError::io(folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_of_rank = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.starts_with(b"rank-") && path.extension().is_some_and(|end| end == ENDING)
    };
    Ok(paths.filter(is_of_rank).collect())
}

impl Recording {
    /// Reads the definitions of all ranks in a folder.
    ///
    /// # Errors
    /// If there are none, a file is damaged, or files belong to different programs.
    pub fn read(folder: &Path) -> Result<Self, MergeError> {
        let mut paths = rank_files(folder)?;
        paths.sort_unstable();
        if paths.is_empty() {
            return Err(MergeError::Empty(folder.to_owned()));
        }
        let mut files = vec![];
        let mut uninitialized = vec![];
        for path in paths {
            let file = RankFile::read(&path)?;
            match rank_without_clock(&file) {
                Some(rank) => uninitialized.push((rank, how(&file).to_owned())),
                None => files.push(file),
            }
        }
        if files.is_empty() {
            return Err(MergeError::Uninitialized(folder.to_owned()));
        }
        uninitialized.sort_unstable();
        let definitions = Definitions::new(files)?;
        let ranks = &definitions.ranks;
        let is_missing = |rank: &u32| {
            let is = |of: &(u32, String)| of.0 == *rank;
            ranks.binary_search_by_key(rank, |of| of.rank).is_err() && !uninitialized.iter().any(is)
        };
        let missing = (0..definitions.size).filter(is_missing).collect();
        Ok(Self {
            definitions,
            missing,
            uninitialized,
        })
    }

    /// Number of ranks of the program.
    pub fn size(&self) -> u32 {
        self.definitions.size
    }

    /// Ranks without a file: the trace has no events of them.
    pub fn missing(&self) -> &[u32] {
        &self.missing
    }

    /// Number of records of all ranks.
    pub fn records(&self) -> u64 {
        let blocks = self
            .definitions
            .ranks
            .iter()
            .flat_map(|rank| &rank.file.blocks);
        blocks.map(|block| block.records).sum()
    }

    /// Returns the ends of ranks other than by `MPI_Finalize` and exit code 0, and of those
    /// that lack calls.
    pub fn endings(&self) -> impl Iterator<Item = Ending<'_>> {
        let endings = self.definitions.ranks.iter().map(|rank| Ending {
            rank: rank.rank,
            how: rank.file.ended.as_deref(),
            is_finalized: rank.is_finalized,
            lost: rank.file.missing.lost,
            is_complete: rank.file.missing.since.is_none(),
        });
        endings.filter(|of| of.how != Some("exit code 0") || !of.is_finalized || of.lost > 0)
    }

    /// Returns the ranks that did not get through `MPI_Init`, and how they ended: the trace has no events of them.
    pub fn uninitialized(&self) -> &[(u32, String)] {
        &self.uninitialized
    }

    /// Replaces the local times of ranks, which read one counter, by those of this counter: true times, which only ranks on one machine
    /// have. `error` returns the artificial error of the clock of a rank, for tests of corrections.
    ///
    /// # Errors
    /// Those of `error`.
    pub fn share_counter<E>(
        &mut self,
        error: impl Fn(Place) -> Result<Option<Arc<ClockError>>, E>,
    ) -> Result<(), E> {
        self.definitions.share_counter(error)
    }

    /// Replaces the local times of ranks by the global time as each of them knew it while
    /// the program ran, and leaves out the comparisons of clocks.
    ///
    /// # Errors
    /// If a rank does not tell its global time.
    pub fn keep_live(&mut self) -> Result<(), MergeError> {
        self.definitions.keep_live()
    }

    /// Writes the trace item by item: definitions, sessions, and events in the order of time.
    ///
    /// Times are those of the local clocks. `progress` learns the number of records that were read.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, and those of `sink`.
    pub fn merge(
        &self,
        mut sink: impl FnMut(&Item<'_>) -> Result<(), FileError>,
        mut progress: impl FnMut(u64),
    ) -> Result<MergeSummary, MergeError> {
        let of = &self.definitions;
        for rank in 0..of.size {
            let node = of.node_of(rank);
            let place = Place {
                node,
                process: rank,
            };
            sink(&Item::Location {
                place,
                name: &format!("rank {rank}"),
            })?;
        }
        let mut streams = vec![];
        let mut next = of.size;
        for rank in &of.ranks {
            for thread in rank.file.threads() {
                let mut location = rank.rank;
                if thread > 0 {
                    location = next;
                    next += 1;
                    sink(&Item::Thread {
                        rank: rank.rank,
                        name: &format!("rank {} thread {thread}", rank.rank),
                    })?;
                }
                streams.push(ThreadStream::new(of, rank, thread, location));
            }
        }
        for members in &of.communicators {
            sink(&Item::Communicator { members })?;
        }
        for name in of.regions.iter().map(String::as_str).chain([NOT_RECORDED]) {
            sink(&Item::Region { name })?;
        }
        self.samples(&mut sink)?;
        let mut summary = merge_streams(streams, &mut sink, &mut progress)?;
        for ending in self.endings() {
            summary.dropped = summary.dropped.saturating_add(ending.lost);
        }
        Ok(summary)
    }

    fn samples(
        &self,
        sink: &mut impl FnMut(&Item<'_>) -> Result<(), FileError>,
    ) -> Result<(), MergeError> {
        // The program may have compared clocks by one of its own, which began at another time than that of the tracer.
        let master = self.definitions.ranks.first().filter(|of| of.rank == 0);
        let shift = |session: u32| {
            let found = master?.samples.iter().find(|of| of.session == session)?;
            Some(master?.local.nanos(found.ticks).saturating_sub(found.nanos))
        };
        // A rank that was killed lacks the sessions after that.
        for Rank {
            rank,
            samples,
            local,
            ..
        } in self.definitions.ranks.iter().filter(|of| of.rank > 0)
        {
            let mut sessions: Vec<u32> = samples.iter().map(|sample| sample.session).collect();
            sessions.dedup();
            for sample in samples {
                let session = sessions.partition_point(|session| *session < sample.session);
                sink(&Item::Sample {
                    location: *rank,
                    session: session as u32,
                    local: Timestamp::<Local>::from_nanos(local.nanos(sample.ticks)),
                    master: Timestamp::<Global>::from_nanos(
                        sample
                            .nanos
                            .saturating_add(shift(sample.session).unwrap_or(0)),
                    ),
                })?;
            }
        }
        Ok(())
    }
}

/// Returns how a rank ended.
fn how(file: &RankFile) -> &str {
    let ended = file.ended.as_deref();
    ended.unwrap_or("its recording has no end")
}

/// Returns the rank of a file without a clock, which each rank defines at the end of `MPI_Init`.
fn rank_without_clock(file: &RankFile) -> Option<u32> {
    let mut found = None;
    for line in file.texts.lines() {
        match Definition::parse(line) {
            Some(Definition::Process { rank, .. }) => found = Some(rank),
            Some(Definition::Clock(_)) => return None,
            _ => {}
        }
    }
    found
}

fn merge_streams(
    mut streams: Vec<ThreadStream<'_>>,
    sink: &mut impl FnMut(&Item<'_>) -> Result<(), FileError>,
    progress: &mut impl FnMut(u64),
) -> Result<MergeSummary, MergeError> {
    /// Number of events between two reports of progress.
    const STEP: u64 = 1 << 16;
    let mut summary = MergeSummary::default();
    // Time since which calls of a rank are missing; most ranks lack none.
    let stated = |stream: &ThreadStream<'_>| Some((stream.rank(), stream.gap_of_rank()?));
    let mut gaps: FxHashMap<u32, i64> = streams.iter().filter_map(stated).collect();
    let mut heads = BinaryHeap::new();
    for (index, stream) in streams.iter_mut().enumerate() {
        heads.extend(stream.head()?.map(|time| Reverse((time, index))));
    }
    let mut read = 0;
    while let Some(Reverse((_, index))) = heads.pop() {
        let stream = &mut streams[index];
        let before = stream.read;
        if let Some(time) = stream.gap() {
            let gap = gaps.entry(stream.rank()).or_insert(time);
            *gap = time.min(*gap);
        }
        let gap = gaps.get(&stream.rank()).copied();
        summary.cut_off += u64::from(stream.cut_off(gap));
        stream.pop(|item| {
            summary.events += 1;
            sink(item)
        })?;
        heads.extend(stream.head()?.map(|time| Reverse((time, index))));
        read += stream.read - before;
        if summary.events.is_multiple_of(STEP) {
            progress(read);
        }
    }
    for stream in streams {
        summary.calls += stream.calls;
        summary.sent += stream.sent;
        summary.received += stream.received;
        for (all, of) in summary.accesses.iter_mut().zip(stream.accesses.issued()) {
            *all += of;
        }
        summary.dropped += stream.dropped;
    }
    Ok(summary)
}

#[cfg(test)]
mod tests;
