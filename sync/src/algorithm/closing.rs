//! Closing exchange: every rank compares its global clock with that of its parent in a tree, after
//! the synchronization.
//!
//! It changes no model. It finds what an algorithm cannot see, a clock that stepped after its last
//! offset, and gives the error bound of any algorithm, since it depends on no fit.

use downbeat_clock_core::offset::OffsetInterval;
use downbeat_clock_core::tree::{BinomialTree, PairRole};
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, FitError, Global, Local, OffsetLimits,
    Timestamp,
};

use super::local_clock::{Attempt, LocalClock};
use crate::line::rounded;
use crate::pair::answer;
use crate::payload::{Payload, Words};
use crate::session::{OffsetSession, ROUNDING, SendMode, resolution};
use crate::{Comm, CommError, SyncError};

/// Exchanges of every rank with its parent: enough that one of them is quick.
const EXCHANGES: u64 = 10;

/// Messages of every rank besides two per exchange: the clock of its parent, that it is ready, and two by
/// which the ranks agree on success.
const OTHER_MESSAGES: u64 = 4;

/// Number of messages of a closing exchange, over all ranks.
pub(super) fn messages(ranks: u32) -> u64 {
    u64::from(ranks.saturating_sub(1)) * (2 * EXCHANGES + OTHER_MESSAGES)
}

/// Clock of a rank, as its children need to know it.
#[derive(Clone, Copy, Debug)]
struct ClosedClock {
    /// Bound of the local clock, whose rate is known better than that of a poorly fitted model.
    local: ErrorBound<Global>,
    /// Time by which the learned clock is ahead of the local one at the time of the bound.
    learned_ahead: Duration,
    /// Change of that in a time of the local clock, as a share of it.
    change: f32,
    /// Error of the learned clock that the offsets explain.
    explained: Duration,
}

/// Compares the learned clock of this rank with that of its parent, and returns the bound of its local clock.
///
/// A rank that failed answers its children nevertheless.
pub(super) async fn close<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    learned: &Attempt,
    began: Timestamp<Local>,
    comm: &M,
) -> Result<Result<ErrorBound<Global>, SyncError>, CommError> {
    let local = me.base.renamed();
    // Global time is that of rank 0.
    let drift = if comm.rank() == 0 {
        0.0
    } else {
        share_of_own_rate(me.max_drift, 0.0)
    };
    let mut bound = ErrorBound::symmetric(local.apply(me.clock.ticks()), Duration::ZERO, drift);
    let mut failure = None;
    let tree = BinomialTree::new(comm.size());
    for role in tree.roles_from_root(comm.rank()) {
        let closed = |bound: ErrorBound<Global>| {
            let now = me.clock.ticks();
            ClosedClock {
                local: bound.moved_to(local.apply(now)),
                learned_ahead: learned.model.apply(now) - local.apply(now),
                change: learned.model.rate().drift_from(me.base.rate()) as f32,
                explained: learned.quality.explained.after(me.base.apply(now) - began),
            }
        };
        match role {
            PairRole::ReferenceOf(client) => {
                comm.send(client, closed(bound)).await?;
                answer(me.clock, &local, comm, client).await?;
            }
            PairRole::ClientOf(reference) => {
                let parent: ClosedClock = comm.recv(reference).await?;
                let compared = compare(me, &local, closed, drift, comm, (reference, parent));
                // In a box: ranks that wait for their turn need none of its memory.
                match Box::pin(compared).await {
                    Ok(found) => bound = found,
                    Err(SyncError::Comm(why)) => return Err(why),
                    Err(why) => failure = Some(why.against(reference)),
                }
            }
        }
    }
    Ok(failure.map_or(Ok(bound), Err))
}

/// Returns the bound of the learned clock now, from that of the local clock of this rank.
pub(super) fn bound_of_learned<K: Clock>(
    me: &LocalClock<'_, K>,
    model: &ClockModel<Counter, Global>,
    local: &ErrorBound<Global>,
    rank: u32,
) -> ErrorBound<Global> {
    let now = me.clock.ticks();
    let (shown, own) = (model.apply(now), me.base.renamed().apply(now));
    if rank == 0 {
        return local.moved_to(shown);
    }
    let drift = share_of_own_rate(me.max_drift, model.rate().drift_from(me.base.rate()));
    bound_of_other(&local.moved_to(own), shown, drift)
}

/// Returns the bound of another clock of this rank, with this drift, that shows `at` where the bounded one shows the time of its bound.
pub(crate) fn bound_of_other(
    bound: &ErrorBound<Global>,
    at: Timestamp<Global>,
    drift: f64,
) -> ErrorBound<Global> {
    let ahead = at - bound.at;
    ErrorBound {
        at,
        drift,
        ..bound.ahead_by([ahead - ROUNDING, ahead + ROUNDING])
    }
}

/// Returns the largest difference of a clock's rate from that of rank 0, as a share of the clock's own rate, if the
/// local clock drifts by up to `max_drift` and the model changed its rate by `change`. On busy cores models change
/// rates by a tenth, so that products of the two count.
pub(crate) fn share_of_own_rate(max_drift: f64, change: f64) -> f64 {
    let of_rank_0 = max_drift + change.abs() * (1.0 + max_drift);
    if of_rank_0 < 1.0 {
        of_rank_0 / (1.0 - of_rank_0)
    } else {
        f64::INFINITY
    }
}

