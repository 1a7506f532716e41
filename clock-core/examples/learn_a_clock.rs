//! From exchanges to a model: a client learns a reference's clock and converts its own counter to global time.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;

use downbeat_clock_core::fit::OffsetFit;
use downbeat_clock_core::offset::{Exchange, SkampiOffset};
use downbeat_clock_core::{ClockModel, Counter, Global, Local, TickRate, Ticks, Timestamp};

/// An exchange that starts at this global time, with a client that is 3 us ahead and gains 2 ppm.
fn exchange(global: i64, delays: [i64; 2]) -> Exchange<Local, Global> {
    let client = |global: i64| Timestamp::from_nanos(global + 3_000 + global / 500_000);
    Exchange {
        sent: client(global),
        answered: Timestamp::from_nanos(global + delays[0]),
        received: client(global + delays[0] + delays[1]),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Ten sessions of exchanges, a tenth of a second apart, give ten offsets, and these a line.
    let mut fit = OffsetFit::<Local>::new();
    for session in 0..10 {
        let mut skampi = SkampiOffset::new();
        for i in 0..20 {
            skampi.push(exchange(
                session * 100_000_000 + i * 1_000,
                [300 + i * 7 % 50, 320 + i * 13 % 90],
            ))?;
        }
        fit.push(skampi.estimate()?);
    }
    let line = fit.line()?;
    println!("the client gains {:.3} ppm", line.drift() * 1e6);

    // The calibrated counter and the line are composed into one model.
    let counter = ClockModel::<Counter, Local>::through(
        Ticks(0),
        Timestamp::ORIGIN,
        TickRate::from_hz(2_600_000_000)?,
    )?;
    let global: ClockModel<Counter, Global> = counter.then(&line.model()?)?;
    let ticks = Ticks(5_200_000_000);
    println!(
        "at {} ticks it is {} of global time",
        ticks.0,
        global.apply(ticks) - Timestamp::ORIGIN
    );
    Ok(())
}
