//! The clock of a rank before a synchronization.

use std::fs;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Local};
use downbeat_sync::algorithm::OtherClock;
use downbeat_sync::collective::agree_blocking;
use downbeat_sync::internal::boot_id;
use downbeat_sync::{Comm, CommError, StableHasher, block_on_ready, collective};
use downbeat_timers::calibration::CalibrationError;
use downbeat_timers::skew::{SkewError, SkewSpec, SkewedClock, Truth};
use downbeat_timers::{
    AnyClock, CalibratedRate, ClockName, MachineClock, SystemClock, SystemClockId,
};

use crate::error::GlobalClockError;

/// A clock, and the time of this rank by it.
#[derive(Clone, Copy, Debug)]
pub struct LocalTime<K = MachineClock> {
    /// Clock that the rank reads.
    pub clock: K,
    /// Local time by that clock; on rank 0 it becomes global time.
    pub model: ClockModel<Counter, Local>,
    /// Upper limit of the relative error of the rate.
    pub rate_error: f64,
    /// Identity of the time source: equal on ranks that read the same one. See
    /// [`LocalClock::source`](downbeat_sync::LocalClock::source).
    pub source: u64,
    /// Another clock of the rank, by which a step of this one shows.
    pub other: Option<OtherClock>,
}

impl LocalTime {
    /// Detects the clock with this name on every rank, calibrates it on one rank of every node for this time, and begins local
    /// time now. The ranks of a node get equal models. All ranks call this; those of a node have a communicator `node`.
    ///
    /// # Errors
    /// If a rank has no such clock, or it cannot be calibrated.
    pub fn detect<M: Comm>(
        name: ClockName,
        calibration: Duration,
        comm: &M,
        node: &M,
    ) -> Result<Self, GlobalClockError> {
        let clock = MachineClock::detect(name);
        let clock = clock.map_err(|why| GlobalClockError::of_rank(comm, why));
        let clock = agree_blocking(comm, clock)?;
        // The others would only disturb the calibration; they get the model of this rank.
        let calibrated = match node.rank() {
            0 => clock.calibrate(calibration),
            _ => Ok(CalibratedRate::NANOSECONDS),
        };
        let begun = calibrated.and_then(|rate| Self::begin(clock, rate));
        let begun = begun.map_err(|why| GlobalClockError::of_rank(comm, why));
        Ok(agree_blocking(comm, begun)?
            .of_first(node)?
            .compared_with_raw())
    }

    /// Calibrates a clock of this process, which has no other ranks, and begins local time now.
    ///
    /// # Errors
    /// If the clock cannot be calibrated.
    pub fn of_process(
        clock: MachineClock,
        calibration: Duration,
    ) -> Result<Self, CalibrationError> {
        Self::begin(clock, clock.calibrate(calibration)?)
    }

    /// Begins local time now, by a clock whose rate is known.
    ///
    /// # Errors
    /// If the counter was started more than 146 years ago.
    pub fn begin(
        clock: MachineClock,
        calibrated: CalibratedRate,
    ) -> Result<Self, CalibrationError> {
        let CalibratedRate { rate, uncertainty } = calibrated;
        Ok(Self {
            clock,
            model: clock.since_now(rate).map_err(CalibrationError::Rate)?,
            rate_error: uncertainty,
            source: time_source(&clock),
            other: None,
        })
    }

    /// Returns the local time of the first rank of a node, by the clock of this rank. All ranks of the node call this.
    ///
    /// # Errors
    /// If a rank is gone.
    pub fn of_first<M: Comm>(self, node: &M) -> Result<Self, CommError> {
        let model = block_on_ready(collective::broadcast(node, self.model))?;
        let rate_error = block_on_ready(collective::broadcast(node, self.rate_error))?;
        Ok(Self {
            model,
            rate_error,
            ..self
        })
    }

    /// Compares the clock with `CLOCK_MONOTONIC_RAW` over each synchronization, by a rate
    /// that was measured against that clock, so that a step shows.
    #[must_use]
    pub fn compared_with_raw(self) -> Self {
        Self {
            other: other_clock(&self.clock, self.rate_error),
            ..self
        }
    }
}

impl<Own: Clock> LocalTime<AnyClock<Own>> {
    /// Returns the same with the artificial error of clock `index` by `spec`. `truth` is true
    /// time by this clock.
    ///
    /// # Errors
    /// If a parameter of the error is invalid.
    pub fn skewed(
        self,
        spec: &SkewSpec,
        index: u32,
        truth: ClockModel<Counter, Truth>,
    ) -> Result<Self, SkewError> {
        let clock = SkewedClock::new(self.clock, truth, spec.for_clock(index))?;
        Ok(Self {
            model: SkewedClock::<AnyClock<Own>>::nominal_model().map_err(SkewError::Model)?,
            clock: AnyClock::Skewed(Box::new(clock)),
            rate_error: self.rate_error,
            source: StableHasher::hash_of(&(self.source, index)),
            // It may be told to step.
            other: None,
        })
    }
}

/// Gives a clock of the machine the type of a program that can have others.
impl<Own> From<LocalTime> for LocalTime<AnyClock<Own>> {
    fn from(local: LocalTime) -> Self {
        let LocalTime {
            clock,
            model,
            rate_error,
            source,
            other,
        } = local;
        Self {
            clock: AnyClock::Machine(clock),
            model,
            rate_error,
            source,
            other,
        }
    }
}

/// Largest share by which a daemon of the system changes the rates of its clocks:
/// chrony's.
const MAX_SLEW: f64 = 0.1;
/// Largest change of a counter's rate since it was measured, a second or an hour ago.
const MAX_RATE_CHANGE: f64 = 5e-6;

/// Returns `CLOCK_MONOTONIC_RAW`, which nothing sets, for the comparison with another
/// clock.
fn other_clock(clock: &MachineClock, rate_error: f64) -> Option<OtherClock> {
    let changed = match clock.name() {
        ClockName::Raw => return None,
        _ if matches!(clock, MachineClock::System(_)) => MAX_SLEW,
        _ => MAX_RATE_CHANGE,
    };
    Some(OtherClock {
        read: || {
            let raw = SystemClock::detect(SystemClockId::MonotonicRaw).ok()?;
            i64::try_from(raw.ticks().0).ok()
        },
        // The uncertainty of a calibration is no certain limit.
        max_drift: 2.0 * rate_error + changed,
    })
}

/// Returns a number that is equal for processes that read one clock: those under one kernel until its next boot, and in one time
/// namespace, from which containers can have their own.
fn time_source(clock: &MachineClock) -> u64 {
    let boot = boot_id().unwrap_or_default();
    let namespace = match clock {
        MachineClock::System(_) => fs::read_link("/proc/self/ns/time").unwrap_or_default(),
        _ => Default::default(),
    };
    StableHasher::hash_of(&(clock.name().as_str(), boot, namespace))
}
