//! Clocks that keep time: short sessions, every so often, correct the clocks of all ranks while their program runs.
//!
//! A session is one turn of a [cube](crate::algorithm::Cube): each rank learns how far its clock is ahead of that of rank 0 by then. A
//! filter combines that with all sessions before, by how much the clock wanders and how uncertain a session is, both of which it finds
//! on the way.

mod allan;
mod filter;
mod node;
mod slewing;

use downbeat_clock_core::fit::{Envelope, RateLimits, Reading};
use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, FitError, Global, Local, Ticks, Timestamp,
};

use crate::algorithm::closing::{
    bound_by_parent, bound_of_other, drifts_of_both, share_of_own_rate,
};
use crate::algorithm::cube::{
    ClockLimits, CubeEdge, Effort, FineClock, MeasuredDifference, TurnLimits, error_by_edges,
    exchange, fit_lines, neighbours, solve,
};
use crate::collective::{broadcast, lowest};
use crate::line::rounded;
use crate::session::{ROUNDING, resolution};
use crate::{Comm, CommError, LocalClock, StatedError, SyncError, Synchronized};
use filter::{OffsetPoint, WanderFilter, smooth};
pub use node::NodeKeeper;
pub use slewing::SlewingClock;

/// Keeps the global clock of a rank, by sessions of all ranks at points of the program where all of them call it.
///
/// Global time stays that of rank 0. The keeper publishes nothing: its caller lets the clock
/// [slew](downbeat_clock_core::ModelClock::slew_toward) to the line that a session gives, so that it never jumps.
///
/// ```
/// use downbeat_sync::keep::Keeper;
/// use downbeat_sync::sim::{Clocks, Network, SimCluster};
/// use downbeat_sync::{Algorithm, Comm, Duration, SyncError};
///
/// let cluster = SimCluster {
///     ranks: 8,
///     ranks_per_node: 1,
///     sockets_per_node: 1,
///     nodes_per_rack: None,
///     network: Network::typical(),
///     clocks: Clocks::typical(),
///     seed: 1,
/// };
/// let algorithm: Algorithm = "cube/10/20".parse()?;
/// let corrections = cluster.run(async |comm| {
///     let clock = comm.clock();
///     let me = comm.local_clock(&clock)?;
///     let synchronized = algorithm.synchronize(&me, comm).await?;
///     let mut keeper = Keeper::new(&me, &synchronized, Duration::from_secs(10));
///     let mut sessions = 0;
///     for _ in 0..100 {
///         // Work of the program.
///         comm.pause(Duration::from_secs(1));
///         // Sessions follow each other more closely at first.
///         sessions += u32::from(keeper.keep(&me, comm).await?.is_some());
///     }
///     Ok::<_, SyncError>(sessions)
/// })?;
/// assert!(corrections.into_iter().all(|sessions| sessions.is_ok_and(|sessions| (10..20).contains(&sessions))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keeper {
    /// Line from which offsets are measured; the filter's time began at `origin`, in nanoseconds of its rate.
    line: ClockModel<Counter, Global>,
    origin: Ticks,
    present: ClockModel<Counter, Global>,
    bound: ErrorBound<Global>,
    /// Certain limits of all sessions, if a wander is declared.
    envelope: Option<Envelope<Global>>,
    filter: WanderFilter,
    points: Vec<(Ticks, OffsetPoint)>,
    schedule: Schedule,
    /// Rank among all ranks.
    rank: u32,
    /// The last session.
    measured: Option<Measured>,
}

/// Measurement of a session on this rank.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// Tick for which it holds.
    mark: Ticks,
    /// Time by which the line was ahead of that of rank 0; none where it is that.
    ahead: Option<f64>,
    /// Its standard error, where several paths show it.
    noise: Option<f64>,
    /// Durations of the session, and of an exchange with each neighbour, in nanoseconds.
    took: f64,
    exchange: f64,
}

