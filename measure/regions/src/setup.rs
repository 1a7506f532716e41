//! Clock, unit and cost of region timers.

use core::str::FromStr;
use std::env::{self, VarError};
use std::sync::OnceLock;

use downbeat_clock_core::region::{RegionTimer, TickScale};
use downbeat_clock_core::{Clock, Duration, TickRate, Ticks};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::tsc::UnorderedTsc;
use downbeat_timers::{SystemClock, SystemClockId, TscClock};

use super::error::RegionError;

/// Clock that times the regions of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockChoice {
    /// The time stamp counter with ordering, if it is usable, or else the system clock.
    #[default]
    Ordered,
    /// The time stamp counter without ordering, if it is usable, or else the system clock. A read may move across
    /// neighbouring instructions, so that the end of a region may be some nanoseconds early, and lengths of a few instructions
    /// mean little.
    Cheapest,
    /// The time stamp counter with ordering: it is read when all earlier instructions are done.
    OrderedTsc,
    /// The monotonic clock of the system.
    System,
}

/// Settings of region timers, for the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSettings {
    /// The clock.
    pub clock: ClockChoice,
    /// Length of a tick, the unit of histograms and reports; the same on all ranks.
    pub tick: Duration,
    /// True to subtract the length of an empty region from every event.
    pub subtract_own: bool,
    /// True to record call paths: the time of a region inside each of the regions that call it, and its own time, which is not in
    /// regions inside it. This costs up to a seventh more per event.
    pub nested: bool,
}

/// An ordered clock, ticks of a nanosecond, nothing subtracted, and call paths.
impl Default for RegionSettings {
    fn default() -> Self {
        Self {
            clock: ClockChoice::default(),
            tick: Duration::from_nanos(1),
            subtract_own: false,
            nested: true,
        }
    }
}

impl FromStr for ClockChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ordered" => Ok(Self::Ordered),
            "cheapest" => Ok(Self::Cheapest),
            "tsc" => Ok(Self::OrderedTsc),
            "system" => Ok(Self::System),
            _ => Err(format!(
                "there is no clock \"{}\" of regions, only ordered, cheapest, tsc and system",
                text.escape_debug()
            )),
        }
    }
}

impl RegionSettings {
    /// Reads the settings from the environment: `DOWNBEAT_REGIONS_CLOCK` is `ordered`, `cheapest`, `tsc` or `system`,
    /// `DOWNBEAT_REGIONS_TICK` a duration, such as `1us`, and `DOWNBEAT_REGIONS_SUBTRACT` and `DOWNBEAT_REGIONS_NESTED` are `yes` or
    /// `no`. Those that are not set or empty have their defaults. Programs that do not call [`configure`] have these settings.
    ///
    /// # Errors
    /// If a variable has another value.
    pub fn from_env() -> Result<Self, RegionError> {
        let usual = Self::default();
        let yes_or_no = |text: &str| match text {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(format!("\"{}\" is neither yes nor no", text.escape_debug())),
        };
        Ok(Self {
            clock: variable("DOWNBEAT_REGIONS_CLOCK", usual.clock, str::parse)?,
            tick: variable("DOWNBEAT_REGIONS_TICK", usual.tick, |text| {
                let tick: Duration = text.parse().map_err(|why| format!("{why}"))?;
                let is_positive = tick > Duration::ZERO;
                is_positive
                    .then_some(tick)
                    .ok_or("a tick is positive".to_owned())
            })?,
            subtract_own: variable("DOWNBEAT_REGIONS_SUBTRACT", usual.subtract_own, yes_or_no)?,
            nested: variable("DOWNBEAT_REGIONS_NESTED", usual.nested, yes_or_no)?,
        })
    }
}

/// Parses a variable of the environment.
fn variable<T>(
    name: &'static str,
    usual: T,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, RegionError> {
    let value = match env::var(name) {
        Ok(value) => value,
        Err(VarError::NotPresent) => return Ok(usual),
        Err(VarError::NotUnicode(value)) => value.to_string_lossy().into_owned(),
    };
    if value.is_empty() {
        return Ok(usual);
    }
    parse(&value).map_err(|why| RegionError::Variable { name, why })
}

/// Cost of timing a region, measured when the timers are set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Overhead {
    /// Measured length of an empty region, in picoseconds.
    pub within_picos: u64,
    /// Cost of an empty region for the surrounding code, in picoseconds.
    pub whole_picos: u64,
    /// True if `within_picos` was subtracted from every event.
    pub subtracted: bool,
}

