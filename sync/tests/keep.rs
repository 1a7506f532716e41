//! Clocks that sessions keep: true errors, bounds, steps, and sessions on which rank 0 decides.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[path = "common/kept_clocks.rs"]
mod kept_clocks;
#[expect(dead_code, reason = "helpers of other tests")]
#[path = "common/simulated.rs"]
mod simulated;

use core::cell::Cell;

use downbeat_clock_core::spline::ConstrainedSpline;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, FitError, Global, Ticks, Timestamp,
};
use downbeat_sync::keep::{Keeper, NodeKeeper};
use downbeat_sync::sim::{
    Clocks, DelayBursts, DelayTail, Network, NetworkLink, SimClock, SimCluster, SimComm,
    VirtualTime,
};
use downbeat_sync::{Algorithm, Comm, LocalClock, SyncError};
use simulated::cluster;

const PERIOD: Duration = Duration::from_secs(1);

/// A rank after each of its sessions.
type Kept = (
    SimClock,
    Vec<(
        Timestamp<VirtualTime>,
        ClockModel<Counter, Global>,
        ErrorBound<Global>,
    )>,
);

/// Synchronizes a clock by the algorithm of this label, and begins to keep it.
async fn keeper<K: Clock>(
    label: &str,
    period: Duration,
    me: &LocalClock<'_, K>,
    comm: &SimComm,
) -> Keeper {
    let algorithm: Algorithm = label.parse().unwrap();
    let synchronized = algorithm.synchronize(me, comm).await.unwrap();
    Keeper::new(me, &synchronized, period)
}

/// Keeps clocks while all ranks work in steps; returns each with all its sessions.
fn kept(cluster: &SimCluster, steps: u32) -> Vec<Kept> {
    kept_as_declared(cluster, steps, |me| me)
}

fn kept_as_declared(
    cluster: &SimCluster,
    steps: u32,
    declare: for<'a> fn(LocalClock<'a, SimClock>) -> LocalClock<'a, SimClock>,
) -> Vec<Kept> {
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let me = declare(comm.local_clock(&clock).unwrap());
        let mut keeper = keeper("cube/4/10", PERIOD, &me, comm).await;
        let mut sessions = Vec::new();
        for step in 0..steps {
            comm.pause(
                Duration::from_millis(50)
                    + Duration::from_micros(((comm.rank() + step) % 7).into()),
            );
            if let Some(session) = keeper.keep(&me, comm).await.unwrap() {
                sessions.push((comm.true_now(), session.model, session.bound));
            }
        }
        (clock.clone(), sessions)
    };
    cluster.run(program).unwrap()
}

/// Returns the largest true error after each session; all are within their bounds, at once and before the next session.
fn errors(kept: &[Kept]) -> Vec<i64> {
    let sessions = kept[0].1.len();
    let largest = |session: usize| {
        let end = kept
            .iter()
            .map(|(_, sessions)| sessions[session].0)
            .max()
            .unwrap();
        let error_at = |at: Timestamp<VirtualTime>| {
            let shown = |(clock, sessions): &Kept| sessions[session].1.apply(clock.ticks_at(at));
            let first = shown(&kept[0]);
            let error = |rank: &Kept| {
                let shown = shown(rank);
                assert!(
                    rank.1[session].2.allows(shown, first),
                    "{at}: {shown} {first}"
                );
                (shown - first).as_nanos().abs()
            };
            kept.iter().map(error).max().unwrap()
        };
        error_at(end + PERIOD);
        error_at(end)
    };
    (0..sessions).map(largest).collect()
}

#[test]
fn kept_clocks_are_right_and_within_their_bounds() {
    for ranks in [1, 2, 3, 5, 8, 17, 33, 64] {
        let kept = kept(
            &cluster(ranks, Network::typical(), Clocks::typical(), 3),
            200,
        );
        // Of ten periods; closer at first.
        let errors = errors(&kept);
        assert!(
            (12..16).contains(&errors.len()),
            "{ranks}: {}",
            errors.len()
        );
        assert!(
            errors[2..].iter().all(|error| *error < 100),
            "{ranks}: {errors:?}"
        );
    }
}

