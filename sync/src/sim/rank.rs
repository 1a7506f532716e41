//! What the simulator knows of a rank.

use fastrand::Rng;

use super::messages::NONE;
use crate::RankPlacement;

/// A simulated rank, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Rank {
    /// How far it has come, in true time.
    pub(super) now: u64,
    /// All its chance: so that is the same in whatever order ranks are simulated.
    pub(super) random: Rng,
    pub(super) place: RankPlacement,
    pub(super) wait: Wait,
    /// How many messages it has sent.
    pub(super) sent: u32,
    /// The messages that were sent to it and not yet received, in the order of sending.
    pub(super) first: u32,
    pub(super) last: u32,
    /// For whom this rank has waited last, the first of those who have waited for this one last, and the neighbours in
    /// the list of which this rank is a part. So a rank that leaves finds those who wait for it, and to wait for the
    /// same rank again costs nothing.
    pub(super) awaited: u32,
    pub(super) waiters: u32,
    pub(super) next_waiter: u32,
    pub(super) previous_waiter: u32,
}

/// What a rank waits for, and how that ended where it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// For nothing: it runs, or is about to.
    No,
    /// For something to be sent.
    Message { group: u32, from: u32 },
    /// For something that was sent, to arrive.
    Arrival { message: u32 },
    /// For something to be received.
    Taken { group: u32, to: u32 },
    /// It was received.
    WasTaken,
    /// It will not be.
    WasRefused,
    /// For the other ranks of a communicator.
    Meeting,
    /// For nothing any more.
    Gone,
}

impl Rank {
    pub(super) fn new(random: Rng, place: RankPlacement) -> Self {
        Self {
            now: 0,
            random,
            place,
            wait: Wait::No,
            sent: 0,
            first: NONE,
            last: NONE,
            awaited: NONE,
            waiters: NONE,
            next_waiter: NONE,
            previous_waiter: NONE,
        }
    }

    /// Lets time pass. It ends when a [`Timestamp`](downbeat_clock_core::Timestamp) does.
    pub(super) fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by).min(i64::MAX as u64);
    }

    /// Lets time pass until then, unless that is past.
    pub(super) fn advance_to(&mut self, then: u64) {
        self.now = self.now.max(then).min(i64::MAX as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_one_cache_line() {
        assert_eq!(size_of::<Rank>(), 64);
    }
}
