//! Clocks of the ranks, and their local times.

use core::fmt;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use downbeat::LocalTime;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Local, TickRate, Ticks, Timestamp,
};
use downbeat_common::{CalibrationOptions, Failure, agree_blocking};
use downbeat_sync::{Comm, StableHasher, block_on_ready, collective};
use downbeat_timers::skew::SkewSpec;
use downbeat_timers::{
    AnyClock, CalibratedRate, ClockName, ClockUnavailable, MachineClock, SystemClock, SystemClockId,
};

use crate::Job;
use crate::counters::CounterAgreement;
use crate::ranks::JobRanks;

/// Clock of a rank: one of its machine or of the job, or one of these with an artificial error.
pub type JobClock<J> = AnyClock<<J as Job>::OwnClock>;

/// Name of the clock that every rank reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobClockName {
    /// A clock of the machine.
    Machine(ClockName),
    /// MPI_Wtime.
    Wtime,
}

impl JobClockName {
    /// CLOCK_MONOTONIC.
    pub const MONOTONIC: Self = Self::Machine(ClockName::Monotonic);
    /// The clock that a machine recommends.
    pub const RECOMMENDED: Self = Self::Machine(ClockName::Recommended);
    /// The time stamp counter.
    pub const TSC: Self = Self::Machine(ClockName::Tsc);

    /// Returns a parser of the names of clocks of the machine, for ranks without MPI and
    /// for commands that time calls: readings of MPI_Wtime are unordered.
    pub fn machine_parser() -> impl TypedValueParser<Value = Self> {
        let names = Self::value_variants().iter();
        let names = names.filter(|name| **name != Self::Wtime);
        let names = names.filter_map(ValueEnum::to_possible_value);
        let names: Vec<PossibleValue> = names.collect();
        PossibleValuesParser::new(names).try_map(|name| Self::from_str(&name, true))
    }
}

impl ValueEnum for JobClockName {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<JobClockName>> = LazyLock::new(|| {
            let machine = ClockName::ALL.map(JobClockName::Machine);
            machine.into_iter().chain([JobClockName::Wtime]).collect()
        });
        &ALL
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

/// Clock of a rank, and the counter by which true errors are known.
#[derive(Debug)]
pub struct RankClocks<J: Job> {
    /// Clock, and the time of the rank by it.
    pub local: LocalTime<JobClock<J>>,
    /// Name of the clock that was found.
    pub name: JobClockName,
    /// The counter of the processor, if it is the clock, or if true errors are wanted.
    pub counter: Option<CalibratedCounter>,
}

/// Counter of the processor, and its rate.
#[derive(Clone, Copy, Debug)]
pub struct CalibratedCounter {
    pub(crate) time: LocalTime,
    /// Agreement of the counters of the cores, if it was measured: true errors are not more certain than that.
    pub(crate) agreement: Option<CounterAgreement>,
}

/// Duration of the calibration of a counter.
const CALIBRATION: Duration = Duration::from_millis(50);

impl<J: Job> RankClocks<J> {
    /// Finds the clock with this name on each rank, with artificial errors if there are any; for the true errors also the counter
    /// that all ranks share. All ranks call this.
    ///
    /// # Errors
    /// If a rank has no such clock, it cannot be calibrated, or a saved calibration
    /// applies to none.
    pub fn find(
        ranks: &JobRanks<'_, J>,
        name: JobClockName,
        truth: bool,
        calibration: &CalibrationOptions,
        skew: Option<&SkewSpec>,
    ) -> Result<Self, Failure> {
        if truth && !ranks.one_machine {
            let why = "the ranks run on different machines, or on one that cannot be identified: they share no counter";
            return Err(Failure::option("--truth", why));
        }
        let (mut counter, mut found) = (None, name);
        let local = match name {
            JobClockName::Wtime => wtime(ranks)?,
            JobClockName::Machine(name) => {
                let clock = agree_on_clock(ranks, "--clock", &name, MachineClock::detect(name))?;
                refuse_several_clocks(ranks, name, clock.name())?;
                found = JobClockName::Machine(clock.name());
                match clock {
                    // What threads share is their counter, whatever counts.
                    MachineClock::System(_) if !J::IS_ONE_PROCESS => shown_time(clock)?.into(),
                    _ => {
                        let calibrated = CalibratedCounter::new(ranks, clock, truth, calibration)?;
                        counter.insert(calibrated).time.into()
                    }
                }
            }
        };
        if truth && counter.is_none() {
            let found = MachineClock::counter();
            let clock = agree_on_clock(ranks, "--truth", &ClockName::Tsc, found)?;
            counter = Some(CalibratedCounter::new(ranks, clock, truth, calibration)?);
        }
        if calibration.input().is_some() && !counter.is_some_and(|counter| counter.is_calibrated())
        {
            let why = format!("there is no counter to which it applies: the clock is {found}");
            return Err(Failure::option("--calibration", why));
        }
        Ok(Self {
            local: skewed(ranks, local, skew)?,
            name: found,
            counter,
        })
    }