/// Result of a session on this rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptSession {
    /// Line of the clock from now on.
    pub model: ClockModel<Counter, Global>,
    /// Largest difference from the clock of rank 0, by this session and those before: certain, as
    /// [that of a synchronization](Synchronized::bound).
    pub bound: ErrorBound<Global>,
    /// Time by which the line before was ahead of the one from now on.
    pub ahead: Duration,
    /// Error of the line now.
    pub stated_error: StatedError,
    /// Standard deviation of a session's offset, in nanoseconds. 0 on rank 0, and little known after few sessions.
    pub noise: f64,
    /// Standard deviation of the change of the clock's rate in a second: `1e-9` is a part per billion. As well known as the noise.
    pub wander: f64,
    /// Time within which the clock should slew to the line, well before the next session.
    pub slew: Duration,
    /// Number of exchanges with each neighbour.
    pub exchanges: u32,
    /// Duration of the session on this rank.
    pub took: Duration,
}

/// Times and lengths of sessions, on which rank 0 decides.
#[derive(Clone, Debug)]
struct Schedule {
    period: Duration,
    lasting: Duration,
    /// Time of the last session, or of the beginning.
    last: Timestamp<Global>,
    sessions: u32,
    /// Shortest duration of an exchange with each neighbour, and of the rest of a session, in nanoseconds; both grow a little with each.
    exchange: f64,
    rest: f64,
    exchanges: u32,
}

/// Longest duration of a session unless another is set.
const LASTING: Duration = Duration::from_millis(1);
/// Number of exchanges in the first session, and limits of it.
const FIRST_EXCHANGES: u32 = 14;
const LEAST_EXCHANGES: u32 = 4;
const MOST_EXCHANGES: u32 = 2_000;
/// Sessions are closer to each other at first, by up to this power of two: so a rate that was learned in a short synchronization is
/// corrected soon.
const CLOSER: u32 = 4;
/// Part of the time until the next session within which a clock slews.
const SLEWING: i64 = 500;
/// Share of the time of a session that is used: delays come on top.
const USED: f64 = 0.87;
/// Effort of the solution in a session, whose offsets are some microseconds at most: a second pass over all edges would take longer than a
/// session should.
const EFFORT: Effort = Effort {
    left: 1e-4,
    tolerated: 8.0,
};
/// Growth of a shortest duration with each session: the machine may have become slower.
const SLOWER: f64 = 1.1;

impl Schedule {
    fn new(period: Duration, now: Timestamp<Global>) -> Self {
        Self {
            period,
            lasting: LASTING,
            last: now,
            sessions: 0,
            exchange: f64::INFINITY,
            rest: f64::INFINITY,
            exchanges: FIRST_EXCHANGES,
        }
    }

    /// Time of the next session.
    fn due(&self) -> Timestamp<Global> {
        self.last + self.interval()
    }

    /// Time from the last session to the next.
    fn interval(&self) -> Duration {
        let closer = CLOSER.saturating_sub(self.sessions);
        Duration::from_nanos(self.period.as_nanos() >> closer)
    }

    /// Plans the next session, after one that took this long, of which each exchange took `exchange`.
    fn plan(&mut self, now: Timestamp<Global>, took: f64, exchange: f64) {
        self.sessions = self.sessions.saturating_add(1);
        self.last = now;
        let rest = (took - exchange * f64::from(self.exchanges)).max(0.0);
        self.exchange = exchange.min(SLOWER * self.exchange);
        self.rest = rest.min(SLOWER * self.rest);
        let time = USED * self.lasting.as_nanos() as f64 - self.rest;
        // The cast saturates.
        let exchanges = (time / self.exchange) as u32;
        let most = self.exchanges.saturating_mul(2).min(MOST_EXCHANGES);
        self.exchanges = exchanges.clamp(LEAST_EXCHANGES, most);
    }
}

impl Keeper {
    /// Creates the keeper of a clock that was synchronized, which all ranks do. Sessions are `period` apart, as rank 0 has it.
    pub fn new<K: Clock>(
        me: &LocalClock<'_, K>,
        synchronized: &Synchronized,
        period: Duration,
    ) -> Self {
        let Synchronized { model, bound, .. } = *synchronized;
        let origin = me.clock.ticks();
        let envelope = me.max_wander.map(|wander| {
            let limits = RateLimits {
                drift: share_of_own_rate(me.max_drift, 0.0),
                wander,
            };
            let mut envelope = Envelope::new(me.base.rate(), limits);
            // A single session contradicts nothing.
            let _ = envelope.push(&[certain_reading(&model, &bound, origin)]);
            envelope
        });
        Self {
            line: model,
            origin,
            present: model,
            bound,
            envelope,
            filter: WanderFilter::new(),
            points: Vec::new(),
            schedule: Schedule::new(period, model.apply(origin)),
            rank: synchronized.quality.rank,
            measured: None,
        }
    }

