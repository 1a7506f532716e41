//! How far apart ranks leave an operation: what a barrier hands on to whatever is measured behind it.

use core::fmt;

use downbeat_sync::{Comm, CommError};

use crate::{Barrier, Figure, Operation, Together};
use downbeat_records::stats::Sample;
use downbeat_records::{CallTimes, Observation, ObservationState, Observations};

/// A barrier as something to be measured itself.
#[derive(Debug)]
pub struct BarrierOperation<'a, M, T> {
    /// Which.
    pub barrier: Barrier,
    /// Among whom.
    pub comm: &'a M,
    /// How they come together where it is the library's.
    pub together: &'a T,
}

impl<M: Comm, T: Together> Operation for BarrierOperation<'_, M, T> {
    #[inline]
    async fn call(&mut self, _: u32) -> Result<(), CommError> {
        self.barrier.wait(self.comm, self.together).await
    }
}

/// How far apart in time the ranks leave an operation that they enter together: for each call from the first that leaves
/// to the last, by one clock.
///
/// Figure 8 of the paper on hierarchical clock synchronization has it for barriers. How far apart the clocks of the ranks
/// are is in it, too: it means nothing below what the clocks are good for.
///
/// ```
/// use downbeat_clock_core::{Global, Timestamp};
/// use downbeat_measure::Imbalance;
/// use downbeat_records::{Observation, Observations, CallTimes, ObservationState};
///
/// // Two calls of three ranks: when each entered and left.
/// let calls = [[(0, 50), (0, 70), (1, 55)], [(100, 140), (100, 180), (101, 175)]];
/// let at = Timestamp::<Global>::from_nanos;
/// let stamps = calls.into_iter().flatten().map(|(start, end)| Observation { start: at(start), end: at(end) });
/// let seen = Observations::new(3, vec![ObservationState::Valid; 2], CallTimes::Global(stamps.collect())).ok_or("two of three")?;
///
/// let imbalance = Imbalance::of(&seen)?;
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

/// Why observations tell no imbalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImbalanceError {
    /// The clocks of the ranks differ: their readings cannot be compared.
    NeedsGlobalClock,
    /// A single rank leaves together with itself.
    OneRank,
    /// No observation counts.
    NothingValid,
}

impl fmt::Display for ImbalanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeedsGlobalClock => {
                "when ranks leave can only be compared by one clock for all of them"
            }
            Self::OneRank => "imbalance is between ranks, and there is only one",
            Self::NothingValid => "no observation is valid",
        })
    }
}

impl core::error::Error for ImbalanceError {}

impl Imbalance {
    /// Of all valid calls.
    ///
    /// # Errors
    /// When the ranks have no common clock, when there is but one rank, or when no call is valid.
    pub fn of(observations: &Observations) -> Result<Self, ImbalanceError> {
        let CallTimes::Global(stamps) = observations.call_times() else {
            return Err(ImbalanceError::NeedsGlobalClock);
        };
        let ranks = observations.ranks();
        if ranks < 2 {
            return Err(ImbalanceError::OneRank);
        }
        if observations.count(ObservationState::Valid) == 0 {
            return Err(ImbalanceError::NothingValid);
        }
        let mut left_last = vec![0; ranks];
        for call in observations.valid() {
            let ends = stamps[call * ranks..(call + 1) * ranks]
                .iter()
                .map(|rank| rank.end);
            // Of equal ones the lowest rank.
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
        // As many as there were.
        let leaving = Observations::new(
            ranks,
            observations.states().to_vec(),
            CallTimes::Global(leaving.collect()),
        );
        let leaving = leaving.ok_or(ImbalanceError::NothingValid)?;
        Ok(Self {
            leaving,
            left_last,
            run_times: observations.run_times(),
        })
    }

    /// The same calls without what they have in common: each from when the first rank left it. The run-time of such a
    /// call is its imbalance, so that it can be processed and recorded as any other.
    pub fn leaving(&self) -> &Observations {
        &self.leaving
    }

    /// How often each rank left last; of ranks that left at the same time, the lowest.
    pub fn left_last(&self) -> &[u64] {
        &self.left_last
    }

    /// Which rank left last most often, and in what share of the calls.
    pub fn usually_last(&self) -> (usize, f64) {
        let most = self
            .left_last
            .iter()
            .enumerate()
            .max_by_key(|(rank, count)| (**count, core::cmp::Reverse(*rank)));
        let (rank, count) = most.map_or((0, 0), |(rank, count)| (rank, *count));
        (rank, count as f64 / self.run_times.len() as f64)
    }

    /// Median, quartiles, 95th percentile and greatest imbalance, and the median run-time of the operation itself.
    pub fn figures(&self) -> Vec<Figure> {
        let (mut imbalances, mut run_times) = (self.leaving.run_times(), self.run_times.clone());
        let (Ok(imbalance), Ok(run_time)) =
            (Sample::new(&mut imbalances), Sample::new(&mut run_times))
        else {
            // There is a valid call, and stamps are whole numbers.
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

    /// What the figure is called that is no imbalance.
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
        // A late one: it does not count.
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
    fn the_imbalance_is_from_the_first_that_leaves_to_the_last() {
        let seen = Observations::new(3, states(), CallTimes::Global(stamps(&CALLS))).unwrap();
        let imbalance = Imbalance::of(&seen).unwrap();
        assert_eq!(imbalance.leaving().run_times(), [20.0, 40.0, 0.0, 100.0]);
        assert_eq!(imbalance.leaving().count(ObservationState::Late), 1);
        // Where all left at once, that is the first rank's.
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
    fn what_tells_no_imbalance_is_refused() {
        let of = |ranks, states: Vec<ObservationState>, stamps| {
            Imbalance::of(&Observations::new(ranks, states, stamps).unwrap())
        };
        let wrong = of(3, states(), CallTimes::Local(stamps(&CALLS)));
        assert_eq!(wrong, Err(ImbalanceError::NeedsGlobalClock));
        let wrong = of(
            1,
            vec![ObservationState::Valid; 3],
            CallTimes::Global(stamps(&CALLS[..1])),
        );
        assert_eq!(wrong, Err(ImbalanceError::OneRank));
        let wrong = of(
            3,
            vec![ObservationState::Late; 5],
            CallTimes::Global(stamps(&CALLS)),
        );
        assert_eq!(wrong, Err(ImbalanceError::NothingValid));
        assert_eq!(
            of(3, vec![], CallTimes::Global(vec![])),
            Err(ImbalanceError::NothingValid)
        );
    }
}
