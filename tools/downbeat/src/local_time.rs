//! The clock of a rank before a synchronization.

use std::fs;

use downbeat_clock_core::{ClockModel, Counter, Duration, Local, TickRate};
use downbeat_sync::{Comm, StableHasher, block_on_ready, collective};
use downbeat_timers::calibration::CalibrationError;
use downbeat_timers::{CalibratedRate, ClockName, MachineClock};

use crate::error::{GlobalClockError, agree, failure};

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
        let clock = agree(comm, MachineClock::detect(name).map_err(failure))?;
        // The others would only disturb the calibration; they get the model of this rank.
        let calibrated = match node.rank() {
            0 => clock.calibrate(calibration),
            _ => Ok(CalibratedRate {
                rate: TickRate::NANOSECOND,
                uncertainty: 0.0,
            }),
        };
        let begun = calibrated.and_then(|rate| Self::begin(clock, rate));
        let Self {
            model, rate_error, ..
        } = agree(comm, begun.map_err(failure))?;
        let model = block_on_ready(collective::broadcast(node, model))?;
        let [bits] = block_on_ready(collective::broadcast(node, [rate_error.to_bits()]))?;
        Ok(Self {
            clock,
            model,
            rate_error: f64::from_bits(bits),
            source: time_source(&clock),
        })
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

    fn begin(clock: MachineClock, calibrated: CalibratedRate) -> Result<Self, CalibrationError> {
        let CalibratedRate { rate, uncertainty } = calibrated;
        Ok(Self {
            clock,
            model: clock.since_now(rate).map_err(CalibrationError::Rate)?,
            rate_error: uncertainty,
            source: time_source(&clock),
        })
    }
}

/// Returns a number that is equal for processes that read one clock: those under one kernel until its next boot, and in one time
/// namespace, from which containers can have their own.
fn time_source(clock: &MachineClock) -> u64 {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = match clock {
        MachineClock::System(_) => fs::read_link("/proc/self/ns/time").unwrap_or_default(),
        _ => Default::default(),
    };
    StableHasher::hash_of(&(clock.name().as_str(), boot, namespace))
}