/// Clock of region timers. An enum, as the call sites of a region cannot be generic over the clock.
#[derive(Clone, Copy, Debug)]
pub enum RegionClock {
    /// The time stamp counter without ordering.
    UnorderedTsc(UnorderedTsc),
    /// The time stamp counter with ordering.
    OrderedTsc(TscClock),
    /// A clock of the system.
    System(SystemClock),
    /// No usable clock: every event has length 0.
    Missing,
}

impl RegionClock {
    /// Name of the clock in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::UnorderedTsc(_) => "time stamp counter, unordered",
            Self::OrderedTsc(_) => "time stamp counter, ordered",
            Self::System(clock) => clock.id().name(),
            Self::Missing => "none: this machine has no clock that can be used",
        }
    }
}

impl Clock for RegionClock {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        // Not a `match`, which would be compiled to a jump table.
        if let Self::UnorderedTsc(clock) = self {
            return clock.ticks();
        }
        if let Self::OrderedTsc(clock) = self {
            clock.ticks()
        } else {
            self.slow_ticks()
        }
    }

    fn grain(&self) -> u64 {
        match self {
            Self::UnorderedTsc(clock) => clock.grain(),
            Self::OrderedTsc(clock) => clock.grain(),
            Self::System(clock) => clock.grain(),
            Self::Missing => 1,
        }
    }
}

impl RegionClock {
    #[cold]
    #[inline(never)]
    fn slow_ticks(&self) -> Ticks {
        if let Self::System(clock) = self {
            clock.ticks()
        } else {
            Ticks(0)
        }
    }
}

/// Setup that all timers of the program share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) clock: RegionClock,
    pub(super) scale: TickScale,
    pub(super) tick: Duration,
    pub(super) overhead: Overhead,
    pub(super) nested: bool,
    /// The reason why the settings are not those of the environment.
    pub(super) warning: Option<&'static str>,
    /// Length to subtract from every event, in ticks of the clock.
    own: u64,
}

static SETUP: OnceLock<Setup> = OnceLock::new();

/// Configures the region timers of this program; takes about 10 ms if a counter must be calibrated.
///
/// Must be called before the first region; otherwise that one configures them with
/// [`RegionSettings::default`]. This time is not part of its first event, but of the events of
/// other regions around it.
///
/// # Errors
/// If the timers are configured already, or the settings cannot be used.
pub fn configure(settings: RegionSettings) -> Result<(), RegionError> {
    if SETUP.get().is_some() {
        return Err(RegionError::TooLate);
    }
    SETUP
        .set(Setup::new(settings)?)
        .map_err(|_| RegionError::TooLate)
}

pub(super) fn setup() -> &'static Setup {
    SETUP.get_or_init(|| {
        let (usual, warning) = match RegionSettings::from_env() {
            Ok(settings) => (settings, None),
            Err(why) => (RegionSettings::default(), Some(why)),
        };
        let system = || {
            Setup::new(RegionSettings {
                clock: ClockChoice::System,
                ..usual
            })
        };
        // Falls back to another clock; the report names it.
        let setup = Setup::new(usual)
            .or_else(|_| system())
            .unwrap_or_else(|_| Setup::missing());
        let warning = warning.map(|why| format!("{why}; all settings are the usual ones"));
        Setup {
            warning: warning.map(|text| &*text.leak()),
            ..setup
        }
    })
}

impl Setup {
    fn new(settings: RegionSettings) -> Result<Self, RegionError> {
        let (clock, rate) = match settings.clock {
            ClockChoice::OrderedTsc => {
                let tsc = TscClock::detect().map_err(RegionError::Tsc)?;
                (RegionClock::OrderedTsc(tsc), calibrated(&tsc)?)
            }
            ClockChoice::Ordered | ClockChoice::Cheapest => match TscClock::detect() {
                Ok(tsc) => {
                    let clock = match settings.clock {
                        ClockChoice::Cheapest => RegionClock::UnorderedTsc(tsc.unordered()),
                        _ => RegionClock::OrderedTsc(tsc),
                    };
                    (clock, calibrated(&tsc)?)
                }
                Err(_) => (RegionClock::System(steady()?), SystemClock::RATE),
            },
            ClockChoice::System => (RegionClock::System(steady()?), SystemClock::RATE),
        };
        let scale = TickScale::new(rate, settings.tick).map_err(RegionError::Scale)?;
        let (within, whole) = empty_region(clock, scale);
        let picos = |ticks: f64| (ticks * rate.nanos_per_tick() * 1e3).round() as u64;
        let subtracted = settings.subtract_own;
        let overhead = Overhead {
            within_picos: picos(within),
            whole_picos: picos(whole),
            subtracted,
        };
        Ok(Self {
            clock,
            scale,
            tick: settings.tick,
            overhead,
            nested: settings.nested,
            warning: None,
            own: if subtracted { within as u64 } else { 0 },
        })
    }

