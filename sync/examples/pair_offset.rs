//! Two threads measure the offset between their clocks, although neither knows the true time.
//!
//! `cargo run --release -p downbeat-sync --example pair_offset`
#![expect(clippy::print_stdout, reason = "examples print their results")]

use core::num::NonZeroU32;
use std::error::Error;

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Counter, Domain, Duration, ModelError, Timestamp};
use downbeat_sync::pair::{OffsetClient, answer_blocking};
use downbeat_sync::{Comm, OffsetAlgorithm, ThreadCluster};
use downbeat_timers::cores::pin_rank;
use downbeat_timers::skew::{Skew, SkewedClock};
use downbeat_timers::{SystemClock, SystemClockId};

/// Times of the thread that answers, and of the one that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Reference;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Client;

impl Domain for Reference {
    const NAME: &'static str = "reference";
}
impl Domain for Client {
    const NAME: &'static str = "client";
}

type ExampleClock = SkewedClock<SystemClock>;

type ExampleError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), ExampleError> {
    // Both clocks are skews of one true clock.
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw)?;
    let truth = ClockModel::through(raw.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
    let offsets = [Duration::from_millis(-3), Duration::from_nanos(1_234_567)];
    let skew = |offset| {
        SkewedClock::new(
            raw,
            truth,
            Skew {
                offset,
                ..Skew::default()
            },
        )
    };
    let clocks = [skew(offsets[0])?, skew(offsets[1])?];

    let cluster = ThreadCluster::new(2).pin(pin_rank);
    let truth = offsets[1] - offsets[0];
    println!("The second thread is ahead by {truth}. It finds:");
    for algorithm in OffsetAlgorithm::all(NonZeroU32::MIN.saturating_add(99)) {
        for sample in cluster.run(|comm| measure(&clocks[comm.rank() as usize], algorithm, comm))? {
            let Some(OffsetSample {
                offset, half_width, ..
            }) = sample?
            else {
                continue;
            };
            let bound =
                half_width.map_or("no bound".to_owned(), |bound| format!("certain to {bound}"));
            println!(
                "{:<20} {offset}, off by {}, {bound}",
                algorithm.to_string(),
                offset - truth
            );
        }
    }
    Ok(())
}

/// Runs one thread. Only the second one returns an offset.
fn measure(
    clock: &ExampleClock,
    algorithm: OffsetAlgorithm,
    comm: &impl Comm,
) -> Result<Option<OffsetSample<Client>>, ExampleError> {
    if comm.rank() == 0 {
        answer_blocking(clock, &local_model::<Reference>()?, comm, 1)?;
        return Ok(None);
    }
    let mut client = OffsetClient::<Client, Reference>::new(algorithm, 0)?;
    Ok(Some(client.measure_blocking(
        clock,
        &local_model()?,
        comm,
    )?))
}

/// Returns the model from a thread's clock to its local time.
fn local_model<D: Domain>() -> Result<ClockModel<Counter, D>, ModelError> {
    ClockModel::through(ExampleClock::ZERO, Timestamp::ORIGIN, ExampleClock::RATE)
}
