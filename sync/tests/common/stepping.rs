//! Synchronizations of simulated ranks one of whose clocks steps, and whether their stated bounds
//! hold.

use core::num::NonZeroU32;

use downbeat_clock_core::tree::{BinomialTree, PairRole};
use downbeat_clock_core::{Clock, Duration, Local, Ticks, Timestamp};
use downbeat_sync::pair::{OffsetClient, answer};
use downbeat_sync::sim::{SimClock, SimCluster, SimComm, VirtualTime};
use downbeat_sync::{Algorithm, Comm, LocalClock, OffsetAlgorithm, SyncError, Synchronized};
use fastrand::Rng;

/// Step of the clock of one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) rank: u32,
    pub(crate) at: Timestamp<VirtualTime>,
    pub(crate) by: i64,
}

impl Step {
    /// Draws a step of 10 us to 1 s in either direction, before `end`.
    pub(crate) fn random(ranks: u32, end: Timestamp<VirtualTime>, random: &mut Rng) -> Self {
        let size = 10f64.powf(4.0 + 5.0 * random.f64()) as i64;
        Self {
            rank: random.u32(..ranks),
            at: Timestamp::from_nanos(random.i64(0..end.as_nanos().max(1))),
            by: if random.bool() { size } else { -size },
        }
    }
}

/// Clock of a simulated rank that may step.
#[derive(Clone, Debug)]
pub(crate) struct SteppingClock {
    pub(crate) clock: SimClock,
    /// First reading after the step, and its size.
    step: Option<(Ticks, i64)>,
}

impl SteppingClock {
    pub(crate) fn new(comm: &SimComm, step: Option<Step>) -> Self {
        let clock = comm.clock();
        let step = step
            .filter(|step| step.rank == comm.rank())
            .map(|step| (clock.ticks_at(step.at), step.by));
        Self { clock, step }
    }

    pub(crate) fn stepped(&self, ticks: Ticks) -> Ticks {
        match self.step {
            Some((after, by)) if ticks >= after => Ticks(ticks.0.wrapping_add_signed(by)),
            _ => ticks,
        }
    }
}

impl Clock for SteppingClock {
    fn ticks(&self) -> Ticks {
        self.stepped(self.clock.ticks())
    }
}

/// Clock of a rank after a synchronization.
struct SyncedClock {
    synchronized: Synchronized,
    clock: SteppingClock,
    done: Timestamp<VirtualTime>,
    /// Half of the round trips on the path to rank 0.
    half_trips: Duration,
}

/// Returns the local clock of a rank that reads its simulated clock by another.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn local_clock<'a, K: Clock>(clock: &'a K, comm: &SimComm) -> LocalClock<'a, K> {
    let placement = comm.placement();
    LocalClock::new(clock, SimClock::nominal_model().unwrap())
        .source(placement.node.into())
        .placement(placement)
}

/// Synchronizes; returns the clocks of all ranks, or the failure of the lowest rank that failed by itself.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
fn synchronize(
    cluster: &SimCluster,
    algorithm: &Algorithm,
    step: Option<Step>,
) -> Result<Vec<SyncedClock>, SyncError> {
    let found = cluster.run(async |comm: &SimComm| {
        let clock = SteppingClock::new(comm, step);
        let me = local_clock(&clock, comm).max_drift(MAX_DRIFT);
        let synchronized = algorithm.synchronize(&me, comm).await?;
        let done = comm.true_now();
        let half_trips = half_trips(&me, comm).await?;
        Ok(SyncedClock {
            synchronized,
            clock,
            done,
            half_trips,
        })
    });
    all_or_own_failure(found.unwrap())
}

