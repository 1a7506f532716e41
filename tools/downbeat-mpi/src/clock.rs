//! Clocks of the ranks, and their local times.

use core::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use downbeat::LocalTime;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Local, TickRate, Ticks, Timestamp,
};
use downbeat_common::{CalibrationOptions, Failure, agree_blocking};
use downbeat_sync::{Algorithm, Comm, StableHasher, block_on_ready, collective};
use downbeat_timers::skew::SkewSpec;
use downbeat_timers::{
    AnyClock, CalibratedRate, ClockName, ClockUnavailable, MachineClock, SystemClock,
    SystemClockId, WtimeClock,
};

use crate::counters::CounterAgreement;
use crate::ranks::JobRanks;

/// Clock of a rank: one of its machine, MPI_Wtime, or one of these with an artificial error.
pub(crate) type JobClock<'mpi> = AnyClock<WtimeClock<'mpi>>;

/// Name of the clock that every rank reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobClockName {
    Machine(ClockName),
    Wtime,
}

impl JobClockName {
    pub(crate) const MONOTONIC: Self = Self::Machine(ClockName::Monotonic);
    pub(crate) const TSC: Self = Self::Machine(ClockName::Tsc);
}

/// All clocks with a name of their own: a record names the clock that was read.
impl ValueEnum for JobClockName {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::TSC,
            Self::Machine(ClockName::Cntvct),
            Self::MONOTONIC,
            Self::Machine(ClockName::Raw),
            Self::Machine(ClockName::Realtime),
            Self::Machine(ClockName::Tai),
            Self::Wtime,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Machine(name) => PossibleValue::new(name.as_str()).help(name.description()),
            Self::Wtime => PossibleValue::new("wtime").help("MPI_Wtime"),
        })
    }
}

/// Written as on the command line.
impl fmt::Display for JobClockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(name) => name.fmt(f),
            Self::Wtime => f.write_str("wtime"),
        }
    }
}

/// Returns the algorithm of an option, or the usual one. Ranks of a node share no clock if they have artificial errors each.
pub(crate) fn algorithm(given: Option<Algorithm>, skew: Option<&SkewSpec>) -> Algorithm {
    given.unwrap_or_else(|| Algorithm::default_for(skew.is_none_or(SkewSpec::is_per_node)))
}

/// Clock of a rank, and the counter by which true errors are known.
#[derive(Debug)]
pub(crate) struct RankClocks<'mpi> {
    pub(crate) local: LocalTime<JobClock<'mpi>>,
    /// The counter of the processor, if it is the clock, or if true errors are wanted.
    pub(crate) counter: Option<CalibratedCounter>,
}

/// Counter of the processor, and its rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalibratedCounter {
    pub(crate) time: LocalTime,
    /// Agreement of the counters of the cores, if it was measured: true errors are not more certain than that.
    pub(crate) agreement: Option<CounterAgreement>,
}

/// Duration of the calibration of a counter.
const CALIBRATION: Duration = Duration::from_millis(50);

impl<'mpi> RankClocks<'mpi> {
    /// Finds the clock with this name on each rank, with artificial errors if there are any; for the true errors also the counter
    /// that all ranks share. All ranks call this.
    pub(crate) fn find(
        ranks: &JobRanks<'mpi>,
        name: JobClockName,
        truth: bool,
        calibration: &CalibrationOptions,
        skew: Option<&SkewSpec>,
    ) -> Result<Self, Failure> {
        if truth && !ranks.one_machine {
            let why = "the ranks run on different machines, or on one that cannot be identified: they share no counter";
            return Err(Failure::option("--truth", why));
        }
        let mut counter = None;
        let local = match name {
            JobClockName::Wtime => wtime(ranks)?,
            JobClockName::Machine(name) => {
                let clock = agree_on_clock(ranks, &name, MachineClock::detect(name))?;
                match clock {
                    MachineClock::System(_) => shown_time(clock)?.into(),
                    _ => {
                        let calibrated = CalibratedCounter::new(ranks, clock, truth, calibration)?;
                        counter.insert(calibrated).time.into()
                    }
                }
            }
        };
        if truth && counter.is_none() {
            let clock = agree_on_clock(ranks, &"counter", MachineClock::counter())?;
            counter = Some(CalibratedCounter::new(ranks, clock, truth, calibration)?);
        }
        Ok(Self {
            local: skewed(ranks, local, skew)?,
            counter,
        })
    }
}

