//! Times a short function with the time stamp counter and prints the upper limit of the error.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;
use std::hint::black_box;

use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::tsc::TscFacts;
use downbeat_timers::{Clock, Duration, SystemClock, SystemClockId, TscClock};

fn main() -> Result<(), Box<dyn Error>> {
    let tsc = match TscClock::detect() {
        Ok(tsc) => tsc,
        Err(why) => {
            println!("this example needs the time stamp counter, but {why}");
            return Ok(());
        }
    };
    for doubt in TscFacts::gather()?.doubts() {
        println!("warning: {doubt}");
    }
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw)?;
    let calibration = calibrate_during(&tsc, &raw, Duration::from_millis(10))?;

    let start = tsc.open();
    black_box((0..10_000_u64).map(|i| i ^ (i >> 3)).sum::<u64>());
    let ticks = tsc
        .close()
        .checked_since(start)
        .ok_or("the counter ran backwards")?;

    let time = calibration.rate().duration(ticks);
    println!(
        "{ticks} ticks, {time}, error at most {:.2} ppm",
        calibration.uncertainty() * 1e6
    );
    Ok(())
}
