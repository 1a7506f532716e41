//! A device that is none: a clock with a known error, behind a link.

use core::convert::Infallible;

use downbeat_clock_core::{Clock, Duration, TickRate, Ticks};
use fastrand::Rng;

use super::DeviceClock;
use crate::skew::SkewedClock;

/// Delays of readings of a [`SimulatedDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLatency {
    /// Shortest time from the call to the reading.
    pub there: Duration,
    /// Shortest time from the reading to the return.
    pub back: Duration,
    /// Mean of the random delay that each way adds, distributed exponentially.
    pub jitter: Duration,
}

/// A device with a known error and known delays, to test what follows devices.
///
/// It waits by the function that it was given: [`spin`](Self::spin) for a host with a real clock, and one that moves the clock for a
/// [`MockClock`](crate::MockClock).
#[derive(Clone, Debug)]
pub struct SimulatedDevice<C, W = fn(Duration)> {
    clock: SkewedClock<C>,
    latency: DeviceLatency,
    random: Rng,
    wait: W,
}

impl<C: Clock, W: FnMut(Duration)> SimulatedDevice<C, W> {
    /// Creates a device that shows `clock`, whose delays depend on `seed`.
    pub fn new(clock: SkewedClock<C>, latency: DeviceLatency, seed: u64, wait: W) -> Self {
        Self {
            clock,
            latency,
            random: Rng::with_seed(seed),
            wait,
        }
    }

    fn delay(&mut self, shortest: Duration) {
        let random = -(1.0 - self.random.f64()).ln();
        let jitter = self.latency.jitter.as_nanos() as f64 * random;
        (self.wait)(shortest + Duration::from_nanos(jitter as i64));
    }
}

impl<C> SimulatedDevice<C> {
    /// Occupies the processor for a time.
    pub fn spin(span: Duration) {
        let begin = std::time::Instant::now();
        let span = core::time::Duration::from_nanos(span.as_nanos().try_into().unwrap_or(0));
        while begin.elapsed() < span {
            core::hint::spin_loop();
        }
    }
}

impl<C: Clock, W: FnMut(Duration)> DeviceClock for SimulatedDevice<C, W> {
    type Error = Infallible;

    fn rate(&self) -> TickRate {
        SkewedClock::<C>::RATE
    }

    fn read(&mut self) -> Result<Ticks, Infallible> {
        self.delay(self.latency.there);
        let ticks = self.clock.ticks();
        self.delay(self.latency.back);
        Ok(ticks)
    }
}
