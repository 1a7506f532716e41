//! HCA, HCA2 and HCA3 compared with the pseudo code of the papers, implemented directly: in
//! floating-point numbers, one rank after the other, with slopes and intercepts, from the
//! timestamps of the simulated ranks.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use core::cell::RefCell;

use downbeat_clock_core::{Clock, Duration, Ticks, Timestamp};
use downbeat_sync::payload::Payload;
use downbeat_sync::sim::{
    Clocks, DelayTail, Drift, Network, NetworkLink, SimClock, SimCluster, SimComm, VirtualTime,
};
use downbeat_sync::{Algorithm, Comm, CommError, Synchronized};

/// Fit points and exchanges of all labels.
const POINTS: usize = 6;
const EXCHANGES: usize = 5;

/// Exchanges at the end of every synchronization, which change no model.
const CLOSING_EXCHANGES: usize = 10;

/// Action of a rank that is part of an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Opened(f64),
    Closed(f64),
    Read(f64),
    Sent(u32),
    Received(u32),
}

/// Rank that records its actions. Times are nanoseconds by its own clock.
struct RecordingComm<'a> {
    comm: &'a SimComm,
    clock: SimClock,
    actions: RefCell<Vec<Action>>,
}

impl RecordingComm<'_> {
    fn note(&self, action: impl FnOnce(f64) -> Action, ticks: Ticks) -> Ticks {
        self.actions.borrow_mut().push(action(local(ticks)));
        ticks
    }
}

/// Converts ticks to the local time of a rank.
fn local(ticks: Ticks) -> f64 {
    (ticks.0 as i64 - SimClock::ZERO.0 as i64) as f64
}

impl Clock for &RecordingComm<'_> {
    fn ticks(&self) -> Ticks {
        self.note(Action::Read, self.clock.ticks())
    }
    fn open(&self) -> Ticks {
        self.note(Action::Opened, self.clock.open())
    }
    fn close(&self) -> Ticks {
        self.note(Action::Closed, self.clock.close())
    }
}

impl Comm for &RecordingComm<'_> {
    fn rank(&self) -> u32 {
        self.comm.rank()
    }
    fn size(&self) -> u32 {
        self.comm.size()
    }
    async fn send<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.actions.borrow_mut().push(Action::Sent(to));
        self.comm.send(to, payload).await
    }
    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.comm.send_sync(to, payload).await
    }
    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        let payload = self.comm.recv(from).await?;
        self.actions.borrow_mut().push(Action::Received(from));
        Ok(payload)
    }
    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(None)
    }
}

/// Line: `offset = slope * x + intercept`, client minus reference.
#[derive(Clone, Copy, Debug)]
struct PaperLine {
    slope: f64,
    intercept: f64,
}

const IDENTITY: PaperLine = PaperLine {
    slope: 0.0,
    intercept: 0.0,
};

impl PaperLine {
    fn apply(self, x: f64) -> f64 {
        x - (self.slope * x + self.intercept)
    }

    /// Merges `A->B`, which is `self`, with `B->C`.
    fn merged(self, second: Self) -> Self {
        Self {
            slope: self.slope + second.slope - self.slope * second.slope,
            intercept: self.intercept + second.intercept - self.intercept * second.slope,
        }
    }
}

/// Recorded actions of all ranks.
struct Recording(Vec<Vec<Action>>);

impl Recording {
    /// Returns the exchanges between a client and its reference, in order: sent, answered,
    /// received, each by its own clock. Those of the closing exchange are left out.
    fn exchanges(&self, client: u32, reference: u32) -> Vec<[f64; 3]> {
        let asked = self.0[client as usize]
            .windows(4)
            .filter_map(|actions| match *actions {
                [
                    Action::Opened(sent),
                    Action::Sent(to),
                    Action::Received(_),
                    Action::Closed(received),
                ] if to == reference => Some((sent, received)),
                _ => None,
            });
        let answered = self.0[reference as usize]
            .windows(3)
            .filter_map(|actions| match *actions {
                [Action::Received(from), Action::Read(at), Action::Sent(_)] if from == client => {
                    Some(at)
                }
                _ => None,
            });
        let (asked, answered): (Vec<_>, Vec<_>) = (asked.collect(), answered.collect());
        assert_eq!(
            asked.len(),
            answered.len(),
            "rank {client} asked, rank {reference} answered"
        );
        let inside = 1 << self.0.len().ilog2();
        let parent = if client < inside {
            client & (client - 1)
        } else {
            client - inside
        };
        let closing = if reference == parent {
            CLOSING_EXCHANGES
        } else {
            0
        };
        let learning = asked.len() - closing;
        asked
            .into_iter()
            .zip(answered)
            .take(learning)
            .map(|((sent, received), at)| [sent, at, received])
            .collect()
    }
}

