//! Times of the valid calls of a measurement, reduced over the ranks: rank 0 gets them,
//! and all ranks ask for them together.

use downbeat_records::{Observation, Observations};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::figure::{Extremes, PerRank};
use crate::collection::{duration_at, place_of, reduce_calls};
use crate::error::MeasureError;
use crate::scheme::Basis;

/// Observations of a measurement, of which the valid ones count.
pub(crate) struct ValidCalls<'a, M> {
    pub(crate) comm: &'a M,
    pub(crate) basis: Basis,
    pub(crate) root: u32,
    /// Observations of all ranks, on rank 0.
    pub(crate) all: Observations,
    /// Observations of this rank; none if the processing
    /// [uses run-times](super::Processing::uses_run_times).
    pub(crate) own: Observations,
}

impl<M: Comm> ValidCalls<'_, M> {
    /// Returns the duration of each call on the slowest rank. The run-time is longer by a
    /// global clock, as it begins with the first rank.
    pub(super) async fn slowest(&self) -> Result<Vec<f64>, CommError> {
        if self.basis != Basis::Global {
            return Ok(self.all.run_times());
        }
        self.longest(|own| place_of(own.nanos)).await
    }

    /// Returns the duration of each call on the root.
    pub(super) async fn of_root(&self) -> Result<Vec<f64>, CommError> {
        let is_root = self.comm.rank() == self.root;
        let place = |own: &Observation| match is_root {
            true => place_of(own.nanos),
            false => i64::MIN,
        };
        self.longest(place).await
    }

    /// Returns the greatest of the durations at these places for each call.
    async fn longest(&self, place: impl Fn(&Observation) -> i64) -> Result<Vec<f64>, CommError> {
        let (own, mut times) = (self.own.valid().collect::<Vec<_>>(), Vec::new());
        let add = |[place]: [i64; 1]| times.push(duration_at(place));
        reduce_calls(self.comm, own.len(), |call| [place(own[call])], add).await?;
        Ok(times)
    }

    /// Returns the time of each call from the start of the root to the end of the last
    /// rank, by a global clock.
    pub(super) async fn since_root(&self) -> Result<Vec<f64>, CommError> {
        let is_root = self.comm.rank() == self.root;
        let (own, mut times) = (self.own.valid().collect::<Vec<_>>(), Vec::new());
        let ends = |call: usize| match is_root {
            true => [own[call].end(), own[call].begin],
            false => [own[call].end(), i64::MIN],
        };
        let add = |[end, begin]: [i64; 2]| times.push(end.saturating_sub(begin) as f64);
        reduce_calls(self.comm, own.len(), ends, add).await?;
        Ok(times)
    }

    /// Returns mean, minimum and maximum of a figure over all ranks.
    pub(super) async fn of_ranks(&self, figure: PerRank) -> Result<Extremes, MeasureError> {
        let own = figure.of(&mut self.own.run_times())?;
        let combine = |a: [f64; 3], b: [f64; 3]| [a[0] + b[0], a[1].min(b[1]), a[2].max(b[2])];
        let [sum, min, max] = all_reduce(self.comm, [own; 3], combine).await?;
        let mean = sum / f64::from(self.comm.size());
        Ok(Extremes { mean, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::RankedCalls;
    use super::super::{Figure, Processing};
    use super::*;
    use crate::collection::Collection;
    use crate::context::{CallSpan, ClockBasis, MeasureContext};
    use crate::operation::MessageCoordinator;
    use crate::thinning::Thinning;
    use downbeat_clock_core::{ClockModel, TickRate, Ticks, Timestamp};
    use downbeat_records::ObservationState;
    use downbeat_sync::collective::broadcast;
    use downbeat_sync::{ThreadCluster, block_on_ready};
    use downbeat_timers::MockClock;
    use proptest::prelude::*;

    /// State, start and duration of each call on one rank.
    type Calls = Vec<(ObservationState, u64, i64)>;

    /// Collected calls.
    struct Collected {
        /// Observations on rank 0.
        observations: Observations,
        /// Figures of the processing; none without a valid call.
        figures: Option<Vec<Figure>>,
        /// Times that the stopping rule sees.
        seen: Vec<f64>,
        /// The observations of every rank, as these kept them.
        all: RankedCalls,
    }

    /// Collects calls, of which those from the 7th on are drifted, with clocks of this
    /// basis.
    fn collect(basis: Basis, processing: &Processing, ranks: &[Calls], most: usize) -> Collected {
        let program = |comm: &downbeat_sync::ThreadComm| {
            let rate = TickRate::NANOSECOND;
            let context = MeasureContext {
                comm,
                coordinator: &MessageCoordinator(comm),
                clock: &MockClock::default(),
                clock_basis: ClockBasis::Global(
                    ClockModel::through(Ticks(0), Timestamp::ORIGIN, rate).unwrap(),
                ),
            };
            let span = |(state, start, takes): &(ObservationState, u64, i64)| CallSpan {
                start: Ticks(*start),
                end: Ticks(start.saturating_add_signed(*takes)),
                state: *state,
            };
            let calls = &ranks[comm.rank() as usize];
            let mut collection = Collection::new(basis, 1);
            let (mut all, mut thinning, mut first) =
                (Observations::default(), Thinning::default(), 0);
            let mut seen = Vec::new();
            for batch in calls.chunks(5) {
                let level = block_on_ready(broadcast(comm, u64::from(thinning.level()))).unwrap();
                let spans = batch.iter().map(span).collect();
                let added = collection.add(&context, spans, first, Thinning::at(level as u32));
                first += batch.len() as u32;
                let (added, slowest) = block_on_ready(added).unwrap();
                seen.extend(match processing.uses_slowest() {
                    true => slowest,
                    false => added.run_times(),
                });
                all.0.extend(added.0);
                thinning.limit(&mut all.0, most);
            }
            for found in all.0.iter_mut().skip(7).filter(|found| found.is_valid()) {
                found.state = ObservationState::Drifted;
            }
            let own = block_on_ready(collection.finish(comm, &all, thinning)).unwrap();
            let calls = ValidCalls {
                comm,
                basis,
                root: 1,
                all,
                own,
            };
            let found = block_on_ready(processing.process(&calls)).unwrap();
            let figures = found.ok().map(|found| found.figures);
            (calls.own, (calls.all, figures, seen))
        };
        let ranks = ThreadCluster::new(ranks.len() as u32).run(program).unwrap();
        let (own, mut first): (Vec<_>, Vec<_>) = ranks.into_iter().unzip();
        assert!(first.iter().skip(1).all(|(all, ..)| all.is_empty()));
        let (observations, figures, seen) = first.swap_remove(0);
        Collected {
            observations,
            figures,
            seen,
            all: RankedCalls { basis, ranks: own },
        }
    }

    /// Returns what the stopping rule sees of all calls.
    fn seen(basis: Basis, processing: &Processing, ranks: &[Calls]) -> Vec<f64> {
        let slowest = processing.uses_slowest() || basis != Basis::Global;
        let time = |call: usize| {
            let of_call = || ranks.iter().map(move |calls| calls[call]);
            let end = |(_, start, takes): (ObservationState, u64, i64)| {
                start.saturating_add_signed(takes) as i64
            };
            let start = |(_, start, _): (ObservationState, u64, i64)| start as i64;
            let time = match slowest {
                true => of_call().map(|one| end(one) - start(one)).max(),
                false => Some(of_call().map(end).max()? - of_call().map(start).min()?),
            };
            time.filter(|_| of_call().all(|(state, ..)| state == ObservationState::Valid))
                .map(|time| time as f64)
        };
        (0..ranks[0].len()).filter_map(time).collect()
    }

    fn calls() -> impl Strategy<Value = Vec<Calls>> {
        (2_usize..6, 1_usize..20).prop_flat_map(|(ranks, calls)| {
            let state = prop_oneof![
                9 => Just(ObservationState::Valid),
                1 => Just(ObservationState::Long),
                1 => Just(ObservationState::Late),
            ];
            let call = (state, 100_u64..1_000, -9_i64..1_000);
            prop::collection::vec(prop::collection::vec(call, calls), ranks)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

        #[test]
        fn reduced_times_are_those_of_all_ranks(ranks in calls(), most in 3_usize..30) {
            for label in [
                "median", "percentiles", "skampi", "extremes", "extremes/root", "osu", "global", "mpibench", "mpibench/1",
                "nbcbench/mean", "nbcbench/median", "nbcbench/min", "nbcbench/max", "root-best",
            ] {
                let processing: Processing = label.parse().unwrap();
                for basis in [Basis::Global, Basis::Local, Basis::Means] {
                    if processing.fits(basis).is_err() {
                        continue;
                    }
                    let found = collect(basis, &processing, &ranks, most);
                    let Collected { observations, figures, all, .. } = &found;
                    let expected = all.all();
                    let states = |calls: &Observations| calls.iter().map(|call| call.state).collect::<Vec<_>>();
                    prop_assert_eq!(states(observations), states(&expected));
                    prop_assert_eq!(observations.run_times(), expected.run_times(), "{} {:?}", label, basis);
                    if most >= ranks[0].len() {
                        prop_assert_eq!(&found.seen, &seen(basis, &processing, &ranks), "{} {:?}", label, basis);
                    }
                    let Some(figures) = figures else {
                        prop_assert_eq!(expected.count(ObservationState::Valid), 0);
                        continue;
                    };
                    let expected = all.process_centrally(&processing, 1).unwrap().figures;
                    for (found, expected) in figures.iter().zip(&expected) {
                        let error = (found.nanos - expected.nanos).abs();
                        prop_assert!(error <= 1e-9 * expected.nanos.abs(), "{} {:?}: {:?}", label, basis, figures);
                    }
                    prop_assert_eq!(figures.len(), expected.len());
                }
            }
        }
    }
}
