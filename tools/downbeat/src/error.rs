//! Failure of making a global clock.

use core::fmt;

use downbeat_clock_core::Duration;
use downbeat_sync::{ClusterError, Comm, CommError, block_on_ready, collective};

/// Reason why a global clock could not be made or synchronized again: the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobalClockError {
    /// A rank failed; of several, the lowest. Its message is known on all ranks.
    Rank {
        /// Rank that failed.
        rank: u32,
        /// Reason.
        why: String,
    },
    /// The ranks cannot reach each other, so that they could not agree on a reason.
    Comm(CommError),
    /// Right after a synchronization, the error of a clock could be larger than wanted.
    Uncertain {
        /// Largest error that was wanted.
        max_error: Duration,
    },
    /// The threads could not be started or pinned, or one of them panicked.
    Cluster(ClusterError),
}

impl fmt::Display for GlobalClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank { rank, why } => write!(f, "rank {rank}: {why}"),
            Self::Comm(why) => why.fmt(f),
            Self::Uncertain { max_error } => write!(
                f,
                "even right after a synchronization, the error of a clock can exceed {max_error}"
            ),
            Self::Cluster(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for GlobalClockError {}

impl From<CommError> for GlobalClockError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

impl From<ClusterError> for GlobalClockError {
    fn from(why: ClusterError) -> Self {
        Self::Cluster(why)
    }
}

/// Returns the value of this rank if no rank failed, or else the same error on all ranks, which all call this. The error of this rank
/// is `None` if only others failed.
///
/// # Errors
/// If a rank failed, or is gone.
pub fn agree<T, M: Comm>(comm: &M, mine: Result<T, Option<String>>) -> Result<T, GlobalClockError> {
    let (value, why) = match mine {
        Ok(value) => (Some(value), None),
        Err(why) => (None, why),
    };
    let lowest = block_on_ready(collective::lowest_rank_where(comm, why.is_some()))?;
    if let (None, Some(value)) = (lowest, value) {
        return Ok(value);
    }
    let rank = lowest.unwrap_or_default();
    let mine = why.unwrap_or_default();
    let why = block_on_ready(collective::broadcast_text(comm, rank, &mine))?;
    Err(GlobalClockError::Rank { rank, why })
}

/// Failure of this rank, for [`agree`].
pub(crate) fn failure(why: impl fmt::Display) -> Option<String> {
    Some(why.to_string())
}
