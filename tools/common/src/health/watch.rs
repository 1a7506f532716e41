//! Repeated measurement of the clocks of a node.

use clap::Args;
use downbeat_timers::calibration::{BracketSeries, Calibration, CalibrationError};
use downbeat_timers::{Clock, Duration, MachineClock, SystemClock, SystemClockId};

use super::{ClockHealth, Gauge, LogOptions, SystemTimeHealth};
use crate::Failure;
use crate::cli::positive;

/// Options of commands that keep measuring.
#[derive(Args, Clone, Debug, Default)]
pub struct WatchOptions {
    /// Keep measuring, once in this time, and log until interrupted
    #[arg(long, value_name = "PERIOD", value_parser = positive, conflicts_with_all = ["json", "format"], allow_hyphen_values = true)]
    pub watch: Option<Duration>,
    /// Number of measurements after which --watch ends [default: unlimited]
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), allow_hyphen_values = true)]
    pub samples: Option<u64>,
    /// Log of --watch.
    #[command(flatten)]
    pub log: LogOptions,
}

impl WatchOptions {
    /// Number of measurements after which to end.
    pub fn most_samples(&self) -> u64 {
        self.samples.unwrap_or(u64::MAX)
    }
}

/// Quantities that [`NodeWatch`] measures, in the order of its values.
pub const NODE_GAUGES: [Gauge; 10] = [
    Gauge {
        name: "ticks_per_second",
        help: "Ticks of the counter in a second of CLOCK_MONOTONIC_RAW, since the measurement before.",
    },
    Gauge {
        name: "steady_ppm",
        help: "Upper limit of the error of that rate, if delays before and after a reading change alike.",
    },
    Gauge {
        name: "counter_change_ppm",
        help: "Difference of that rate from the one at the start.",
    },
    Gauge {
        name: "realtime_shift_ns",
        help: "Change of CLOCK_REALTIME minus CLOCK_MONOTONIC_RAW since the measurement before: adjustment of the rate, and steps.",
    },
    Gauge {
        name: "synchronized",
        help: "1 if a daemon keeps the time of the system synchronized, else 0.",
    },
    Gauge {
        name: "adjustment_ppm",
        help: "Rate of the system time relative to that without adjustment.",
    },
    Gauge {
        name: "remaining_offset_ns",
        help: "Offset of the system time that the kernel still removes by slewing.",
    },
    Gauge {
        name: "maximum_error_ns",
        help: "Maximum error of the system time, as the daemon sees it.",
    },
    Gauge {
        name: "estimated_error_ns",
        help: "Estimated error of the system time, as the daemon sees it.",
    },
    Gauge {
        name: "requirements_met",
        help: "1 if all requirements are met, else 0.",
    },
];

/// Measures the clocks of this node again and again.
#[derive(Debug)]
pub struct NodeWatch {
    raw: SystemClock,
    realtime: Option<SystemClock>,
    counter: Option<MachineClock>,
    before: Readings,
    health: ClockHealth,
    first_hz: Option<f64>,
}

/// Readings of all clocks at one time.
#[derive(Debug)]
struct Readings {
    /// The counter, and the reference.
    series: Option<BracketSeries>,
    /// CLOCK_REALTIME minus the reference.
    realtime_offset: Option<i128>,
}

impl NodeWatch {
    /// Begins with this state of the node.
    pub fn new(counter: Option<MachineClock>, raw: SystemClock, health: ClockHealth) -> Self {
        let realtime = SystemClock::detect(SystemClockId::Realtime).ok();
        let before = Readings::take(counter.as_ref(), &raw, realtime.as_ref());
        Self {
            raw,
            realtime,
            counter,
            before,
            first_hz: health
                .counter
                .as_ref()
                .ok()
                .map(|found| found.ticks_per_second),
            health,
        }
    }

