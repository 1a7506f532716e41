//! State of a rank in the simulator.

use fastrand::Rng;

use super::messages::NONE;

/// Simulated rank, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct RankState {
    /// True time that the rank has reached.
    pub(super) now: u64,
    /// Random numbers of the rank, independent of the order in which ranks are simulated.
    pub(super) random: Rng,
    pub(super) node: u32,
    pub(super) socket: u32,
    pub(super) wait: RankWait,
    /// Number of messages sent.
    pub(super) sent: u32,
    /// First and last message of the list of those sent to this rank and not yet received, in the
    /// order of sending.
    pub(super) first: u32,
    pub(super) last: u32,
    /// Rank that this rank waited for last, first rank of the list of those that waited for this
    /// one last, and neighbours of this rank in such a list. So a rank that leaves finds those that
    /// wait for it, and waiting for the same rank again is free.
    pub(super) awaited: u32,
    pub(super) waiters: u32,
    pub(super) next_waiter: u32,
    pub(super) previous_waiter: u32,
}

/// Event that a rank waits for, or the result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RankWait {
    /// Ready or running.
    No,
    /// Waits for a message to be sent.
    Message { group: u32, from: u32 },
    /// Waits for a sent message to arrive.
    Arrival { message: u32 },
    /// Waits for its synchronous message to be received.
    Delivery { group: u32, to: u32 },
    /// Its synchronous message was received.
    Delivered,
    /// Its synchronous message will never be received.
    Refused,
    /// Waits for the other ranks of a communicator.
    Split,
    /// Has returned.
    Gone,
}

impl RankState {
    pub(super) fn new(random: Rng, node: u32, socket: u32) -> Self {
        Self {
            now: 0,
            random,
            node,
            socket,
            wait: RankWait::No,
            sent: 0,
            first: NONE,
            last: NONE,
            awaited: NONE,
            waiters: NONE,
            next_waiter: NONE,
            previous_waiter: NONE,
        }
    }

    /// Advances the time, at most to the maximum of a
    /// [`Timestamp`](downbeat_clock_core::Timestamp).
    pub(super) fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by).min(i64::MAX as u64);
    }

    /// Advances the time to `then`, unless that is past.
    pub(super) fn advance_to(&mut self, then: u64) {
        self.now = self.now.max(then).min(i64::MAX as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_one_cache_line() {
        assert_eq!(size_of::<RankState>(), 64);
    }
}
