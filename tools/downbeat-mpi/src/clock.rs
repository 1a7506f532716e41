//! Clocks of a rank, and its local time.

use core::fmt;
use std::fs;

use clap::ValueEnum;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Local, ModelError, TickRate, Ticks, Timestamp,
};
use downbeat_common::{CalibrationOptions, Failure, agree_blocking};
use downbeat_sync::{
    Algorithm, Comm, LocalClock, StableHasher, SyncError, Synchronized, block_on_ready, collective,
};
use downbeat_timers::skew::{SkewSpec, SkewedClock, Truth};
use downbeat_timers::{MachineClock, SystemClock, SystemClockId};

use crate::job_clock::JobClock;
use crate::ranks::JobRanks;
use crate::tsc::CalibratedTsc;

/// Kinds of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockKind {
    /// The time stamp counter
    Tsc,
    /// CLOCK_MONOTONIC
    Monotonic,
    /// CLOCK_MONOTONIC_RAW
    Raw,
    /// CLOCK_REALTIME, which can be set
    Realtime,
    /// MPI_Wtime
    Wtime,
}

/// Written as on the command line.
impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value()
            .map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

impl ClockKind {
    /// Calibrates the time stamp counter if it is this clock.
    pub(crate) fn calibrate(
        self,
        ranks: &JobRanks<'_>,
        options: &CalibrationOptions,
    ) -> Result<Option<CalibratedTsc>, Failure> {
        (self == Self::Tsc)
            .then(|| CalibratedTsc::new(ranks, options))
            .transpose()
    }

    /// Returns the clock that is calibrated: the counter that all ranks share, if the true errors of this one are wanted.
    pub(crate) fn or_counter(self, truth: bool, ranks: &JobRanks<'_>) -> Result<Self, Failure> {
        match truth {
            true if !ranks.one_machine => {
                let why = "the ranks run on different machines, or on one that cannot be identified: they share no counter";
                Err(Failure::option("--truth", why))
            }
            true => Ok(Self::Tsc),
            false => Ok(self),
        }
    }

    /// Returns the clock of this kind on each rank, with artificial errors if there are any. The time
    /// stamp counter must be calibrated.
    pub(crate) fn timebase<'mpi>(
        self,
        ranks: &JobRanks<'mpi>,
        tsc: Option<&CalibratedTsc>,
        skew: Option<&SkewSpec>,
    ) -> Result<Timebase<'mpi>, Failure> {
        let system = |id| Timebase::system(ranks, id);
        let base = match (self, tsc) {
            (Self::Tsc, Some(tsc)) => Timebase::tsc(ranks, tsc),
            (Self::Tsc, None) => Err(Failure::run("the time stamp counter is not calibrated")),
            (Self::Monotonic, _) => system(SystemClockId::Monotonic),
            (Self::Raw, _) => system(SystemClockId::MonotonicRaw),
            (Self::Realtime, _) => system(SystemClockId::Realtime),
            (Self::Wtime, _) => Timebase::wtime(ranks),
        };
        base?.skewed(ranks, skew)
    }
}

/// Returns the algorithm of an option, or the usual one. Ranks of a node share no clock if they have artificial errors each.
pub(crate) fn algorithm(given: Option<Algorithm>, skew: Option<&SkewSpec>) -> Algorithm {
    given.unwrap_or_else(|| Algorithm::default_for(skew.is_none_or(SkewSpec::is_per_node)))
}

/// A clock, and the local time by it.
#[derive(Clone, Debug)]
pub(crate) struct Timebase<'mpi> {
    pub(crate) clock: JobClock<'mpi>,
    /// Model of the local time of the rank.
    pub(crate) local: ClockModel<Counter, Local>,
    /// Identifier of the source of time, equal for ranks that share one as far as they know.
    pub(crate) source: u64,
}

impl<'mpi> Timebase<'mpi> {
    pub(crate) fn system(ranks: &JobRanks<'mpi>, id: SystemClockId) -> Result<Self, Failure> {
        let clock = SystemClock::detect(id).map_err(|why| ranks.failure(why));
        let clock = agree_blocking(ranks.all, clock)?;
        // A container can have its own time namespace.
        let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
        Ok(Self {
            clock: JobClock::Machine(MachineClock::System(clock)),
            local: nanosecond_model().map_err(Failure::run)?,
            source: StableHasher::hash_of(&(id.name(), ranks.boot, namespace)),
        })
    }

