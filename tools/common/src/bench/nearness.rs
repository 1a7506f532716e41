//! Measurements only while the round trips between ranks are short.
//!
//! The host of virtual machines moves their cores between physical ones: messages can then take several times as long for
//! many seconds, even between pinned ranks. Measurements in this state do not describe the library, and repeating them there
//! does not help.

use std::time::Instant;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_measure::Measurement;
use downbeat_records::Factors;
use downbeat_sync::{Comm, CommError, block_on_ready, collective};

use crate::Failure;
use crate::cli::positive;

/// Options that limit the round trips during a measurement.
#[derive(Args, Clone, Copy, Debug)]
pub struct NearnessOptions {
    /// Measure only while round trips from rank 0 stay below TIME; repeat the rest. For virtual machines, whose host moves
    /// their cores
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    within: Option<Duration>,
    /// Maximum time to wait for that, for each measurement
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive, allow_hyphen_values = true, requires = "within")]
    patience: Duration,
}

impl NearnessOptions {
    /// Adds the factors on which the results depend.
    pub fn factors(&self, factors: Factors) -> Factors {
        match self.within {
            Some(within) => factors.with("within", &within),
            None => factors,
        }
    }

    /// Repeats a measurement until the round trips are short enough before and after it. Adds the longest round trip and the
    /// time waited to its figures. All ranks call this.
    ///
    /// # Errors
    /// When the measurement fails, or when the round trips stay too long for longer than the patience.
    pub fn while_near<M: Comm>(
        &self,
        comm: &M,
        mut measure: impl FnMut() -> Result<Option<Measurement>, Failure>,
    ) -> Result<Option<Measurement>, Failure> {
        let Some(within) = self.within else {
            return measure();
        };
        let began = Instant::now();
        let mut shortest = Duration::MAX;
        loop {
            let (before, waited) = round_trip(comm, began)?;
            shortest = shortest.min(before);
            if before <= within {
                let measured = measure()?;
                let (after, _) = round_trip(comm, began)?;
                if after <= within {
                    let details = [("distance", before.max(after)), ("waited", waited)];
                    return Ok(measured.map(|mut measured| {
                        measured.details.extend(details);
                        measured
                    }));
                }
            }
            if waited > self.patience {
                let why = format!(
                    "round trips from rank 0 took at least {shortest}, not {within}, for {waited}"
                );
                return Err(Failure::Run(format!("--within: {why}")));
            }
        }
    }
}

/// Returns the longest round trip from rank 0 and the elapsed time, both as rank 0 measured them, on all ranks.
fn round_trip<M: Comm>(comm: &M, began: Instant) -> Result<(Duration, Duration), Failure> {
    let measured = block_on_ready(async {
        let longest = longest_round_trip(comm).await?;
        collective::broadcast(comm, [longest, nanos_since(began)]).await
    });
    let [longest, waited] = measured
        .map_err(Failure::run)?
        .map(|nanos| Duration::from_nanos(nanos as i64));
    Ok((longest, waited))
}

/// Returns the longest of the median round trips from rank 0 to each other rank, on rank 0.
async fn longest_round_trip<M: Comm>(comm: &M) -> Result<u64, CommError> {
    const TRIES: usize = 101;
    const PAYLOAD: u64 = 0;
    let mut longest = 0;
    let mut took = [0; TRIES];
    for rank in 1..comm.size() {
        for took in &mut took {
            if comm.rank() == 0 {
                let sent = Instant::now();
                comm.send(rank, PAYLOAD).await?;
                let _: u64 = comm.recv(rank).await?;
                *took = nanos_since(sent);
            } else if comm.rank() == rank {
                let payload: u64 = comm.recv(0).await?;
                comm.send(0, payload).await?;
            }
        }
        // A single delay does not count.
        took.sort_unstable();
        longest = longest.max(took[TRIES / 2]);
    }
    Ok(longest)
}

fn nanos_since(instant: Instant) -> u64 {
    u64::try_from(instant.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
