//! Follows the clock of a device for ten seconds, by the counter of the host: the first CUDA device with the feature `cuda`, the first PTP
//! clock that may be read, or a simulated accelerator, whose true error is known.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;
use std::thread::sleep;

use downbeat_clock_core::ClockModel;
use downbeat_timers::device::{
    DeviceClock, DeviceLatency, FollowedDevice, RateLimits, SimulatedDevice,
};
use downbeat_timers::kernel::{PtpClock, PtpDevice};
use downbeat_timers::skew::{Skew, SkewWander, SkewedClock};
use downbeat_timers::{Clock, ClockName, Duration, Local, MachineClock, Ticks, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let host = MachineClock::detect(ClockName::Recommended)?;
    let rate = host.calibrate(Duration::from_millis(100))?.rate;
    #[cfg(all(feature = "cuda", unix))]
    match downbeat_timers::device::CudaTimer::open(0) {
        Ok(device) => {
            println!("CUDA device 0, steps of {} ns", device.step());
            return follow(device, &host, rate, None);
        }
        Err(why) => println!("no CUDA device: {why}"),
    }
    if let Some(device) = PtpDevice::all().into_iter().find(|device| device.readable) {
        println!("{} ({})", device.device, device.clock);
        return follow(PtpClock::open(&device)?, &host, rate, None);
    }
    println!("simulated accelerator, read in 8 us");
    let skew = Skew {
        offset: Duration::from_secs(1),
        drift: 12e-6,
        wander: Some(SkewWander {
            drift_per_sqrt_second: 20e-9,
            interval: Duration::from_millis(100),
            lasting: Duration::from_secs(20),
            seed: 1,
        }),
        ..Skew::default()
    };
    let latency = DeviceLatency {
        there: Duration::from_micros(3),
        back: Duration::from_micros(3),
        jitter: Duration::from_micros(1),
    };
    let begin = host.ticks();
    let clock = SkewedClock::new(
        host,
        ClockModel::through(begin, Timestamp::ORIGIN, rate)?,
        skew,
    )?;
    let device = SimulatedDevice::new(
        clock.clone(),
        latency,
        1,
        SimulatedDevice::<MachineClock>::spin,
    );
    follow(device, &host, rate, Some(&|| clock.ticks()))
}

/// Compares the device ten times. `truth` reads it without delay.
fn follow<D: DeviceClock>(
    device: D,
    host: &MachineClock,
    rate: downbeat_timers::TickRate,
    truth: Option<&dyn Fn() -> Ticks>,
) -> Result<(), Box<dyn Error>>
where
    D::Error: std::fmt::Debug + std::fmt::Display + 'static,
{
    let time = host.since_now(rate)?;
    let mut device = FollowedDevice::<_, Local>::new(device, RateLimits::default());
    for _ in 0..10 {
        let line = device.compare(host, &time, 50)?;
        let drift = -line.drift * 1e6;
        print!(
            "drift {drift:.3} ppm, time certain to {}",
            line.bound.half_width()
        );
        if let Some(truth) = truth {
            let (ticks, now) = (truth(), time.apply(host.ticks()));
            print!(", true error {}", line.model()?.apply(ticks) - now);
        }
        println!();
        sleep(std::time::Duration::from_secs(1));
    }
    Ok(())
}
