//! Common returns: all ranks leave a meeting at one instant of their global clock, where those that leave a barrier leave it one after the
//! other.
//!
//! The ranks agree on the latest arrival, and return some slack later. A rank that learns of that too late returns at once. The slack
//! follows from how late ranks were in earlier meetings; all ranks know the same about these, since each meeting tells of the one before.

use core::fmt;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Ticks, Timestamp};

use crate::collective::all_reduce;
use crate::{Comm, CommError};

/// Outcome of a meeting on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// The rank returned at the common instant.
    Met,
    /// The common instant had passed when the rank learned of it.
    Missed {
        /// Time since then.
        by: Duration,
    },
}

/// Formats as `met` or `missed by 3 us`.
impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met => f.write_str("met"),
            Self::Missed { by } => write!(f, "missed by {by}"),
        }
    }
}

/// Meetings of the ranks of a communicator.
///
/// ```
/// use downbeat_sync::harmonize::{Harmonizer, Meeting};
/// use downbeat_sync::sim::{Clocks, Network, SimClock, SimCluster};
/// use downbeat_sync::{Comm, CommError, Duration, Global};
///
/// let cluster = SimCluster {
///     ranks: 5,
///     ranks_per_node: 1,
///     sockets_per_node: 1,
///     nodes_per_rack: None,
///     network: Network::typical(),
///     clocks: Clocks { read_cost: Duration::from_nanos(20), ..Clocks::perfect() },
///     seed: 1,
/// };
/// let returns = cluster.run(async |comm| {
///     // The simulated clocks are perfect: a program synchronizes its clocks.
///     let (clock, model) = (comm.clock(), SimClock::nominal_model()?.renamed::<Global>());
///     let mut harmonizer = Harmonizer::new(Duration::from_micros(10));
///     comm.pause(Duration::from_micros(comm.rank().into()));
///     let meeting = harmonizer.meet(&clock, &model, Duration::ZERO, comm).await?;
///     assert_eq!(meeting, Some(Meeting::Met));
///     Ok::<_, Box<dyn std::error::Error>>(comm.true_now())
/// })?;
/// let returns: Vec<_> = returns.into_iter().collect::<Result<_, _>>()?;
/// // Within two readings of the clock.
/// assert!(returns.iter().all(|time| (*time - returns[0]).abs() <= Duration::from_nanos(40)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Harmonizer {
    max_error: Duration,
    meetings: u64,
    /// Time from the latest arrival to the common return.
    slack: Duration,
    /// Time from the latest arrival until this rank could return, in the last meeting.
    needed: Duration,
}

/// Slack of the first meeting, of which nothing is known.
const FIRST_SLACK: Duration = Duration::from_micros(500);
/// Number of meetings after which the slack shrinks slowly.
const FIRST_MEETINGS: u64 = 16;
/// After each meeting in time the slack shrinks by one in this many parts, and after each late one it grows by at most one in these: so
/// about one in 250 is late. A longer slack would be no better, as more of the ranks are then interrupted while they wait.
const SHRINKING: i64 = 2_048;
const GROWING: i64 = 8;

/// Time before the common return from which a rank no longer yields: it must return at once.
const PATIENCE: Duration = Duration::from_micros(20);

impl Harmonizer {
    /// Creates the meetings of a rank whose clock is off by at most `max_error`.
    pub const fn new(max_error: Duration) -> Self {
        Self {
            max_error,
            meetings: 0,
            slack: FIRST_SLACK,
            needed: Duration::ZERO,
        }
    }

    /// Changes by how much the clock of this rank is off at most.
    pub const fn within(&mut self, max_error: Duration) {
        self.max_error = max_error;
    }

    /// Time from the latest arrival to the return, at present.
    pub fn slack(&self) -> Duration {
        self.slack
    }

    /// Returns at the same instant on all ranks, which all call this with the clock that they read, the model that makes it global, and
    /// the largest `error` of that now. The clock must advance while it is read. Returns `None`, on all ranks, where the error of a rank
    /// exceeds its limit: all must synchronize their clocks again.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn meet<K: Clock, M: Comm>(
        &mut self,
        clock: &K,
        model: &ClockModel<Counter, Global>,
        error: Duration,
        comm: &M,
    ) -> Result<Option<Meeting>, CommError> {
        let arrived = model.apply(clock.ticks());
        // Limits may differ between ranks: all must know whether one was exceeded.
        let excess = error - self.max_error;
        let mine = [
            arrived.as_nanos(),
            self.needed.as_nanos(),
            excess.as_nanos(),
        ];
        let latest = |a: [i64; 3], b: [i64; 3]| core::array::from_fn(|i| a[i].max(b[i]));
        let [latest, needed, excess] = all_reduce(comm, mine, latest).await?;
        self.adapt(Duration::from_nanos(needed));
        let latest = Timestamp::<Global>::from_nanos(latest);
        let target = model.invert(latest + self.slack);
        let now = clock.ticks();
        self.needed = model.apply(now) - latest;
        self.meetings += 1;
        if excess > 0 {
            return Ok(None);
        }
        if comm.size() > 1 && now > target {
            let by = model.apply(now) - (latest + self.slack);
            return Ok(Some(Meeting::Missed { by }));
        }
        if self.slack > PATIENCE {
            // Ranks that share a core may not have learned of the instant yet.
            let near = model.invert(latest + self.slack - PATIENCE);
            while clock.ticks() < near {
                std::thread::yield_now();
            }
        }
        wait_for(clock, target);
        Ok(Some(Meeting::Met))
    }

    /// Adapts the slack to what the slowest rank needed in the last meeting.
    fn adapt(&mut self, needed: Duration) {
        if self.meetings == 0 {
            return;
        }
        let (slack, needed) = (self.slack.as_nanos(), needed.as_nanos().max(0));
        // Some spare for a rank that reads its clock between two looks at its messages.
        let enough = needed + needed / 4;
        let next = if self.meetings <= FIRST_MEETINGS {
            slack.min(2 * needed)
        } else if needed > slack {
            // A rank that was interrupted says little about the next meeting.
            enough.min(slack + slack / GROWING + 1)
        } else {
            slack - (slack / SHRINKING).max(1)
        };
        self.slack = Duration::from_nanos(next);
    }
}

/// Spins until the clock shows these ticks. The rank does nothing else, not even pause.
#[inline]
fn wait_for(clock: &impl Clock, target: Ticks) {
    while clock.ticks() < target {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slack_follows_what_is_needed() {
        let mut harmonizer = Harmonizer::new(Duration::ZERO);
        let mut meet = |needed: i64| {
            harmonizer.meetings += 1;
            harmonizer.adapt(Duration::from_nanos(needed));
            harmonizer.slack.as_nanos()
        };
        assert_eq!(meet(700), 1_400);
        assert_eq!(meet(300), 600);
        assert_eq!(meet(1_000), 600);
        let steady = (0..5_000).map(|_| meet(500)).last().unwrap();
        assert!((500..700).contains(&steady), "{steady}");
        // A rank was interrupted.
        assert_eq!(meet(10_000_000), steady + steady / 8 + 1);
        let missed = (0..20_000)
            .map(|i| 500 + i * 7_919 % 100)
            .filter(|needed| *needed > meet(*needed));
        assert!(missed.count() < 20_000 / 50);
    }
}
