//! Imbalance: the time between the first and the last rank that leaves an operation. That of a barrier distorts what is
//! measured after it.

use downbeat_clock_core::Clock;
use downbeat_records::stats::Sample;
use downbeat_records::{Observation, Observations};
use downbeat_sync::collective::{broadcast_bytes, greatest_to_first};
use downbeat_sync::{Comm, CommError};

use crate::barrier::Barrier;
use crate::collection::TOGETHER;
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measurement::Measurement;
use crate::method::Method;
use crate::operation::{Coordinator, Operation};
use crate::prepared_barrier::PreparedBarrier;
use crate::processing::Figure;
use crate::scheme::Basis;

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
/// use downbeat_measure::imbalance::Imbalance;
/// use downbeat_records::{Observation, ObservationState, Observations};
/// use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
///
/// // Two calls of three ranks: the times of entering and leaving.
/// let ranks = [[(0, 50), (100, 140)], [(0, 70), (100, 180)], [(1, 55), (101, 175)]];
/// let call = |(begin, end)| Observation {
///     state: ObservationState::Valid,
///     begin,
///     nanos: (end - begin) as f64,
/// };
/// let found = ThreadCluster::new(3).run(|comm| {
///     let own = Observations(ranks[comm.rank() as usize].map(call).to_vec());
///     block_on_ready(Imbalance::reduce(comm, &own))
/// })?;
/// let imbalance = found.into_iter().next().ok_or("there is no rank 0")??;
/// assert_eq!(imbalance.leaving().run_times(), [20.0, 40.0]);
/// assert_eq!(imbalance.left_last(), [0, 2, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Imbalance {
    leaving: Observations,
    left_last: Vec<u64>,
}

