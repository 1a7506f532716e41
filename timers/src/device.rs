//! Clocks that only their device can read: those of accelerators, network cards and hypervisors.

#[cfg(all(feature = "cuda", unix))]
mod cuda;
mod simulated;

use core::fmt;

use downbeat_clock_core::fit::{Envelope, Reading};
#[doc(no_inline)]
pub use downbeat_clock_core::fit::{EnvelopeLine, RateLimits};
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, Duration, FitError, TickRate, Ticks, Timestamp,
};

use crate::bracket::Bracket;

#[cfg(all(feature = "cuda", unix))]
pub use cuda::{CudaError, CudaTimer};
pub use simulated::{DeviceLatency, SimulatedDevice};

/// A clock that answers after a delay, and may refuse to.
///
/// To follow another kind of device, implement [`read`](Self::read), which returns when the answer is there: a kernel that stores
/// the global timer of an accelerator, a register of a network card.
///
/// ```
/// use downbeat_timers::device::DeviceClock;
/// use downbeat_timers::{TickRate, Ticks};
///
/// /// Global timer of an accelerator, which advances by 32 ns at a time.
/// struct Accelerator;
///
/// impl DeviceClock for Accelerator {
///     type Error = String;
///
///     fn rate(&self) -> TickRate {
///         TickRate::NANOSECOND
///     }
///
///     fn step(&self) -> u64 {
///         32
///     }
///
///     fn read(&mut self) -> Result<Ticks, String> {
/// #       const SHOWN: u64 = 0;
///         // Launch the kernel, wait for it, and return what it stored.
///         Ok(Ticks(SHOWN))
///     }
/// }
/// # Accelerator.read()?;
/// # Ok::<(), String>(())
/// ```
pub trait DeviceClock {
    /// Reason why the device cannot be read.
    type Error;

    /// Nominal length of a tick.
    fn rate(&self) -> TickRate;

    /// The step by which the clock advances, in ticks: [`Clock::grain`] of others.
    fn step(&self) -> u64 {
        1
    }

    /// Reads the clock at some time between the call and its return.
    ///
    /// # Errors
    /// If the device does not answer.
    fn read(&mut self) -> Result<Ticks, Self::Error>;

    /// Reads the clock between two readings of the host's. A device that tells when it was read overrides this.
    ///
    /// # Errors
    /// If the device does not answer.
    fn bracket(&mut self, host: &impl Clock) -> Result<Bracket, Self::Error> {
        let before = host.open();
        let reference = self.read()?;
        let after = host.close();
        Ok(Bracket {
            before,
            reference,
            after,
        })
    }
}

/// A device whose clock is compared with that of the host from time to time, so that its timestamps can be converted to
/// times of the host, with certain bounds.
///
/// Call [`compare`](Self::compare) about once a second while the device is in use, and whenever timestamps of it were collected.
/// [`around`](Self::around) then uses the sessions before and after a timestamp, and is narrower than any prediction.
///
/// ```
/// use downbeat_timers::device::{DeviceLatency, FollowedDevice, RateLimits, SimulatedDevice};
/// use downbeat_timers::skew::{Skew, SkewedClock};
/// use downbeat_timers::{Clock, Duration, Local, MockClock, TickRate, Ticks, Timestamp};
/// use downbeat_clock_core::ClockModel;
///
/// let host = MockClock::new(Ticks(1_000));
/// // A device 20 ppm fast, read in 2 to 4 us.
/// let truth = ClockModel::through(Ticks(0), Timestamp::ORIGIN, MockClock::RATE)?;
/// let skew = Skew { drift: 20e-6, ..Skew::default() };
/// let latency = DeviceLatency {
///     there: Duration::from_nanos(900),
///     back: Duration::from_nanos(1_100),
///     jitter: Duration::from_micros(1),
/// };
/// let wait = |span| host.advance(span);
/// let device = SimulatedDevice::new(SkewedClock::new(host.clone(), truth, skew)?, latency, 1, wait);
///
/// let mut device = FollowedDevice::<_, Local>::new(device, RateLimits::default());
/// let time = ClockModel::through(Ticks(0), Timestamp::ORIGIN, MockClock::RATE)?;
/// for _ in 0..30 {
///     device.compare(&host, &time, 50)?;
///     host.advance(Duration::from_secs(1));
/// }
/// let line = device.line()?;
/// assert!((line.drift + 20e-6).abs() < 1e-6, "{line:?}");
/// assert!(line.bound.half_width() < Duration::from_nanos(1_200), "{line:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FollowedDevice<D, B: Domain> {
    device: D,
    envelope: Envelope<B>,
}

/// Reason why a device could not be compared with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError<E> {
    /// The device does not answer.
    Device(E),
    /// A clock stepped, or its rate changes by more than was declared.
    Fit(FitError),
}

