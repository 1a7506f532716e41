//! A global clock that keeps time while its program runs.

use std::sync::PoisonError;

use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_clock_core::{Clock, Duration, Global, Local, Ticks, Timestamp};
use downbeat_sync::keep::{KeptSession, NodeKeeper};
use downbeat_sync::{Comm, LocalClock, SyncError, Synchronized, agree_on_reason, block_on_ready};

use crate::GlobalClock;
use crate::error::GlobalClockError;

/// Keeps the clock of all ranks of a communicator synchronized, by sessions of at most a millisecond: see [`GlobalClock::keeping`].
#[derive(Debug)]
pub struct ClockKeeper<'a, K, M> {
    clock: &'a GlobalClock<K>,
    comm: &'a M,
    period: Duration,
    keeper: NodeKeeper<M>,
    /// Synchronization since which the clock is kept.
    since: Synchronized,
    /// Points of the past, once asked for after a session.
    past: Vec<SplineKnot<Local, Global>>,
}

impl<K: Clock> GlobalClock<K> {
    /// Begins to keep the clock, with a session every `period`, as rank 0 has it; all ranks call this. The first sessions are closer to each
    /// other. Between nodes that are synchronized over 10 s, clocks are then off by what their rates wander in that time, some hundred
    /// nanoseconds, instead of microseconds that grow with the age of the synchronization. The clock slews: it neither jumps nor runs
    /// backward. All threads can read it meanwhile.
    ///
    /// ```
    /// use downbeat::{Duration, GlobalClock};
    ///
    /// let sessions = GlobalClock::over_threads(2, |clock, comm| {
    ///     let mut keeping = clock.keeping(comm, Duration::from_secs(1))?;
    ///     let mut sessions = 0;
    ///     let end = clock.now() + Duration::from_millis(200);
    ///     for step in 1..=20 {
    ///         // Work of the program, and then a point that all ranks reach.
    ///         clock.wait_until(end - Duration::from_millis(10) * (20 - step));
    ///         sessions += u32::from(keeping.keep()?.is_some());
    ///     }
    ///     Ok::<_, downbeat::GlobalClockError>(sessions)
    /// })?;
    /// assert!(sessions.into_iter().all(|sessions| sessions.is_ok_and(|sessions| sessions > 0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The same on all ranks: if the clock was never synchronized and cannot be, or if a rank is gone.
    pub fn keeping<'a, M: Comm>(
        &'a self,
        comm: &'a M,
        period: Duration,
    ) -> Result<ClockKeeper<'a, K, M>, GlobalClockError> {
        let synchronized = loop {
            match self.last_synchronization() {
                Some(synchronized) => break synchronized,
                None => self.resynchronize_over(comm)?,
            }
        };
        let me = self.local_clock();
        Ok(ClockKeeper {
            clock: self,
            comm,
            period,
            keeper: block_on_ready(NodeKeeper::new(&me, &synchronized, comm, period))?,
            since: synchronized,
            past: Vec::new(),
        })
    }
}

impl<K: Clock, M: Comm> ClockKeeper<'_, K, M> {
    /// Makes a session if one is due by the clock of rank 0. All ranks call this, at points of the program that they reach about together:
    /// mostly it costs a broadcast. Returns what the session gave.
    ///
    /// # Errors
    /// The same on all ranks: if a clock stepped further than it can have drifted, after which the clock must be
    /// [synchronized](GlobalClock::resynchronize_over) again; or if a rank is gone.
    pub fn keep(&mut self) -> Result<Option<KeptSession>, GlobalClockError> {
        self.attend(|keeper, me| block_on_ready(keeper.keep(me)))
    }

    /// Makes a session now, due or not, if rank 0 calls this.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_now(&mut self) -> Result<Option<KeptSession>, GlobalClockError> {
        self.attend(|keeper, me| block_on_ready(keeper.keep_now(me)))
    }

    fn attend(
        &mut self,
        session: impl FnOnce(
            &mut NodeKeeper<M>,
            &LocalClock<'_, K>,
        ) -> Result<Option<KeptSession>, SyncError>,
    ) -> Result<Option<KeptSession>, GlobalClockError> {
        let clock = self.clock;
        // Another thread that synchronizes the clock waits.
        let last = clock.last.lock().unwrap_or_else(PoisonError::into_inner);
        let me = clock.local_clock();
        if let Some(synchronized) = last.filter(|last| *last != self.since) {
            // On all ranks.
            let keeper = NodeKeeper::new(&me, &synchronized, self.comm, self.period);
            self.keeper = block_on_ready(keeper)?;
            self.since = synchronized;
        }
        let session = agree_on_reason(self.comm, session(&mut self.keeper, &me), |why| {
            GlobalClockError::of_rank(self.comm, why)
        })?;
        let Some(session) = session else {
            return Ok(None);
        };
        self.past.clear();
        let KeptSession {
            model, bound, slew, ..
        } = session;
        // A clock that still slews, after sessions in short order, is corrected by the next one.
        if clock.clock.slew_toward(model, bound, slew).is_err()
            && let Some(mut writer) = clock.clock.writer()
        {
            writer.publish_with_bound(model, bound);
        }
        Ok(Some(session))
    }

    /// Converts a reading of the counter to global time by all sessions, those before it and those after it: for timestamps that were
    /// recorded, more accurately than the clock itself showed. Before the first two sessions as the present [model](GlobalClock::model).
    pub fn past(&mut self, ticks: Ticks) -> Timestamp<Global> {
        let local = self.clock.local;
        if self.past.is_empty() {
            self.past = self.keeper.past(&local);
        }
        match ConstrainedSpline::new(&self.past) {
            Ok(curve) if self.past.len() > 1 => curve.apply(local.apply(ticks)),
            _ => self.clock.model().apply(ticks),
        }
    }

    /// Returns the Allan deviation of this rank's clock against that of rank 0, for averaging times of a period, two, four and so on: by how
    /// much its rate changes. It contains the noise of the sessions, which prevails at short times.
    pub fn allan_deviation(&self) -> Vec<(Duration, f64)> {
        self.keeper.allan_deviation()
    }

    /// Changes the time between sessions, which counts on rank 0.
    pub fn every(&mut self, period: Duration) {
        self.period = period;
        self.keeper.every(period);
    }

    /// Time until the next session is due, on rank 0.
    pub fn due_in(&self) -> Duration {
        self.keeper.due_in(self.clock.clock().ticks())
    }
}
