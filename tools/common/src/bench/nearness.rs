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

use super::GroupOutcome;
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
    /// time waited to its figures, and the figures of those that it replaces. All ranks call this.
    ///
    /// # Errors
    /// When the measurement fails, or when the round trips stay too long for longer than the patience.
    pub fn while_near<M: Comm>(
        &self,
        comm: &M,
        mut measure: impl FnMut() -> Result<Option<GroupOutcome>, Failure>,
    ) -> Result<Option<GroupOutcome>, Failure> {
        let Some(within) = self.within else {
            return measure();
        };
        let began = Instant::now();
        repeat(within, self.patience, || round_trip(comm, began), measure)
    }
}

/// Repeats a measurement until the distance of the ranks is short enough before and after it; `distance` also returns the time
/// waited. The others are counted: a measurement that is repeated until one suits would be worth less than it seems.
fn repeat(
    within: Duration,
    patience: Duration,
    mut distance: impl FnMut() -> Result<(Duration, Duration), Failure>,
    mut measure: impl FnMut() -> Result<Option<GroupOutcome>, Failure>,
) -> Result<Option<GroupOutcome>, Failure> {
    let mut shortest = Duration::MAX;
    let mut discarded = Vec::new();
    loop {
        let (before, waited) = distance()?;
        shortest = shortest.min(before);
        if before <= within {
            let measured = measure()?;
            let (after, _) = distance()?;
            if after <= within {
                let details = [("distance", before.max(after)), ("waited", waited)];
                let complete = |mut measured: Measurement| {
                    measured.details.extend(details);
                    measured.discarded = discarded;
                    Ok(measured)
                };
                return measured.map(|outcome| outcome.map(complete)).transpose();
            }
            let measured = measured.and_then(GroupOutcome::measured);
            let figure = measured.and_then(|measured| Some(measured.figures.first()?.nanos));
            discarded.extend(figure);
        }
        if waited > patience {
            let why = format!(
                "round trips from rank 0 took at least {shortest}, not {within}, for {waited}"
            );
            return Err(Failure::Run(format!("--within: {why}")));
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

#[cfg(test)]
mod tests {
    use super::super::test_measurement::measurement;
    use super::*;

    #[test]
    fn measurements_that_are_repeated_are_counted() {
        let micros = Duration::from_micros;
        // Too far before the first, and after the second and the third.
        let mut distances = [9, 1, 9, 2, 8, 1, 2].into_iter();
        let mut nanos = [480.0, 2_100.0, 470.0].into_iter();
        let found = repeat(
            micros(3),
            micros(100),
            || Ok((micros(distances.next().unwrap()), micros(5))),
            || {
                let measured = measurement(nanos.next().unwrap());
                Ok(Some(GroupOutcome::Measured(Box::new(measured))))
            },
        );
        let found = found.unwrap().unwrap().measured().unwrap();
        assert_eq!(
            (found.figures[0].nanos, found.discarded),
            (470.0, vec![480.0, 2_100.0])
        );
        assert_eq!(
            found.details,
            [("distance", micros(2)), ("waited", micros(5))]
        );

        let late = repeat(
            micros(3),
            micros(100),
            || Ok((micros(9), micros(101))),
            || Ok(None),
        );
        let why = "--within: round trips from rank 0 took at least 9.000 us, not 3.000 us, for 101.000 us";
        assert!(matches!(late, Err(Failure::Run(text)) if text == why));
    }
}
