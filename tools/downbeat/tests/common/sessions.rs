//! Sessions of simulated ranks, whose clocks are known at any time, and global clocks that relive them.

use std::cell::RefCell;
use std::collections::VecDeque;

use downbeat::{
    Clock, ClockModel, Comm, CommError, Counter, Duration, Global, GlobalClock, Local, LocalTime,
    SessionLimits, SessionRule, Ticks, Timestamp,
};
use downbeat_clock_core::offset::Exchange;
use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_sync::LocalClock;
use downbeat_sync::payload::{Payload, Words};
use downbeat_sync::sim::{Clocks, DriftWalk, Network, SimClock, SimCluster, VirtualTime};
use downbeat_sync::timesync::{ExchangeSession, SessionRanks};

/// Number of sessions of a run: with ten seconds between them, they span the walk of typical clocks.
pub(crate) const SESSIONS: usize = 11;

/// Number of times between two sessions at which errors are taken.
const TIMES: i64 = 19;

/// Returns typical clocks whose drifts wander for a whole run.
pub(crate) fn wandering(apart: Duration) -> Clocks {
    let typical = Clocks::typical();
    let lasting = Duration::from_nanos(apart.as_nanos() * SESSIONS as i64);
    Clocks {
        wander: typical.wander.map(|wander| DriftWalk { lasting, ..wander }),
        ..typical
    }
}

/// One rank of a simulated run.
pub(crate) struct SimRank {
    clock: SimClock,
    limits: SessionLimits,
    sessions: Vec<ExchangeSession>,
    /// True time after each session.
    ended: Vec<Timestamp<VirtualTime>>,
}

/// Runs sessions on nodes with a rank each, over a typical network.
pub(crate) fn simulate(
    ranks: u32,
    clocks: Clocks,
    seed: u64,
    apart: Duration,
    limits: SessionLimits,
) -> Vec<SimRank> {
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks,
        seed,
    };
    let program = async |comm: &downbeat_sync::sim::SimComm| {
        let (clock, local) = (comm.clock(), nominal());
        let (mut sessions, mut ended) = (vec![], vec![]);
        let (me, global) = (LocalClock::new(&clock, local), local.renamed());
        for _ in 0..SESSIONS {
            let session = limits.run(&me, &global, comm, SessionRanks::All);
            sessions.push(session.await.unwrap());
            ended.push(comm.true_now());
            comm.pause(apart);
        }
        SimRank {
            clock,
            limits,
            sessions,
            ended,
        }
    };
    cluster.run(program).unwrap()
}

/// Local time of every rank; that of rank 0 is global time.
pub(crate) fn nominal() -> ClockModel<Counter, Local> {
    SimClock::nominal_model().unwrap()
}

/// Returns the reading of a clock whose local time this is.
pub(crate) fn reading(local: Timestamp<Local>) -> Ticks {
    Ticks(SimClock::ZERO.0.wrapping_add_signed(local.as_nanos()))
}

/// Readings and messages of rank 1 of 2, in the order in which it takes them.
#[derive(Default)]
pub(crate) struct Replay {
    ticks: RefCell<VecDeque<Ticks>>,
    words: RefCell<VecDeque<u64>>,
}

impl Replay {
    pub(crate) fn reads(&self, times: impl IntoIterator<Item = Timestamp<Local>>) {
        let ticks = times.into_iter().map(reading);
        self.ticks.borrow_mut().extend(ticks);
    }

    pub(crate) fn receives(&self, words: impl IntoIterator<Item = u64>) {
        self.words.borrow_mut().extend(words);
    }
}

impl Clock for Replay {
    fn ticks(&self) -> Ticks {
        let next = self.ticks.borrow_mut().pop_front();
        next.unwrap_or(SimClock::ZERO)
    }
}

/// Communicator of a replay.
pub(crate) struct ReplayComm<'a> {
    pub(crate) replay: &'a Replay,
    /// Called whenever the rank waits for a message.
    pub(crate) meanwhile: &'a dyn Fn(),
}

impl<'a> ReplayComm<'a> {
    pub(crate) fn new(replay: &'a Replay) -> Self {
        let meanwhile = &|| ();
        Self { replay, meanwhile }
    }
}

