//! Synchronizations over networks that do their worst: asymmetry far beyond the latency, heavy tails, bursts, the noise of operating
//! systems, coarse clocks that wander within their declaration, and steps.

use std::rc::Rc;

use downbeat_clock_core::{Clock, Duration, Global, Ticks, Timestamp};
use downbeat_sync::sim::{
    Clocks, DelayBursts, DelayTail, Drift, DriftWalk, Network, NetworkCard, SimCluster, SimComm,
    VirtualTime,
};
use downbeat_sync::{Algorithm, Comm, SyncError, Synchronized};
use fastrand::Rng;

use crate::narrowest::{Event, Log, Recorded, RecordedClock, RecordedComm, narrowest};
use crate::stepping::{Step, SteppingClock, all_or_own_failure, local_clock};

/// Declared drift, which the clocks keep: two of 20 ppm drift from each other by 40, and wander.
const MAX_DRIFT: f64 = 50e-6;

/// Nanoseconds that rounding outward adds.
const ROUNDING: f64 = 2.0;

/// Times after the end of a synchronization of all ranks at which bounds are checked.
pub(crate) const LATER: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// Draws a cluster.
pub(crate) fn cluster(ranks: u32, seed: u64) -> SimCluster {
    let mut random = Rng::with_seed(seed);
    let nanos = Duration::from_nanos;
    let mut network = Network::typical();
    for link in [&mut network.switch, &mut network.node] {
        link.asymmetry = nanos([0, 30, 300, 3_000, 30_000][random.usize(..5)]);
        link.tail = [
            DelayTail::None,
            DelayTail::LogNormal {
                median: nanos(180),
                sigma: 1.0,
            },
            DelayTail::Pareto {
                scale: nanos(300),
                shape: 1.2,
            },
            DelayTail::LogNormal {
                median: nanos(2_000),
                sigma: 1.5,
            },
        ][random.usize(..4)];
        link.bursts = [
            DelayBursts::None,
            DelayBursts::Chance {
                probability: 0.1,
                mean: nanos(random.i64(1_000..100_000)),
            },
            DelayBursts::Spells {
                every: Duration::from_millis(5),
                lasting: Duration::from_millis(2),
                mean: Duration::from_micros(100),
            },
        ][random.usize(..3)];
    }
    network.card = random.bool().then(|| NetworkCard {
        gap: nanos(random.i64(50..500)),
        per_byte: 0.08,
    });
    SimCluster {
        ranks,
        ranks_per_node: [1, 1, 2][random.usize(..3)],
        sockets_per_node: 1,
        nodes_per_rack: None,
        network,
        clocks: Clocks {
            offset: Duration::from_millis(500),
            drift: Drift::Within(20e-6),
            wander: Some(DriftWalk {
                drift_per_sqrt_second: [0.0, 5e-9, 3e-7][random.usize(..3)],
                interval: Duration::from_millis(10),
                lasting: Duration::from_secs(60),
            }),
            read_cost: nanos(20),
            granularity: [1, 1, 10, 100][random.usize(..4)],
        },
        seed,
    }
}

/// Certain interval of the clock of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    /// Width when the rank returned.
    pub(crate) width: Duration,
    /// Width of the narrowest interval then that the messages of the closing exchange allow, in nanoseconds.
    pub(crate) narrowest: f64,
    /// True if that interval contains the true time: otherwise the oracle is wrong.
    pub(crate) possible: bool,
    /// Lengths by which the true time is outside of the interval at each of the [`LATER`] times; not positive if it is inside.
    pub(crate) outside: [Duration; 3],
}

impl Interval {
    /// Returns true if the true time is inside at all times, and the narrowest interval is not wrong.
    pub(crate) fn is_sound(&self) -> bool {
        self.possible
            && self.narrowest.is_finite()
            && self
                .outside
                .iter()
                .all(|outside| *outside <= Duration::ZERO)
    }

    /// Width as a multiple of the narrowest, beyond what a nanosecond on each side rounds away.
    pub(crate) fn relative_width(&self) -> f64 {
        let width = self.width.as_nanos() as f64;
        if width <= ROUNDING {
            1.0
        } else {
            width / (self.narrowest + ROUNDING)
        }
    }
}