impl Imbalance {
    /// Measures an operation, and its imbalance. All ranks call this, with equal methods;
    /// rank 0 gets the result, and every rank the observations of its own calls.
    ///
    /// # Errors
    /// If the method has no global clock, or if there is only one rank; and as
    /// [`Method::measure`].
    pub async fn measure<M: Comm, T: Coordinator, K: Clock>(
        method: &Method,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<(Option<(Measurement, Self)>, Observations), MeasureError> {
        if method.basis() != Basis::Global {
            return Err(MeasureError::NeedsGlobalClock);
        }
        if context.comm.size() < 2 {
            return Err(MeasureError::OneRank);
        }
        let (measured, own) = method.measure_on_each(context, operation).await?;
        let imbalance = Self::reduce(context.comm, &own).await?;
        Ok((measured.map(|measured| (measured, imbalance)), own))
    }

    /// Computes the imbalance of the calls that the ranks observed by a global clock, as
    /// many on each. All ranks call this; rank 0 gets the result.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn reduce<M: Comm>(comm: &M, own: &Observations) -> Result<Self, CommError> {
        let mut found = Self {
            leaving: Observations::default(),
            left_last: vec![0; comm.size() as usize],
        };
        for calls in own.chunks(TOGETHER) {
            // The least end is the greatest negative one.
            let negative = |end: i64| end.saturating_neg();
            let ends = calls.iter().map(|own| [own.end(), negative(own.end())]);
            let mut ends: Vec<[i64; 2]> = ends.collect();
            greatest_to_first(comm, ends.as_flattened_mut()).await?;
            let latest: Vec<[u8; 8]> = ends.iter().map(|[end, _]| end.to_le_bytes()).collect();
            let latest = broadcast_bytes(comm, latest.into_flattened()).await?;
            let (latest, _) = latest.as_chunks();
            let is_last = calls
                .iter()
                .zip(latest)
                .map(|(own, latest)| own.end() == i64::from_le_bytes(*latest));
            // Of ranks that leave at the same time, the lowest counts.
            let place = -i64::from(comm.rank());
            let mut ranks: Vec<i64> = is_last
                .map(|is_last| if is_last { place } else { i64::MIN })
                .collect();
            greatest_to_first(comm, &mut ranks).await?;
            if comm.rank() == 0 {
                for ((own, [end, negative]), rank) in calls.iter().zip(ends).zip(ranks) {
                    found.leaving.0.push(Observation {
                        state: own.state,
                        begin: negative.saturating_neg(),
                        nanos: end.saturating_add(negative) as f64,
                    });
                    if own.is_valid() {
                        found.left_last[-rank as usize] += 1;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the same calls, each beginning when the first rank left it. The run-time of such a call is its imbalance, so
    /// that it can be processed and recorded as any other.
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
        (
            rank,
            count as f64 / self.left_last.iter().sum::<u64>() as f64,
        )
    }

    /// Returns the median, quartiles, 95th percentile and maximum of the imbalance, and
    /// the median of these run-times of the operation.
    pub fn figures(&self, mut run_times: Vec<f64>) -> Vec<Figure> {
        let mut imbalances = self.leaving.run_times();
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
    use crate::context::ClockBasis;
    use crate::operation::MessageCoordinator;
    use crate::processing::Processing;
    use crate::scheme::{EachCall, RoundTime, Scheme};
    use crate::stopping::Stopping;
    use downbeat_clock_core::{ClockModel, TickRate, Ticks, Timestamp};
    use downbeat_records::ObservationState;
    use downbeat_sync::{ThreadCluster, block_on_ready};
    use downbeat_timers::MockClock;
    use proptest::prelude::*;

    /// Reduces calls, of each of which the begin and the end on each rank are given.
    fn reduce(states: &[ObservationState], calls: &[Vec<(i64, i64)>]) -> Imbalance {
        let ranks = calls[0].len() as u32;
        let found = ThreadCluster::new(ranks).run(|comm| {
            let observe = |(state, call): (&ObservationState, &Vec<(i64, i64)>)| {
                let (begin, end) = call[comm.rank() as usize];
                Observation {
                    state: *state,
                    begin,
                    nanos: (end - begin) as f64,
                }
            };
            let own = states.iter().zip(calls).map(observe).collect();
            block_on_ready(Imbalance::reduce(comm, &Observations(own))).unwrap()
        });
        found.unwrap().swap_remove(0)
    }

    const CALLS: [[(i64, i64); 3]; 5] = [
        [(0, 50), (0, 70), (1, 55)],
        // A late call, which does not count.
        [(100, 900), (100, 140), (800, 950)],
        [(200, 240), (200, 280), (201, 275)],
        [(300, 310), (300, 310), (301, 310)],
        [(400, 400), (400, 401), (400, 500)],
    ];

    const STATES: [ObservationState; 5] = [
        ObservationState::Valid,
        ObservationState::Late,
        ObservationState::Valid,
        ObservationState::Valid,
        ObservationState::Valid,
    ];

    #[test]
    fn the_imbalance_is_from_the_first_rank_that_leaves_to_the_last() {
        let imbalance = reduce(&STATES, &CALLS.map(|call| call.to_vec()));
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
        let figures = imbalance.figures(vec![70.0, 80.0, 10.0, 100.0]);
        for (figure, (name, nanos)) in figures.iter().zip(by_hand) {
            assert_eq!(figure.name, name);
            assert!((figure.nanos - nanos).abs() < 1e-9, "{figure:?}");
        }
        assert_eq!(figures.len(), by_hand.len());
    }

    #[test]
    fn unsuitable_methods_are_refused() {
        let measure = |ranks: u32, scheme: Scheme| {
            let program = |comm: &downbeat_sync::ThreadComm| {
                let model =
                    ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
                let context = MeasureContext {
                    comm,
                    coordinator: &MessageCoordinator(comm),
                    clock: &MockClock::default(),
                    clock_basis: ClockBasis::Global(model),
                };
                let method = Method {
                    warm_up: 0,
                    scheme,
                    stopping: Stopping::Count { most: 1 },
                    processing: Processing::Median,
                    root: 0,
                };
                let mut barrier = BarrierOperation::new(Barrier::Tree, &context);
                block_on_ready(Imbalance::measure(&method, &context, &mut barrier)).err()
            };
            ThreadCluster::new(ranks)
                .run(program)
                .unwrap()
                .swap_remove(0)
        };
        let local = Scheme::EachCall(EachCall::default());
        assert_eq!(measure(3, local), Some(MeasureError::NeedsGlobalClock));
        let global = Scheme::RoundTime(RoundTime::default());
        assert_eq!(measure(1, global), Some(MeasureError::OneRank));
    }

    fn ends() -> impl Strategy<Value = Vec<Vec<i64>>> {
        (1_usize..6, 1_usize..20).prop_flat_map(|(ranks, calls)| {
            // Several ranks leave at the same time now and then.
            prop::collection::vec(prop::collection::vec(-3_i64..9, ranks), calls)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

        #[test]
        fn exits_are_those_of_all_ranks(ends in ends()) {
            let calls: Vec<Vec<(i64, i64)>> = ends
                .iter()
                .map(|call| call.iter().map(|end| (-99, *end)).collect())
                .collect();
            let found = reduce(&vec![ObservationState::Valid; ends.len()], &calls);
            let mut last = vec![0; ends[0].len()];
            for (of_call, leaving) in ends.iter().zip(found.leaving().iter()) {
                let (first, end) = (of_call.iter().min().unwrap(), of_call.iter().max().unwrap());
                prop_assert_eq!((leaving.begin, leaving.nanos), (*first, (end - first) as f64));
                last[of_call.iter().position(|one| one == end).unwrap()] += 1;
            }
            prop_assert_eq!(found.leaving().len(), ends.len());
            prop_assert_eq!(found.left_last(), last);
        }
    }
}
