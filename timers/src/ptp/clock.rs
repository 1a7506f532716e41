//! Reading a hardware clock of PTP.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use downbeat_clock_core::{Clock, ReadOrdering, TickRate, Ticks};

use super::PtpDevice;
use crate::ClockUnavailable;
use crate::device::DeviceClock;
use crate::resolution::grain_of;

/// A hardware clock of PTP: that of a network card, or that of the host as a hypervisor passes it to its guests (`KVM virtual PTP`).
///
/// Its ticks are nanoseconds, and usually those of atomic time: PTP's daemons keep it so. A reading takes a microsecond and more, since
/// it crosses the bus, or leaves the virtual machine; [`FollowedDevice`](crate::device::FollowedDevice) converts its time to that of the
/// processor's counter, and back, with certain bounds.
///
/// ```no_run
/// use downbeat_timers::device::{FollowedDevice, RateLimits};
/// use downbeat_timers::kernel::{PtpClock, PtpDevice};
/// use downbeat_timers::{ClockName, Duration, Local, MachineClock};
///
/// let device = PtpDevice::all().into_iter().next().ok_or("there is no PTP clock")?;
/// let mut card = FollowedDevice::<_, Local>::new(PtpClock::open(&device)?, RateLimits::default());
/// let host = MachineClock::detect(ClockName::Recommended)?;
/// let time = host.since_now(host.calibrate(Duration::from_millis(100))?.rate)?;
/// for _ in 0..10 {
///     let line = card.compare(&host, &time, 20)?;
///     println!("{} ppm, certain to {}", line.drift * 1e6, line.bound.half_width());
///     std::thread::sleep(std::time::Duration::from_secs(1));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PtpClock {
    file: Arc<File>,
    grain: u64,
}

/// Name of such clocks in messages.
const NAME: &str = "the PTP clock";

impl PtpClock {
    /// Length of a tick.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Opens the clock, and finds its step, in some milliseconds.
    ///
    /// # Errors
    /// If this process may not read it, or on systems other than Linux.
    pub fn open(device: &PtpDevice) -> Result<Self, ClockUnavailable> {
        Self::open_path(&Path::new("/dev").join(&device.device))
    }

    fn open_path(path: &Path) -> Result<Self, ClockUnavailable> {
        let file = File::open(path).map_err(|why| ClockUnavailable::Refused {
            clock: NAME,
            errno: why.raw_os_error().unwrap_or_default(),
        })?;
        let clock = Self {
            file: Arc::new(file),
            grain: 1,
        };
        clock.try_read()?;
        Ok(Self {
            grain: grain_of(&clock),
            ..clock
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn try_read(&self) -> Result<Ticks, ClockUnavailable> {
        let _ = &self.file;
        Err(ClockUnavailable::NotOnThisSystem(NAME))
    }

    #[cfg(target_os = "linux")]
    fn try_read(&self) -> Result<Ticks, ClockUnavailable> {
        use std::os::fd::AsRawFd as _;

        // The number of the clock that belongs to an open file.
        let number = (!self.file.as_raw_fd() << 3) | 3;
        let (seconds, nanos) = crate::system::gettime(number)
            .map_err(|errno| ClockUnavailable::Refused { clock: NAME, errno })?;
        let ticks = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(Ticks(u64::try_from(ticks).unwrap_or_default()))
    }
}

/// Shows 0 if the device was removed; [`DeviceClock::read`] returns the error.
impl Clock for PtpClock {
    fn ticks(&self) -> Ticks {
        self.try_read().unwrap_or_default()
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }

    fn grain(&self) -> u64 {
        self.grain
    }
}

impl DeviceClock for PtpClock {
    type Error = ClockUnavailable;

    fn rate(&self) -> TickRate {
        Self::RATE
    }

    fn step(&self) -> u64 {
        self.grain
    }

    fn read(&mut self) -> Result<Ticks, ClockUnavailable> {
        self.try_read()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_no_clock_are_refused() {
        let refused = |path: &str| {
            let why = PtpClock::open_path(Path::new(path)).unwrap_err();
            why.to_string()
        };
        let missing = refused("/dev/ptp12345");
        assert!(
            missing.starts_with("the system refuses to read the PTP clock: No such file"),
            "{missing}"
        );
        let other = refused("/dev/null");
        assert!(
            other.starts_with("the system refuses to read the PTP clock: "),
            "{other}"
        );
    }

    #[test]
    fn every_readable_device_is_a_clock() {
        for device in PtpDevice::all().iter().filter(|device| device.readable) {
            let mut clock = PtpClock::open(device).unwrap();
            let (before, after) = (clock.read().unwrap(), clock.ticks());
            assert!(before.0 > 0 && before <= after, "{device:?}");
        }
    }
}