    fn wtime(ranks: &JobRanks<'mpi>) -> Result<Self, Failure> {
        // Processes may not share it; algorithms that rely on that check it.
        Ok(Self {
            clock: JobClock::Wtime(ranks.wtime),
            local: nanosecond_model().map_err(Failure::run)?,
            source: StableHasher::hash_of(&("MPI_Wtime", ranks.boot)),
        })
    }

    fn tsc(ranks: &JobRanks<'mpi>, tsc: &CalibratedTsc) -> Result<Self, Failure> {
        let local = since_now(ranks, &tsc.clock, tsc.rate)?;
        Ok(Self {
            clock: JobClock::Machine(MachineClock::Tsc(tsc.clock)),
            local,
            source: StableHasher::hash_of(&("TSC", ranks.boot)),
        })
    }

    /// Step of the clock in nanoseconds.
    pub(crate) fn step_nanos(&self) -> f64 {
        self.clock.grain() as f64 * self.local.rate().nanos_per_tick()
    }

    /// Returns the parameters with which this rank synchronizes.
    pub(crate) fn local_clock(&self, ranks: &JobRanks<'_>) -> LocalClock<'_, JobClock<'mpi>> {
        LocalClock::new(&self.clock, self.local)
            .source(self.source)
            .placement(ranks.place)
    }

    /// Synchronizes all ranks. Either all fail, for the reason of the lowest rank that has one, or none.
    pub(crate) fn synchronize(
        &self,
        ranks: &JobRanks<'_>,
        algorithm: &Algorithm,
    ) -> Result<Synchronized, Failure> {
        synchronize(&self.local_clock(ranks), ranks, algorithm)
    }

    /// Returns the same clock with an artificial error, if one is given. The ranks of a node agree on
    /// the true time, so that they can also share the error.
    pub(crate) fn skewed(
        self,
        ranks: &JobRanks<'_>,
        spec: Option<&SkewSpec>,
    ) -> Result<Self, Failure> {
        let Some(spec) = spec else {
            return Ok(self);
        };
        let truth: ClockModel<Counter, Truth> =
            since_now(ranks, &self.clock, self.local.rate())?.renamed();
        let clock_index = if spec.is_per_node() {
            ranks.place.node
        } else {
            ranks.all.rank()
        };
        let clock = SkewedClock::new(self.clock, truth, spec.for_clock(clock_index))
            .map_err(|why| Failure::option("--skew", why));
        let clock = agree_blocking(ranks.all, clock)?;
        let local = SkewedClock::<JobClock<'_>>::nominal_model().map_err(Failure::run)?;
        Ok(Self {
            clock: JobClock::Skewed(Box::new(clock)),
            local,
            source: StableHasher::hash_of(&(self.source, clock_index)),
        })
    }
}

/// Synchronizes all ranks, as [`Timebase::synchronize`].
pub(crate) fn synchronize<K: Clock>(
    me: &LocalClock<'_, K>,
    ranks: &JobRanks<'_>,
    algorithm: &Algorithm,
) -> Result<Synchronized, Failure> {
    let found = match algorithm.synchronize_blocking(me, ranks.all) {
        Ok(found) => Ok(Some(found)),
        // That rank has the reason.
        Err(SyncError::OtherRank(_)) => Ok(None),
        Err(why) => Err(ranks.failure(format!("{algorithm}: {why}"))),
    };
    let found = agree_blocking(ranks.all, found)?;
    found.ok_or_else(|| Failure::run(format!("{algorithm} failed")))
}

/// Returns a model of the time since now, the same on all ranks of a node.
fn since_now(
    ranks: &JobRanks<'_>,
    clock: &impl Clock,
    rate: TickRate,
) -> Result<ClockModel<Counter, Local>, Failure> {
    let model =
        ClockModel::through(clock.ticks(), Timestamp::ORIGIN, rate).map_err(Failure::run)?;
    block_on_ready(collective::broadcast(&ranks.node_comm, model)).map_err(Failure::run)
}

/// Returns the model of a clock that counts nanoseconds.
fn nanosecond_model() -> Result<ClockModel<Counter, Local>, ModelError> {
    ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND)
}