#[test]
fn without_noise_clocks_are_right_to_rounding() {
    let link = NetworkLink {
        latency: Duration::from_micros(1),
        per_byte: 0.0,
        asymmetry: Duration::ZERO,
        tail: DelayTail::None,
        bursts: DelayBursts::None,
    };
    let network = Network {
        socket: link.clone(),
        node: link.clone(),
        switch: link,
        card: None,
        ..Network::typical()
    };
    let clocks = Clocks {
        wander: None,
        read_cost: Duration::ZERO,
        ..Clocks::typical()
    };
    for ranks in [2, 3, 6, 16, 31] {
        let kept = kept(&cluster(ranks, network.clone(), clocks.clone(), 1), 100);
        let errors = errors(&kept);
        assert!(
            errors.iter().all(|error| *error <= 3),
            "{ranks}: {errors:?}"
        );
    }
}

#[test]
fn the_past_is_known_better_than_the_present() {
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let me = comm.local_clock(&clock).unwrap();
        let mut keeper = keeper("cube/4/10", PERIOD, &me, comm).await;
        let mut middles = Vec::new();
        for _ in 0..40 {
            comm.pause(PERIOD / 2);
            middles.push((comm.true_now(), keeper.past(&me.base()).len()));
            comm.pause(PERIOD / 2);
            keeper.keep_now(&me, comm).await.unwrap().unwrap();
        }
        assert!(comm.rank() == 0 || !keeper.allan_deviation().is_empty());
        (clock.clone(), middles, keeper.past(&me.base()))
    };
    let clocks = Clocks::typical();
    let kept = cluster(4, Network::typical(), clocks, 2)
        .run(program)
        .unwrap();
    let base = SimClock::nominal_model().unwrap();
    let (first, ..) = &kept[0];
    assert_eq!(kept[0].2, [], "rank 0 is the reference");
    for (clock, middles, past) in &kept[1..] {
        assert_eq!((past.len(), middles[39].1), (40, 39));
        let curve = ConstrainedSpline::new(past).unwrap();
        let origin = |at| first.ticks_at(at).0 as i64 - SimClock::ZERO.0 as i64;
        let shown = |at| curve.apply(base.apply(clock.ticks_at(at))).as_nanos();
        // Global time is that of rank 0.
        let errors = middles[3..].iter().map(|(at, _)| shown(*at) - origin(*at));
        let largest = errors.map(i64::abs).max().unwrap();
        assert!(largest < 60, "{largest}");
    }
}

/// Half the width of what is certain on the ranks beyond rank 0 shortly before the last session.
fn certain(kept: &[Kept]) -> Duration {
    let width = |(_, sessions): &Kept| {
        let (_, _, bound) = sessions.last().unwrap();
        bound.at_time(bound.at + PERIOD)
    };
    kept[1..].iter().map(width).max().unwrap()
}

#[test]
fn a_declared_wander_narrows_what_is_certain() {
    let mut clocks = Clocks::typical();
    let cluster = |clocks: &Clocks| cluster(17, Network::typical(), clocks.clone(), 3);
    let by_drift = kept_as_declared(&cluster(&clocks), 700, |me| me.max_drift(1e-4));
    let by_wander = kept_as_declared(&cluster(&clocks), 700, |me| {
        me.max_drift(1e-4).max_wander(1e-7)
    });
    for kept in [&by_drift, &by_wander] {
        // Checks that all errors are within the bounds.
        errors(kept);
    }
    let [drift, wander] = [by_drift, by_wander].map(|kept| certain(&kept));
    assert!(drift > Duration::from_micros(100), "{drift}");
    assert!(wander < Duration::from_micros(10), "{wander}");

    // Clocks that wander by more.
    clocks.wander.as_mut().unwrap().drift_per_sqrt_second = 1e-6;
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let me = comm.local_clock(&clock).unwrap().max_wander(1e-8);
        let mut keeper = keeper("cube/4/10", PERIOD, &me, comm).await;
        loop {
            comm.pause(PERIOD);
            if let Err(why) = keeper.keep_now(&me, comm).await {
                return why;
            }
        }
    };
    let failed = cluster(&clocks).run(program).unwrap();
    let named = failed
        .iter()
        .filter(|why| !matches!(why, SyncError::OtherRank(_)));
    assert!(named.clone().count() > 0);
    for why in named {
        let stepped = matches!(
            why,
            SyncError::Pair {
                why: FitError::Stepped { .. },
                ..
            }
        );
        assert!(stepped, "{why}");
    }
}