/// Clock of a rank after a synchronization.
struct Synced {
    synchronized: Synchronized,
    clock: SteppingClock,
    events: Vec<Event>,
    done: Timestamp<VirtualTime>,
}

impl Synced {
    fn shows(&self, at: Timestamp<VirtualTime>) -> Timestamp<Global> {
        let ticks = self.clock.stepped(self.clock.clock.ticks_at(at));
        self.synchronized.model.apply(ticks)
    }

    /// Returns the closing exchange.
    #[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
    fn closing(&self) -> Recorded<'_> {
        let index_of = |wanted: &dyn Fn(Ticks) -> bool| {
            let is_wanted = |event: &Event| matches!(event, Event::Read(ticks) if wanted(*ticks));
            self.events.iter().rposition(is_wanted).unwrap()
        };
        let Event::Read(last) = self.events[index_of(&|_| true)] else {
            unreachable!("the index of a reading")
        };
        // A tick is a nanosecond.
        let took = self.synchronized.closing.took.as_nanos() as u64;
        Recorded {
            events: &self.events,
            since: index_of(&|ticks| ticks.0 == last.0 - took),
            end: self.clock.stepped(self.clock.clock.ticks_at(self.done)),
            grain: self.clock.clock.grain(),
        }
    }
}

/// Synchronizes the ranks, and returns the intervals of all; or the failure of the lowest rank that failed by itself. If told, the clock
/// of a random one steps before the closing exchange.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn intervals(
    cluster: &SimCluster,
    algorithm: &Algorithm,
    steps: bool,
) -> Result<Vec<Interval>, SyncError> {
    let sound = synchronize(cluster, algorithm, None)?;
    if !steps {
        return Ok(intervals_of(&sound));
    }
    let learned = sound
        .iter()
        .map(|rank| rank.done - rank.synchronized.closing.took);
    // Coarse clocks step with their next tick.
    let end = learned.min().unwrap() - Duration::from_micros(1);
    let step = Step::random(cluster.ranks, end, &mut Rng::with_seed(cluster.seed));
    Ok(intervals_of(&synchronize(cluster, algorithm, Some(step))?))
}

#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
fn synchronize(
    cluster: &SimCluster,
    algorithm: &Algorithm,
    step: Option<Step>,
) -> Result<Vec<Synced>, SyncError> {
    let found = cluster.run(async |comm: &SimComm| {
        let log = Log::default();
        let clock = RecordedClock {
            clock: SteppingClock::new(comm, step),
            log: Rc::clone(&log),
        };
        let me = local_clock(&clock, comm).max_drift(MAX_DRIFT);
        let recorded = RecordedComm {
            comm: comm.split(Some(0), comm.rank()).await?.unwrap(),
            log: Some(log),
        };
        Ok(Synced {
            synchronized: algorithm.synchronize(&me, &recorded).await?,
            events: clock.log.take(),
            clock: clock.clock,
            done: comm.true_now(),
        })
    });
    all_or_own_failure(found.unwrap())
}

#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
fn intervals_of(ranks: &[Synced]) -> Vec<Interval> {
    let end = ranks.iter().map(|rank| rank.done).max().unwrap();
    let closing: Vec<Recorded<'_>> = ranks.iter().map(Synced::closing).collect();
    let narrowest = narrowest(&closing, &ranks[0].synchronized.model, MAX_DRIFT);
    let interval = |(rank, [earliest, latest]): (&Synced, [f64; 2])| {
        let stated = |at| rank.synchronized.bound.around(rank.shows(at));
        let outside = |at| {
            let ([earliest, latest], reference) = (stated(at), ranks[0].shows(at));
            (earliest - reference).max(reference - latest)
        };
        let [first, last] = stated(rank.done);
        // Relative to the end of rank 0.
        let reference =
            (ranks[0].shows(rank.done) - ranks[0].shows(ranks[0].done)).as_nanos() as f64;
        Interval {
            width: last - first,
            narrowest: latest - earliest,
            possible: (earliest - 1.0..=latest + 1.0).contains(&reference),
            outside: LATER.map(|later| outside(end + later)),
        }
    };
    ranks.iter().zip(narrowest).map(interval).collect()
}
