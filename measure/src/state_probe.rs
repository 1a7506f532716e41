//! Probe of the state of the machine: round trips of messages between neighbouring ranks.
//!
//! On virtual machines, and where cores of different distance are used in turn, the latency between two cores changes every few
//! seconds, and all run-times with it. A probe shows it.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::operation::Coordinator;

/// Number of round trips of a pair of ranks, of which the shortest counts.
const ROUND_TRIPS: u32 = 8;

/// Measures the shortest round trip of each pair of neighbouring ranks. Rank 0 gets that of the slowest pair, in nanoseconds; that of
/// other ranks is unspecified.
pub(crate) async fn probe<M: Comm, T: Coordinator, K: Clock>(
    context: &MeasureContext<'_, M, T, K>,
) -> Result<f64, MeasureError> {
    let (comm, rank) = (context.comm, context.comm.rank());
    let mut slowest = 0;
    // Each rank is in a pair with the next one, and then with the one before.
    for first in 0..comm.size().min(3) - 1 {
        let is_first = rank % 2 == first;
        if is_first && rank + 1 < comm.size() {
            let mut shortest = i64::MAX;
            for _ in 0..ROUND_TRIPS {
                let began = context.now();
                comm.send(rank + 1, 0_u64).await?;
                let _: u64 = comm.recv(rank + 1).await?;
                shortest = shortest.min((context.now() - began).as_nanos());
            }
            slowest = slowest.max(shortest);
        } else if !is_first && rank > 0 {
            for _ in 0..ROUND_TRIPS {
                let question: u64 = comm.recv(rank - 1).await?;
                comm.send(rank - 1, question).await?;
            }
        }
    }
    let mut slowest = [slowest];
    collective::greatest_to_first(comm, &mut slowest).await?;
    Ok(slowest[0] as f64)
}

/// Plan of the probes of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbePlan {
    /// Number of observations at the last probe, and time that they took.
    last: Option<(u32, Duration)>,
    /// Number of probes, and time that they took.
    probes: u32,
    took: Duration,
}

impl ProbePlan {
    /// Least time between two probes.
    const LEAST: Duration = Duration::from_millis(10);
    /// Probes take at most this part of the time.
    const PART: i64 = 50;

    /// Returns true if a probe must be made before the next batch of observations.
    pub(crate) fn is_due(&self, observations: u32, elapsed: Duration) -> bool {
        self.is_outdated(observations)
            && self.left(elapsed).is_none_or(|left| left <= Duration::ZERO)
    }

    /// Returns true if observations follow the last probe.
    pub(crate) fn is_outdated(&self, observations: u32) -> bool {
        self.last.is_none_or(|(last, _)| last != observations)
    }

    /// Returns the time until the next probe; `None` before the first.
    pub(crate) fn left(&self, elapsed: Duration) -> Option<Duration> {
        let (_, last) = self.last?;
        let each = self.took.as_nanos() / i64::from(self.probes.max(1));
        let between = Self::LEAST.max(Duration::from_nanos(each.saturating_mul(Self::PART)));
        Some(last + between - elapsed)
    }

    /// Notes a probe after these observations, which took `elapsed`, and its own duration.
    pub(crate) fn probed(&mut self, observations: u32, elapsed: Duration, took: Duration) {
        self.last = Some((observations, elapsed));
        self.probes += 1;
        self.took += took;
    }
}