    /// Sets the longest duration of a session, a millisecond unless set, as far as messages allow: rank 0 decides.
    #[must_use]
    pub fn lasting(mut self, lasting: Duration) -> Self {
        self.schedule.lasting = lasting;
        self
    }

    /// Changes the time between sessions, which counts on rank 0.
    pub fn every(&mut self, period: Duration) {
        self.schedule.period = period;
    }

    /// Time until the next session is due, on rank 0, by the tick `now`; shorter after the first sessions.
    pub fn due_in(&self, now: Ticks) -> Duration {
        self.schedule.due() - self.present.apply(now)
    }

    /// Makes a session if one is due, which all ranks call: otherwise it costs a broadcast. Returns what the session gave.
    ///
    /// # Errors
    /// On all ranks: if a clock stepped so far that the measurements contradict each other, after which the clocks must be synchronized
    /// again. If a rank is gone.
    pub async fn keep<K: Clock, M: Comm>(
        &mut self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Option<KeptSession>, SyncError> {
        self.attend(me, comm, false).await
    }

    /// Makes a session now, if rank 0 calls this, due or not; other ranks may call [`keep`](Self::keep) meanwhile.
    ///
    /// # Errors
    /// As there.
    pub async fn keep_now<K: Clock, M: Comm>(
        &mut self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Option<KeptSession>, SyncError> {
        self.attend(me, comm, true).await
    }

    /// Makes a session if rank 0 says so, by a number of exchanges that is not 0.
    async fn attend<K: Clock, M: Comm>(
        &mut self,
        me: &LocalClock<'_, K>,
        comm: &M,
        at_once: bool,
    ) -> Result<Option<KeptSession>, SyncError> {
        let now = self.present.apply(me.clock.ticks());
        let is_due = at_once || now >= self.schedule.due();
        let exchanges = if is_due { self.schedule.exchanges } else { 0 };
        let [now, exchanges] = broadcast(comm, [now.as_nanos() as u64, exchanges.into()]).await?;
        if exchanges == 0 {
            return Ok(None);
        }
        self.schedule.exchanges = exchanges as u32;
        let start = Timestamp::from_nanos(now as i64);
        Box::pin(self.session(me, comm, start)).await.map(Some)
    }

    /// Makes a session. All times are measured from `start`, about now, to keep their fractions.
    async fn session<K: Clock, M: Comm>(
        &mut self,
        me: &LocalClock<'_, K>,
        comm: &M,
        start: Timestamp<Global>,
    ) -> Result<KeptSession, SyncError> {
        let rank = comm.rank();
        let clock = FineClock::of_model(me.clock, &self.present, start);
        let mut edges: Vec<CubeEdge> = neighbours(rank, comm.size()).collect();
        let mut limits = Vec::with_capacity(edges.len());
        let (turn, exchanges) = (self.schedule.sessions, self.schedule.exchanges);
        for edge in &mut edges {
            limits.push(edge.play(&clock, comm, turn, exchanges).await?);
        }
        let mark = Ticks(clock.epoch.0 + (me.clock.ticks().0 - clock.epoch.0) / 2);
        let own = ClockLimits {
            rank: self.rank,
            // By the learned rate, which may be further off than the clock.
            drift: self.bound.drift,
            grain: resolution(me.clock, &self.present).as_nanos() as f64,
        };
        let peers = exchange(comm, edges.iter().map(|edge| edge.peer), own).await?;
        let (lines, mut failure) = fit_lines(&edges, own, &peers);
        let differences = edges
            .iter()
            .zip(&lines)
            .map(|(edge, line)| MeasuredDifference::new(rank, edge.peer, line.ahead));
        let solution = solve(comm, differences.collect(), EFFORT).await?;
        let bound = self.certain(me, comm, &edges, &limits, start).await?;
        let bound = bound.unwrap_or_else(|why| {
            failure.get_or_insert(why);
            self.bound
        });
        let failure = failure.map(|(edge, why)| SyncError::Fit(why).against(peers[edge].rank));
        let noise = solution
            .edge_error
            .map(|error| error * error_by_edges(edges.len(), comm.size()));
        let took = clock.now() - clock.at_epoch;
        let measured = Measured {
            mark,
            ahead: (rank > 0).then_some(solution.value),
            noise,
            took,
            exchange: estimate_exchange_duration(&edges).clamp(1.0, took.max(1.0)),
        };
        let learned = self.learn(me, &measured, bound);
        let failure = failure.or(learned.err());
        if let Some(failed) = lowest(comm, failure.map(|_| self.rank)).await? {
            return Err(failure.unwrap_or(SyncError::OtherRank(failed)));
        }
        self.measured = Some(measured);
        learned
    }

    /// Time of the filter at a tick.
    fn seconds(&self, at: Ticks) -> f64 {
        1e-9 * self.line.rate().nanos_per_tick() * at.signed_since(self.origin) as f64
    }

    /// Takes into account what a session measured. Returns what it gives.
    fn learn<K: Clock>(
        &mut self,
        me: &LocalClock<'_, K>,
        measured: &Measured,
        bound: ErrorBound<Global>,
    ) -> Result<KeptSession, SyncError> {
        let mark = measured.mark;
        let before = self.present;
        self.bound = bound;
        if let Some(ahead) = measured.ahead {
            if let Some(noise) = measured.noise {
                self.filter.expect_noise(noise);
            }
            let at = self.seconds(mark);
            let offset = self.filter.estimate().offset_at(at) - ahead;
            let point = self.filter.push(at, offset);
            self.points.push((mark, point));
            let state = self.filter.estimate().state;
            let rate = self.line.rate().with_drift(1e-9 * state.rate)?;
            let global = self.line.apply(mark) + rounded(state.offset);
            self.present = ClockModel::through(mark, global, rate)?;
        }
        let now = me.clock.ticks();
        let shown = self.present.apply(now);
        let ahead = before.apply(now) - shown;
        if measured.ahead.is_some() {
            self.bound = self.bound_from(me, &before, &bound, now)?;
        }
        let exchanges = self.schedule.exchanges;
        self.schedule.plan(shown, measured.took, measured.exchange);
        let estimate = self.filter.estimate();
        let step = resolution(me.clock, &self.present).as_nanos() as f64;
        let error = estimate.error_at(self.seconds(now));
        let of_others = |value: f64| measured.ahead.map_or(0.0, |_| value);
        Ok(KeptSession {
            model: self.present,
            bound: self.bound,
            ahead,
            stated_error: match (measured.ahead, measured.noise) {
                (None, _) => StatedError::NONE,
                (Some(_), Some(_)) => StatedError::Error(error.max(step)),
                // Without cycles.
                (Some(_), None) => StatedError::Scatter(error.max(step)),
            },
            noise: of_others(estimate.noise()),
            wander: of_others(1e-9 * estimate.wander()),
            slew: Duration::from_nanos(self.schedule.interval().as_nanos() / SLEWING),
            exchanges,
            took: rounded(measured.took),
        })
    }

    /// Returns the certain bound of the present line at a tick, from that of the line before.
    ///
    /// # Errors
    /// If the session contradicts those before: the clock stepped, or wandered by more than declared.
    fn bound_from<K: Clock>(
        &mut self,
        me: &LocalClock<'_, K>,
        before: &ClockModel<Counter, Global>,
        bound: &ErrorBound<Global>,
        now: Ticks,
    ) -> Result<ErrorBound<Global>, SyncError> {
        let (at, rate) = (self.present.apply(now), self.present.rate());
        let (bound, drift) = match &mut self.envelope {
            None => {
                let drift = share_of_own_rate(me.max_drift, rate.drift_from(me.base.rate()));
                (bound.moved_to(before.apply(now)), drift)
            }
            Some(envelope) => {
                let reading = certain_reading(before, bound, now);
                let pushed = envelope.push(&[reading]).and_then(|()| envelope.line());
                let line = pushed.map_err(|why| SyncError::Fit(why).against(0))?;
                let apart = line.rate.with_drift(line.drift)?.drift_from(rate);
                (line.bound, drifts_of_both(apart.abs(), line.bound.drift))
            }
        };
        Ok(bound_of_other(&bound, at, drift))
    }

    /// Returns the certain bound of the present line, by the limits of this session and the bounds of the ranks on the path to rank 0; or a
    /// contradiction with the index of its edge.
    async fn certain<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
        edges: &[CubeEdge],
        limits: &[TurnLimits],
        start: Timestamp<Global>,
    ) -> Result<Result<ErrorBound<Global>, (usize, FitError)>, CommError> {
        let rank = comm.rank();
        let now = || self.present.apply(me.clock.ticks());
        let mut bound = Ok(self.bound.moved_to(now()));
        let mut pairs = edges.iter().zip(limits).enumerate();
        // The rank without its highest bit.
        let parent = pairs.rfind(|(_, (edge, _))| edge.peer < rank);
        if let Some((index, (edge, limits))) = parent {
            let of_parent: ErrorBound<Global> = comm.recv(edge.peer).await?;
            let drift = self.bound.drift;
            let drifts = drifts_of_both(drift, of_parent.drift);
            let at = now();
            let since = (at - start).as_nanos() as f64 - limits.first;
            // By the clock of the other rank, which may be off by as much.
            let since = since.abs() + limits.upper.max(-limits.lower);
            let drifted = rounded((drifts * since).ceil());
            let error = resolution(me.clock, &self.present) + ROUNDING + drifted;
            let low = rounded(limits.lower.floor()) - error;
            let high = rounded(limits.upper.ceil()) + error;
            let here = bound_by_parent(&of_parent, at, [low, high], drift);
            bound = both(self.bound.moved_to(at), here).map_err(|why| (index, why));
        }
        let known = bound.unwrap_or(self.bound).moved_to(now());
        let grain = resolution(me.clock, &self.present);
        let with_grain = known.ahead_by([-grain, grain]);
        let dimension = parent.map(|(_, (edge, _))| edge.dimension);
        let children = edges
            .iter()
            .filter(|edge| dimension.is_none_or(|own| edge.dimension > own));
        for edge in children {
            comm.send(edge.peer, with_grain).await?;
        }
        Ok(bound)
    }

    /// Returns the points through which the clock went, by all sessions, before and after: for timestamps that were recorded. None on
    /// rank 0, whose clock is global time.
    pub fn past(&self, base: &ClockModel<Counter, Local>) -> Vec<SplineKnot<Local, Global>> {
        let points: Vec<OffsetPoint> = self.points.iter().map(|(_, point)| *point).collect();
        let smoothed = smooth(&points, self.filter.estimate().ratio);
        let knot = |((at, _), [offset, _]): (&(Ticks, OffsetPoint), [f64; 2])| SplineKnot {
            at: base.apply(*at),
            image: self.line.apply(*at) + rounded(offset),
        };
        self.points.iter().zip(smoothed).map(knot).collect()
    }

    /// Returns the Allan deviation of this clock against that of rank 0, by the offsets of all sessions: for averaging times of one period
    /// of the sessions, two, four and so on. It contains the noise of the sessions, which prevails at short times.
    pub fn allan_deviation(&self) -> Vec<(Duration, f64)> {
        let points = self
            .points
            .iter()
            .map(|(_, point)| [point.at, point.offset]);
        let points: Vec<[f64; 2]> = points.collect();
        let deviations = allan::allan_deviation(&points);
        deviations
            .into_iter()
            .map(|(time, deviation)| (rounded(1e9 * time), deviation))
            .collect()
    }
}

/// Estimates the duration of an exchange with each neighbour, in nanoseconds.
fn estimate_exchange_duration(edges: &[CubeEdge]) -> f64 {
    let of_edges = edges.iter().map(|edge| edge.quickest_exchange);
    // The first message of an edge waits for the other rank, so that the shortest tells most.
    of_edges.fold(f64::INFINITY, f64::min) * edges.len() as f64
}

/// Returns the certain limits of global time at a tick, by the bound of a line.
fn certain_reading(
    model: &ClockModel<Counter, Global>,
    bound: &ErrorBound<Global>,
    ticks: Ticks,
) -> Reading<Global> {
    let [before, after] = bound.around(model.apply(ticks));
    Reading {
        before,
        ticks,
        after,
    }
}

/// Returns the bound that two of one time give together.
///
/// # Errors
/// If they contradict each other: a clock stepped.
fn both(
    before: ErrorBound<Global>,
    now: ErrorBound<Global>,
) -> Result<ErrorBound<Global>, FitError> {
    let together = ErrorBound {
        ahead: before.ahead.min(now.ahead),
        behind: before.behind.min(now.behind),
        ..now
    };
    let contradiction = -(together.ahead + together.behind);
    if contradiction > Duration::ZERO {
        return Err(FitError::Stepped {
            by: contradiction,
            between: None,
        });
    }
    Ok(together)
}