impl Comm for ReplayComm<'_> {
    fn rank(&self) -> u32 {
        1
    }

    fn size(&self) -> u32 {
        2
    }

    async fn send<P: Payload>(&self, _: u32, _: P) -> Result<(), CommError> {
        Ok(())
    }

    async fn send_sync<P: Payload>(&self, _: u32, _: P) -> Result<(), CommError> {
        Ok(())
    }

    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        (self.meanwhile)();
        let word = self.replay.words.borrow_mut().pop_front();
        let mut words = Words::default();
        words[0] = word.ok_or(CommError::Left { rank: from })?;
        P::get(&words).ok_or(CommError::WrongType { from })
    }

    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(None)
    }
}

/// Returns a global clock that reads a replay.
pub(crate) fn reliving(replay: &Replay) -> GlobalClock<&Replay> {
    GlobalClock::alone(LocalTime {
        clock: replay,
        model: nominal(),
        rate_error: 0.0,
        other: None,
        source: 0,
    })
}

/// Exchanges of one session.
pub(crate) type Exchanges<'a> = &'a [Exchange<Local, Global>];

/// Prepares the messages of a session, and the agreement of all ranks that none failed.
pub(crate) fn prepare_session(replay: &Replay, exchanges: Exchanges<'_>) {
    replay.reads(exchanges.iter().flat_map(|one| [one.sent, one.received]));
    // Rank 0 exchanges messages with all ranks; the error of its readings.
    replay.receives([0, 1]);
    replay.receives(exchanges.iter().flat_map(|one| [1, answer(one)]));
    replay.receives([0, u64::MAX]);
}

pub(crate) fn answer(exchange: &Exchange<Local, Global>) -> u64 {
    exchange.answered.as_nanos().cast_unsigned()
}

/// Returns the offset by a rule as a fraction.
fn exact_offset(exchanges: Exchanges<'_>, rule: SessionRule) -> [i128; 2] {
    let stamps = exchanges
        .iter()
        .map(|one| {
            [
                one.sent.as_nanos(),
                one.answered.as_nanos(),
                one.received.as_nanos(),
            ]
        })
        .map(|stamps| stamps.map(i128::from));
    let mut all: Vec<_> = stamps.collect();
    all.sort_by_key(|[sent, _, received]| (received - sent, *sent));
    match rule {
        SessionRule::TraceCollector => exact_mean_offset(&all[..all.len() - all.len() / 10]),
        _ => exact_lowest_offset(&all),
    }
}

fn exact_mean_offset(stamps: &[[i128; 3]]) -> [i128; 2] {
    let offset = |[sent, answered, received]: &[i128; 3]| sent + received - 2 * answered;
    [stamps.iter().map(offset).sum(), 2 * stamps.len() as i128]
}

/// Returns the offset by the lowest twentieth of each direction, of the two drifts by
/// which these are larger. `stamps` are in the order of round trips.
fn exact_lowest_offset(stamps: &[[i128; 3]]) -> [i128; 2] {
    let kept = (stamps.len() as f64 / 20.0).round().max(1.0) as usize;
    let [first, ..] = stamps[0];
    // Sums of the times and differences of the lowest.
    let lowest = |all: Vec<[i128; 2]>, drift: f64| -> [i128; 2] {
        let [_, origin] = all[0];
        let steady = |[at, difference]: &[i128; 2]| {
            (difference - origin) as f64 - drift * (at - first) as f64
        };
        let mut all = all;
        all.sort_by(|one, other| steady(one).total_cmp(&steady(other)).then(one.cmp(other)));
        [0, 1].map(|part| all[..kept].iter().map(|one| one[part]).sum())
    };
    let by_drift = |drift: f64| {
        let up = stamps
            .iter()
            .map(|[sent, answered, _]| [*sent, answered - sent]);
        let down = stamps
            .iter()
            .map(|[_, answered, received]| [*received, received - answered]);
        let [sent, up] = lowest(up.collect(), -drift);
        let [received, down] = lowest(down.collect(), drift);
        let level = (up + down) as f64 - drift * (received - sent) as f64;
        (level, down - up)
    };
    let [steady, drifting] = [0.0, drift_of_quicker(stamps)].map(by_drift);
    let (_, offset) = if drifting.0 > steady.0 {
        drifting
    } else {
        steady
    };
    [offset, 2 * kept as i128]
}

