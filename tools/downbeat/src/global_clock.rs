//! One clock for all ranks of a program.

use std::sync::{Mutex, PoisonError};

use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, Global, Local, ModelClock, Ticks, Timestamp,
};
use downbeat_sync::RankPlacement;
use downbeat_sync::algorithm::OtherClock;
use downbeat_sync::collective::agree_blocking;
use downbeat_sync::timesync::{ExchangeSession, PastCurve, SessionLimits, SessionRanks};
use downbeat_sync::{Algorithm, Comm, LocalClock, Synchronized, agree_on_reason, block_on_ready};
use downbeat_timers::{ClockUnavailable, MachineClock, WallAnchor};

use crate::error::GlobalClockError;
use crate::local_time::LocalTime;

/// A clock that shows the same time on all ranks of a program.
///
/// Its time is that of rank 0, and began when it was synchronized. Reading it costs little more than the instruction that reads the
/// counter. All threads of a rank can read it, also while another one [synchronizes](Self::resynchronize) it again.
/// It neither checks itself nor decides when that is due, as `RenewableClock` of
/// `downbeat-measure` does between measurements, on ranks that can be suspended.
///
/// ```
/// use downbeat::{Comm, Duration, GlobalClock};
///
/// let late = GlobalClock::over_threads(2, |clock, comm| {
///     // All ranks wait for the same moment.
///     let start = downbeat::from_first(comm, clock.now() + Duration::from_millis(1))?;
///     clock.wait_until(start);
///     Ok::<_, downbeat::CommError>(clock.elapsed_since(start))
/// })?;
/// for late in late {
///     println!("{} late", late?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GlobalClock<K = MachineClock> {
    pub(crate) clock: ModelClock<K, Global>,
    rank: u32,
    size: u32,
    settings: SyncSettings,
    place: RankPlacement,
    source: u64,
    rate_error: f64,
    other: Option<OtherClock>,
    /// Local time, which no synchronization changes.
    pub(crate) local: ClockModel<Counter, Local>,
    /// Result of the last synchronization; held by the thread that synchronizes, or takes part in a session.
    pub(crate) last: Mutex<Option<Synchronized>>,
    /// Curve through the sessions.
    past: Mutex<PastCurve>,
    /// The sessions themselves.
    exchanges: Mutex<Vec<ExchangeSession>>,
}

/// Settings of all synchronizations of a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncSettings {
    pub(crate) algorithm: Algorithm,
    pub(crate) max_drift: f64,
    pub(crate) max_wander: Option<f64>,
    /// Time of a slew to a new model; `None` to jump.
    pub(crate) slew: Option<Duration>,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::SINGLE,
            max_drift: 1e-3,
            max_wander: None,
            slew: None,
        }
    }
}

impl<K: Clock> GlobalClock<K> {
    pub(crate) fn begin<M: Comm>(
        settings: SyncSettings,
        local: LocalTime<K>,
        place: RankPlacement,
        comm: &M,
    ) -> Result<Self, GlobalClockError> {
        let clock = Self {
            rank: comm.rank(),
            size: comm.size(),
            settings,
            place,
            ..Self::alone(local)
        };
        clock.resynchronize_over(comm)?;
        Ok(clock)
    }

    /// Takes the local time of a single process for global time; it can be [synchronized](Self::resynchronize_over) with others later.
    pub fn alone(local: LocalTime<K>) -> Self {
        let LocalTime {
            clock,
            model,
            rate_error,
            source,
            other,
        } = local;
        let (local, model) = (model, model.renamed());
        let exact = ErrorBound::symmetric(model.apply(clock.ticks()), Duration::ZERO, 0.0);
        Self {
            clock: ModelClock::with_bound(clock, model, exact),
            rank: 0,
            size: 1,
            settings: SyncSettings::default(),
            place: RankPlacement::default(),
            source,
            rate_error,
            other,
            local,
            last: Mutex::new(None),
            past: Mutex::default(),
            exchanges: Mutex::default(),
        }
    }