/// Returns the results of all ranks, or the failure of the lowest rank that failed by itself.
pub(crate) fn all_or_own_failure<T>(ranks: Vec<Result<T, SyncError>>) -> Result<Vec<T>, SyncError> {
    let own = ranks
        .iter()
        .filter_map(|rank| rank.as_ref().err())
        .find(|why| !matches!(why, SyncError::OtherRank(_)));
    match own {
        Some(why) => Err(*why),
        None => ranks.into_iter().collect(),
    }
}

/// Returns half of the quickest round trips from this rank to rank 0, summed over the hops of a binomial tree.
async fn half_trips<K: Clock>(
    me: &LocalClock<'_, K>,
    comm: &SimComm,
) -> Result<Duration, SyncError> {
    let tree = BinomialTree::new(comm.size());
    let mut half_trips = Duration::ZERO;
    for role in tree.downwards(comm.rank()).chain(tree.beyond(comm.rank())) {
        match role {
            PairRole::ReferenceOf(client) => {
                answer(me.clock(), &me.base(), comm, client).await?;
                comm.send(client, half_trips).await?;
            }
            PairRole::ClientOf(reference) => {
                let exchanges = const { NonZeroU32::new(10).unwrap() };
                let algorithm = OffsetAlgorithm::skampi(exchanges);
                let mut client = OffsetClient::<Local, Local>::new(algorithm, reference)?;
                let sample = client.measure(me.clock(), &me.base(), comm).await?;
                let above: Duration = comm.recv(reference).await?;
                half_trips = above + sample.half_width.unwrap_or(Duration::ZERO);
            }
        }
    }
    Ok(half_trips)
}

/// Error of the global clock of a rank at the end of a synchronization, and its stated bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatedError {
    pub(crate) error: Duration,
    pub(crate) bound: Duration,
    /// True if the certain interval contains the error; it may be narrower than the bound.
    is_allowed: bool,
    /// Least bound that messages allow: half of the round trips, and the declared drift during the closing exchange.
    pub(crate) least: Duration,
}

impl StatedError {
    pub(crate) fn is_beyond(&self) -> bool {
        !self.is_allowed || self.error > self.bound
    }
}

/// Declared drift of all clocks.
const MAX_DRIFT: f64 = 1e-3;

#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
fn errors(ranks: &[SyncedClock]) -> Vec<StatedError> {
    let end = ranks.iter().map(|rank| rank.done).max().unwrap();
    let shown = |rank: &SyncedClock| {
        let ticks = rank.clock.stepped(rank.clock.clock.ticks_at(end));
        rank.synchronized.model.apply(ticks)
    };
    let reference = shown(&ranks[0]);
    let stated = |rank: &SyncedClock| StatedError {
        error: (shown(rank) - reference).abs(),
        bound: rank.synchronized.bound.at_time(shown(rank)),
        is_allowed: rank.synchronized.bound.allows(shown(rank), reference),
        least: rank.half_trips
            + Duration::from_nanos(
                (MAX_DRIFT * rank.synchronized.closing.took.as_nanos() as f64) as i64,
            ),
    };
    ranks.iter().map(stated).collect()
}

/// Returns the errors and bounds of all ranks after a synchronization without a step.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn errors_without_step(cluster: &SimCluster, algorithm: &Algorithm) -> Vec<StatedError> {
    errors(&synchronize(cluster, algorithm, None).unwrap())
}

/// Synchronizes with a step of a random clock at a random time before the closing exchange. Returns the errors and bounds,
/// or the failure.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn errors_with_step(
    cluster: &SimCluster,
    algorithm: &Algorithm,
) -> (Step, Result<Vec<StatedError>, SyncError>) {
    let sound = synchronize(cluster, algorithm, None).unwrap();
    let learned = |rank: &SyncedClock| rank.done - rank.synchronized.closing.took;
    let end = sound.iter().map(learned).min().unwrap();
    let step = Step::random(cluster.ranks, end, &mut Rng::with_seed(cluster.seed));
    (
        step,
        synchronize(cluster, algorithm, Some(step)).map(|ranks| errors(&ranks)),
    )
}
