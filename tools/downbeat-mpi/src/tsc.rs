//! The calibrated time stamp counter.

use downbeat_clock_core::{ClockModel, Counter, Duration, Local, TickRate, Ticks, Timestamp};
use downbeat_common::{CalibrationOptions, Failure, agree_blocking};
use downbeat_sync::{Comm, block_on_ready, collective};
use downbeat_timers::{SystemClock, SystemClockId, TscClock};

use crate::counters::CounterAgreement;
use crate::ranks::JobRanks;

/// Duration of the calibration.
const CALIBRATION: Duration = Duration::from_millis(50);

/// Time stamp counter of a rank, and its rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalibratedTsc {
    pub(crate) clock: TscClock,
    pub(crate) rate: TickRate,
    pub(crate) uncertainty: f64,
    /// Agreement of the counters of the cores, if it was measured: true errors are not more certain than that.
    pub(crate) counters: Option<CounterAgreement>,
}

impl CalibratedTsc {
    /// Compares the counters of the cores on which the ranks run. All ranks call this.
    pub(crate) fn compare_counters(&mut self, ranks: &JobRanks<'_>) -> Result<(), Failure> {
        let measured = CounterAgreement::measure(ranks, &self.clock, self.rate)?;
        self.counters = Some(measured);
        Ok(())
    }

    /// Calibrates on one rank of every node, which sends the rate to the others; these would only disturb it.
    pub(crate) fn new(ranks: &JobRanks<'_>, options: &CalibrationOptions) -> Result<Self, Failure> {
        let clock = TscClock::detect();
        let calibrate = || {
            let tsc =
                clock.map_err(|why| ranks.failure(format!("no time stamp counter: {why}")))?;
            if ranks.node_comm.rank() > 0 {
                return Ok((tsc, None));
            }
            let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
            let used = options.calibrate(&clock, &raw, CALIBRATION)?;
            Ok((
                tsc,
                used.map(|used| (used.calibration.rate(), used.calibration.uncertainty())),
            ))
        };
        let (clock, calibrated) = agree_blocking(ranks.all, calibrate())?;
        let (rate, uncertainty) = calibrated.unwrap_or((TickRate::NANOSECOND, 0.0));
        // A rate can only be sent as part of a model.
        let model = ClockModel::<Counter, Local>::through(Ticks(0), Timestamp::ORIGIN, rate)
            .map_err(Failure::run)?;
        let model =
            block_on_ready(collective::broadcast(&ranks.node_comm, model)).map_err(Failure::run)?;
        Ok(Self {
            clock,
            rate: model.rate(),
            uncertainty,
            counters: None,
        })
    }
}
