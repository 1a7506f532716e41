//! Settings from the environment, and the clock that it selects.

use std::env;

use downbeat::{AnyClock, ClockName, Duration, LocalTime, MachineClock};

use crate::failure::Failure;
use crate::status::{DOWNBEAT_ERROR_ARGUMENT, DOWNBEAT_ERROR_UNAVAILABLE};

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
pub(crate) fn setting<T, E: core::fmt::Display>(
    given: Option<&str>,
    name: &str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    if let Some(given) = given {
        let parsed = parse(given).map_err(Failure::of(DOWNBEAT_ERROR_ARGUMENT))?;
        return Ok(Some(parsed));
    }
    parse_variable(name, parse)
}

/// Opens the local clock of a process.
pub(crate) fn local_time(name: Option<&str>) -> Result<LocalTime<AnyClock>, Failure> {
    let name: ClockName = setting(name, "DOWNBEAT_CLOCK", str::parse)?.unwrap_or_default();
    let unavailable = |why: &dyn core::fmt::Display| {
        Failure::new(
            DOWNBEAT_ERROR_UNAVAILABLE,
            format_args!("clock {name}: {why}"),
        )
    };
    let clock = MachineClock::detect(name).map_err(|why| unavailable(&why))?;
    let local = LocalTime::of_process(clock, CALIBRATION).map_err(|why| unavailable(&why))?;
    Ok(local.into())
}
