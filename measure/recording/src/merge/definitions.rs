//! Definitions of all ranks on common numbers.

use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use downbeat_clock_core::{Duration, Local, Timestamp};
use downbeat_files::FileError;
use downbeat_trace::Place;
use rustc_hash::FxHashMap;

use super::MergeError;
use crate::rank_file::RankFile;
use crate::{CommunicatorDefinition, Definition};

/// Definitions of all ranks.
#[derive(Debug)]
pub(super) struct Definitions {
    /// Number of ranks of the program.
    pub(super) size: u32,
    /// Those with a file, in their order.
    pub(super) ranks: Vec<Rank>,
    /// Members of each communicator.
    pub(super) communicators: Vec<Arc<[u32]>>,
    /// Names of all calls.
    pub(super) regions: Vec<String>,
    nodes: Vec<u32>,
}

/// One rank.
#[derive(Debug)]
pub(super) struct Rank {
    pub(super) rank: u32,
    pub(super) file: RankFile,
    node: String,
    /// Number of its run, unless an earlier version recorded it.
    run: Option<u64>,
    /// True if it called `MPI_Finalize`.
    pub(super) is_finalized: bool,
    pub(super) local: LocalTime,
    /// Global time as the rank knew it, by lines of which each begins at its first point.
    live: Vec<Line>,
    pub(super) samples: Vec<Sample>,
    /// Region of each call.
    pub(super) regions: FxHashMap<u16, u32>,
    pub(super) communicators: FxHashMap<u32, Communicator>,
    made: Vec<CommunicatorDefinition>,
    names: Vec<(u16, String)>,
}

/// Communicator, as a rank uses it.
#[derive(Clone, Debug)]
pub(super) struct Communicator {
    /// Index among all communicators.
    pub(super) index: u32,
    /// Those that messages go to and come from.
    pub(super) peers: Arc<[u32]>,
    /// Index of the own group among both in their order, if there are two.
    pub(super) side: Option<usize>,
}

/// Global time at a reading of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) session: u32,
    pub(super) ticks: u64,
    pub(super) nanos: i64,
}

/// Two points of a straight line from readings of the counter to time.
type Line = [(u64, i64); 2];

/// Time that a rank shows at readings of its counter, and its artificial error.
#[derive(Clone)]
pub(super) struct LocalTime {
    /// Lines, each from its first point on; the first one also before.
    lines: Vec<Line>,
    error: Option<Arc<ClockError>>,
}

/// Artificial error of a clock at a true time.
pub type ClockError = dyn Fn(Timestamp<Local>) -> Duration;