    /// Returns the smallest step of the clock, in nanoseconds.
    pub fn step_nanos(&self) -> f64 {
        self.local.clock.grain() as f64 * self.local.model.rate().nanos_per_tick()
    }
}

impl CalibratedCounter {
    /// Calibrates on one rank of every node, which sends the rate to the others; these would only disturb it. Compares the counters of
    /// the cores for the `truth`.
    fn new<J: Job>(
        ranks: &JobRanks<'_, J>,
        clock: MachineClock,
        truth: bool,
        options: &CalibrationOptions,
    ) -> Result<Self, Failure> {
        let calibrate = || {
            let rate = match ranks.node_comm().rank() {
                0 => options.measure_rate(&clock, CALIBRATION)?,
                _ => CalibratedRate::NANOSECONDS,
            };
            LocalTime::begin(clock, rate).map_err(Failure::run)
        };
        let time = agree_blocking(ranks.all, calibrate())?;
        let time = time.of_first(ranks.node_comm())?;
        // The rate of a file may be in seconds of another clock.
        let time = match options.input() {
            None => time.compared_with_raw(),
            Some(_) => time,
        };
        let is_compared = truth && !J::IS_ONE_PROCESS;
        let agreement = is_compared.then(|| CounterAgreement::measure(ranks, &time));
        Ok(Self {
            time,
            agreement: agreement.transpose()?,
        })
    }

    /// Returns true if its rate was calibrated, and not known.
    fn is_calibrated(&self) -> bool {
        !matches!(self.time.clock, MachineClock::System(_))
    }

    pub(crate) fn rate(&self) -> TickRate {
        self.time.model.rate()
    }
}

/// Refuses a name by which ranks find clocks of several kinds: these are calibrated
/// differently, and their errors differ.
fn refuse_several_clocks<J: Job>(
    ranks: &JobRanks<'_, J>,
    name: ClockName,
    found: ClockName,
) -> Result<(), Failure> {
    let found = StableHasher::hash_of(&found);
    if block_on_ready(collective::all_equal(ranks.all, found))? {
        return Ok(());
    }
    let why = format!("{name} is not the same clock on all ranks; select one of them by its name");
    Err(Failure::option("--clock", why))
}

/// Returns the clock of this rank, for which an option asks, if every rank has it.
fn agree_on_clock<K, J: Job>(
    ranks: &JobRanks<'_, J>,
    option: &str,
    name: &dyn fmt::Display,
    clock: Result<K, ClockUnavailable>,
) -> Result<K, Failure> {
    let rank = ranks.all.rank();
    let refused = |why| Failure::option(option, format!("{name} on rank {rank}: {why}"));
    agree_blocking(ranks.all, clock.map_err(refused))
}

/// Returns the time that a clock of the system shows itself, with artificial errors if there are any. All ranks call this.
pub(crate) fn system_time<J: Job>(
    ranks: &JobRanks<'_, J>,
    id: SystemClockId,
    skew: Option<&SkewSpec>,
) -> Result<LocalTime<JobClock<J>>, Failure> {
    let clock = agree_on_clock(ranks, "--clock", &id, SystemClock::detect(id))?;
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

fn wtime<J: Job>(ranks: &JobRanks<'_, J>) -> Result<LocalTime<JobClock<J>>, Failure> {
    let clock = ranks
        .job
        .own_clock()
        .ok_or_else(|| Failure::option("--clock", "only ranks of MPI have wtime"))?;
    Ok(LocalTime {
        clock: AnyClock::Own(clock),
        model: count_nanoseconds()?,
        rate_error: 0.0,
        other: None,
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
fn skewed<J: Job>(
    ranks: &JobRanks<'_, J>,
    local: LocalTime<JobClock<J>>,
    spec: Option<&SkewSpec>,
) -> Result<LocalTime<JobClock<J>>, Failure> {
    let Some(spec) = spec else {
        return Ok(local);
    };
    let rate = local.model.rate();
    let truth = ClockModel::through(local.clock.ticks(), Timestamp::ORIGIN, rate);
    let index = spec.clock_of_rank(ranks.all.rank(), ranks.place.node);
    let truth = collective::broadcast(ranks.node_comm(), truth.map_err(Failure::run)?);
    let clock = local.skewed(spec, index, block_on_ready(truth)?);
    agree_blocking(
        ranks.all,
        clock.map_err(|why| Failure::option("--skew", why)),
    )
}