    /// Reads the time.
    #[inline(always)]
    pub fn now(&self) -> Timestamp<Global> {
        self.clock.now()
    }

    /// Reads the time and the largest error that it can have relative to that of rank 0, in little more time than [`now`](Self::now) takes.
    #[inline(always)]
    pub fn now_with_error(&self) -> (Timestamp<Global>, Duration) {
        self.clock.now_with_error()
    }

    /// Returns the earliest and the latest time that rank 0 can show now, in little more time than [`now`](Self::now) takes: certain for
    /// clocks that drift from each other by no more than [declared](crate::GlobalClockBuilder::max_drift), and that do not step.
    #[inline(always)]
    pub fn now_with_bounds(&self) -> [Timestamp<Global>; 2] {
        self.clock.now_with_bounds()
    }

    /// Returns the time since an earlier one; negative if it is still to come.
    #[inline]
    pub fn elapsed_since(&self, earlier: Timestamp<Global>) -> Duration {
        self.now() - earlier
    }

    /// Spins until the clock shows this time, and returns the time that it shows then.
    pub fn wait_until(&self, time: Timestamp<Global>) -> Timestamp<Global> {
        self.clock.wait_until(time)
    }

    /// Synchronizes the clock again, over a communicator whose ranks all call this; the time of its rank 0 is the reference. Other
    /// threads can read the clock meanwhile. If it fails, the clock continues as it was.
    ///
    /// The time jumps by what the clock was wrong, so that the next reading can be earlier than the last, unless the clock was told to
    /// [slew](crate::GlobalClockBuilder::slew). Then this waits for the end of the last slew.
    ///
    /// # Errors
    /// The same on all ranks, if any rank fails.
    #[cfg(feature = "mpi")]
    pub fn resynchronize(
        &self,
        world: &impl mpi::traits::Communicator,
    ) -> Result<(), GlobalClockError> {
        let comm =
            downbeat_sync::MpiComm::duplicate(world).map_err(downbeat_sync::CommError::Mpi)?;
        self.resynchronize_over(&comm)
    }