    fn missing() -> Self {
        let tick = RegionSettings::default().tick;
        let overhead = Overhead::default();
        Self {
            clock: RegionClock::Missing,
            scale: TickScale::NANOSECONDS,
            tick,
            overhead,
            nested: false,
            warning: None,
            own: 0,
        }
    }

    pub(super) fn timer(&self) -> RegionTimer<RegionClock> {
        RegionTimer::with_overhead(self.clock, self.scale, self.own)
    }
}

/// The monotonic clock of the system, without adjustments if available.
fn steady() -> Result<SystemClock, RegionError> {
    let [raw, adjusted] =
        [SystemClockId::MonotonicRaw, SystemClockId::Monotonic].map(SystemClock::detect);
    raw.or(adjusted).map_err(RegionError::System)
}

fn calibrated(tsc: &TscClock) -> Result<TickRate, RegionError> {
    let found = calibrate_during(tsc, &steady()?, Duration::from_millis(10))
        .map_err(RegionError::Calibration)?;
    Ok(found.rate())
}

/// Measured length and cost of an empty region, in ticks of the clock: medians of means over many
/// runs.
fn empty_region(clock: RegionClock, scale: TickScale) -> (f64, f64) {
    const BATCHES: usize = 31;
    const RUNS: u32 = 200;
    let mut within = [0.0; BATCHES];
    let mut whole = [0.0; BATCHES];
    for (within, whole) in within.iter_mut().zip(&mut whole) {
        let timer = core::hint::black_box(RegionTimer::new(clock, scale));
        let start = clock.ticks();
        for _ in 0..RUNS {
            drop(core::hint::black_box(&timer).enter());
        }
        *whole = clock.ticks().checked_since(start).unwrap_or_default() as f64 / f64::from(RUNS);
        *within = timer.statistics().total as f64 / f64::from(RUNS);
    }
    let median = |mut values: [f64; BATCHES]| {
        values.sort_unstable_by(f64::total_cmp);
        values[BATCHES / 2]
    };
    (median(within), median(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::ModelError;

    #[test]
    fn every_clock_times_regions() {
        for clock in [
            ClockChoice::Ordered,
            ClockChoice::Cheapest,
            ClockChoice::OrderedTsc,
            ClockChoice::System,
        ] {
            let found = Setup::new(RegionSettings {
                clock,
                subtract_own: true,
                ..RegionSettings::default()
            });
            let setup = match found {
                Ok(setup) => setup,
                // Only x86 has a time stamp counter.
                Err(why) => {
                    assert!(
                        clock == ClockChoice::OrderedTsc && matches!(why, RegionError::Tsc(_)),
                        "{why}"
                    );
                    continue;
                }
            };
            let timer = setup.timer();
            (0..100).for_each(|_| drop(timer.enter()));
            let statistics = timer.statistics();
            assert_eq!(
                (statistics.events, statistics.bins.iter().sum::<u64>()),
                (100, 100),
                "{}",
                setup.clock.name()
            );
            assert!(setup.overhead.subtracted && !setup.clock.name().is_empty());
        }
    }

    #[test]
    fn without_a_clock_events_are_counted() {
        let timer = Setup::missing().timer();
        drop(timer.enter());
        assert_eq!(
            (timer.statistics().events, timer.statistics().total),
            (1, 0)
        );
        assert!(RegionClock::Missing.name().starts_with("none"));
    }

    #[test]
    fn clocks_have_names() {
        assert_eq!("cheapest".parse(), Ok(ClockChoice::Cheapest));
        let why = "sundial\n".parse::<ClockChoice>().unwrap_err();
        assert!(
            why.starts_with("there is no clock \"sundial\\n\" of regions"),
            "{why}"
        );
    }

    #[test]
    fn invalid_ticks_are_errors() {
        let settings = RegionSettings {
            clock: ClockChoice::System,
            tick: Duration::ZERO,
            ..RegionSettings::default()
        };
        assert!(matches!(
            Setup::new(settings),
            Err(RegionError::Scale(ModelError::TickNotPositive))
        ));
    }
}
