//! Probe of the state of the machine: round trips between neighbouring ranks, of a cache line where they share memory, and of messages
//! elsewhere.
//!
//! On virtual machines, and where cores of different distance are used in turn, the latency between two cores changes every few
//! seconds, and all run-times with it. A probe shows it.

use core::sync::atomic::{AtomicU64, Ordering};

use downbeat_clock_core::{Clock, Duration};
use downbeat_records::RoundTrips;
use downbeat_sync::{Comm, collective};

use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::link::Link;
use crate::operation::Coordinator;

/// Number of measured round trips of a pair of ranks, of which the shortest counts.
const MEASURED: u32 = 8;

/// Number of round trips of a cache line that are timed together: reading the clock takes a part of one.
const TOGETHER: u32 = 8;

/// Measures the shortest round trip of each pair of neighbouring ranks. Rank 0 gets those of the slowest pairs; those of other ranks are
/// unspecified.
pub(crate) async fn probe<M: Comm, T: Coordinator, K: Clock>(
    context: &MeasureContext<'_, M, T, K>,
) -> Result<RoundTrips, MeasureError> {
    let (comm, rank) = (context.comm, context.comm.rank());
    // In picoseconds: within a node, between nodes.
    let mut slowest = [0; 2];
    // Each rank is in a pair with the next one, and then with the one before.
    for first in 0..comm.size().min(3) - 1 {
        if rank % 2 == first {
            if rank + 1 < comm.size() {
                let link = context.coordinator.link(rank + 1);
                let shortest = question(context, link, rank + 1).await?;
                let place = usize::from(matches!(link, Link::Network));
                slowest[place] = shortest.max(slowest[place]);
            }
        } else if rank > 0 {
            answer(comm, context.coordinator.link(rank - 1), rank - 1).await?;
        }
    }
    collective::greatest_to_first(comm, &mut slowest).await?;
    let [within, between] = slowest.map(|found| (found > 0).then_some(found as f64 * 1e-3));
    Ok(RoundTrips { within, between })
}

/// Returns the shortest round trip to another rank, in picoseconds.
async fn question<M: Comm, T: Coordinator, K: Clock>(
    context: &MeasureContext<'_, M, T, K>,
    link: Link<'_>,
    other: u32,
) -> Result<i64, MeasureError> {
    let mut shortest = i64::MAX;
    for _ in 0..MEASURED {
        let began = context.now();
        let round_trips = match link {
            Link::Memory(cell) => {
                for _ in 0..TOGETHER {
                    cell.store(1, Ordering::Release);
                    wait_for(cell, 0);
                }
                TOGETHER
            }
            Link::Node | Link::Network => {
                context.comm.send(other, 0_u64).await?;
                let _: u64 = context.comm.recv(other).await?;
                1
            }
        };
        let took = (context.now() - began).as_nanos();
        // At least one, as none means that there is no such pair.
        shortest = shortest.min((1_000 * took / i64::from(round_trips)).max(1));
    }
    Ok(shortest)
}

/// Answers all questions of another rank.
async fn answer<M: Comm>(comm: &M, link: Link<'_>, other: u32) -> Result<(), MeasureError> {
    for _ in 0..MEASURED {
        if let Link::Memory(cell) = link {
            for _ in 0..TOGETHER {
                wait_for(cell, 1);
                cell.store(0, Ordering::Release);
            }
        } else {
            let question: u64 = comm.recv(other).await?;
            comm.send(other, question).await?;
        }
    }
    Ok(())
}

/// Waits until a cell has a value. Yields after a while: ranks may share a core.
fn wait_for(cell: &AtomicU64, value: u64) {
    const PATIENCE: u32 = 1 << 12;
    let mut reads = 0_u32;
    while cell.load(Ordering::Acquire) != value {
        reads = reads.saturating_add(1);
        match reads < PATIENCE {
            true => core::hint::spin_loop(),
            false => std::thread::yield_now(),
        }
    }
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