impl<E: fmt::Display> fmt::Display for DeviceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(why) => write!(f, "the device cannot be read: {why}"),
            Self::Fit(why) => write!(f, "device and host: {why}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for DeviceError<E> {}

impl<D: DeviceClock, B: Domain> FollowedDevice<D, B> {
    /// Creates a device that was not compared yet, with declared limits of its rate relative to the host.
    pub fn new(device: D, limits: RateLimits) -> Self {
        let envelope = Envelope::new(device.rate(), limits);
        Self { device, envelope }
    }

    /// Compares the device with the host by a session of `readings`, which follows all others. `time` converts readings of the
    /// host's clock; it must be the same for all sessions, so not that of a clock that is synchronized again meanwhile.
    ///
    /// # Errors
    /// If the device does not answer, or `readings` is 0: then nothing changes. If a clock stepped, or its rate changes by more
    /// than was declared: earlier sessions are then forgotten.
    pub fn compare(
        &mut self,
        host: &impl Clock,
        time: &ClockModel<Counter, B>,
        readings: usize,
    ) -> Result<EnvelopeLine<B>, DeviceError<D::Error>> {
        let mut session = Vec::with_capacity(readings);
        for _ in 0..readings {
            let bracket = self.device.bracket(host).map_err(DeviceError::Device)?;
            // A counter of the host that ran backwards tells nothing.
            if bracket.before <= bracket.after {
                session.push(self.reading(bracket, host.grain(), time));
            }
        }
        self.envelope.push(&session).map_err(DeviceError::Fit)?;
        self.line().map_err(DeviceError::Fit)
    }

    /// The device's clock by all sessions that are kept: offset and drift, and their bounds.
    ///
    /// # Errors
    /// If there are no sessions.
    pub fn line(&self) -> Result<EnvelopeLine<B>, FitError> {
        self.envelope.line()
    }

    /// Earliest and latest time of the host when the device showed `ticks`, rounded outward.
    ///
    /// # Errors
    /// If there are no sessions, or the rate changed by more than was declared.
    pub fn around(&self, ticks: Ticks) -> Result<[Timestamp<B>; 2], FitError> {
        self.envelope.around(ticks)
    }

    /// The device itself.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// The times between which the device showed what it did, with the steps of both clocks.
    fn reading(&self, bracket: Bracket, grain: u64, time: &ClockModel<Counter, B>) -> Reading<B> {
        // Times of the host are rounded to the nearest nanosecond.
        let rounding = Duration::from_nanos(1);
        // Twice, because the rate of the device is not exactly the nominal one.
        let step = self.device.rate().duration(self.device.step()) * 2;
        Reading {
            before: time.apply(bracket.before) - step - rounding,
            ticks: bracket.reference,
            after: time.apply(bracket.after.saturating_add(grain)) + rounding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MockClock;
    use crate::skew::{Skew, SkewSwing, SkewedClock};
    use downbeat_clock_core::Local;

    fn truth<B: Domain>() -> ClockModel<Counter, B> {
        ClockModel::through(Ticks(0), Timestamp::ORIGIN, MockClock::RATE).unwrap()
    }

    /// Follows a device for `seconds`, and returns the largest error of the line, that of the middle of what is certain in
    /// hindsight, and the largest half width.
    fn follow(skew: Skew, latency: DeviceLatency, limits: RateLimits, seconds: u32) -> [i64; 3] {
        let host = MockClock::new(Ticks(7_000_000));
        let clock = SkewedClock::new(host.clone(), truth(), skew).unwrap();
        let device = SimulatedDevice::new(clock.clone(), latency, 3, |span| host.advance(span));
        let mut device = FollowedDevice::<_, Local>::new(device, limits);
        let (mut recorded, mut found) = (Vec::new(), [0; 3]);
        for second in 0..seconds {
            let line = device.compare(&host, &truth(), 20).unwrap();
            let model = line.model().unwrap();
            recorded.clear();
            for _ in 0..10 {
                host.advance(Duration::from_millis(100));
                let (ticks, now) = (clock.ticks(), truth::<Local>().apply(host.ticks()));
                let shown = model.apply(ticks);
                assert!(line.bound.allows(shown, now), "{line:?} {shown:?} {now:?}");
                // The rate is known after a second.
                if second > 0 {
                    found[0] = found[0].max((shown - now).abs().as_nanos());
                }
                recorded.push((ticks, now));
            }
            device.compare(&host, &truth(), 20).unwrap();
            for (ticks, now) in &recorded {
                let [early, late] = device.around(*ticks).unwrap();
                assert!(early <= *now && *now <= late, "{early:?} {now:?} {late:?}");
                let half = (late - early) / 2;
                found[1] = found[1].max((early + half - *now).abs().as_nanos());
                found[2] = found[2].max(half.as_nanos());
            }
        }
        found
    }

    #[test]
    fn a_drifting_device_is_followed_within_its_bounds() {
        let skew = Skew {
            offset: Duration::from_secs(5),
            drift: -80e-6,
            // The rate swings by 0.6 ppm.
            swing: Some(SkewSwing {
                amplitude: Duration::from_micros(10),
                period: Duration::from_secs(100),
            }),
            ..Skew::default()
        };
        let latency = DeviceLatency {
            there: Duration::from_nanos(700),
            back: Duration::from_nanos(1_300),
            jitter: Duration::from_micros(5),
        };
        let [predicted, later, half_width] = follow(skew, latency, RateLimits::default(), 200);
        // Half of the difference between the two ways, 300 ns, is what no reading can show.
        assert!(
            later < 1_300 && predicted < 4_000,
            "{predicted} {later} {half_width}"
        );
        assert!(half_width < 2_600, "{half_width}");
    }

    #[test]
    fn a_device_that_does_not_answer_changes_nothing() {
        struct Silent;
        impl DeviceClock for Silent {
            type Error = &'static str;
            fn rate(&self) -> TickRate {
                TickRate::NANOSECOND
            }
            fn read(&mut self) -> Result<Ticks, &'static str> {
                Err("no answer")
            }
        }
        let mut device = FollowedDevice::<_, Local>::new(Silent, RateLimits::default());
        let why = device
            .compare(&MockClock::default(), &truth(), 3)
            .unwrap_err();
        assert_eq!(why.to_string(), "the device cannot be read: no answer");
        let none = device.compare(&MockClock::default(), &truth(), 0);
        assert_eq!(none, Err(DeviceError::Fit(FitError::NoExchanges)));
        assert_eq!(device.line(), Err(FitError::NoExchanges));
        assert_eq!(device.device().read(), Err("no answer"));
    }
}
