//! Errors of synchronizations, of algorithm labels and of clusters.

use core::fmt;

use downbeat_clock_core::{Duration, FitError, ModelError};

use crate::collective::{SharedError, lowest_rank_where};
use crate::{Comm, CommError, block_on_ready};

/// Error of a synchronization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncError {
    /// A message was not delivered.
    Comm(CommError),
    /// The buffer for this number of exchanges cannot be allocated.
    TooManyExchanges(u32),
    /// A clock stepped back, the timestamps give no offset, or the offsets give no line.
    Fit(FitError),
    /// As [`Fit`](Self::Fit), between this rank and the rank that it learned from.
    Pair {
        /// Rank that this rank learned from, among all ranks.
        reference: u32,
        /// Fault of their clocks.
        why: FitError,
    },
    /// The clocks have no model: they are centuries apart, or their rates differ too much.
    Model(ModelError),
    /// The ranks were called with different algorithms.
    DifferentAlgorithms,
    /// This rank does not read the time source that another reads.
    OtherSource {
        /// The other rank, among all ranks.
        reference: u32,
        /// Time of this rank, by the model of the other one, minus the time of that one.
        offset: Duration,
        /// Maximum error of the offset.
        half_width: Duration,
    },
    /// This rank succeeded, but others failed; the lowest of these.
    OtherRank(u32),
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(why) => why.fmt(f),
            Self::TooManyExchanges(exchanges) => {
                write!(f, "not enough memory for {exchanges} exchanges")
            }
            Self::Fit(why) => why.fmt(f),
            Self::Pair { reference, why } => {
                write!(f, "its clock and that of rank {reference}: {why}")
            }
            Self::Model(why) => why.fmt(f),
            Self::DifferentAlgorithms => {
                f.write_str("the ranks were called with different algorithms")
            }
            Self::OtherSource {
                reference,
                offset,
                half_width,
            } => write!(
                f,
                "the ranks do not share a source of time: this rank is {offset} +- {half_width} ahead of rank {reference}"
            ),
            Self::OtherRank(rank) => write!(f, "rank {rank} failed"),
        }
    }
}

impl core::error::Error for SyncError {}

impl SyncError {
    /// Names the rank that this rank learned from, among all ranks.
    pub(crate) fn against(self, rank: u32) -> Self {
        match self {
            Self::Fit(why) => Self::Pair {
                reference: rank,
                why,
            },
            Self::OtherSource {
                offset, half_width, ..
            } => Self::OtherSource {
                reference: rank,
                offset,
                half_width,
            },
            other => other,
        }
    }
}

impl From<CommError> for SyncError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

/// A rank keeps its own error; the others learn which rank failed.
impl SharedError for SyncError {
    async fn share<M: Comm>(_: &M, failed: u32, own: Option<Self>) -> Result<Self, CommError> {
        Ok(own.unwrap_or(Self::OtherRank(failed)))
    }
}

/// Returns the result of an algorithm, which fails on all ranks or on none, with the reason of the lowest rank that failed by
/// itself. `explain` names this rank's. All ranks call this.
///
/// # Errors
/// If the algorithm failed, or a rank is gone.
pub fn agree_on_reason<T, E: SharedError, M: Comm>(
    comm: &M,
    result: Result<T, SyncError>,
    explain: impl FnOnce(SyncError) -> E,
) -> Result<T, E> {
    let own = match result {
        Ok(value) => return Ok(value),
        Err(SyncError::Comm(why)) => return Err(why.into()),
        // That rank has the reason.
        Err(SyncError::OtherRank(_)) => None,
        Err(why) => Some(explain(why)),
    };
    block_on_ready(async {
        let failed = lowest_rank_where(comm, own.is_some()).await?;
        Err(E::share(comm, failed.unwrap_or_default(), own).await?)
    })
}

impl From<FitError> for SyncError {
    fn from(why: FitError) -> Self {
        Self::Fit(why)
    }
}

impl From<ModelError> for SyncError {
    fn from(why: ModelError) -> Self {
        Self::Model(why)
    }
}

