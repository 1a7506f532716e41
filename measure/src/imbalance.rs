//! Imbalance: the time between the first and the last rank that leaves an operation. That of a barrier distorts what is
//! measured after it.

use downbeat_clock_core::Clock;
use downbeat_sync::{Comm, CommError};

use crate::barrier::Barrier;
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measurement::Measurement;
use crate::operation::{Coordinator, Operation};
use crate::prepared_barrier::PreparedBarrier;
use crate::processing::Figure;
use downbeat_records::stats::Sample;
use downbeat_records::{CallTimes, Observation, ObservationState, Observations};

/// Barrier as an operation that is measured itself.
#[derive(Debug)]
pub struct BarrierOperation<'a, 'c, M, T, K> {
    barrier: PreparedBarrier,
    context: &'a MeasureContext<'c, M, T, K>,
}

impl<'a, 'c, M, T, K> BarrierOperation<'a, 'c, M, T, K> {
    /// Creates the operation for the context in which it is measured.
    pub fn new(barrier: Barrier, context: &'a MeasureContext<'c, M, T, K>) -> Self {
        Self {
            barrier: PreparedBarrier::new(barrier),
            context,
        }
    }
}

impl<M: Comm, T: Coordinator, K: Clock> Operation for BarrierOperation<'_, '_, M, T, K> {
    #[inline]
    async fn call(&mut self, _: u32) -> Result<(), CommError> {
        // A rank that misses a common instant leaves late, which is what is measured.
        self.barrier.wait(self.context).await.map(|_| ())
    }
}

/// Imbalance of an operation that the ranks enter together: for each call the time from the first rank that leaves to the
/// last, by a global clock.
///
/// Figure 8 of Hunold 2018 shows it for barriers. It includes the error of the global
/// clock: imbalances below that error are meaningless.
///
/// ```
/// use downbeat_clock_core::{Global, Timestamp};
/// use downbeat_measure::imbalance::Imbalance;
/// use downbeat_records::{Observation, Observations, CallTimes, ObservationState};
///
/// // Two calls of three ranks: the times of entering and leaving.
/// let calls = [[(0, 50), (0, 70), (1, 55)], [(100, 140), (100, 180), (101, 175)]];
/// let at = Timestamp::<Global>::from_nanos;
/// let stamps = calls.into_iter().flatten().map(|(start, end)| Observation { start: at(start), end: at(end) });
/// let observations = Observations::new(3, vec![ObservationState::Valid; 2], CallTimes::Global(stamps.collect())).ok_or("two of three")?;
///
/// let imbalance = Imbalance::new(&observations)?;
/// assert_eq!(imbalance.leaving().run_times(), [20.0, 40.0]);
/// assert_eq!(imbalance.left_last(), [0, 2, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Imbalance {
    leaving: Observations,
    left_last: Vec<u64>,
    run_times: Vec<f64>,
}

impl Imbalance {
    /// Computes the imbalance of all valid calls.
    ///
    /// # Errors
    /// If the ranks have no global clock, if there is only one rank, or if no call is valid.
    pub fn new(observations: &Observations) -> Result<Self, MeasureError> {
        let CallTimes::Global(stamps) = observations.call_times() else {
            return Err(MeasureError::NeedsGlobalClock);
        };
        let ranks = observations.ranks();
        if ranks < 2 {
            return Err(MeasureError::OneRank);
        }
        if observations.count(ObservationState::Valid) == 0 {
            return Err(MeasureError::nothing(observations.states()));
        }
        let mut left_last = vec![0; ranks];
        for call in observations.valid() {
            let ends = stamps[call * ranks..(call + 1) * ranks]
                .iter()
                .map(|rank| rank.end);
            // The lowest rank of those that left at the same time.
            let last = ends
                .enumerate()
                .max_by_key(|(rank, end)| (*end, core::cmp::Reverse(*rank)));
            if let Some(count) = last.and_then(|(rank, _)| left_last.get_mut(rank)) {
                *count += 1;
            }
        }
        let leaving = stamps.chunks(ranks).flat_map(|call| {
            let first = call.iter().map(|rank| rank.end).min();
            call.iter().map(move |rank| Observation {
                start: first.unwrap_or(rank.end),
                end: rank.end,
            })
        });
        // The numbers of states and stamps are those of `observations`, so this cannot fail.
        let leaving = Observations::new(
            ranks,
            observations.states().to_vec(),
            CallTimes::Global(leaving.collect()),
        );
        let leaving = leaving.ok_or_else(|| MeasureError::nothing(&[]))?;
        Ok(Self {
            leaving,
            left_last,
            run_times: observations.run_times(),
        })
    }

