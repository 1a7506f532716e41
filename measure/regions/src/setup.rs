//! By which clock regions are timed, in what unit, and what that costs itself.

use std::sync::OnceLock;

use downbeat_clock_core::{Clock, Duration, RegionTimer, TickRate, TickScale, Ticks};
use downbeat_timers::{SystemClock, SystemClockId, TscClock, UnorderedTsc, calibrate_during};

use super::error::RegionError;

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
pub struct RegionSettings {
    /// By which clock.
    pub clock: ClockChoice,
    /// What a tick is: the unit of histograms and reports, equal on all ranks.
    pub tick: Duration,
    /// Whether what an empty region seems to last is taken off every event.
    pub subtract_own: bool,
}

/// The cheapest clock, ticks of a nanosecond, and nothing subtracted.
impl Default for RegionSettings {
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
/// To be called before the first region. Otherwise that one settles it, by [`RegionSettings::default`]: its first run is then
/// preceded by that time, which it is not charged with, though a region of another library around it is.
///
/// # Errors
/// When that is settled already, or cannot be done.
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
        let usual = RegionSettings::default();
        let system = || {
            Setup::new(RegionSettings {
                clock: ClockChoice::System,
                ..usual
            })
        };
        // The report names the clock, so that nobody is deceived.
        Setup::new(usual)
            .or_else(|_| system())
            .unwrap_or_else(|_| Setup::missing())
    })
}

impl Setup {
    fn new(settings: RegionSettings) -> Result<Self, RegionError> {
        let (clock, rate) = match settings.clock {
            ClockChoice::OrderedTsc => {
                let tsc = TscClock::detect().map_err(RegionError::Tsc)?;
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
            own: 0,
        }
    }

    pub(super) fn timer(&self) -> RegionTimer<RegionClock> {
        RegionTimer::with_overhead(self.clock, self.scale, self.own)
    }
}

/// The steady clock of the system that is not adjusted, or else the one that is.
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
    use downbeat_clock_core::ModelError;

    #[test]
    fn every_clock_times_regions() {
        for clock in [
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
                // Elsewhere than on x86 the reason is what can be tested.
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
