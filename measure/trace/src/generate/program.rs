//! The parameters of a synthetic program, and what follows from them without running it.

use downbeat_clock_core::{Duration, Global, Local, Timestamp};
use downbeat_sync::internal::{require, require_non_negative};
use downbeat_sync::{Clocks, ClusterError, Drift, DriftWalk};

use crate::{Action, CommunicatorId, Latencies, LocationId, Place};

/// A program that exchanges messages round after round, on a cluster with clocks that are wrong in a known way.
///
/// It happens in true time, where every message takes at least its latency; each location sees it by the clock of its
/// node. The clock of the first node is right. In a round, every process does a few things of its own, sends messages,
/// waits for those to it in any order, as non-blocking receives do, and now and then there is a collective operation, or
/// threads are started.
///
/// Equal programs make equal traces. Nothing of them is kept: they happen again whenever they are asked for.
///
/// ```
/// use downbeat_trace::{ControlledLogicalClock, Matching, PreSynchronization, SyntheticProgram, Verdict};
///
/// let program = SyntheticProgram { processes: 2, ..SyntheticProgram::new(3, 10_000) };
/// let mut trace = program.trace(Matching::default())?;
/// PreSynchronization::new(program.master()).maps(&program.places(), &program.sessions()?)?.correct(&mut trace)?;
///
/// let before = Verdict::new(&trace, &trace.times(), &program.latencies)?;
/// let corrected = ControlledLogicalClock::new(program.latencies).correct(&trace)?;
/// let after = Verdict::new(&trace, corrected.times(), &program.latencies)?;
/// println!("{} of {} messages were wrong", before.messages.violated, before.messages.total);
/// assert!(after.holds());
/// println!("{} ns of error are left", program.error(corrected.times())?.centred());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticProgram {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many processes there are on each of them.
    pub processes: u32,
    /// How many threads a process has, one of which sends and receives.
    pub threads: u32,
    /// How many rounds there are.
    pub rounds: u32,
    /// How long the program runs; if that is too short for its rounds, they are behind at the end.
    pub duration: Duration,
    /// How many things a process does in a round that are nobody else's business.
    pub internal: u32,
    /// Who sends messages to whom.
    pub traffic: SyntheticTraffic,
    /// Every so many rounds there is a collective operation, of every kind in turn; never, if 0.
    pub collective_every: u32,
    /// Every so many rounds all processes start their threads, which meet at a barrier and end; never, if 0.
    pub fork_every: u32,
    /// How long messages take at least.
    pub latencies: Latencies,
    /// How much longer they take on average; exponentially distributed.
    pub jitter: Duration,
    /// How wrong clocks are. Drifts change as long as the program runs, and readings take no time.
    pub clocks: Clocks,
    /// How many sessions there are in which clocks are compared: one at the start, then one at the end, then in between.
    pub sessions: u32,
    /// How many samples there are of each location in a session, 50 us apart.
    pub samples: u32,
    /// How wrong samples are: the mean of either of two delays, which should be equal and are exponentially distributed.
    pub noise: Duration,
    /// Messages that arrive before they can, by clocks that were made one by linear interpolation from the first to the
    /// last session, or as they are if there is none: this share of all messages, if clocks are wrong enough. As soon as
    /// there are more, receivers are late. At most about half can be: what arrives too early one way is late the other
    /// way.
    pub violated: f64,
    /// Another seed makes other chances.
    pub seed: u64,
}

/// Who sends messages to whom in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyntheticTraffic {
    /// Every process to the next one.
    Ring,
    /// Processes, two and two by lot, to each other.
    Pairs,
    /// Every process to its neighbours in a grid, whose edges meet: four, unless they are few.
    Stencil,
}

/// What happens in a [`SyntheticProgram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticEvent {
    /// Where.
    pub location: LocationId,
    /// When in truth, which is also what the master shows.
    pub truth: Timestamp<Global>,
    /// When by the location's clock.
    pub local: Timestamp<Local>,
    /// What.
    pub action: Action,
}