    /// The same as `resynchronize`, over any communicator that does not suspend its ranks.
    ///
    /// # Errors
    /// The same on all ranks, if any rank fails.
    pub fn resynchronize_over<M: Comm>(&self, comm: &M) -> Result<(), GlobalClockError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // The time of rank 0 goes on. Others begin with their own, as before: while ranks were delayed, they may have learned a line that
        // is steeper than any drift.
        let base = if comm.rank() == 0 {
            self.clock.model().renamed()
        } else {
            self.local
        };
        let me = self.local_clock_from(base);
        let found = self.settings.algorithm.synchronize_blocking(&me, comm);
        let found = agree_on_reason(comm, found, |why| GlobalClockError::of_rank(comm, why))?;
        // The time that the clock shows before its first synchronization is no global time.
        let slew = self.settings.slew.filter(|_| last.is_some());
        let slewed = slew.is_some_and(|within| self.slew(&found, within));
        // The lock leaves no other writer.
        if let (false, Some(mut writer)) = (slewed, self.clock.writer()) {
            writer.publish_with_bound(found.model, found.bound);
        }
        *last = Some(found);
        Ok(())
    }

    /// The counter of this rank with its local time.
    pub(crate) fn local_clock(&self) -> LocalClock<'_, K> {
        self.local_clock_from(self.local)
    }

    fn local_clock_from(&self, base: ClockModel<Counter, Local>) -> LocalClock<'_, K> {
        LocalClock::new(self.clock.clock(), base)
            .source(self.source)
            .placement(self.place)
            .max_drift(self.settings.max_drift)
            .max_wander(self.settings.max_wander)
            // A rate that was learned drifts from the other clock.
            .compared_with(self.other.filter(|_| base == self.local))
    }

    /// Goes over to what was found, once the last slew has ended; returns false if that is years apart.
    fn slew(&self, found: &Synchronized, within: Duration) -> bool {
        loop {
            match self.clock.slew_toward(found.model, found.bound, within) {
                Ok(false) => core::hint::spin_loop(),
                slewed => return slewed.is_ok(),
            }
        }
    }

    /// Compares the clocks of all ranks, which all call this, at any time in the run of a program, any number of times. The clock stays
    /// as it is, but [`past`](Self::past) knows better afterwards what it showed. This is `VT_timesync` of the Intel Trace Collector.
    ///
    /// Rank 0 exchanges messages with each other rank, or only with the first rank of
    /// each node, if the last synchronization of all ranks was `auto` and
    /// [proved](downbeat_sync::algorithm::AutoReport::nodes_share_counters) that the
    /// ranks of each node read one counter. The others take the session of the first.
    ///
    /// # Errors
    /// The same on all ranks, if any rank fails: if a clock stepped during the session, or back beyond the last one.
    #[cfg(feature = "mpi")]
    pub fn timesync(
        &self,
        world: &impl mpi::traits::Communicator,
        limits: SessionLimits,
    ) -> Result<(), GlobalClockError> {
        let comm =
            downbeat_sync::MpiComm::duplicate(world).map_err(downbeat_sync::CommError::Mpi)?;
        self.timesync_over(&comm, limits)
    }

    /// The same as `timesync`, over any communicator that does not suspend its ranks.
    ///
    /// # Errors
    /// As there.
    pub fn timesync_over<M: Comm>(
        &self,
        comm: &M,
        limits: SessionLimits,
    ) -> Result<(), GlobalClockError> {
        // Another session waits, and a synchronization; threads that ask for the past do not.
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let ranks = SessionRanks::from_synchronization(last.as_ref());
        let me = self.local_clock();
        let session = block_on_ready(limits.run(&me, &self.model(), comm, ranks))?;
        // Rank 0 is the reference, whose past its own model knows.
        if comm.rank() == 0 {
            return agree_blocking(comm, Ok(()));
        }
        let longer = self.past_curve().with_session(&session, limits.rule);
        let longer = longer.map_err(|why| GlobalClockError::of_rank(comm, why));
        let longer = agree_blocking(comm, longer)?;
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) = longer;
        let mut exchanges = self
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exchanges.push(session);
        Ok(())
    }

    /// Converts a reading of the counter to global time through the [sessions](Self::timesync_over): by a smooth curve between them, and
    /// straight lines before the first and after the last. Without any session, as the present [model](Self::model).
    ///
    /// The curve is cut between two sessions that contradict each other, although the
    /// clocks may drift as [declared](crate::GlobalClockBuilder::max_drift): a clock
    /// [stepped](Self::session_steps). A time between these two is on the straight line
    /// through both: in order with all others, but wrong by up to the step.
    pub fn past(&self, ticks: Ticks) -> Timestamp<Global> {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = past.apply(self.local.apply(ticks));
        shown.unwrap_or_else(|| self.model().apply(ticks))
    }

    fn past_curve(&self) -> PastCurve {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.clone()
    }

    /// Returns the points of local and global time of all sessions.
    pub fn sessions(&self) -> Vec<SplineKnot<Local, Global>> {
        self.past_curve().knots().to_vec()
    }

    /// Returns the points of each two neighbouring sessions between which a clock
    /// stepped, of this rank or of rank 0.
    pub fn session_steps(&self) -> Vec<[SplineKnot<Local, Global>; 2]> {
        self.past_curve().steps().collect()
    }

    /// Returns all sessions with their exchanges, each with its round trip; none on rank
    /// 0, which answers them. A rank that took a session of another one has the exchanges
    /// of that rank.
    pub fn session_exchanges(&self) -> Vec<ExchangeSession> {
        let exchanges = self
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exchanges.clone()
    }

    /// Returns the rank of this process or thread among those whose clocks were synchronized first.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks whose clocks were synchronized first.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the clock that this rank reads.
    pub fn clock(&self) -> &K {
        self.clock.clock()
    }

    /// Returns the counter together with the model, for code that is generic over clocks.
    pub fn model_clock(&self) -> &ModelClock<K, Global> {
        &self.clock
    }

    /// Returns the map from ticks to global time, for timestamps that were stored as ticks.
    pub fn model(&self) -> ClockModel<Counter, Global> {
        self.clock.model()
    }

    /// Returns the bound of the error relative to the clock of rank 0.
    pub fn bound(&self) -> ErrorBound<Global> {
        self.clock.published().load_with_bound().1
    }

    /// Returns the result of the last synchronization; `None` before the first.
    pub fn last_synchronization(&self) -> Option<Synchronized> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.settings.algorithm
    }

    /// Upper limit of the relative error of the rate of this rank's clock, by the clock of the system with which it was calibrated.
    pub fn rate_error(&self) -> f64 {
        self.rate_error
    }

    /// Reads the time of day, to convert global time to it.
    ///
    /// # Errors
    /// If the system does not tell the time of day.
    pub fn wall_anchor(&self) -> Result<WallAnchor<Global>, ClockUnavailable> {
        WallAnchor::take(&self.clock, self.rate_error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use downbeat_clock_core::TickRate;
    use downbeat_sync::ThreadCluster;
    use downbeat_timers::ClockName;

    use super::*;

    /// Delays can make a rank learn a line that is too steep. The next synchronization must not build on it: the exchanges of a time
    /// that is twice as fast contradict each other.
    #[test]
    fn a_line_that_is_too_steep_is_replaced() {
        let found = ThreadCluster::new(2).run(|comm| {
            let counter = MachineClock::detect(ClockName::Raw).unwrap();
            let local = LocalTime {
                clock: counter,
                model: ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND)
                    .unwrap(),
                rate_error: 0.0,
                other: None,
                source: 1,
            };
            let settings = SyncSettings {
                algorithm: "hca3/20/skampi/10".parse().unwrap(),
                ..SyncSettings::default()
            };
            let place = RankPlacement::default();
            let clock = GlobalClock::begin(settings, local, place, comm).unwrap();
            if comm.rank() == 1 {
                let twice = TickRate::from_hz(500_000_000).unwrap();
                let steep = ClockModel::through(counter.ticks(), clock.now(), twice).unwrap();
                let bound = clock.bound();
                let mut writer = clock.clock.writer().unwrap();
                writer.publish_with_bound(steep, bound);
            }
            clock.resynchronize_over(comm).unwrap();
        });
        found.unwrap();
    }

    /// Ranks read their clocks without a pause while these are synchronized again.
    #[test]
    fn a_clock_that_slews_never_runs_backward() {
        let settings = GlobalClock::builder()
            .clock(ClockName::Raw)
            .algorithm("hca3/20/skampi/10".parse().unwrap())
            .slew(Duration::from_micros(100));
        let readings = settings.over_threads(2, |clock, comm| {
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let (mut last, mut readings) = (clock.now(), 0_u64);
                    // The thread may not have run before.
                    while readings == 0 || !done.load(Ordering::Relaxed) {
                        let now = clock.now();
                        assert!(now >= last, "{now:?} after {last:?}");
                        (last, readings) = (now, readings + 1);
                        std::thread::yield_now();
                    }
                    readings
                });
                for _ in 0..5 {
                    clock.resynchronize_over(comm).unwrap();
                }
                let bound = clock.bound();
                let model = clock.last_synchronization().unwrap();
                assert!(bound.half_width() > model.bound.half_width(), "as it slews");
                done.store(true, Ordering::Relaxed);
                reader.join().unwrap()
            })
        });
        assert!(readings.unwrap().into_iter().all(|readings| readings > 0));
    }
}