impl LocalTime {
    /// Returns the local time of a reading.
    pub(super) fn nanos(&self, ticks: u64) -> i64 {
        let after = self.lines.partition_point(|line| line[0].0 <= ticks);
        let Some([(from, at), (to, then)]) = self.lines.get(after.saturating_sub(1)).copied()
        else {
            return 0;
        };
        let ticks = i128::from(ticks) - i128::from(from);
        let [span, nanos] = [
            i128::from(to) - i128::from(from),
            i128::from(then) - i128::from(at),
        ];
        // Within the limits of a trace; a hostile file can hold anything.
        let limit = i128::from(i64::MAX / 2);
        let found = i128::from(at) + (ticks * nanos).div_euclid(span.max(1));
        let time = Timestamp::from_nanos(found.clamp(-limit, limit) as i64);
        let error = self.error.as_ref().map(|error| error(time));
        (time + error.unwrap_or_default()).as_nanos()
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalTime")
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

type CommunicatorKey = (Option<u32>, String, [Arc<[u32]>; 2]);

/// Common numbers of communicators, and lists of ranks that several of them share.
#[derive(Default)]
struct Communicators {
    lists: FxHashMap<Vec<u32>, Arc<[u32]>>,
    indices: FxHashMap<CommunicatorKey, u32>,
    members: Vec<Arc<[u32]>>,
}

impl Definitions {
    pub(super) fn new(files: Vec<RankFile>) -> Result<Self, MergeError> {
        let mut found: Option<(u32, usize)> = None;
        let mut ranks: Vec<Rank> = vec![];
        for file in files {
            let (rank, size) = Rank::new(file)?;
            if let Some((known, other)) = found
                && known != size
            {
                let paths = [ranks[other].file.path.clone(), rank.file.path];
                return Err(MergeError::Sizes([known, size], paths));
            }
            found = Some((size, ranks.len()));
            ranks.push(rank);
        }
        ranks.sort_by_key(|rank| rank.rank);
        for pair in ranks.windows(2) {
            if pair[0].rank == pair[1].rank {
                let paths = [0, 1].map(|of| pair[of].file.path.clone());
                return Err(MergeError::Twice(pair[0].rank, paths));
            }
        }
        let known: Vec<&Rank> = ranks.iter().filter(|rank| rank.run.is_some()).collect();
        if let Some(pair) = known.windows(2).find(|pair| pair[0].run != pair[1].run) {
            let paths = [0, 1].map(|of| pair[of].file.path.clone());
            return Err(MergeError::Runs(paths));
        }
        let size = found.map_or(0, |(size, _)| size);
        let mut communicators = Communicators::default();
        let mut regions = Regions::default();
        let mut nodes = vec![0; size as usize];
        let mut names: Vec<String> = vec![];
        for rank in &mut ranks {
            communicators.add(rank, size)?;
            regions.add(rank);
            let known = names.iter().position(|name| *name == rank.node);
            nodes[rank.rank as usize] = known.unwrap_or(names.len()) as u32;
            if known.is_none() {
                names.push(rank.node.clone());
            }
        }
        Ok(Self {
            size,
            ranks,
            communicators: communicators.members,
            regions: regions.names,
            nodes,
        })
    }

    /// Gives all ranks the local time of the first one, with the error that `error` returns for each.
    pub(super) fn share_counter<E>(
        &mut self,
        error: impl Fn(Place) -> Result<Option<Arc<ClockError>>, E>,
    ) -> Result<(), E> {
        let Some(lines) = self.ranks.first().map(|rank| rank.local.lines.clone()) else {
            return Ok(());
        };
        for rank in &mut self.ranks {
            let error = error(Place {
                node: self.nodes[rank.rank as usize],
                process: rank.rank,
            })?;
            let lines = lines.clone();
            rank.local = LocalTime { lines, error };
        }
        Ok(())
    }

    /// Gives all ranks the global time as they knew it.
    pub(super) fn keep_live(&mut self) -> Result<(), MergeError> {
        for rank in &mut self.ranks {
            if rank.live.is_empty() {
                let why = "it does not tell the global time: the clocks were not synchronized, the rank was killed under DOWNBEAT_SKEW, or an earlier version recorded it";
                return Err(FileError::content(&rank.file.path, why).into());
            }
            rank.local.lines.clone_from(&rank.live);
            rank.samples.clear();
        }
        Ok(())
    }

    pub(super) fn node_of(&self, rank: u32) -> u32 {
        self.nodes.get(rank as usize).copied().unwrap_or(0)
    }
}

impl Rank {
    /// Reads the definitions of a rank, and returns it with the number of all ranks.
    fn new(file: RankFile) -> Result<(Self, u32), MergeError> {
        let (mut process, mut run, mut clock) = (None, None, None);
        let (mut samples, mut live) = (vec![], vec![]);
        let (mut made, mut names) = (vec![], vec![]);
        for line in file.texts.lines() {
            // Later versions may add kinds.
            let Some(definition) = Definition::parse(line) else {
                continue;
            };
            match definition {
                Definition::Process { rank, size, node } => process = Some((rank, size, node)),
                Definition::Run(id) => run = Some(id),
                Definition::Clock(points) => clock = Some(points),
                Definition::Live(points) => live.push(points),
                Definition::Call { number, name } => names.push((number, name)),
                Definition::Communicator(communicator) => made.push(communicator),
                Definition::Sample {
                    session,
                    ticks,
                    nanos,
                } => samples.push(Sample {
                    session,
                    ticks,
                    nanos,
                }),
                Definition::Cost { .. } => {}
            }
        }
        let content = |why: &str| FileError::content(&file.path, why);
        let (rank, size, node) = process.ok_or_else(|| content("it does not tell its rank"))?;
        let line = clock.ok_or_else(|| content("it does not tell the rate of its clock"))?;
        let local = LocalTime {
            lines: vec![line],
            error: None,
        };
        live.sort_unstable();
        samples.sort_by_key(|sample| (sample.session, sample.ticks));
        // Threads make communicators in any order; their numbers follow it.
        made.sort_by_key(|communicator| communicator.number);
        let rank = Self {
            rank,
            file,
            node,
            run,
            is_finalized: names.iter().any(|(_, name)| name == "MPI_Finalize"),
            local,
            live,
            samples,
            regions: FxHashMap::default(),
            communicators: FxHashMap::default(),
            made,
            names,
        };
        Ok((rank, size))
    }
}

impl Communicators {
    /// Gives the communicators of a rank common numbers.
    fn add(&mut self, rank: &mut Rank, size: u32) -> Result<(), MergeError> {
        for definition in std::mem::take(&mut rank.made) {
            let CommunicatorDefinition {
                number,
                parent,
                key,
                members,
                remote,
            } = definition;
            if members.iter().chain(&remote).any(|member| *member >= size) {
                let why = format!("a communicator has a member that is none of the {size} ranks");
                return Err(FileError::content(&rank.file.path, why).into());
            }
            let parent = parent.and_then(|parent| Some(rank.communicators.get(&parent)?.index));
            let [members, remote] = [members, remote].map(|list| self.list(list));
            let mut groups = [members.clone(), remote.clone()];
            // Both groups of an inter-communicator define it, each as its own.
            groups.sort_unstable();
            let side = groups.iter().position(|group| *group == members);
            let index = self.index((parent, key, groups))?;
            let (peers, side) = if remote.is_empty() {
                (members, None)
            } else {
                (remote, side)
            };
            rank.communicators
                .insert(number, Communicator { index, peers, side });
        }
        Ok(())
    }

    fn list(&mut self, list: Vec<u32>) -> Arc<[u32]> {
        match self.lists.entry(list) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let list = Arc::from(&new.key()[..]);
                new.insert(list).clone()
            }
        }
    }

    fn index(&mut self, key: CommunicatorKey) -> Result<u32, MergeError> {
        let next = self.members.len() as u32;
        Ok(match self.indices.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let [a, b] = &new.key().2;
                let mut members: Vec<u32> = a.iter().chain(b.iter()).copied().collect();
                if !a.is_empty() && !b.is_empty() {
                    members.sort_unstable();
                    members.dedup();
                }
                self.members.push(members.into());
                *new.insert(next)
            }
        })
    }
}

/// Common numbers of calls.
#[derive(Default)]
struct Regions {
    numbers: FxHashMap<String, u32>,
    names: Vec<String>,
}

impl Regions {
    fn add(&mut self, rank: &mut Rank) {
        for (call, name) in std::mem::take(&mut rank.names) {
            let number = *self.numbers.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.names.len() as u32 - 1
            });
            rank.regions.insert(call, number);
        }
    }
}
