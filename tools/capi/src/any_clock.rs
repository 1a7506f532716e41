//! The clock that a process reads, as its environment selects it.

use std::env;

use downbeat::{Clock, ClockModel, ClockName, Duration, LocalTime, MachineClock, Ticks, Timestamp};
use downbeat_clock_core::{CounterInstruction, ReadOrdering};
use downbeat_timers::skew::{SkewSpec, SkewedClock};

use crate::failure::Failure;
use crate::status::{DOWNBEAT_ERROR_ARGUMENT, DOWNBEAT_ERROR_UNAVAILABLE};

/// A clock of the machine, or one with an artificial error, for tests of programs and of this library.
#[derive(Debug)]
pub(crate) enum AnyClock {
    Machine(MachineClock),
    Skewed(Box<SkewedClock<MachineClock>>),
}

impl Clock for AnyClock {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        match self {
            Self::Machine(clock) => clock.ticks(),
            Self::Skewed(clock) => skewed_ticks(clock),
        }
    }

    fn ordering(&self) -> ReadOrdering {
        match self {
            Self::Machine(clock) => clock.ordering(),
            Self::Skewed(clock) => clock.ordering(),
        }
    }

    fn grain(&self) -> u64 {
        match self {
            Self::Machine(clock) => clock.grain(),
            Self::Skewed(clock) => clock.grain(),
        }
    }

    fn instruction(&self) -> CounterInstruction {
        match self {
            Self::Machine(clock) => clock.instruction(),
            Self::Skewed(_) => CounterInstruction::None,
        }
    }
}

/// Not inline: the registers that it needs would be saved by every call.
#[cold]
#[inline(never)]
fn skewed_ticks(clock: &SkewedClock<MachineClock>) -> Ticks {
    clock.ticks()
}

/// Duration of a calibration.
pub(crate) const CALIBRATION: Duration = Duration::from_millis(10);

/// Returns the value of a variable of the environment; `None` if it is not set or empty.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(why) => Err(Failure::new(
            DOWNBEAT_ERROR_ARGUMENT,
            format_args!("{name}: {why}"),
        )),
    }
}

/// Parses a variable of the environment; `None` if it is not set or empty.
pub(crate) fn parse_variable<T, E: core::fmt::Display>(
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    let Some(value) = variable(name)? else {
        return Ok(None);
    };
    match parse(&value) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(why) => Err(Failure::new(
            DOWNBEAT_ERROR_ARGUMENT,
            format_args!("{name}={value}: {why}"),
        )),
    }
}

/// Parses what the caller gave, or else a variable of the environment; `None` if there is
/// neither.
pub(crate) fn setting<T: core::str::FromStr<Err: core::fmt::Display>>(
    given: Option<&str>,
    name: &str,
) -> Result<Option<T>, Failure> {
    if let Some(given) = given {
        let parsed = given
            .parse()
            .map_err(Failure::of(DOWNBEAT_ERROR_ARGUMENT))?;
        return Ok(Some(parsed));
    }
    parse_variable(name, str::parse)
}

/// Opens the local clock of a process.
pub(crate) fn local_time(name: Option<&str>) -> Result<LocalTime<AnyClock>, Failure> {
    let name: ClockName = setting(name, "DOWNBEAT_CLOCK")?.unwrap_or_default();
    let unavailable = |why: &dyn core::fmt::Display| {
        Failure::new(
            DOWNBEAT_ERROR_UNAVAILABLE,
            format_args!("clock {name}: {why}"),
        )
    };
    let clock = MachineClock::detect(name).map_err(|why| unavailable(&why))?;
    let local = LocalTime::of_process(clock, CALIBRATION).map_err(|why| unavailable(&why))?;
    skewed(local, 0, None)
}

/// Gives the clock the error that `DOWNBEAT_SKEW` declares for the clock with this index. The local time of a skewed clock counts
/// from `truth`, or from now.
pub(crate) fn skewed(
    local: LocalTime,
    index: u32,
    spec: Option<SkewSpec>,
) -> Result<LocalTime<AnyClock>, Failure> {
    let LocalTime {
        clock,
        model,
        rate_error,
        source,
    } = local;
    let Some(spec) = spec else {
        return Ok(LocalTime {
            clock: AnyClock::Machine(clock),
            model,
            rate_error,
            source,
        });
    };
    let refused = Failure::of(DOWNBEAT_ERROR_ARGUMENT);
    let clock = SkewedClock::new(clock, model.renamed(), spec.for_clock(index)).map_err(refused)?;
    let nominal = SkewedClock::<MachineClock>::nominal_model();
    let begun = clock.ticks();
    let rate = nominal
        .map_err(Failure::of(DOWNBEAT_ERROR_ARGUMENT))?
        .rate();
    Ok(LocalTime {
        clock: AnyClock::Skewed(Box::new(clock)),
        model: ClockModel::through(begun, Timestamp::ORIGIN, rate)
            .map_err(Failure::of(DOWNBEAT_ERROR_ARGUMENT))?,
        rate_error,
        // Each skewed clock is a source of its own.
        source: source ^ (u64::from(index) + 1),
    })
}
