//! One trace from the files of all ranks.

pub(crate) mod events;
mod rank;
mod thread_events;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_clock_core::{Global, Local, Timestamp};
use downbeat_files::FileError;
use downbeat_trace::Place;
use downbeat_trace::formats::Item;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::rank_file::{ENDING, RankFile};
pub use rank::ClockError;
use rank::{CommonNumbers, Rank};

/// Recording of all ranks of a program.
///
/// Only definitions are in memory; records are read when they are merged.
#[derive(Debug)]
pub struct Recording {
    /// Ranks with a file, in their order.
    ranks: Vec<Rank>,
    /// Place and name of the location of each rank of the program.
    locations: Vec<(Place, String)>,
    /// Threads with records.
    threads: Vec<RecordedThread>,
    /// Members of each communicator.
    communicators: Vec<Arc<[u32]>>,
    /// Names of all calls, and of the time in which calls were not recorded.
    regions: Vec<String>,
    /// Ranks that did not get through `MPI_Init`, with how they ended: they have no
    /// clock.
    uninitialized: Vec<(u32, String)>,
}

/// Thread with records.
#[derive(Debug)]
struct RecordedThread {
    /// Index of its rank among those with a file.
    rank: usize,
    /// Number in its process.
    thread: u32,
    location: u32,
    name: String,
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

/// Reasons why no trace can be made of a folder.
const EMPTY: &str = "it has no recording of a rank, rank-*.dbrank: the program did not call MPI_Init of a shared library of MPI, or the \
                     parents of its ranks were killed, and `downbeat record --clean` collects what is still in memory";
const UNINITIALIZED: &str = "no rank got through MPI_Init, so that none has a clock";

/// Returns the files of a recording in a folder, in any order.
///
/// # Errors
/// If the folder cannot be read.
pub fn rank_files(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = fs::read_dir(folder).map_err(FileError::io(folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
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
    pub fn read(folder: &Path) -> Result<Self, FileError> {
        let mut paths = rank_files(folder)?;
        paths.sort_unstable();
        if paths.is_empty() {
            return Err(FileError::content(folder, EMPTY));
        }
        let (mut ranks, mut uninitialized) = (vec![], vec![]);
        for path in &paths {
            let rank = Rank::new(RankFile::read(path)?)?;
            // Each rank defines its clock at the end of `MPI_Init`.
            if rank.local.lines.is_empty() {
                let ended = rank.file.ended;
                let how = ended.unwrap_or_else(|| "its recording has no end".to_owned());
                uninitialized.push((rank.rank, how));
            } else {
                ranks.push(rank);
            }
        }
        uninitialized.sort_unstable();
        ranks.sort_by_key(|rank| rank.rank);
        check_same_run(&ranks)?;
        let Some(size) = ranks.first().map(|rank| rank.size) else {
            return Err(FileError::content(folder, UNINITIALIZED));
        };
        let mut numbers = CommonNumbers::default();
        for rank in &mut ranks {
            numbers.add_rank(rank)?;
        }
        numbers.names.push("(not recorded)".to_owned());
        let location = |process| (Place { node: 0, process }, format!("rank {process}"));
        let mut locations: Vec<_> = (0..size).map(location).collect();
        let mut nodes = FxHashMap::default();
        for rank in &ranks {
            let next = nodes.len() as u32;
            locations[rank.rank as usize].0.node = *nodes.entry(&rank.node).or_insert(next);
        }
        Ok(Self {
            locations,
            threads: threads(&ranks, size),
            ranks,
            communicators: numbers.members,
            regions: numbers.names,
            uninitialized,
        })
    }

    /// Number of ranks of the program.
    pub fn size(&self) -> u32 {
        self.locations.len() as u32
    }

    /// Returns the ranks without a file: the trace has no events of them.
    pub fn missing(&self) -> Vec<u32> {
        let uninitialized = self.uninitialized.iter().map(|of| of.0);
        let known = self.ranks.iter().map(|rank| rank.rank).chain(uninitialized);
        let known: FxHashSet<u32> = known.collect();
        let ranks = 0..self.size();
        ranks.filter(|rank| !known.contains(rank)).collect()
    }

    /// Number of records of all ranks.
    pub fn records(&self) -> u64 {
        let blocks = self.ranks.iter().flat_map(|rank| &rank.file.blocks);
        blocks.fold(0, |sum, block| block.records.saturating_add(sum))
    }

    /// Returns the ends of ranks other than by `MPI_Finalize` and exit code 0, and of
    /// those that lack calls.
    pub fn endings(&self) -> impl Iterator<Item = Ending<'_>> {
        let endings = self.ranks.iter().map(|rank| Ending {
            rank: rank.rank,
            how: rank.file.ended.as_deref(),
            is_finalized: rank.is_finalized,
            lost: rank.file.missing.lost,
            is_complete: rank.file.missing.since.is_none(),
        });
        endings.filter(|of| of.how != Some("exit code 0") || !of.is_finalized || of.lost > 0)
    }

    /// Returns the ranks that did not get through `MPI_Init`, and how they ended: the
    /// trace has no events of them.
    pub fn uninitialized(&self) -> &[(u32, String)] {
        &self.uninitialized
    }

    /// Replaces the local times of ranks, which read one counter, by those of this
    /// counter: true times, which only ranks on one machine have. `error` returns the
    /// artificial error of the clock of a rank, for tests of corrections.
    ///
    /// # Errors
    /// Those of `error`.
    pub fn share_counter<E>(
        &mut self,
        error: impl Fn(Place) -> Result<Option<Arc<ClockError>>, E>,
    ) -> Result<(), E> {
        let first = self.ranks.first().map(|rank| rank.local.lines.clone());
        let lines = first.unwrap_or_default();
        for rank in &mut self.ranks {
            let (place, _) = self.locations[rank.rank as usize];
            rank.local.error = error(place)?;
            rank.local.lines.clone_from(&lines);
        }
        Ok(())
    }

    /// Replaces the local times of ranks by the global time as each of them knew it while
    /// the program ran, and leaves out the comparisons of clocks.
    ///
    /// # Errors
    /// If a rank does not tell its global time.
    pub fn keep_live(&mut self) -> Result<(), FileError> {
        for rank in &mut self.ranks {
            if rank.live.is_empty() {
                let why = "it does not tell the global time: the clocks were not synchronized, or the rank was killed under DOWNBEAT_SKEW";
                return Err(FileError::content(&rank.file.path, why));
            }
            rank.local.lines.clone_from(&rank.live);
            rank.samples.clear();
        }
        Ok(())
    }

    /// Returns the definitions of the trace, and its sessions. Times are those of the
    /// local clocks.
    pub fn definitions(&self) -> Vec<Item<'_>> {
        let mut items = vec![];
        for (place, name) in &self.locations {
            let place = *place;
            items.push(Item::Location { place, name });
        }
        for RecordedThread { rank, name, .. } in self.threads.iter().filter(|of| of.thread > 0) {
            let rank = self.ranks[*rank].rank;
            items.push(Item::Thread { rank, name });
        }
        let communicators = self.communicators.iter();
        items.extend(communicators.map(|members| Item::Communicator { members }));
        items.extend(self.regions.iter().map(|name| Item::Region { name }));
        self.add_samples(&mut items);
        items
    }

    fn add_samples(&self, items: &mut Vec<Item<'_>>) {
        // The program may have compared clocks by one of its own, which began at another
        // time than that of the tracer.
        let mut shifts = FxHashMap::default();
        for rank in &self.ranks {
            let (mut session, mut last) = (0, None);
            for sample in &rank.samples {
                let local = rank.local.nanos(sample.ticks);
                if rank.rank == 0 {
                    let shift = local.saturating_sub(sample.nanos);
                    shifts.entry(sample.session).or_insert(shift);
                    continue;
                }
                // A rank that was killed lacks the sessions after that.
                let before = last.replace(sample.session);
                session += u32::from(before.is_some_and(|before| before != sample.session));
                let shift = shifts.get(&sample.session).copied().unwrap_or(0);
                items.push(Item::Sample {
                    location: rank.rank,
                    session,
                    local: Timestamp::<Local>::from_nanos(local),
                    master: Timestamp::<Global>::from_nanos(sample.nanos.saturating_add(shift)),
                });
            }
        }
    }
}

/// Checks that ranks, in their order, belong to one run of a program.
fn check_same_run(ranks: &[Rank]) -> Result<(), FileError> {
    // A run that began with an MPI session has no number.
    let known = ranks.iter().filter(|rank| rank.run.is_some());
    let neighbors = ranks.iter().zip(ranks.iter().skip(1));
    for (a, b) in neighbors.chain(known.clone().zip(known.skip(1))) {
        let (other, size) = (a.file.path.display(), a.size);
        let why = if size != b.size {
            let own = b.size;
            format!("its program had {own} ranks, and that of {other} had {size}")
        } else if a.rank == b.rank {
            format!("it is of rank {}, as {other} is", a.rank)
        } else if a.run.is_some() && b.run.is_some() && a.run != b.run {
            format!("it is of another run than {other}")
        } else {
            continue;
        };
        let why = why + ": the folder has recordings of two programs, or of two runs";
        return Err(b.refuse(why));
    }
    Ok(())
}

/// Returns the threads of ranks with their locations, of which the first ones are ranks.
fn threads(ranks: &[Rank], size: u32) -> Vec<RecordedThread> {
    let (mut threads, mut next) = (vec![], size);
    for (index, rank) in ranks.iter().enumerate() {
        let blocks = rank.file.blocks.iter();
        for thread in blocks.map(|block| block.thread).collect::<BTreeSet<_>>() {
            threads.push(RecordedThread {
                rank: index,
                thread,
                location: if thread == 0 { rank.rank } else { next },
                name: format!("rank {} thread {thread}", rank.rank),
            });
            next += u32::from(thread > 0);
        }
    }
    threads
}

#[cfg(test)]
mod tests;
