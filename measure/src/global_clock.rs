//! Global clock of the ranks that measure, which is synchronized when that is necessary.

use core::cell::Cell;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Local, Ticks, Timestamp};
use downbeat_sync::check::TreeOffset;
use downbeat_sync::{Algorithm, Comm, CommError, LocalClock, SyncError, Synchronized, collective};

use crate::error::MeasureError;

/// Global clock of the ranks of a communicator.
///
/// A [`Method`](crate::Method) synchronizes it when it is too old, or when a check finds that the clocks of the ranks
/// drift apart.
///
/// `GlobalClock` of the package `downbeat` is another thing: threads read that one while
/// another synchronizes it, which blocks. This one belongs to one thread of a rank that
/// can be suspended, as simulated ranks are, and keeps the offset right after each
/// synchronization, with which later checks are compared.
#[derive(Debug)]
pub struct RenewableClock<'a, M, K> {
    comm: &'a M,
    local: LocalClock<'a, K>,
    algorithm: Algorithm,
    max_age: Duration,
    synchronized: Cell<Option<SynchronizedClock>>,
}

/// Result of the last synchronization.
#[derive(Clone, Copy, Debug)]
struct SynchronizedClock {
    found: Synchronized,
    at: Timestamp<Local>,
    /// Offset of this rank immediately afterwards; `None` if all ranks read one clock, which cannot drift.
    offset: Option<TreeOffset>,
}

impl<'a, M: Comm, K: Clock> RenewableClock<'a, M, K> {
    /// Creates a clock that is not synchronized yet, with the local clock of this rank. It is synchronized again when it is
    /// older than `max_age`.
    pub fn new(
        comm: &'a M,
        local: LocalClock<'a, K>,
        algorithm: Algorithm,
        max_age: Duration,
    ) -> Self {
        Self {
            comm,
            local,
            algorithm,
            max_age,
            synchronized: Cell::new(None),
        }
    }

    /// Returns the model of this rank's counter; `None` before the first synchronization.
    pub fn model(&self) -> Option<ClockModel<Counter, Global>> {
        self.last_synchronization().map(|found| found.model)
    }

    /// Returns what the last synchronization found on this rank.
    pub fn last_synchronization(&self) -> Option<Synchronized> {
        self.synchronized.get().map(|clock| clock.found)
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Converts ticks of this rank's counter to nanoseconds of global time, or of local time before the first synchronization.
    pub(crate) fn nanos(&self, ticks: Ticks) -> i64 {
        match self.model() {
            Some(global) => global.apply(ticks).as_nanos(),
            None => self.local.base().apply(ticks).as_nanos(),
        }
    }

    /// Returns the offset of this rank immediately after the synchronization; `None` if there was none, or if no rank can drift
    /// because all read one clock.
    pub(crate) fn offset(&self) -> Option<TreeOffset> {
        self.synchronized.get()?.offset
    }

    /// Returns true if the clock must be synchronized, as this rank sees it.
    pub(crate) fn is_due(&self) -> bool {
        let age = |clock: SynchronizedClock| self.local.now() - clock.at;
        self.synchronized
            .get()
            .is_none_or(|clock| age(clock) > self.max_age)
    }

    /// Measures the offset of this rank some times, and returns the one with the smallest random error: all later ones are
    /// compared with it.
    async fn quietest_offset(
        &self,
        model: &ClockModel<Counter, Global>,
    ) -> Result<TreeOffset, CommError> {
        const TIMES: usize = 5;
        let mut quietest = TreeOffset::measure(self.local.clock(), model, self.comm).await?;
        for _ in 1..TIMES {
            let next = TreeOffset::measure(self.local.clock(), model, self.comm).await?;
            if next.noise < quietest.noise {
                quietest = next;
            }
        }
        Ok(quietest)
    }

    /// Lets the clock be synchronized before the next measurement.
    pub(crate) fn expire(&self) {
        self.synchronized.set(None);
    }

    /// Synchronizes the clock. All ranks call this; returns the time that it took.
    pub(crate) async fn synchronize(&self) -> Result<Duration, MeasureError> {
        let began = self.local.now();
        let found = match self.algorithm.synchronize(&self.local, self.comm).await {
            Ok(found) => found,
            // The rank that failed by itself reports the failure.
            Err(SyncError::OtherRank(rank)) => return Err(MeasureError::OtherRank(rank)),
            Err(SyncError::Comm(why)) => return Err(MeasureError::Comm(why)),
            Err(why) => return Err(MeasureError::Synchronization(Box::new(self.algorithm), why)),
        };
        let model = found.model;
        let of_first = collective::broadcast(self.comm, model).await?;
        let source = collective::broadcast(self.comm, self.local.time_source()).await?;
        let differs = model != of_first || self.local.time_source() != source;
        let offset = match collective::lowest_rank_where(self.comm, differs).await? {
            None => None,
            Some(_) => Some(self.quietest_offset(&model).await?),
        };
        let at = self.local.now();
        self.synchronized
            .set(Some(SynchronizedClock { found, at, offset }));
        Ok(at - began)
    }
}
