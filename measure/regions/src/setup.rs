//! By which clock regions are timed, in what unit, and what that costs itself.

use core::fmt;
use std::sync::OnceLock;

use downbeat_clock_core::{Clock, Duration, ModelError, RegionTimer, TickRate, TickScale, Ticks};
use downbeat_timers::{
    CalibrationError, SystemClock, SystemClockId, SystemClockUnavailable, TscClock, TscUnavailable,
    UnorderedTsc, calibrate_during,
};

/// By which clock a program times its regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockChoice {
    /// The time stamp counter, unordered, where there is one that is fit; the system's clock elsewhere. The cheapest:
    /// an end may be read some nanoseconds early.
    #[default]
    Cheapest,
    /// The time stamp counter, ordered: an end is read when everything before it is done.
    OrderedTsc,
    /// The system's steady clock.
    System,
}

/// What a program settles before its first region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// By which clock.
    pub clock: ClockChoice,
    /// What a tick is: the unit of histograms and reports, equal on all ranks.
    pub tick: Duration,
    /// Whether what an empty region seems to last is taken off every event.
    pub subtract_own: bool,
}

/// The cheapest clock, ticks of a nanosecond, and nothing subtracted.
impl Default for Settings {
    fn default() -> Self {
        Self {
            clock: ClockChoice::default(),
            tick: Duration::from_nanos(1),
            subtract_own: false,
        }
    }
}

/// What timing a region costs itself, as it was measured when the program began to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Overhead {
    /// What an empty region seems to last, in picoseconds.
    pub within_picos: u64,
    /// What it costs whoever runs it, in picoseconds.
    pub whole_picos: u64,
    /// Whether the former was taken off every event.
    pub subtracted: bool,
}

/// The clocks that regions are timed by. An enum, as a region's call sites must not be generic over it.
#[derive(Clone, Copy, Debug)]
pub enum RegionClock {
    /// The time stamp counter, unordered.
    UnorderedTsc(UnorderedTsc),
    /// The time stamp counter, ordered.
    OrderedTsc(TscClock),
    /// A clock of the system.
    System(SystemClock),
    /// There is none: every event lasts 0.
    Missing,
}

impl RegionClock {
    /// As reports call it.
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
        // No `match`: it would become a jump through a table.
        if let Self::UnorderedTsc(clock) = self {
            return clock.ticks();
        }
        if let Self::OrderedTsc(clock) = self {
            clock.ticks()
        } else {
            self.slow_ticks()
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

/// Why regions are not timed as they were to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// A region was entered already, and what it was timed by cannot be changed.
    TooLate,
    /// The counter cannot be used.
    Tsc(TscUnavailable),
    /// The clock of the system cannot be used.
    System(SystemClockUnavailable),
    /// How fast the counter counts could not be found out.
    Calibration(CalibrationError),
    /// There is no such unit.
    Scale(ModelError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate => {
                f.write_str("a region was entered before it was settled how regions are timed")
            }
            Self::Tsc(why) => why.fmt(f),
            Self::System(why) => why.fmt(f),
            Self::Calibration(why) => why.fmt(f),
            Self::Scale(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for SetupError {}

/// What all timers of the program have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) clock: RegionClock,
    pub(super) scale: TickScale,
    pub(super) tick: Duration,
    pub(super) overhead: Overhead,
    /// What is subtracted, in ticks of the clock.
    own: u64,
}

static SETUP: OnceLock<Setup> = OnceLock::new();

/// Settles how the regions of this program are timed; takes some 10 ms where a counter is calibrated.
///
/// To be called before the first region. Otherwise that one settles it, by [`Settings::default`]: its first run is then
/// preceded by that time, which it is not charged with, though a region of another library around it is.
///
/// # Errors
/// When that is settled already, or cannot be done.
pub fn configure(settings: Settings) -> Result<(), SetupError> {
    if SETUP.get().is_some() {
        return Err(SetupError::TooLate);
    }
    SETUP
        .set(Setup::of(settings)?)
        .map_err(|_| SetupError::TooLate)
}

pub(super) fn setup() -> &'static Setup {
    SETUP.get_or_init(|| {
        let usual = Settings::default();
        let system = || {
            Setup::of(Settings {
                clock: ClockChoice::System,
                ..usual
            })
        };
        // The report names the clock, so that nobody is deceived.
        Setup::of(usual)
            .or_else(|_| system())
            .unwrap_or_else(|_| Setup::missing())
    })
}

impl Setup {
    fn of(settings: Settings) -> Result<Self, SetupError> {
        let (clock, rate) = match settings.clock {
            ClockChoice::OrderedTsc => {
                let tsc = TscClock::detect().map_err(SetupError::Tsc)?;
                (RegionClock::OrderedTsc(tsc), calibrated(&tsc)?)
            }
            ClockChoice::Cheapest => match TscClock::detect() {
                Ok(tsc) => (
                    RegionClock::UnorderedTsc(tsc.unordered()),
                    calibrated(&tsc)?,
                ),
                Err(_) => (RegionClock::System(steady()?), SystemClock::RATE),
            },
            ClockChoice::System => (RegionClock::System(steady()?), SystemClock::RATE),
        };
        let scale = TickScale::new(rate, settings.tick).map_err(SetupError::Scale)?;
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
            own: if subtracted { within as u64 } else { 0 },
        })
    }

    fn missing() -> Self {
        let tick = Settings::default().tick;
        let overhead = Overhead::default();
        Self {
            clock: RegionClock::Missing,
            scale: TickScale::NANOSECONDS,
            tick,
            overhead,
            own: 0,
        }
    }

    pub(super) fn timer(&self) -> RegionTimer<RegionClock> {
        RegionTimer::with_overhead(self.clock, self.scale, self.own)
    }
}

/// The steady clock of the system that is not adjusted, or else the one that is.
fn steady() -> Result<SystemClock, SetupError> {
    let [raw, adjusted] =
        [SystemClockId::MonotonicRaw, SystemClockId::Monotonic].map(SystemClock::detect);
    raw.or(adjusted).map_err(SetupError::System)
}

fn calibrated(tsc: &TscClock) -> Result<TickRate, SetupError> {
    let found = calibrate_during(tsc, &steady()?, Duration::from_millis(10))
        .map_err(SetupError::Calibration)?;
    Ok(found.rate())
}

/// What an empty region seems to last, and what it costs, in ticks of the clock: medians of means over many runs.
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

    #[test]
    fn every_clock_times_regions() {
        for clock in [
            ClockChoice::Cheapest,
            ClockChoice::OrderedTsc,
            ClockChoice::System,
        ] {
            let found = Setup::of(Settings {
                clock,
                subtract_own: true,
                ..Settings::default()
            });
            let setup = match found {
                Ok(setup) => setup,
                // Elsewhere than on x86 the reason is what can be tested.
                Err(why) => {
                    assert!(
                        clock == ClockChoice::OrderedTsc && matches!(why, SetupError::Tsc(_)),
                        "{why}"
                    );
                    continue;
                }
            };
            let timer = setup.timer();
            (0..100).for_each(|_| drop(timer.enter()));
            let seen = timer.statistics();
            assert_eq!(
                (seen.events, seen.bins.iter().sum::<u64>()),
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
    fn what_is_no_tick_is_refused() {
        let settings = Settings {
            clock: ClockChoice::System,
            tick: Duration::ZERO,
            ..Settings::default()
        };
        assert!(matches!(
            Setup::of(settings),
            Err(SetupError::Scale(ModelError::TickNotPositive))
        ));
    }
}
