//! The accuracy check over threads whose clocks have known offsets.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

mod common;

use core::cell::Cell;

use common::run;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Ticks, Timestamp};
use downbeat_sync::check::{AccuracyCheck, RankOffset, RankSample};
use downbeat_sync::{Comm, SyncError};
use downbeat_timers::{SystemClock, SystemClockId};

/// Constant offset of each rank's clock.
fn ahead(rank: u32) -> Duration {
    Duration::from_micros(i64::from(rank) * 300 - 700)
}

fn check(ranks: RankSample) -> AccuracyCheck {
    AccuracyCheck {
        offset: "skampi/30".parse().unwrap(),
        ranks,
    }
}

/// Runs the check with this number of ranks, and returns the offsets that rank 0 gets.
fn offsets(ranks: u32, sample: RankSample) -> Vec<RankOffset> {
    let clock = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    let start = clock.ticks();
    let found = run(ranks, move |comm| {
        let model = ClockModel::through(
            start,
            Timestamp::<Global>::ORIGIN + ahead(comm.rank()),
            SystemClock::RATE,
        );
        check(sample).measure_blocking(&clock, model.unwrap(), comm)
    });
    let found: Vec<Vec<RankOffset>> = found.unwrap().into_iter().map(Result::unwrap).collect();
    assert!(found[1..].iter().all(Vec::is_empty), "only rank 0 is told");
    found.into_iter().next().unwrap()
}

#[test]
fn measured_offsets_are_true_within_the_half_width() {
    for ranks in [1, 2, 3, 5, 8] {
        let offsets = offsets(ranks, RankSample::ALL);
        assert!(offsets.iter().map(|offset| offset.rank).eq(1..ranks));
        for RankOffset { rank, sample } in offsets {
            let (sample, truth) = (sample.unwrap(), ahead(rank) - ahead(0));
            // A nanosecond for the rounding of timestamps.
            let certain = sample.half_width.unwrap() + Duration::from_nanos(1);
            assert!(
                (sample.offset - truth).abs() <= certain,
                "rank {rank}: {sample:?}, in truth {truth}"
            );
        }
    }
}

#[test]
fn only_the_ranks_of_the_sample_are_measured() {
    let sample = RankSample::new(0.4, 3).unwrap();
    let wanted: Vec<u32> = (1..20).filter(|rank| sample.contains(*rank)).collect();
    assert!((1..19).contains(&wanted.len()), "the sample is none");
    assert!(
        offsets(20, sample)
            .iter()
            .map(|offset| offset.rank)
            .eq(wanted)
    );
}

/// Clock that runs backwards from the 20th reading on.
struct BackwardClock(SystemClock, Cell<u64>);

impl Clock for BackwardClock {
    fn ticks(&self) -> Ticks {
        let reading = self.1.replace(self.1.get() + 1);
        Ticks(if reading < 20 {
            self.0.ticks().0
        } else {
            1_000_000_000 - reading
        })
    }
}

#[test]
fn a_clock_that_runs_backwards_fails_the_check_on_all_ranks() {
    let found = run(4, |comm| {
        let clock = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let model = ClockModel::<Counter, Global>::through(
            clock.ticks(),
            Timestamp::ORIGIN,
            SystemClock::RATE,
        )
        .unwrap();
        if comm.rank() == 2 {
            return check(RankSample::ALL).measure_blocking(
                &BackwardClock(clock, Cell::new(0)),
                model,
                comm,
            );
        }
        check(RankSample::ALL).measure_blocking(&clock, model, comm)
    });
    for (rank, result) in found.unwrap().into_iter().enumerate() {
        let own = matches!(result, Err(SyncError::Fit(_)));
        assert!(
            if rank == 2 {
                own
            } else {
                result == Err(SyncError::OtherRank(2))
            },
            "rank {rank}: {result:?}"
        );
    }
}