/// Algorithm 7, corrected: the middle of the interval, at the middle of the session.
fn skampi_offset(session: &[[f64; 3]], reference: PaperLine) -> (f64, f64) {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for [sent, answered, received] in session {
        let answered = reference.apply(*answered);
        low = low.max(sent - answered);
        high = high.min(received - answered);
    }
    (
        (session[0][0] + session[session.len() - 1][2]) / 2.0,
        (low + high) / 2.0,
    )
}

/// Algorithm 2: least squares through the first points, shifted to the last one if there is one
/// more.
fn learn(exchanges: &[[f64; 3]], reference: PaperLine) -> PaperLine {
    let points: Vec<_> = exchanges
        .chunks(EXCHANGES)
        .map(|session| skampi_offset(session, reference))
        .collect();
    let fitted = &points[..POINTS];
    let count = POINTS as f64;
    let mean_x = fitted.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = fitted.iter().map(|(_, y)| y).sum::<f64>() / count;
    let sxy: f64 = fitted
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let sxx: f64 = fitted.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = sxy / sxx;
    match points.get(POINTS) {
        Some((x, y)) => PaperLine {
            slope,
            intercept: y - slope * x,
        },
        None => PaperLine {
            slope,
            intercept: mean_y - slope * mean_x,
        },
    }
}

/// Algorithm 1, from the root to the leaves: every reference answers with global time.
fn hca3(record: &Recording, ranks: u32) -> Vec<PaperLine> {
    let mut models = vec![IDENTITY; ranks as usize];
    let rounds = ranks.ilog2();
    let inside = 1 << rounds;
    for round in (1..=rounds).rev() {
        for reference in (0..inside).step_by(1 << round) {
            let client = reference + (1 << (round - 1));
            models[client as usize] = learn(
                &record.exchanges(client, reference),
                models[reference as usize],
            );
        }
    }
    for client in inside..ranks {
        let reference = client - inside;
        models[client as usize] = learn(
            &record.exchanges(client, reference),
            models[reference as usize],
        );
    }
    models
}

/// From the leaves to the root: every reference answers with its own time, and the lines of a
/// subtree are merged with the line that its root learns, from its first sessions.
fn up_the_tree(
    record: &Recording,
    ranks: u32,
    sessions: usize,
    merged: fn(PaperLine, PaperLine) -> PaperLine,
) -> Vec<PaperLine> {
    let line = |client, reference| {
        let exchanges = record.exchanges(client, reference);
        learn(
            &exchanges[..exchanges.len().min(sessions * EXCHANGES)],
            IDENTITY,
        )
    };
    let mut models = vec![IDENTITY; ranks as usize];
    let rounds = ranks.ilog2();
    let inside: u32 = 1 << rounds;
    for round in 0..rounds {
        for reference in (0..inside).step_by(2 << round) {
            let client = reference + (1 << round);
            let line = line(client, reference);
            for below in client..client + (1 << round) {
                models[below as usize] = merged(models[below as usize], line);
            }
        }
    }
    for client in inside..ranks {
        let reference = client - inside;
        models[client as usize] = merged(line(client, reference), models[reference as usize]);
    }
    models
}

fn hca2(record: &Recording, ranks: u32) -> Vec<PaperLine> {
    up_the_tree(record, ranks, POINTS + 1, PaperLine::merged)
}

/// HCA2, followed by an offset to the root, to which each line is shifted.
fn hca(record: &Recording, ranks: u32) -> Vec<PaperLine> {
    let mut models = up_the_tree(record, ranks, POINTS, PaperLine::merged);
    for (client, model) in (1..).zip(&mut models[1..]) {
        let exchanges = record.exchanges(client, 0);
        let (x, offset) = skampi_offset(&exchanges[exchanges.len() - EXCHANGES..], IDENTITY);
        model.intercept = offset - model.slope * x;
    }
    models
}

/// Result of a rank, its clock, its recorded actions, and the time when it was done.
type RecordedRank = (Synchronized, SimClock, Vec<Action>, Timestamp<VirtualTime>);

