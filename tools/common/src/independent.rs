//! Frequency of the processor's counter by a clock that does not depend on the counter,
//! as `CLOCK_MONOTONIC_RAW` does: the kernel computes that from the counter, by a rate
//! that it found at its start.

use downbeat_timers::calibration::{BracketSeries, Calibration};
use downbeat_timers::kernel::{Discipline, PtpClock, PtpDevice};
use downbeat_timers::{Clock, Duration, SystemClock, SystemClockId};
use serde::{Deserialize, Serialize};

/// A clock that does not depend on the counter.
#[derive(Debug)]
pub(crate) struct IndependentReference {
    name: String,
    clock: IndependentClock,
}

#[derive(Debug)]
enum IndependentClock {
    Ptp(PtpClock),
    /// CLOCK_MONOTONIC, whose rate a daemon adjusts.
    Kept(SystemClock),
}

/// Frequency of the counter in Hz, and its largest error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndependentRate {
    /// Clock by which it was measured.
    pub reference: String,
    /// Frequency.
    pub frequency_hz: f64,
    /// Largest error of the frequency, by that clock.
    pub certain_ppm: f64,
}

/// One end of a measurement.
#[derive(Debug)]
struct IndependentEnd {
    brackets: BracketSeries,
    /// Largest error of the reference.
    error: Duration,
}

/// A frequency of which less is certain is not known: every quartz is better.
const MOST_PPM: f64 = 1_000.0;

impl IndependentRate {
    /// Does some work, and measures the frequency of the counter from its begin to its
    /// end, if there is a clock for that.
    pub fn measure_during<T>(counter: &impl Clock, work: impl FnOnce() -> T) -> (T, Option<Self>) {
        let reference = IndependentReference::find();
        let start = reference.as_ref().map(|clock| clock.compare(counter));
        let done = work();
        let rate = reference
            .zip(start)
            .and_then(|(clock, start)| clock.rate(&start, &clock.compare(counter)));
        (done, rate)
    }
}

impl IndependentReference {
    /// Finds a clock: a PTP clock that this user may read, or CLOCK_MONOTONIC if a daemon
    /// keeps the time of the system.
    pub(crate) fn find() -> Option<Self> {
        let ptp = PtpDevice::all().into_iter().find_map(|device| {
            let clock = IndependentClock::Ptp(PtpClock::open(&device).ok()?);
            let name = format!("{} ({})", device.device, device.clock);
            Some(Self { name, clock })
        });
        ptp.or_else(Self::kept)
    }

    fn kept() -> Option<Self> {
        Discipline::read().ok().filter(|found| found.synchronized)?;
        let clock = SystemClock::detect(SystemClockId::Monotonic).ok()?;
        Some(Self {
            name: clock.id().name().to_owned(),
            clock: IndependentClock::Kept(clock),
        })
    }

    /// Compares the counter with the clock, in less than a millisecond.
    fn compare(&self, counter: &impl Clock) -> IndependentEnd {
        match &self.clock {
            IndependentClock::Ptp(clock) => IndependentEnd {
                brackets: BracketSeries::measure(counter, clock),
                error: Duration::ZERO,
            },
            IndependentClock::Kept(clock) => IndependentEnd {
                brackets: BracketSeries::measure(counter, clock),
                error: Discipline::read().map_or(Duration::MAX, |found| found.maximum_error),
            },
        }
    }

    /// Returns the frequency of the counter between two ends, if it is known well enough.
    fn rate(&self, start: &IndependentEnd, end: &IndependentEnd) -> Option<IndependentRate> {
        let found = Calibration::between(&start.brackets, &end.brackets).ok()?;
        let errors = start.error + end.error;
        let of_reference = errors.as_nanos() as f64 / found.duration().as_nanos() as f64;
        let rate = IndependentRate {
            reference: self.name.clone(),
            frequency_hz: found.rate().hz(),
            certain_ppm: 1e6 * (found.certain_uncertainty() + of_reference),
        };
        (rate.certain_ppm <= MOST_PPM).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_timers::MachineClock;

    #[test]
    fn errors_of_the_reference_count() {
        let (Ok(counter), Ok(clock)) = (
            MachineClock::counter(),
            SystemClock::detect(SystemClockId::Monotonic),
        ) else {
            return;
        };
        let reference = IndependentReference {
            name: "kept".to_owned(),
            clock: IndependentClock::Kept(clock),
        };
        let end = |error| IndependentEnd {
            brackets: BracketSeries::measure(&counter, &clock),
            error,
        };
        let start = end(Duration::from_nanos(200));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let exact = reference.rate(&start, &end(Duration::from_nanos(200)));
        // The errors alone are at most 20 ppm; on a busy machine the ends are further
        // apart.
        if let Some(exact) = exact {
            assert!(
                exact.certain_ppm > 0.0 && exact.frequency_hz > 1e6,
                "{exact:?}"
            );
        }
        assert_eq!(reference.rate(&start, &end(Duration::from_millis(1))), None);
        assert_eq!(reference.rate(&start, &end(Duration::MAX)), None);
    }
}
