//! Repeated measurement of the clock offsets of all ranks.

use core::ops::ControlFlow;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Local};
use downbeat_sync::check::{AccuracyCheck, RankOffset, RankSample};
use downbeat_sync::{Comm, OffsetAlgorithm, SyncError, collective};

/// Measures the offsets of all ranks' clocks to that of rank 0 at regular intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftWatch {
    /// Time between two rounds.
    pub every: Duration,
    /// Total time; there is a round at its beginning and one at its end.
    pub during: Duration,
    /// Algorithm that measures an offset.
    pub offset: OffsetAlgorithm,
}

/// Offsets of all ranks in one round.
#[derive(Clone, Copy, Debug)]
pub struct DriftRound<'a> {
    /// Number of the round, counted from 0 and including missed rounds.
    pub number: u64,
    /// Start of the round, since the beginning.
    pub after: Duration,
    /// Offset of each rank, by its own clock; on rank 0.
    pub offsets: &'a [RankOffset],
}

impl DriftWatch {
    /// Returns the number of rounds, if none takes longer than the interval.
    pub fn rounds(&self) -> u64 {
        self.last() + 1
    }

    /// Returns the number of the last round.
    fn last(&self) -> u64 {
        (self.during.as_nanos().max(0) / self.every.as_nanos().max(1)) as u64
    }