    /// Measures what happened since the last call, and updates the state of the node.
    ///
    /// # Errors
    /// If the counter stood still.
    pub fn measure(&mut self) -> Result<NodeSample, Failure> {
        let now = Readings::take(self.counter.as_ref(), &self.raw, self.realtime.as_ref());
        let measured = now.since(&self.before).map_err(Failure::run)?;
        self.health.system_time = SystemTimeHealth::read();
        if let (Ok(counter), Some(measured)) = (&mut self.health.counter, &measured) {
            counter.ticks_per_second = measured.rate().hz();
            counter.steady_ppm = measured.uncertainty() * 1e6;
        }
        let shift = self.before.realtime_offset.zip(now.realtime_offset);
        let hz = measured.map(|measured| measured.rate().hz());
        let sample = NodeSample {
            ticks_per_second: hz,
            steady_ppm: measured.map(|measured| measured.uncertainty() * 1e6),
            counter_change_ppm: hz
                .zip(self.first_hz)
                .map(|(hz, first)| (hz / first - 1.0) * 1e6),
            realtime_shift_ns: shift.map(|(before, now)| (now - before) as f64),
        };
        self.before = now;
        Ok(sample)
    }

    /// State of the node at the last measurement.
    pub fn health(&self) -> &ClockHealth {
        &self.health
    }
}

/// Measurements of one node.
#[derive(Clone, Copy, Debug)]
pub struct NodeSample {
    ticks_per_second: Option<f64>,
    steady_ppm: Option<f64>,
    counter_change_ppm: Option<f64>,
    realtime_shift_ns: Option<f64>,
}

impl NodeSample {
    /// Returns a value for each of [`NODE_GAUGES`].
    pub fn values(&self, health: &ClockHealth, requirements_met: bool) -> Vec<Option<f64>> {
        let time = health.system_time.as_ref().ok();
        vec![
            self.ticks_per_second,
            self.steady_ppm,
            self.counter_change_ppm,
            self.realtime_shift_ns,
            time.map(|found| f64::from(found.synchronized)),
            time.map(|found| found.adjustment_ppm),
            time.map(|found| found.offset_ns as f64),
            time.map(|found| found.maximum_error_ns as f64),
            time.map(|found| found.estimated_error_ns as f64),
            Some(f64::from(requirements_met)),
        ]
    }
}

impl Readings {
    fn take(
        counter: Option<&MachineClock>,
        raw: &SystemClock,
        realtime: Option<&SystemClock>,
    ) -> Self {
        Self {
            series: counter.map(|counter| BracketSeries::measure(counter, raw)),
            realtime_offset: realtime.map(|realtime| offset(realtime, raw)),
        }
    }

    fn since(&self, before: &Self) -> Result<Option<Calibration>, CalibrationError> {
        before
            .series
            .as_ref()
            .zip(self.series.as_ref())
            .map(|(before, now)| Calibration::between(before, now))
            .transpose()
    }
}

/// Returns the difference of two clocks in nanoseconds, from the reading that took the shortest time.
fn offset(clock: &SystemClock, reference: &SystemClock) -> i128 {
    const READINGS: usize = 20;
    let read = |_| {
        let (before, at, after) = (reference.ticks(), clock.ticks(), reference.ticks());
        let middle = (i128::from(before.0) + i128::from(after.0)) / 2;
        (after.0.saturating_sub(before.0), i128::from(at.0) - middle)
    };
    (0..READINGS)
        .map(read)
        .min()
        .map_or(0, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sound;
    use super::*;

    #[test]
    fn each_gauge_has_a_value() {
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let counter = MachineClock::counter().ok();
        let mut watch = NodeWatch::new(counter, raw, sound("a"));
        std::thread::sleep(std::time::Duration::from_millis(10));
        let sample = watch.measure().unwrap();
        let values = sample.values(watch.health(), true);
        assert_eq!(values.len(), NODE_GAUGES.len());
        assert_eq!(values[9], Some(1.0));
        // A day of adjustment by 500 ppm would be needed for more.
        assert!(
            values[3].is_some_and(|shift| shift.abs() < 4.32e10),
            "{values:?}"
        );
        if counter.is_some() {
            let hz = values[0].unwrap();
            assert!(
                values[1].is_some() && (1e6..1e11).contains(&hz),
                "{values:?}"
            );
            let expected = (hz / 2e9 - 1.0) * 1e6;
            assert!((values[2].unwrap() - expected).abs() < 1e-6 * expected.abs().max(1.0));
        }
    }
}
