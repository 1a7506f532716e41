//! Parameters of a synthetic program, and properties that follow from them without running it.

use downbeat_clock_core::{Duration, Global, Local, Timestamp};
use downbeat_sync::ClusterError;
use downbeat_sync::internal::require;
use downbeat_sync::sim::{Clocks, Drift, DriftWalk};

use crate::{CommunicatorId, Event, Latencies, LocationId, Place};

/// Program that exchanges messages in rounds, on a simulated cluster with clocks of known errors.
///
/// It runs in true time, in which every message takes at least its latency; each location records
/// its events by the clock of its node. The clock of the first node is correct. In a round, every
/// process has a few local events, sends messages, and waits for those to it in any order, as
/// non-blocking receives do. In some rounds there is a collective operation, or threads are
/// started. See [`asynchronous`](Self::asynchronous) for requests and signals.
///
/// Equal programs give equal traces. No events are stored: the program is run again for every
/// result.
///
/// ```
/// use downbeat_trace::check::Verdict;
/// use downbeat_trace::generate::SyntheticProgram;
/// use downbeat_trace::presync::PreSynchronization;
/// use downbeat_trace::{ControlledLogicalClock, Matching};
///
/// let program = SyntheticProgram { processes: 2, ..SyntheticProgram::new(3, 10_000) };
/// let mut trace = program.trace(Matching::default())?;
/// PreSynchronization::new(program.master()).maps(&trace.clocks(), &program.sessions()?)?.correct(&mut trace)?;
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
    /// Number of nodes.
    pub nodes: u32,
    /// Number of processes per node.
    pub processes: u32,
    /// Number of threads per process, one of which sends and receives.
    pub threads: u32,
    /// Number of rounds.
    pub rounds: u32,
    /// Duration of the program. If it is too short for the rounds, later rounds are delayed.
    pub duration: Duration,
    /// Time without events after the begin of the program, and again before its end: as if only a
    /// part of it were traced.
    pub idle: Duration,
    /// Number of local events of a process in a round.
    pub internal: u32,
    /// Communication pattern.
    pub traffic: SyntheticTraffic,
    /// Number of rounds between collective operations, which cycle through all kinds; 0 for none.
    pub collective_every: u32,
    /// Number of rounds between starts of threads, which meet at a barrier and end; 0 for none.
    pub fork_every: u32,
    /// If true, every message is sent twice, the receives are posted first and complete in any order,
    /// collective operations are not blocking and overlap in pairs, and threads wait for a signal
    /// before they work.
    pub asynchronous: bool,
    /// Minimum latencies of messages.
    pub latencies: Latencies,
    /// Mean additional latency of messages, exponentially distributed.
    pub jitter: Duration,
    /// Errors of the clocks. Drifts wander for the whole program; reading a clock takes no time.
    pub clocks: Clocks,
    /// Number of sessions in which clocks are compared: first one at the start, then one at the
    /// end, then others in between.
    pub sessions: u32,
    /// Number of samples per location and session, 50 us apart.
    pub samples: u32,
    /// Error of samples: mean of either of two delays, which should be equal and are exponentially
    /// distributed.
    pub noise: Duration,
    /// Maximum share of messages that violate their latency, by clocks that were interpolated
    /// linearly between the first and the last session, or by the clocks as they are if there are
    /// no sessions. The share is reached if clocks are wrong enough; further receives are delayed.
    /// About half is the limit, as a clock offset that makes messages of one direction too early
    /// makes those of the other late.
    pub violated: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Communication pattern of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyntheticTraffic {
    /// Every process sends to the next one.
    Ring,
    /// Processes send to each other in random pairs.
    Pairs,
    /// Every process sends to its neighbours in a periodic grid: four, unless there are too few
    /// processes.
    Stencil,
}

/// Event of a [`SyntheticProgram`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticEvent {
    /// Location of the event.
    pub location: LocationId,
    /// True time, which is also the master's.
    pub truth: Timestamp<Global>,
    /// Time of the location's own clock.
    pub local: Timestamp<Local>,
    /// The event.
    pub event: Event<'static>,
}

/// Distance between the samples of a session in nanoseconds.
pub(super) const SAMPLE_SPACING: i64 = 50_000;

impl SyntheticProgram {
    /// Creates a program on nodes with one process each, which exchange messages in pairs, a few
    /// million times slower than they could: it runs for 20 minutes, in which clocks like those of
    /// [`Clocks::typical`] become wrong by tens of microseconds. It has slightly fewer than
    /// `events` events.
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
            idle: Duration::ZERO,
            internal: 6,
            traffic: SyntheticTraffic::Pairs,
            collective_every: 20,
            fork_every: 0,
            asynchronous: false,
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

    /// Sets the number of rounds so that there are about `events` events, in at least one round.
    #[must_use]
    pub fn with_events(self, events: u64) -> Self {
        let most = f64::from(u32::MAX);
        let longest = Self {
            rounds: u32::MAX,
            ..self
        };
        let rounds = events as f64 / (longest.most_events() / most);
        Self {
            rounds: rounds.clamp(1.0, most).round() as u32,
            ..longest
        }
    }

