//! Failure of making a global clock.

use core::fmt;

use downbeat_clock_core::Duration;
use downbeat_sync::collective::SharedError;
use downbeat_sync::{ClusterError, Comm, CommError, collective};

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

/// All ranks learn the reason of the lowest rank that failed.
impl SharedError for GlobalClockError {
    async fn share<M: Comm>(comm: &M, failed: u32, own: Option<Self>) -> Result<Self, CommError> {
        let own = match own {
            Some(Self::Rank { why, .. }) => why,
            own => own.map(|why| why.to_string()).unwrap_or_default(),
        };
        let why = collective::broadcast_text(comm, failed, &own).await?;
        Ok(Self::Rank { rank: failed, why })
    }
}

impl GlobalClockError {
    /// Failure of this rank, on which all ranks [agree](collective::agree).
    pub fn of_rank(comm: &impl Comm, why: impl fmt::Display) -> Self {
        Self::Rank {
            rank: comm.rank(),
            why: why.to_string(),
        }
    }
}