/// Returns the largest drift of a clock from its parent: that of the parent is a share of its own rate, which is `1 + drift` of this one at
/// most.
pub(crate) fn drifts_of_both(drift: f64, of_parent: f64) -> f64 {
    drift + of_parent * (1.0 + drift)
}

/// Returns the bound of a clock with this drift that is ahead of that of its parent by `low` to `high` when it shows `at`.
pub(crate) fn bound_by_parent(
    of_parent: &ErrorBound<Global>,
    at: Timestamp<Global>,
    [low, high]: [Duration; 2],
    drift: f64,
) -> ErrorBound<Global> {
    // The parent shows a time between these, and was bounded at another.
    let [earliest, latest] = [at - high, at - low];
    let is_later = latest - of_parent.at > of_parent.at - earliest;
    let of_parent = of_parent.moved_to(if is_later { latest } else { earliest });
    ErrorBound {
        at,
        drift,
        ..of_parent.ahead_by([low, high])
    }
}

/// Compares the local clock of this rank with that of its parent; returns its bound.
///
/// # Errors
/// If a clock stepped: during the exchanges, or before, so that the learned clocks are further apart than explained.
async fn compare<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    local: &ClockModel<Counter, Global>,
    closed: impl Fn(ErrorBound<Global>) -> ClosedClock,
    drift: f64,
    comm: &M,
    (reference, parent): (u32, ClosedClock),
) -> Result<ErrorBound<Global>, SyncError> {
    let of_parent: Duration = comm.recv(reference).await?;
    let reading_error = resolution(me.clock, local) + of_parent + ROUNDING;
    let drifts = drifts_of_both(drift, parent.local.drift);
    let mut interval = OffsetInterval::<Global, Global>::new(drifts, reading_error);
    let session = OffsetSession {
        clock: me.clock,
        base: local,
        comm,
        reference,
    };
    session
        .run_exchanges(SendMode::Standard, 0..EXCHANGES, |exchange| {
            interval.push(exchange).map(|()| false)
        })
        .await?;
    let at = local.apply(me.clock.ticks());
    let limits = interval.limits_at(at)?;
    let bound = bound_by_parent(&parent.local, at, limits, drift);
    let own = closed(bound);
    let own_ahead = own.learned_ahead_at(at);
    let [low, high] = limits.map(|ahead| own_ahead + ahead - parent.learned_ahead_at(at - ahead));
    let of_parent = limits.map(|ahead| parent.explained_at(at - ahead));
    let explained = own.explained + of_parent[0].max(of_parent[1]);
    let by = low.max(-high) - explained;
    if by > Duration::ZERO {
        let since_origin = at - Timestamp::ORIGIN;
        let limits = [(-explained, explained), (low, high)].map(|(low, high)| OffsetLimits {
            at: since_origin,
            low,
            high,
        });
        return Err(SyncError::Fit(FitError::Stepped {
            by,
            between: Some(limits),
        }));
    }
    Ok(bound)
}

impl ClosedClock {
    /// Time by which the learned clock is ahead of the local one when that shows `time`.
    fn learned_ahead_at(&self, time: Timestamp<Global>) -> Duration {
        let since = (time - self.local.at).as_nanos() as f64;
        self.learned_ahead + rounded(since * f64::from(self.change))
    }

    /// Error of the learned clock then, which grows by no more than its rate can be wrong.
    fn explained_at(&self, time: Timestamp<Global>) -> Duration {
        let since = (time - self.local.at).abs().as_nanos() as f64;
        let wrong = self.local.drift + f64::from(self.change.abs());
        self.explained + rounded((since * wrong).ceil())
    }
}

/// The change and the explained error have 32 bits each.
impl Payload for ClosedClock {
    const WORDS: usize = 6;

    fn put(self, words: &mut Words) {
        self.local.put(words);
        words[4] = self.learned_ahead.as_nanos() as u64;
        // Rounded up.
        let explained = self.explained.as_nanos() as f32 * (1.0 + f32::EPSILON);
        words[5] = u64::from(self.change.to_bits()) << 32 | u64::from(explained.to_bits());
    }

    fn get(words: &Words) -> Option<Self> {
        let [change, explained] =
            [words[5] >> 32, words[5]].map(|bits| f32::from_bits(bits as u32));
        Some(Self {
            local: ErrorBound::get(words)?,
            learned_ahead: Duration::from_nanos(words[4] as i64),
            change,
            explained: rounded(explained.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks at the limits of their drift, for one second of rank 0.
    #[test]
    fn a_clock_is_off_by_its_share_of_its_own_time() {
        for (max_drift, change) in [(1e-3, 0.0), (1e-3, 0.07), (1e-3, -0.16), (0.1, 0.5)] {
            let stated = share_of_own_rate(max_drift, change);
            for drift in [-max_drift, max_drift] {
                let own = (1.0 + drift) * (1.0 + change);
                assert!(
                    (own - 1.0).abs() <= stated * own * (1.0 + 1e-12),
                    "{change}: {stated}"
                );
            }
        }
        assert_eq!(share_of_own_rate(1e-3, -1.0), f64::INFINITY);
    }
}