impl CalibratedCounter {
    /// Calibrates on one rank of every node, which sends the rate to the others; these would only disturb it. Compares the counters of
    /// the cores for the `truth`.
    fn new(
        ranks: &JobRanks<'_>,
        clock: MachineClock,
        truth: bool,
        options: &CalibrationOptions,
    ) -> Result<Self, Failure> {
        let calibrate = || {
            let rate = match ranks.node_comm.rank() {
                0 => options.measure_rate(&clock, CALIBRATION)?,
                _ => CalibratedRate::NANOSECONDS,
            };
            LocalTime::begin(clock, rate).map_err(Failure::run)
        };
        let time = agree_blocking(ranks.all, calibrate())?;
        let time = time.of_first(&ranks.node_comm)?;
        let agreement = truth.then(|| CounterAgreement::measure(ranks, &time));
        Ok(Self {
            time,
            agreement: agreement.transpose()?,
        })
    }

    pub(crate) fn rate(&self) -> TickRate {
        self.time.model.rate()
    }
}

/// Returns the clock of this rank if every rank has it.
fn agree_on_clock<K>(
    ranks: &JobRanks<'_>,
    name: &dyn fmt::Display,
    clock: Result<K, ClockUnavailable>,
) -> Result<K, Failure> {
    let clock = clock.map_err(|why| ranks.failure(format!("clock {name}: {why}")));
    agree_blocking(ranks.all, clock)
}

/// Returns the time that a clock of the system shows itself, with artificial errors if there are any. All ranks call this.
pub(crate) fn system_time<'mpi>(
    ranks: &JobRanks<'mpi>,
    id: SystemClockId,
    skew: Option<&SkewSpec>,
) -> Result<LocalTime<JobClock<'mpi>>, Failure> {
    let clock = agree_on_clock(ranks, &id, SystemClock::detect(id))?;
    let shown = shown_time(MachineClock::System(clock))?;
    skewed(ranks, shown.into(), skew)
}

/// Returns the time that a clock of the system shows itself.
fn shown_time(clock: MachineClock) -> Result<LocalTime, Failure> {
    let begun = LocalTime::begin(clock, CalibratedRate::NANOSECONDS).map_err(Failure::run)?;
    Ok(LocalTime {
        model: count_nanoseconds()?,
        ..begun
    })
}

fn wtime<'mpi>(ranks: &JobRanks<'mpi>) -> Result<LocalTime<JobClock<'mpi>>, Failure> {
    Ok(LocalTime {
        clock: AnyClock::Own(ranks.wtime),
        model: count_nanoseconds()?,
        rate_error: 0.0,
        // Processes may not share it; algorithms that rely on that check it.
        source: StableHasher::hash_of(&("MPI_Wtime", ranks.boot)),
    })
}

/// Returns the model of a clock that counts nanoseconds.
fn count_nanoseconds() -> Result<ClockModel<Counter, Local>, Failure> {
    ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND).map_err(Failure::run)
}

/// Returns the same clock with an artificial error, if one is given. The ranks of a node agree on the true time, so that they can also
/// share the error.
fn skewed<'mpi>(
    ranks: &JobRanks<'mpi>,
    local: LocalTime<JobClock<'mpi>>,
    spec: Option<&SkewSpec>,
) -> Result<LocalTime<JobClock<'mpi>>, Failure> {
    let Some(spec) = spec else {
        return Ok(local);
    };
    let rate = local.model.rate();
    let truth = ClockModel::through(local.clock.ticks(), Timestamp::ORIGIN, rate);
    let truth = collective::broadcast(&ranks.node_comm, truth.map_err(Failure::run)?);
    let clock = local.skewed(spec, ranks.clock_index(spec), block_on_ready(truth)?);
    agree_blocking(
        ranks.all,
        clock.map_err(|why| Failure::option("--skew", why)),
    )
}
