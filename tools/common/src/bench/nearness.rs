//! Measuring only while ranks are near each other.
//!
//! The host of virtual machines moves their cores about: for seconds on end, messages then take several times as long as
//! before, between ranks that are pinned and never moved themselves. What was measured meanwhile says nothing of the
//! library that was measured, and no number of repetitions mends it.

use std::time::Instant;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_measure::Measurement;
use downbeat_records::Factors;
use downbeat_sync::{Comm, CommError, block_on_ready, collective};

use crate::Failure;
use crate::cli::positive;

/// How near ranks must be while they measure.
#[derive(Args, Clone, Copy, Debug)]
pub struct NearnessOptions {
    /// Measure only while a word takes no longer than this from rank 0 to any other and back, and anew what it took longer
    /// around: for virtual machines, whose cores their host moves about
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    within: Option<Duration>,
    /// How long to wait for that, for each measurement
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive, allow_hyphen_values = true, requires = "within")]
    patience: Duration,
}

impl NearnessOptions {
    /// What the results depend on.
    pub fn factors(&self, factors: Factors) -> Factors {
        match self.within {
            Some(within) => factors.with("within", &within),
            None => factors,
        }
    }

    /// Measures something while ranks are near each other before and after, as often as that takes. Beside what was found
    /// then stands how far they were from each other, and how much time went by before. All ranks call this.
    ///
    /// # Errors
    /// When measuring fails, and when the ranks are not near for too long.
    pub fn while_near<M: Comm>(
        &self,
        comm: &M,
        mut measure: impl FnMut() -> Result<Option<Measurement>, Failure>,
    ) -> Result<Option<Measurement>, Failure> {
        let Some(within) = self.within else {
            return measure();
        };
        let began = Instant::now();
        let mut closest = Duration::MAX;
        loop {
            let (before, waited) = look(comm, began)?;
            closest = closest.min(before);
            if before <= within {
                let measured = measure()?;
                let (after, _) = look(comm, began)?;
                if after <= within {
                    let found = [("distance", before.max(after)), ("waited", waited)];
                    return Ok(measured.map(|mut measured| {
                        measured.details.extend(found);
                        measured
                    }));
                }
            }
            if waited > self.patience {
                let why =
                    format!("a word took {closest} to a rank and back at best, and not {within}");
                return Err(Failure::Run(format!("--within: {why}, for {waited}")));
            }
        }
    }
}

/// How far the ranks are from each other, and how much time went by, as rank 0 sees it: all ranks must do the same.
fn look<M: Comm>(comm: &M, began: Instant) -> Result<(Duration, Duration), Failure> {
    let seen = block_on_ready(async {
        let distance = distance(comm).await?;
        collective::broadcast(comm, [distance, nanos_since(began)]).await
    });
    let [distance, waited] = seen
        .map_err(Failure::run)?
        .map(|nanos| Duration::from_nanos(nanos as i64));
    Ok((distance, waited))
}

/// How long a word usually takes from rank 0 to the farthest rank and back; rank 0 knows.
async fn distance<M: Comm>(comm: &M) -> Result<u64, CommError> {
    const TRIES: usize = 101;
    const WORD: u64 = 0;
    let mut farthest = 0;
    let mut took = [0; TRIES];
    for rank in 1..comm.size() {
        for took in &mut took {
            if comm.rank() == 0 {
                let sent = Instant::now();
                comm.send(rank, WORD).await?;
                let _: u64 = comm.recv(rank).await?;
                *took = nanos_since(sent);
            } else if comm.rank() == rank {
                let word: u64 = comm.recv(0).await?;
                comm.send(0, word).await?;
            }
        }
        // What delays one of many is no distance.
        took.sort_unstable();
        farthest = farthest.max(took[TRIES / 2]);
    }
    Ok(farthest)
}

fn nanos_since(instant: Instant) -> u64 {
    u64::try_from(instant.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