/// Returns the slope of the line through the middles of the quicker half.
fn drift_of_quicker(stamps: &[[i128; 3]]) -> f64 {
    let quicker = &stamps[..stamps.len().div_ceil(2)];
    let [first, second, _] = stamps[0];
    let middle = |[sent, answered, received]: &[i128; 3]| {
        let at = (sent + received - 2 * first) as f64 / 2.0;
        (at, at - (answered - second) as f64)
    };
    let count = quicker.len() as f64;
    let mean = |value: &dyn Fn((f64, f64)) -> f64| {
        quicker.iter().map(middle).map(value).sum::<f64>() / count
    };
    let [x, y] = [mean(&|(at, _)| at), mean(&|(_, offset)| offset)];
    let product = mean(&|(at, offset)| (at - x) * (offset - y));
    let square = mean(&|(at, _)| (at - x) * (at - x));
    if square > 0.0 { product / square } else { 0.0 }
}

/// Errors of the past on one rank, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PastErrors {
    /// Largest deviation at a session from the offset that its exchanges give.
    pub(crate) at_sessions: f64,
    /// Sums of the squares of the errors between sessions.
    spline_squares: f64,
    line_squares: f64,
    times: u32,
}

impl PastErrors {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            at_sessions: self.at_sessions.max(other.at_sessions),
            spline_squares: self.spline_squares + other.spline_squares,
            line_squares: self.line_squares + other.line_squares,
            times: self.times + other.times,
        }
    }

    /// Root mean square error of the past.
    pub(crate) fn spline(&self) -> f64 {
        (self.spline_squares / f64::from(self.times)).sqrt()
    }

    /// The same of straight lines through neighbouring sessions.
    pub(crate) fn lines(&self) -> f64 {
        (self.line_squares / f64::from(self.times)).sqrt()
    }
}

/// Returns the errors of each rank but the first, whose clock is the truth.
pub(crate) fn errors(ranks: &[SimRank]) -> impl Iterator<Item = PastErrors> {
    let (first, others) = ranks.split_first().unwrap();
    others.iter().map(|rank| rank.errors(&first.clock))
}

impl SimRank {
    /// Exchanges of each session; none on rank 0.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Exchanges<'_>> {
        self.sessions.iter().map(ExchangeSession::exchanges)
    }

    fn errors(&self, first: &SimClock) -> PastErrors {
        let replay = Replay::default();
        let clock = reliving(&replay);
        for exchanges in self.exchanges() {
            prepare_session(&replay, exchanges);
            let comm = ReplayComm::new(&replay);
            clock.timesync_over(&comm, self.limits).unwrap();
        }
        let knots = clock.sessions();
        let mut errors = PastErrors::default();
        for (knot, exchanges) in knots.iter().zip(self.exchanges()) {
            let exact = exact_offset(exchanges, self.limits.rule);
            let deviation = deviation(&clock, knot, exact);
            errors.at_sessions = errors.at_sessions.max(deviation);
        }
        for (times, knots) in self.ended.windows(2).zip(knots.windows(2)) {
            let line = ConstrainedSpline::new(knots).unwrap();
            let step = (times[1] - times[0]).as_nanos() / (TIMES + 1);
            for time in (1..=TIMES).map(|i| times[0] + Duration::from_nanos(i * step)) {
                let truth = nominal().apply(first.ticks_at(time)).as_nanos();
                let own = self.clock.ticks_at(time);
                let off = |shown: Timestamp<Global>| (shown.as_nanos() - truth) as f64;
                errors.spline_squares += off(clock.past(own)).powi(2);
                errors.line_squares += off(line.apply(nominal().apply(own))).powi(2);
                errors.times += 1;
            }
        }
        errors
    }
}

/// Returns how far the past at a session is from the exact offset.
fn deviation(
    clock: &GlobalClock<&Replay>,
    knot: &SplineKnot<Local, Global>,
    [sum, count]: [i128; 2],
) -> f64 {
    let past = clock.past(reading(knot.at));
    let offset = i128::from(knot.at.as_nanos()) - i128::from(past.as_nanos());
    ((offset * count - sum) as f64 / count as f64).abs()
}