    /// Maximum number of events over all locations.
    fn most_events(&self) -> f64 {
        let [process, thread] = self.reserved().map(|(events, _)| events as f64);
        f64::from(self.ranks()) * (process + thread * f64::from(self.threads.saturating_sub(1)))
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first invalid parameter.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let [positive, not_negative] = ["positive", "a number that is not negative"];
        let locations = [self.processes, self.threads]
            .iter()
            .try_fold(self.nodes, |all, more| all.checked_mul(*more));
        let is_small = locations.is_some_and(|all| all < 1 << 28);
        let years = Duration::from_secs(1 << 29);
        let has_rounds = self.idle >= Duration::ZERO && self.active() > Duration::ZERO;
        let is_fast = self.latencies.levels()[2] < Duration::from_secs(1);
        let is_sampled = self.sessions == 0 || self.samples > 0;
        let is_share = (0.0..=1.0).contains(&self.violated);
        let few = "so few that there are less than 2^28 threads";
        for (is_valid, name, must) in [
            (self.nodes > 0, "nodes", positive),
            (self.processes > 0, "processes", positive),
            (self.threads > 0, "threads", positive),
            (is_small, "nodes", few),
            (self.duration > Duration::ZERO, "duration", positive),
            (self.duration < years, "duration", "less than 17 years"),
            (has_rounds, "idle", "less than half of the duration"),
            (is_fast, "latencies", "below a second"),
            (self.jitter >= Duration::ZERO, "jitter", not_negative),
            (self.noise >= Duration::ZERO, "noise", not_negative),
            (is_sampled, "samples", positive),
            (is_share, "violated", "from 0 to 1"),
        ] {
            require(is_valid, || name.to_owned(), must)?;
        }
        self.lasting_clocks().validate()
    }

    /// Returns the location whose clock is correct.
    pub fn master(&self) -> LocationId {
        LocationId(0)
    }

    /// Number of processes.
    pub(super) fn ranks(&self) -> u32 {
        self.nodes * self.processes
    }

    /// Returns the places of all locations: first the processes, then the other threads of each
    /// process.
    pub fn places(&self) -> Vec<Place> {
        let place = |process: u32| Place {
            node: process / self.processes,
            process,
        };
        let others = (0..self.ranks()).flat_map(|rank| (1..self.threads).map(move |_| rank));
        (0..self.ranks()).chain(others).map(place).collect()
    }

    /// Returns the members of all communicators: all processes, all processes in reverse order, and
    /// the threads of each process.
    pub fn communicators(&self) -> Vec<Vec<LocationId>> {
        let world = (0..self.ranks()).map(LocationId);
        let mut all = vec![world.clone().collect(), world.clone().rev().collect()];
        if self.threads > 1 {
            all.extend(world.map(|rank| [rank].into_iter().chain(self.threads_of(rank)).collect()));
        }
        all
    }

    /// Returns the other threads of a process.
    pub(super) fn threads_of(&self, rank: LocationId) -> impl Iterator<Item = LocationId> + use<> {
        let others = self.threads - 1;
        let first = self.ranks() + rank.0 * others;
        (first..first + others).map(LocationId)
    }

    pub(super) fn team_of(&self, rank: LocationId) -> CommunicatorId {
        CommunicatorId(2 + rank.0)
    }

    /// Returns the clocks, with drifts that wander for the whole program.
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

    /// Duration of a session.
    pub(super) fn session(&self) -> Duration {
        let samples = if self.sessions > 0 { self.samples } else { 0 };
        Duration::from_nanos(i64::from(samples) * SAMPLE_SPACING)
    }

    /// Scheduled time of the rounds.
    pub(super) fn active(&self) -> Duration {
        self.duration - self.idle - self.idle
    }

    /// Scheduled end of the program, which begins after the first session.
    pub(super) fn end(&self) -> Duration {
        self.session() + self.duration
    }

    /// Start times of the sessions.
    pub(super) fn session_starts(&self) -> impl Iterator<Item = i64> + use<> {
        let (gaps, end) = (i64::from(self.sessions.max(2) - 1), self.end().as_nanos());
        (0..i64::from(self.sessions))
            .map(move |session| end / gaps * session + end % gaps * session / gaps)
    }

    /// Maximum numbers of events, and of events that are not internal, for a process and for
    /// another thread.
    pub(super) fn reserved(&self) -> [(usize, usize); 2] {
        let every = |rounds: u32| self.rounds.checked_div(rounds).unwrap_or(0) as usize;
        let (rounds, internal) = (self.rounds as usize, self.internal as usize);
        let twice = 1 + usize::from(self.asynchronous);
        let messages = rounds * self.most_messages() * twice;
        let has_others = [self.ranks() > 1, self.threads > 1].map(usize::from);
        let collectives = 2 * every(self.collective_every) * twice * has_others[0];
        let forks = every(self.fork_every) * has_others[1];
        let waits = forks * (twice - 1);
        let signals = waits * (self.threads as usize - 1);
        let posts = messages / 2 * (twice - 1);
        let marks = messages + collectives + 4 * forks + signals;
        let of_thread = 4 * forks + waits;
        [
            (marks + posts + rounds * internal, marks),
            (of_thread + forks * internal, of_thread),
        ]
    }

    /// Maximum number of messages that a process sends and receives in a round.
    fn most_messages(&self) -> usize {
        match self.traffic {
            SyntheticTraffic::Pairs if self.ranks() > 1 => 2,
            _ => 2 * self.receivers(0).len(),
        }
    }

    /// Returns the processes to which one sends in every round; none if they change.
    pub(super) fn receivers(&self, rank: u32) -> Vec<u32> {
        let ranks = self.ranks();
        match self.traffic {
            SyntheticTraffic::Ring if ranks > 1 => vec![(rank + 1) % ranks],
            SyntheticTraffic::Ring | SyntheticTraffic::Pairs => vec![],
            SyntheticTraffic::Stencil => neighbours(rank, ranks),
        }
    }
}

/// Returns the neighbours of a process in a grid that is as square as possible.
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