/// How far apart the samples of a session are, in nanoseconds.
pub(super) const SAMPLE_SPACING: i64 = 50_000;

impl SyntheticProgram {
    /// Nodes with one process each, which exchange messages two and two, a few million times slower than they could: some
    /// 20 minutes, in which clocks like those of [`Clocks::typical`] come to be off by tens of microseconds. The number of
    /// events is nearly reached.
    pub fn new(nodes: u32, events: u64) -> Self {
        let [process, node, beyond] = [200, 500, 2_000].map(Duration::from_nanos);
        let wander = DriftWalk {
            drift_per_sqrt_second: 1e-8,
            interval: Duration::from_secs(1),
            lasting: Duration::ZERO,
        };
        Self {
            nodes,
            processes: 1,
            threads: 1,
            rounds: 0,
            duration: Duration::from_secs(1_200),
            internal: 6,
            traffic: SyntheticTraffic::Pairs,
            collective_every: 20,
            fork_every: 0,
            latencies: Latencies::new(process, node, beyond).unwrap_or(Latencies::ZERO),
            jitter: Duration::from_nanos(500),
            clocks: Clocks {
                drift: Drift::Normal(5e-6),
                wander: Some(wander),
                ..Clocks::typical()
            },
            sessions: 2,
            samples: 20,
            noise: Duration::from_nanos(500),
            violated: 0.5,
            seed: 1,
        }
        .with_events(events)
    }

    /// The program with as many rounds as make about so many events, at least one.
    #[must_use]
    pub fn with_events(self, events: u64) -> Self {
        let round = Self {
            rounds: u32::MAX,
            ..self.clone()
        }
        .most_events()
            / f64::from(u32::MAX);
        Self {
            rounds: (events as f64 / round)
                .clamp(1.0, f64::from(u32::MAX))
                .round() as u32,
            ..self
        }
    }

    /// How many events there are at most, over all locations.
    fn most_events(&self) -> f64 {
        let [process, thread] = self.reserved().map(|(events, _)| events as f64);
        f64::from(self.ranks()) * (process + thread * f64::from(self.threads.saturating_sub(1)))
    }