/// Ranks of a node that share a model have one after each session, too, and bounds of their own; other ranks measure themselves.
#[test]
fn ranks_of_a_node_stay_together() {
    for (label, together) in [("h2hca(cube/4/10,prop)", true), ("cube/4/10", false)] {
        let algorithm: Algorithm = label.parse().unwrap();
        let program = async |comm: &SimComm| {
            let clock = comm.clock();
            let me = comm.local_clock(&clock).unwrap();
            let synchronized = algorithm.synchronize(&me, comm).await.unwrap();
            let keeper = NodeKeeper::new(&me, &synchronized, comm, PERIOD).await;
            let mut keeper = keeper.unwrap().lasting(Duration::from_micros(500));
            let mut sessions = Vec::new();
            for _ in 0..120 {
                comm.pause(PERIOD / 10);
                if let Some(session) = keeper.keep(&me).await.unwrap() {
                    sessions.push((comm.true_now(), session.model, session.bound));
                }
            }
            assert_eq!(
                keeper.past(&me.base()).is_empty(),
                comm.rank() < if together { 4 } else { 1 }
            );
            assert!(keeper.due_in(clock.ticks()) <= PERIOD);
            (clock.clone(), sessions)
        };
        let cluster = SimCluster {
            ranks_per_node: 4,
            ..cluster(22, Network::typical(), Clocks::typical(), 5)
        };
        let kept: Vec<Kept> = cluster.run(program).unwrap();
        let errors = errors(&kept);
        assert!(
            errors.len() > 10 && errors[2..].iter().all(|error| *error < 150),
            "{label}: {errors:?}"
        );
        for node in kept.chunks(4) {
            let last = |(_, sessions): &Kept| sessions.last().unwrap().1;
            assert_eq!(
                node.iter().all(|rank| last(rank) == last(&node[0])),
                together,
                "{label}"
            );
        }
    }
}

/// Ranks that only keep take part in a session of rank 0, and none makes one alone.
#[test]
fn rank_0_decides() {
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let me = comm.local_clock(&clock).unwrap();
        let mut keeper = keeper("cube/2/5", Duration::from_secs(100), &me, comm).await;
        assert!(keeper.due_in(clock.ticks()) > Duration::from_secs(6));
        let mut sessions = Vec::new();
        for of_first in [false, true] {
            let now = of_first == (comm.rank() == 0);
            let session = match now {
                true => keeper.keep_now(&me, comm).await,
                false => keeper.keep(&me, comm).await,
            };
            sessions.push(session.unwrap().is_some());
        }
        sessions
    };
    let cluster = cluster(3, Network::typical(), Clocks::typical(), 1);
    for sessions in cluster.run(program).unwrap() {
        assert_eq!(sessions, [false, true]);
    }
}

/// Clock that steps after some readings.
#[derive(Debug)]
struct Stepping {
    clock: SimClock,
    ahead: Cell<u64>,
    readings: Cell<u32>,
}

impl Stepping {
    fn new(clock: SimClock) -> Self {
        Self {
            clock,
            ahead: Cell::new(0),
            readings: Cell::new(0),
        }
    }

    fn step_after(&self, readings: u32, ahead: u64) {
        self.readings.set(readings);
        self.ahead.set(ahead);
    }
}

impl Clock for Stepping {
    fn ticks(&self) -> Ticks {
        let readings = self.readings.get();
        self.readings.set(readings.saturating_sub(1));
        let ahead = if readings > 0 { 0 } else { self.ahead.get() };
        Ticks(self.clock.ticks().0 + ahead)
    }

    fn grain(&self) -> u64 {
        self.clock.grain()
    }
}

