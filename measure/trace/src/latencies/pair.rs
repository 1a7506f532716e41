//! Messages between two processes, or two threads of one process.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::Site;
use crate::encoding::encoded;

/// Message that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) sent: Timestamp<Global>,
    pub(crate) received: Timestamp<Global>,
    /// Time that the receiver had been idle.
    pub(crate) waited: Duration,
}

encoded! {
    Arrival { sent, received, waited }
    EndpointPair { level, ends }
}

impl Arrival {
    /// Returns the apparent duration of the message.
    pub(crate) fn took(&self) -> Duration {
        self.received - self.sent
    }
}

/// Pair of communicating endpoints: the level, and two processes, or two clocks of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EndpointPair {
    pub(crate) level: usize,
    pub(crate) ends: [u32; 2],
}

impl EndpointPair {
    /// Returns the pair and the direction; `None` for messages within a clock, whose latency it
    /// cannot show.
    pub(crate) fn between(from: Site, to: Site) -> Option<(Self, usize)> {
        let level = to.level(from)?;
        // Clocks of a process are separate endpoints, processes are one each.
        let endpoint = |site: Site| {
            if level == 0 {
                site.clock
            } else {
                site.place.process
            }
        };
        let (from, to) = (endpoint(from), endpoint(to));
        Some((
            Self {
                level,
                ends: [from.min(to), from.max(to)],
            },
            usize::from(from > to),
        ))
    }
}