fn simulate(label: &str, ranks: u32, seed: u64) -> Vec<RecordedRank> {
    let tail = DelayTail::LogNormal {
        median: Duration::from_nanos(300),
        sigma: 1.0,
    };
    let switch = NetworkLink {
        tail,
        asymmetry: Duration::from_nanos(100),
        ..NetworkLink::steady(Duration::from_micros(3))
    };
    // Drifts larger than those of quartzes, so that the products of slopes and intercepts matter.
    let clocks = Clocks {
        offset: Duration::from_secs(1),
        drift: Drift::Within(1e-3),
        ..Clocks::perfect()
    };
    let network = Network {
        switch,
        ..Network::noiseless()
    };
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network,
        clocks,
        seed,
    };
    let algorithm: Algorithm = label.parse().unwrap();
    let program = async |comm: &SimComm| {
        let recorder = RecordingComm {
            comm,
            clock: comm.clock(),
            actions: RefCell::default(),
        };
        let clock = &&recorder;
        let me = downbeat_sync::LocalClock::new(clock, SimClock::nominal_model().unwrap());
        let found = algorithm.synchronize(&me, clock).await.unwrap();
        (
            found,
            comm.clock(),
            recorder.actions.take(),
            comm.true_now(),
        )
    };
    cluster.run(program).unwrap()
}

/// Returns the difference between our models and the direct implementation, relative to the
/// rounding.
///
/// Our models are rounded to whole nanoseconds: an answer in global time, the middle of an
/// interval, the middle of a session, the point that a line goes through and the result, so an
/// offset differs by up to 1.5 ns per hop, and a slope by up to `3 * 1.5 / span`. Floating-point
/// numbers of seconds, as nanoseconds, are precise to 2e-7 here.
fn disagreement(
    label: &str,
    ranks: u32,
    seed: u64,
    paper: fn(&Recording, u32) -> Vec<PaperLine>,
) -> f64 {
    let outcomes = simulate(label, ranks, seed);
    let models = paper(
        &Recording(
            outcomes
                .iter()
                .map(|(_, _, actions, _)| actions.clone())
                .collect(),
        ),
        ranks,
    );
    let end = outcomes.iter().map(|(.., done)| *done).max().unwrap();
    let span = (POINTS - 1) as f64 * EXCHANGES as f64 * 6_000.0;
    let hops = f64::from(ranks.ilog2() + 1);
    let mut worst: f64 = 0.0;
    for late in [0, 1_000_000, 1_000_000_000] {
        let at = end + Duration::from_nanos(late);
        for ((found, clock, ..), paper) in outcomes.iter().zip(&models) {
            let ticks = clock.ticks_at(at);
            let difference = found.model.apply(ticks).as_nanos() as f64 - paper.apply(local(ticks));
            let rounding = hops * (2.0 + 4.5 * at.as_nanos() as f64 / span);
            worst = worst.max(difference.abs() / rounding);
        }
    }
    worst
}

#[test]
fn the_algorithms_do_what_the_papers_say() {
    type PaperAlgorithm = fn(&Recording, u32) -> Vec<PaperLine>;
    let labels: [(&str, PaperAlgorithm); 5] = [
        ("hca/6/skampi/5", hca),
        ("hca2/6/skampi/5", hca2),
        ("hca2/6/skampi/5/recompute", hca2),
        ("hca3/6/skampi/5", hca3),
        ("hca3/6/skampi/5/recompute", hca3),
    ];
    for (label, paper) in labels {
        for ranks in [5, 8, 13] {
            for seed in 0..5 {
                let found = disagreement(label, ranks, seed, paper);
                assert!(
                    found <= 1.0,
                    "{label}, {ranks} ranks, seed {seed}: {found} times what rounding explains"
                );
            }
        }
    }
}

/// The comparison detects deviations.
#[test]
fn deviating_algorithms_are_detected() {
    let sums = |record: &Recording, ranks| {
        let merged = |first: PaperLine, second: PaperLine| PaperLine {
            slope: first.slope + second.slope,
            intercept: first.intercept + second.intercept,
        };
        up_the_tree(record, ranks, POINTS + 1, merged)
    };
    let unmerged =
        |record: &Recording, ranks| up_the_tree(record, ranks, POINTS + 1, |first, _| first);
    let without_last_point =
        |record: &Recording, ranks| up_the_tree(record, ranks, POINTS, PaperLine::merged);
    let worst = |label, paper: fn(&Recording, u32) -> Vec<PaperLine>| {
        (0..5)
            .map(|seed| disagreement(label, 8, seed, paper))
            .fold(0.0, f64::max)
    };
    assert!(worst("hca2/6/skampi/5", sums) > 10.0);
    assert!(worst("hca2/6/skampi/5", unmerged) > 10.0);
    assert!(worst("hca2/6/skampi/5/recompute", without_last_point) > 1.0);
    assert!(worst("hca/6/skampi/5", hca2) > 1.0);
}