/// Keeps clocks, of which that of rank 1 steps before the tenth session; returns the error of each session on each rank.
fn kept_over_a_step(step: u64) -> Vec<Vec<Result<i64, SyncError>>> {
    let program = async |comm: &SimComm| {
        let clock = Stepping::new(comm.clock());
        let me = LocalClock::new(&clock, SimClock::nominal_model().unwrap());
        let mut keeper = keeper("cube/4/10", PERIOD, &me, comm).await;
        let mut sessions = Vec::new();
        for session in 0..30 {
            comm.pause(PERIOD);
            if session == 20 && comm.rank() == 1 {
                clock.step_after(0, step);
            }
            let kept = keeper.keep_now(&me, comm).await;
            sessions.push(kept.map(|kept| kept.unwrap().ahead.as_nanos()));
            if kept.is_err() {
                break;
            }
        }
        sessions
    };
    let clocks = Clocks {
        wander: None,
        ..Clocks::typical()
    };
    cluster(4, Network::typical(), clocks, 1)
        .run(program)
        .unwrap()
}

#[test]
fn a_large_step_is_an_error_on_all_ranks() {
    let ranks = kept_over_a_step(1_000_000_000);
    for (rank, sessions) in ranks.iter().enumerate() {
        let why = *sessions.last().unwrap().as_ref().unwrap_err();
        assert_eq!(sessions.len(), 21, "{rank}");
        // The rank on the path from it to rank 0 is that itself; rank 3 learns from rank 1.
        match (rank, why) {
            (
                1,
                SyncError::Pair {
                    reference: 0,
                    why: FitError::Stepped { .. },
                },
            ) => {}
            (
                3,
                SyncError::Pair {
                    reference: 1,
                    why: FitError::Stepped { .. },
                },
            ) => {}
            (0 | 2, SyncError::OtherRank(1)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The clock of rank 1 can have drifted by as much: the third session is certain that it stepped.
#[test]
fn a_small_step_is_followed() {
    let ranks = kept_over_a_step(50_000);
    let ahead: Vec<i64> = ranks[1].iter().map(|ahead| ahead.unwrap()).collect();
    let all: i64 = ahead[20..].iter().sum();
    assert!((49_000..51_000).contains(&all), "{ahead:?}");
    assert!(
        ahead[24..].iter().all(|ahead| ahead.abs() < 100),
        "{ahead:?}"
    );
    for rank in [2, 3] {
        let ahead: Vec<i64> = ranks[rank].iter().map(|ahead| ahead.unwrap()).collect();
        // One edge far from consensus hardly counts.
        assert!(
            ahead[5..].iter().all(|ahead| ahead.abs() < 20_000),
            "{ahead:?}"
        );
    }
}

/// Clocks of any resolution and rates that a short, disturbed synchronization learned badly are no steps.
#[test]
fn sound_clocks_are_kept_without_an_error() {
    for label in kept_clocks::LABELS {
        for granularity in kept_clocks::GRANULARITIES {
            for (ranks, seed) in [(2, 1), (3, 2), (64, 5)] {
                let kept = kept_clocks::keep(label, ranks, granularity, seed);
                assert_eq!(kept, Ok(()), "{label}, {granularity} ns, {ranks} ranks");
            }
        }
    }
}

/// A clock that steps by three of its resolutions in the middle of a session contradicts the messages, if round trips are shorter.
#[test]
fn a_step_of_three_resolutions_within_a_session_is_an_error() {
    for (granularity, ranks) in [(10_000, 2), (10_000, 4), (100_000, 3)] {
        let program = async |comm: &SimComm| {
            let clock = Stepping::new(comm.clock());
            let base = SimClock::nominal_model().unwrap();
            let me = LocalClock::new(&clock, base);
            let mut keeper = keeper("cube/20/40", PERIOD, &me, comm).await;
            for _ in 0..3 {
                keeper.keep_now(&me, comm).await?;
            }
            if comm.rank() == 1 {
                clock.step_after(60, 3 * granularity);
            }
            keeper.keep_now(&me, comm).await
        };
        let clocks = Clocks {
            granularity,
            ..Clocks::typical()
        };
        let kept = cluster(ranks, Network::typical(), clocks, 1).run(program);
        for (rank, kept) in kept.unwrap().into_iter().enumerate() {
            assert!(
                kept.is_err(),
                "{granularity} ns, rank {rank} of {ranks}: {kept:?}"
            );
        }
    }
}