    /// Looks for a parameter that makes no sense.
    ///
    /// # Errors
    /// With its name.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let name = |name: &str| name.to_owned();
        let positive = "positive";
        require(self.nodes > 0, || name("nodes"), positive)?;
        require(self.processes > 0, || name("processes"), positive)?;
        require(self.threads > 0, || name("threads"), positive)?;
        let locations = [self.processes, self.threads]
            .iter()
            .try_fold(self.nodes, |all, more| all.checked_mul(*more));
        require(
            locations.is_some_and(|all| all < 1 << 28),
            || name("nodes"),
            "so few that there are 2^28 threads",
        )?;
        require(
            self.duration > Duration::ZERO,
            || name("duration"),
            positive,
        )?;
        require(
            self.duration < Duration::from_secs(1 << 29),
            || name("duration"),
            "less than 17 years",
        )?;
        require(
            self.latencies.levels()[2] < Duration::from_secs(1),
            || name("latencies"),
            "below a second",
        )?;
        require_non_negative(self.jitter.as_nanos() as f64, || name("jitter"))?;
        require_non_negative(self.noise.as_nanos() as f64, || name("noise"))?;
        require(
            self.sessions == 0 || self.samples > 0,
            || name("samples"),
            positive,
        )?;
        require(
            (0.0..=1.0).contains(&self.violated),
            || name("violated"),
            "from 0 to 1",
        )?;
        self.lasting_clocks().validate()
    }

    /// Whose clock is right.
    pub fn master(&self) -> LocationId {
        LocationId(0)
    }

    /// How many processes there are.
    pub(super) fn ranks(&self) -> u32 {
        self.nodes * self.processes
    }

    /// Where all locations are: first processes, then the other threads of each of them.
    pub fn places(&self) -> Vec<Place> {
        let place = |process: u32| Place {
            node: process / self.processes,
            process,
        };
        let others = (0..self.ranks()).flat_map(|rank| (1..self.threads).map(move |_| rank));
        (0..self.ranks()).chain(others).map(place).collect()
    }

    /// The members of all communicators: all processes, these the other way round, and the threads of each process.
    pub fn communicators(&self) -> Vec<Vec<LocationId>> {
        let world = (0..self.ranks()).map(LocationId);
        let mut all = vec![world.clone().collect(), world.clone().rev().collect()];
        if self.threads > 1 {
            all.extend(world.map(|rank| [rank].into_iter().chain(self.threads_of(rank)).collect()));
        }
        all
    }

    /// The other threads of a process.
    pub(super) fn threads_of(&self, rank: LocationId) -> impl Iterator<Item = LocationId> + use<> {
        let others = self.threads - 1;
        let first = self.ranks() + rank.0 * others;
        (first..first + others).map(LocationId)
    }

    pub(super) fn team_of(&self, rank: LocationId) -> CommunicatorId {
        CommunicatorId(2 + rank.0)
    }

    /// The walks of the clocks' drifts last as long as the program does.
    pub(super) fn lasting_clocks(&self) -> Clocks {
        let wander = self.clocks.wander.map(|wander| DriftWalk {
            lasting: self.end() + Duration::from_secs(1),
            ..wander
        });
        Clocks {
            wander,
            ..self.clocks.clone()
        }
    }

    /// How long a session takes.
    pub(super) fn session(&self) -> Duration {
        Duration::from_nanos(if self.sessions > 0 {
            i64::from(self.samples) * SAMPLE_SPACING
        } else {
            0
        })
    }

    /// When the program ends, if it is not late: it begins after the first session.
    pub(super) fn end(&self) -> Duration {
        self.session() + self.duration
    }

    /// When sessions begin.
    pub(super) fn session_starts(&self) -> impl Iterator<Item = i64> + use<> {
        let (gaps, end) = (i64::from(self.sessions.max(2) - 1), self.end().as_nanos());
        (0..i64::from(self.sessions))
            .map(move |session| end / gaps * session + end % gaps * session / gaps)
    }

    /// How many events, and how many that are not internal, a process and another thread have at most.
    pub(super) fn reserved(&self) -> [(usize, usize); 2] {
        let every = |rounds: u32| self.rounds.checked_div(rounds).unwrap_or(0) as usize;
        let (rounds, internal) = (self.rounds as usize, self.internal as usize);
        let messages = rounds * self.most_messages();
        let collectives = if self.ranks() > 1 {
            2 * every(self.collective_every)
        } else {
            0
        };
        let forks = if self.threads > 1 {
            every(self.fork_every)
        } else {
            0
        };
        let marks = messages + collectives + 4 * forks;
        [
            (marks + rounds * internal, marks),
            (forks * (4 + internal), 4 * forks),
        ]
    }

    /// How many messages a process sends and receives in a round at most.
    fn most_messages(&self) -> usize {
        match (self.ranks(), self.traffic) {
            (1, _) => 0,
            (_, SyntheticTraffic::Ring | SyntheticTraffic::Pairs) => 2,
            (ranks, SyntheticTraffic::Stencil) => 2 * neighbours(0, ranks).len(),
        }
    }
}

/// The other processes that are next to one in a grid that is as square as it can be.
pub(super) fn neighbours(rank: u32, ranks: u32) -> Vec<u32> {
    let width = (1..=ranks.isqrt())
        .rev()
        .find(|width| ranks.is_multiple_of(*width))
        .unwrap_or(1);
    let (column, row, height) = (rank % width, rank / width, ranks / width);
    let mut found = vec![
        row * width + (column + 1) % width,
        row * width + (column + width - 1) % width,
        (row + 1) % height * width + column,
        (row + height - 1) % height * width + column,
    ];
    found.sort_unstable();
    found.dedup();
    found.retain(|neighbour| *neighbour != rank);
    found
}
