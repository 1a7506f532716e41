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

/// Learned clock of a rank, as its children need to know it.
#[derive(Clone, Copy, Debug)]
struct ClosedClock {
    bound: ErrorBound<Global>,
    /// Error that the offsets explain.
    explained: Duration,
}

/// Compares the learned clock of this rank with that of its parent, and returns its bound.
///
/// A rank that failed answers its children nevertheless.
pub(super) async fn close<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    learned: &Attempt,
    began: Timestamp<Local>,
    comm: &M,
) -> Result<Result<ErrorBound<Global>, SyncError>, CommError> {
    let model = learned.model;
    let now = || model.apply(me.clock.ticks());
    // Global time is that of rank 0.
    let drift = if comm.rank() == 0 {
        0.0
    } else {
        share_of_own_rate(me.max_drift, model.rate().drift_from(me.base.rate()))
    };
    let mut bound = ErrorBound::symmetric(now(), Duration::ZERO, drift);
    let mut failure = None;
    let tree = BinomialTree::new(comm.size());
    for role in tree.downwards(comm.rank()).chain(tree.beyond(comm.rank())) {
        let explained = || learned.quality.explained.after(me.now() - began);
        match role {
            PairRole::ReferenceOf(client) => {
                let mine = ClosedClock {
                    bound: bound.moved_to(now()),
                    explained: explained(),
                };
                comm.send(client, mine).await?;
                answer(me.clock, &model, comm, client).await?;
            }
            PairRole::ClientOf(reference) => {
                match compare(me, &model, drift, explained, comm, reference).await {
                    Ok(found) => bound = found,
                    Err(SyncError::Comm(why)) => return Err(why),
                    Err(why) => failure = Some(why.against(reference)),
                }
            }
        }
    }
    Ok(failure.map_or(Ok(bound), Err))
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

/// Compares the clock of this rank with that of its parent.
///
/// # Errors
/// If a clock stepped: during the exchanges, or before, so that the clocks are further apart than explained.
async fn compare<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    model: &ClockModel<Counter, Global>,
    drift: f64,
    explained: impl Fn() -> Duration,
    comm: &M,
    reference: u32,
) -> Result<ErrorBound<Global>, SyncError> {
    let parent: ClosedClock = comm.recv(reference).await?;
    let of_parent: Duration = comm.recv(reference).await?;
    let reading_error = resolution(me.clock, model) + of_parent + ROUNDING;
    let drifts = drifts_of_both(drift, parent.bound.drift);
    let mut interval = OffsetInterval::<Global, Global>::new(drifts, reading_error);
    let session = OffsetSession {
        clock: me.clock,
        base: model,
        comm,
        reference,
    };
    session
        .run_exchanges(SendMode::Standard, 0..EXCHANGES, |exchange| {
            interval.push(exchange).map(|()| false)
        })
        .await?;
    let at = model.apply(me.clock.ticks());
    let [low, high] = interval.limits_at(at)?;
    // The parent shows a time between these, and was bounded at another.
    let parents_bound = parent.bound.moved_to(at + high.max(-low));
    // The error of the parent has grown by no more than its bound.
    let grown = parents_bound.half_width() - parent.bound.half_width();
    let parents_error = parent.explained + grown;
    let by = low.max(-high) - explained() - parents_error;
    if by > Duration::ZERO {
        let since_origin = at - Timestamp::ORIGIN;
        let learned = explained() + parents_error;
        let limits = [(-learned, learned), (low, high)].map(|(low, high)| OffsetLimits {
            at: since_origin,
            low,
            high,
        });
        return Err(SyncError::Fit(FitError::Stepped {
            by,
            between: Some(limits),
        }));
    }
    Ok(ErrorBound {
        at,
        drift,
        ..parents_bound.ahead_by([low, high])
    })
}

impl Payload for ClosedClock {
    const WORDS: usize = 5;

    fn put(self, words: &mut Words) {
        self.bound.put(words);
        words[4] = self.explained.as_nanos() as u64;
    }

    fn get(words: &Words) -> Option<Self> {
        Some(Self {
            bound: ErrorBound::get(words)?,
            explained: Duration::from_nanos(words[4] as i64),
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
