//! Repeated measurement of the offsets of all ranks, in real time.

use std::ops::ControlFlow;
use std::time::Instant;

use downbeat_clock_core::{ClockModel, Counter, Duration, Local};
use downbeat_common::output::count;
use downbeat_common::{Failure, agree_blocking};
use downbeat_measure::drift::{DriftRound, DriftWatch};
use downbeat_sync::{SyncError, block_on_ready, collective};

use crate::Job;
use crate::clock::JobClock;
use crate::ranks::JobRanks;

/// Maximum number of measurements of all clocks.
const MAX_ROUNDS: u64 = 10_000_000;

/// Refuses too many measurements.
pub(crate) fn check(watch: &DriftWatch) -> Result<(), Failure> {
    match watch.rounds() > MAX_ROUNDS {
        true => {
            let DriftWatch { every, during, .. } = watch;
            let why = format!(
                "{every} is too short for {during}: there are at most {MAX_ROUNDS} measurements"
            );
            Err(Failure::option("--every", why))
        }
        false => Ok(()),
    }
}

/// Returns a note about measurements that were left out.
pub(crate) fn missed(missed: u64) -> Option<String> {
    (missed > 0).then(|| {
        format!(
            "{} left out, because the previous one took too long.",
            count(missed as usize, "measurement")
        )
    })
}

/// Runs all rounds, with a progress bar on rank 0. All ranks call this; either all fail or none. A failure that `take` returns on rank 0 ends
/// the rounds.
pub(crate) fn run<J: Job>(
    watch: &DriftWatch,
    ranks: &JobRanks<'_, J>,
    clock: (&JobClock<J>, &ClockModel<Counter, Local>),
    mut take: impl AsyncFnMut(DriftRound<'_>) -> Result<Result<(), Failure>, SyncError>,
) -> Result<(), Failure> {
    let progress = ranks.progress(watch.during.as_secs_f64());
    block_on_ready(collective::barrier(ranks.all))?;
    let began = Instant::now();
    let passed =
        || Duration::from_nanos(i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX));
    let pause = |time: Duration| progress.sleep(time.max(Duration::ZERO));
    let mut failure = None;
    let take = async |round: DriftRound<'_>| {
        failure = take(round).await?.err();
        Ok(match failure.is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    let watched = block_on_ready(watch.run(clock, ranks.all, passed, pause, take));
    let result = match watched {
        Ok(()) => failure.map_or(Ok(()), Err),
        // The rank that failed by itself reports the failure.
        Err(SyncError::OtherRank(_)) => Ok(()),
        Err(why) => Err(ranks.failure(why)),
    };
    agree_blocking(ranks.all, result)
}
