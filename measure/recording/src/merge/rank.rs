//! Definitions of one rank, and numbers that all ranks share.

use std::fmt;
use std::sync::Arc;

use downbeat_clock_core::{Duration, Local, Timestamp};
use downbeat_files::FileError;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::definition::{CommunicatorDefinition, Definition, Sample};
use crate::rank_file::RankFile;

/// Definitions of one rank.
#[derive(Debug, Default)]
pub(super) struct Rank {
    pub(super) rank: u32,
    /// Number of ranks of the program.
    pub(super) size: u32,
    /// Name of its node.
    pub(super) node: String,
    /// Number of its run; one that began with an MPI session has none.
    pub(super) run: Option<u64>,
    pub(super) file: RankFile,
    /// True if it called `MPI_Finalize`.
    pub(super) is_finalized: bool,
    /// Local time; without lines if the rank did not get through `MPI_Init`.
    pub(super) local: LocalTime,
    /// Global time as the rank knew it, by lines of which each begins at its first point.
    pub(super) live: Vec<Line>,
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
    /// Ranks that messages go to and come from.
    pub(super) peers: Arc<[u32]>,
    /// Index of the own group among both in their order, if there are two.
    pub(super) side: Option<usize>,
}

/// Two points of a straight line from readings of the counter to time.
pub(super) type Line = [(u64, i64); 2];

/// Artificial error of a clock at a true time.
pub type ClockError = dyn Fn(Timestamp<Local>) -> Duration;

/// Time that a rank shows at readings of its counter, and its artificial error.
#[derive(Clone, Default)]
pub(super) struct LocalTime {
    /// Lines, each from its first point on; the first one also before.
    pub(super) lines: Vec<Line>,
    pub(super) error: Option<Arc<ClockError>>,
}

impl LocalTime {
    /// Returns the local time of a reading.
    pub(super) fn nanos(&self, ticks: u64) -> i64 {
        let after = self.lines.partition_point(|line| line[0].0 <= ticks);
        let Some([from, to]) = self.lines.get(after.saturating_sub(1)) else {
            return 0;
        };
        let [[from_ticks, from_nanos], [to_ticks, to_nanos]] =
            [from, to].map(|(ticks, nanos)| [i128::from(*ticks), i128::from(*nanos)]);
        let passed = (i128::from(ticks) - from_ticks) * (to_nanos - from_nanos);
        let found = from_nanos + passed.div_euclid((to_ticks - from_ticks).max(1));
        // Within the limits of a trace; a hostile file can hold anything.
        let limit = i128::from(i64::MAX / 2);
        let time = Timestamp::from_nanos(found.clamp(-limit, limit) as i64);
        let error = self.error.as_ref().map(|error| error(time));
        (time + error.unwrap_or_default()).as_nanos()
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.lines).finish()
    }
}

impl Rank {
    /// Reads the definitions in a file.
    ///
    /// # Errors
    /// If it does not tell its rank.
    pub(super) fn new(file: RankFile) -> Result<Self, FileError> {
        let mut rank = Self::default();
        // Later versions may add kinds.
        for definition in file.texts.lines().filter_map(Definition::parse) {
            match definition {
                Definition::Process {
                    rank: of,
                    size,
                    node,
                } => {
                    (rank.rank, rank.size, rank.node) = (of, size, node);
                }
                Definition::Run(id) => rank.run = Some(id),
                Definition::Clock(line) => rank.local.lines = vec![line],
                Definition::Live(line) => rank.live.push(line),
                Definition::Call { number, name } => rank.names.push((number, name)),
                Definition::Communicator(communicator) => rank.made.push(communicator),
                Definition::Sample(sample) => rank.samples.push(sample),
                Definition::Cost { .. } => {}
            }
        }
        if rank.size == 0 {
            return Err(FileError::content(&file.path, "it does not tell its rank"));
        }
        rank.is_finalized = rank.names.iter().any(|(_, name)| name == "MPI_Finalize");
        rank.live.sort_unstable();
        rank.samples.sort_by_key(|of| (of.session, of.ticks));
        // Threads make communicators in any order; their numbers follow it.
        rank.made.sort_by_key(|communicator| communicator.number);
        Ok(Self { file, ..rank })
    }

    /// Returns the error of its file for this reason.
    pub(super) fn refuse(&self, why: String) -> FileError {
        FileError::content(&self.file.path, why)
    }
}

/// Communicator by what all of its members know of it.
type CommunicatorKey = (Option<u32>, String, [Arc<[u32]>; 2]);

/// Numbers of communicators and regions that all ranks share.
#[derive(Default)]
pub(super) struct CommonNumbers {
    /// Lists of ranks, which several communicators share.
    lists: FxHashSet<Arc<[u32]>>,
    communicators: FxHashMap<CommunicatorKey, u32>,
    regions: FxHashMap<String, u32>,
    /// Members of each communicator.
    pub(super) members: Vec<Arc<[u32]>>,
    /// Name of each region.
    pub(super) names: Vec<String>,
}

impl CommonNumbers {
    /// Gives the communicators and regions of a rank common numbers.
    ///
    /// # Errors
    /// If a communicator has a member that does not exist.
    pub(super) fn add_rank(&mut self, rank: &mut Rank) -> Result<(), FileError> {
        for (call, name) in std::mem::take(&mut rank.names) {
            let number = *self.regions.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.names.len() as u32 - 1
            });
            rank.regions.insert(call, number);
        }
        for made in std::mem::take(&mut rank.made) {
            let mut all = made.members.iter().chain(&made.remote);
            if all.any(|member| *member >= rank.size) {
                let size = rank.size;
                let why = format!("a communicator has a member that is none of the {size} ranks");
                return Err(rank.refuse(why));
            }
            let known = &rank.communicators;
            let parent = made
                .parent
                .and_then(|parent| Some(known.get(&parent)?.index));
            let [members, remote] = [made.members, made.remote].map(|list| self.share_list(list));
            let mut groups = [members.clone(), remote.clone()];
            // Both groups of an inter-communicator define it, each as its own.
            groups.sort_unstable();
            let side = groups.iter().position(|group| *group == members);
            let index = self.number_communicator((parent, made.key, groups));
            let side = side.filter(|_| !remote.is_empty());
            let peers = if side.is_some() { remote } else { members };
            let communicator = Communicator { index, peers, side };
            rank.communicators.insert(made.number, communicator);
        }
        Ok(())
    }

    fn share_list(&mut self, list: Vec<u32>) -> Arc<[u32]> {
        if let Some(known) = self.lists.get(&list[..]) {
            return known.clone();
        }
        let list = Arc::<[u32]>::from(list);
        self.lists.insert(list.clone());
        list
    }

    fn number_communicator(&mut self, key: CommunicatorKey) -> u32 {
        let entry = self.communicators.entry(key);
        *entry.or_insert_with_key(|(_, _, groups)| {
            let mut members = groups.concat();
            if groups.iter().all(|group| !group.is_empty()) {
                members.sort_unstable();
                members.dedup();
            }
            self.members.push(members.into());
            self.members.len() as u32 - 1
        })
    }
}