    /// Computes the imbalance of all valid calls of a measurement, from all ranks' times or from what the ranks [reduced](crate::Collect::Exits).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(measured: &Measurement, ranks: u32) -> Result<Self, MeasureError> {
        let observations = &measured.observations;
        let Some(exits) = &measured.exits else {
            return Self::new(observations);
        };
        let states = observations.states();
        let mut left_last = vec![0; ranks as usize];
        let last = observations.valid().filter_map(|call| exits.last.get(call));
        for rank in last {
            if let Some(count) = left_last.get_mut(*rank as usize) {
                *count += 1;
            }
        }
        let leaving = CallTimes::Means(exits.leaving.clone());
        let leaving = Observations::new(1, states.to_vec(), leaving);
        Ok(Self {
            leaving: leaving.ok_or_else(|| MeasureError::nothing(states))?,
            left_last,
            run_times: observations.run_times(),
        })
    }

    /// Returns the same calls, each beginning when the first rank left it. The run-time of such a call is its imbalance, so
    /// that it can be processed and recorded as any other. They are those of one rank if the ranks reduced them.
    pub fn leaving(&self) -> &Observations {
        &self.leaving
    }

    /// Returns for each rank the number of calls that it left last; of ranks that left at the same time, the lowest counts.
    pub fn left_last(&self) -> &[u64] {
        &self.left_last
    }

    /// Returns the rank that left last most often, and its share of the calls.
    pub fn usually_last(&self) -> (usize, f64) {
        let most = self
            .left_last
            .iter()
            .enumerate()
            .max_by_key(|(rank, count)| (**count, core::cmp::Reverse(*rank)));
        let (rank, count) = most.map_or((0, 0), |(rank, count)| (rank, *count));
        (rank, count as f64 / self.run_times.len() as f64)
    }

    /// Returns the median, quartiles, 95th percentile and maximum of the imbalance, and the median run-time of the operation.
    pub fn figures(&self) -> Vec<Figure> {
        let (mut imbalances, mut run_times) = (self.leaving.run_times(), self.run_times.clone());
        let (Ok(imbalance), Ok(run_time)) =
            (Sample::new(&mut imbalances), Sample::new(&mut run_times))
        else {
            // Unreachable: there is a valid call, and timestamps are integers.
            return Vec::new();
        };
        let shares = [
            ("median", 0.5),
            ("q1", 0.25),
            ("q3", 0.75),
            ("p95", 0.95),
            ("max", 1.0),
        ];
        let figures = shares.map(|(name, share)| Figure {
            name,
            nanos: imbalance.quantile(share),
        });
        figures
            .into_iter()
            .chain([Figure {
                name: Self::RUN_TIME,
                nanos: run_time.median(),
            }])
            .collect()
    }

    /// Name of the figure that is not an imbalance.
    pub const RUN_TIME: &str = "run-time";
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::{Domain, Timestamp};

    fn stamps<D: Domain>(calls: &[[(i64, i64); 3]]) -> Vec<Observation<D>> {
        let at = Timestamp::from_nanos;
        calls
            .iter()
            .flatten()
            .map(|(start, end)| Observation {
                start: at(*start),
                end: at(*end),
            })
            .collect()
    }

    const CALLS: [[(i64, i64); 3]; 5] = [
        [(0, 50), (0, 70), (1, 55)],
        // A late call, which does not count.
        [(100, 900), (100, 140), (800, 950)],
        [(200, 240), (200, 280), (201, 275)],
        [(300, 310), (300, 310), (301, 310)],
        [(400, 400), (400, 401), (400, 500)],
    ];

    fn states() -> Vec<ObservationState> {
        vec![
            ObservationState::Valid,
            ObservationState::Late,
            ObservationState::Valid,
            ObservationState::Valid,
            ObservationState::Valid,
        ]
    }

    #[test]
    fn the_imbalance_is_from_the_first_rank_that_leaves_to_the_last() {
        let observations =
            Observations::new(3, states(), CallTimes::Global(stamps(&CALLS))).unwrap();
        let imbalance = Imbalance::new(&observations).unwrap();
        assert_eq!(imbalance.leaving().run_times(), [20.0, 40.0, 0.0, 100.0]);
        assert_eq!(imbalance.leaving().count(ObservationState::Late), 1);
        // A call that all ranks left at once counts for the lowest rank.
        assert_eq!(imbalance.left_last(), [1, 2, 1]);
        assert_eq!(imbalance.usually_last(), (1, 0.5));
        // 0, 20, 40, 100 by R's type 7; run-times are 10, 70, 80 and 100.
        let by_hand = [
            ("median", 30.0),
            ("q1", 15.0),
            ("q3", 55.0),
            ("p95", 91.0),
            ("max", 100.0),
            ("run-time", 75.0),
        ];
        for (figure, (name, nanos)) in imbalance.figures().into_iter().zip(by_hand) {
            assert_eq!(figure.name, name);
            assert!((figure.nanos - nanos).abs() < 1e-9, "{figure:?}");
        }
        assert_eq!(imbalance.figures().len(), by_hand.len());
    }

    #[test]
    fn unsuitable_observations_are_refused() {
        let compute = |ranks, states: Vec<ObservationState>, stamps| {
            Imbalance::new(&Observations::new(ranks, states, stamps).unwrap())
        };
        let wrong = compute(3, states(), CallTimes::Local(stamps(&CALLS)));
        assert_eq!(wrong, Err(MeasureError::NeedsGlobalClock));
        let wrong = compute(
            1,
            vec![ObservationState::Valid; 3],
            CallTimes::Global(stamps(&CALLS[..1])),
        );
        assert_eq!(wrong, Err(MeasureError::OneRank));
        let wrong = compute(
            3,
            vec![ObservationState::Late; 5],
            CallTimes::Global(stamps(&CALLS)),
        );
        assert_eq!(
            wrong,
            Err(MeasureError::NothingValid {
                late: 5,
                long: 0,
                drifted: 0
            })
        );
        assert_eq!(
            compute(3, vec![], CallTimes::Global(vec![])),
            Err(MeasureError::nothing(&[]))
        );
    }
}