    /// Runs all rounds. All ranks call this, with equal values. `passed` returns the time since the beginning, and `pause`
    /// waits for a time. `take` is called on all ranks, with offsets on rank 0 only; what it returns there can end all rounds.
    ///
    /// Rounds that cannot begin in time, because the one before took too long, are missed.
    ///
    /// # Errors
    /// If a rank is gone, or the clock of a rank stepped back during a round; then all ranks fail. If `take` fails.
    pub async fn run<K: Clock, M: Comm>(
        &self,
        (clock, local): (&K, &ClockModel<Counter, Local>),
        comm: &M,
        passed: impl Fn() -> Duration,
        mut pause: impl FnMut(Duration),
        mut take: impl AsyncFnMut(DriftRound<'_>) -> Result<ControlFlow<()>, SyncError>,
    ) -> Result<(), SyncError> {
        const END: u64 = u64::MAX;
        let check = AccuracyCheck {
            offset: self.offset,
            ranks: RankSample::ALL,
        };
        // The accuracy check expects global clocks; here it checks unsynchronized ones.
        let shown = local.renamed();
        let every = self.every.as_nanos().max(1);
        let mut number = 0;
        loop {
            number = collective::broadcast(comm, if number > self.last() { END } else { number })
                .await?;
            if number == END {
                return Ok(());
            }
            pause(Duration::from_nanos(every.saturating_mul(number as i64)) - passed());
            // After the barrier, no rank that woke up late delays an exchange.
            collective::barrier(comm).await?;
            let after = passed();
            let offsets = check.measure(clock, shown, comm).await?;
            let round = DriftRound {
                number,
                after,
                offsets: &offsets,
            };
            let enough = take(round).await?.is_break();
            if comm.rank() == 0 {
                let not_missed = (passed().as_nanos().max(0) as u64).div_ceil(every as u64);
                number = if enough {
                    END
                } else {
                    not_missed.max(number + 1)
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::{FitQuality, OffsetSeries};
    use downbeat_clock_core::{Global, Timestamp};
    use downbeat_sync::sim::{Clocks, Drift, DriftWalk, Network, SimClock, SimCluster, SimComm};

    fn cluster(clocks: Clocks) -> SimCluster {
        let network = Network::typical();
        SimCluster {
            ranks: 4,
            ranks_per_node: 1,
            sockets_per_node: 1,
            nodes_per_rack: None,
            network,
            clocks,
            seed: 1,
        }
    }

    /// Returns the offsets that rank 0 measures, with all clocks, and the numbers of the rounds. Rank 0 spends the time
    /// `takes` after each round.
    fn watch(
        watch: DriftWatch,
        clocks: Clocks,
        takes: Duration,
    ) -> (Vec<(SimClock, OffsetSeries<Global>)>, Vec<u64>) {
        let program = async |comm: &SimComm| {
            let (clock, local, began) = (
                comm.clock(),
                SimClock::nominal_model().unwrap(),
                comm.true_now(),
            );
            let (mut samples, mut numbers) = (vec![vec![]; comm.size() as usize], vec![]);
            let take = async |round: DriftRound<'_>| {
                numbers.push(round.number);
                for one in round.offsets {
                    samples[one.rank as usize].extend(one.sample);
                }
                if comm.rank() == 0 {
                    comm.pause(takes);
                }
                Ok(ControlFlow::Continue(()))
            };
            let passed = || comm.true_now() - began;
            watch
                .run(
                    (&clock, &local),
                    comm,
                    passed,
                    |time| comm.pause(time),
                    take,
                )
                .await
                .unwrap();
            (clock, samples, numbers)
        };
        let mut found = cluster(clocks).run(program).unwrap();
        let clocks: Vec<_> = found.iter().map(|(clock, ..)| clock.clone()).collect();
        let (_, offsets, numbers) = found.swap_remove(0);
        let series = offsets
            .into_iter()
            .map(|samples| OffsetSeries::new(samples).unwrap());
        (clocks.into_iter().zip(series).collect(), numbers)
    }

    fn seconds(during: i64) -> DriftWatch {
        DriftWatch {
            every: Duration::from_secs(1),
            during: Duration::from_secs(during),
            offset: "skampi/20".parse().unwrap(),
        }
    }

    /// Returns what the clock gained on that of rank 0 in this number of seconds, per nanosecond of its own time.
    fn true_drift(clock: &SimClock, reference: &SimClock, during: i64) -> f64 {
        let ends = [0, during * 1_000_000_000].map(Timestamp::from_nanos);
        let [passed, of_reference] = [clock, reference].map(|clock| {
            let [begin, end] = ends.map(|at| clock.ticks_at(at));
            end.signed_since(begin) as f64
        });
        (passed - of_reference) / passed
    }

    #[test]
    fn the_true_drift_is_found() {
        let clocks = Clocks {
            drift: Drift::Within(2e-5),
            offset: Duration::from_secs(3),
            ..Clocks::typical()
        };
        let (found, numbers) = watch(
            seconds(60),
            Clocks {
                wander: None,
                ..clocks
            },
            Duration::ZERO,
        );
        assert_eq!(numbers, (0..=60).collect::<Vec<_>>());
        for (clock, series) in &found[1..] {
            let (truth, fit) = (true_drift(clock, &found[0].0, 60), series.fit().unwrap());
            assert_eq!(fit.samples, 61);
            // Offsets are certain to less than a microsecond.
            assert!(
                (fit.drift - truth).abs() < 5e-9,
                "{} is not {truth}",
                fit.drift
            );
            assert!(
                matches!(fit.quality, FitQuality::RSquared(share) if share > 0.999_99),
                "{fit:?}"
            );
            let residual = series.begin_to_end().unwrap();
            assert!(
                residual.largest.abs() < Duration::from_micros(1),
                "{residual:?}"
            );
            // The true residual is 0.
            assert_eq!(residual.bounds.unwrap().0, Duration::ZERO);
        }
    }

    #[test]
    fn residuals_of_wandering_clocks_grow_with_the_window() {
        let wander = DriftWalk {
            drift_per_sqrt_second: 1e-6,
            interval: Duration::from_millis(100),
            lasting: Duration::from_secs(400),
        };
        let (found, _) = watch(
            seconds(320),
            Clocks {
                wander: Some(wander),
                ..Clocks::perfect()
            },
            Duration::ZERO,
        );
        for (_, series) in &found[1..] {
            let typical = |length| {
                let windows = series.windows(Duration::from_secs(length), Duration::from_secs(1));
                assert_eq!(windows.len() as i64, 320 / length);
                let residuals = windows
                    .iter()
                    .map(|window| window.largest_residual.abs().as_nanos());
                residuals.sum::<i64>() / windows.len() as i64
            };
            let by_length = [5, 20, 80, 320].map(typical);
            // The residual of a random walk grows with the length to the power of three halves: eightfold.
            assert!(
                by_length.windows(2).all(|pair| pair[1] > 3 * pair[0]),
                "{by_length:?}"
            );
        }
    }

    #[test]
    fn rounds_that_take_too_long_are_missed_and_the_end_is_kept() {
        let (found, numbers) = watch(seconds(10), Clocks::perfect(), Duration::from_millis(2_500));
        assert_eq!(numbers, [0, 3, 6, 9]);
        assert_eq!(found[1].1.samples().len(), 4);
    }

    #[test]
    fn rank_0_can_end_all_rounds() {
        let program = async |comm: &SimComm| {
            let (clock, local, mut looks) = (comm.clock(), SimClock::nominal_model().unwrap(), 0);
            let take = async |_: DriftRound<'_>| {
                looks += 1;
                // Only rank 0 decides.
                Ok(if looks == if comm.rank() == 0 { 3 } else { 2 } {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            };
            let passed = || comm.true_now() - Timestamp::ORIGIN;
            seconds(60)
                .run(
                    (&clock, &local),
                    comm,
                    passed,
                    |time| comm.pause(time),
                    take,
                )
                .await
                .unwrap();
            (looks, comm.true_now())
        };
        let found = cluster(Clocks::typical()).run(program).unwrap();
        assert_eq!(found[0].0, 3);
        assert!(
            found
                .iter()
                .all(|(_, ended)| *ended < Timestamp::from_nanos(3_000_000_000))
        );
    }
}