/// Error in the label or in a parameter of an algorithm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LabelError {
    /// No algorithm has this name.
    UnknownAlgorithm(String),
    /// The number of fit points is missing, zero or not a number.
    FitPoints(String),
    /// The length of a cube or its number of exchanges is missing, zero, or neither a number nor a time.
    Cube(String),
    /// `auto` was given for a level of a hierarchy: it finds nodes by itself.
    AutoLevel,
    /// The time of an automatic synchronization is missing, or no time above 0.
    Budget(String),
    /// No offset algorithm has this name.
    UnknownOffsetAlgorithm,
    /// The number of exchanges of an offset algorithm is missing or not a number.
    MissingExchanges,
    /// The number of exchanges of an offset algorithm is zero.
    NoExchanges,
    /// The number of exchanges of an offset algorithm has more than 32 bits.
    TooManyExchanges,
    /// An offset algorithm other than SKaMPI's was asked to stop early.
    EarlyExit,
    /// The offsets of an algorithm other than SKaMPI's cannot be weighted, since they are not in the
    /// middle of what their exchanges leave possible.
    NotWeightable,
    /// Text follows the last parameter of the algorithm.
    TrailingText(String),
    /// A hierarchy of named levels has none, an unknown one, or not all in their order, with the ranks at the end.
    NamedLevels(String),
    /// A hierarchy has the wrong number of algorithms.
    Levels {
        /// Number of algorithms that the hierarchy takes.
        expected: usize,
        /// Number of algorithms in the label.
        found: usize,
    },
    /// A share of the ranks is not above 0 and at most 1.
    Share(f64),
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm(name) => write!(
                f,
                "there is no algorithm \"{name}\"; the algorithms are auto, none, skampi, nbcbench, jk, hca, hca2, hca3, \
                 hca3-offset, cube, prop, h2hca(...), h3hca(...) and hlhca(...)"
            ),
            Self::Cube(found) => write!(
                f,
                "a cube takes a positive number of turns or a time, as 30ms, and a positive number of exchanges, not \"{found}\""
            ),
            Self::AutoLevel => f.write_str(
                "auto finds the nodes by itself, and cannot be a level of a hierarchy: use cube, as cube/100ms",
            ),
            Self::Budget(found) => write!(
                f,
                "auto takes a time above 0 and nothing else, as auto/100ms, not \"{found}\""
            ),
            Self::FitPoints(found) => write!(
                f,
                "the number of fit points must be a positive number, not \"{found}\""
            ),
            Self::UnknownOffsetAlgorithm => {
                f.write_str("the offset algorithms are skampi, mean-rtt and trace-collector")
            }
            Self::MissingExchanges => {
                f.write_str("an offset algorithm has a number of exchanges, as in skampi/100")
            }
            Self::NoExchanges => f.write_str("an offset algorithm needs at least one exchange"),
            Self::TooManyExchanges => {
                f.write_str("an offset algorithm has at most 4294967295 exchanges")
            }
            Self::EarlyExit => f.write_str("only the offset algorithm skampi can stop early"),
            Self::NotWeightable => f.write_str(
                "only offsets measured by skampi can be weighted: the others are not centred between their limits",
            ),
            Self::TrailingText(text) => write!(f, "unexpected \"{text}\" after the algorithm"),
            Self::NamedLevels(found) => write!(
                f,
                "hlhca takes algorithms by level in the order island, rack, node, socket, numa, rank, as in \
                 hlhca(rack=cube,node=cube,rank=prop), not \"{found}\""
            ),
            Self::Levels { expected, found } => {
                write!(f, "the hierarchy takes {expected} algorithms, not {found}")
            }
            Self::Share(share) => write!(
                f,
                "a share of the ranks must be above 0 and at most 1, not {share}"
            ),
        }
    }
}

impl core::error::Error for LabelError {}

/// Error of running the ranks of a [`ThreadCluster`](crate::ThreadCluster) or a
/// [`SimCluster`](crate::sim::SimCluster).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterError {
    /// The number of threads is not between 1 and
    /// [`ThreadCluster::MAX_RANKS`](crate::ThreadCluster::MAX_RANKS).
    Ranks(u32),
    /// A thread could not be started.
    Start {
        /// Rank of the thread.
        rank: u32,
        /// Error of the operating system.
        why: String,
    },
    /// A thread could not be pinned; the program was not run.
    Pin {
        /// Rank of the thread.
        rank: u32,
        /// Error of the function given to [`ThreadCluster::pin`](crate::ThreadCluster::pin).
        why: String,
    },
    /// A rank panicked; of several, the first to do so.
    Panicked {
        /// Rank that panicked.
        rank: u32,
        /// Message of the panic.
        message: String,
    },
    /// A parameter of a simulation is out of range.
    Parameter {
        /// Name of the parameter.
        name: String,
        /// Condition that the parameter violates.
        must: &'static str,
    },
    /// All simulated ranks that have not returned wait, and no message is on its way to any of them.
    Deadlock {
        /// Number of ranks that wait.
        waiting: u32,
        /// Lowest of the ranks that wait.
        rank: u32,
        /// Rank that the lowest one waits for; `None` if it waits for all ranks, or for something that is not simulated.
        waits_for: Option<u32>,
    },
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranks(ranks) => write!(f, "there can be 1 to {MAX_THREADS} ranks, not {ranks}"),
            Self::Start { rank, why } => {
                write!(f, "the thread of rank {rank} could not be started: {why}")
            }
            Self::Pin { rank, why } => write!(f, "rank {rank} could not be pinned: {why}"),
            Self::Panicked { rank, message } => write!(f, "rank {rank} panicked: {message}"),
            Self::Parameter { name, must } => write!(f, "{name} must be {must}"),
            Self::Deadlock {
                waiting,
                rank,
                waits_for,
            } => {
                write!(
                    f,
                    "{waiting} ranks are deadlocked: the first is rank {rank}"
                )?;
                match waits_for {
                    Some(other) => write!(f, ", which waits for rank {other}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl core::error::Error for ClusterError {}

/// Maximum number of ranks of a [`ThreadCluster`](crate::ThreadCluster); their mailboxes take 40 MB.
pub(crate) const MAX_THREADS: u32 = 512;
