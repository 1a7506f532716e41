//! Collection of the times of calls from all ranks.
//!
//! Every rank keeps its own times. Rank 0 gets the run-time of each call, and in the end what else the processing needs,
//! reduced on the way through a tree. So its memory does not grow with the number of ranks.

mod exits;
mod pooled;

pub use exits::Exits;

use downbeat_clock_core::{Clock, Timestamp};
use downbeat_records::{Basis, CallTimes, Observation, ObservationState, Observations};
use downbeat_sync::collective::{all_reduce, broadcast, broadcast_bytes, greatest_to_first};
use downbeat_sync::{Comm, CommError};

use crate::context::{CallSpan, MeasureContext};
use crate::error::MeasureError;
use crate::operation::Coordinator;
use crate::processing::{CallTime, Extremes, Needed, PerRank, Times};
use crate::thinning::Thinning;

/// Observations that rank 0 gets of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// The run-time of each call, as observations of one rank. The memory that rank 0 needs does not depend on the number of
    /// ranks.
    #[default]
    RunTimes,
    /// The same, and in the end the imbalance of each call, for [`Imbalance`](crate::imbalance::Imbalance). Needs a global clock.
    Exits,
}

/// Number of calls that are reduced together: their messages are short enough for any memory, and long enough for bandwidth.
const TOGETHER: usize = 4_096;

/// Reduces values of calls to the greatest of all ranks, call by call, which rank 0 gets in order. All ranks name the same number
/// of calls.
///
/// No rank needs memory for more than some thousand calls.
///
/// # Errors
/// If a rank is gone.
pub async fn reduce_calls<M: Comm, const N: usize>(
    comm: &M,
    calls: usize,
    own: impl Fn(usize) -> [i64; N],
    mut greatest: impl FnMut([i64; N]),
) -> Result<(), CommError> {
    let mut values = Vec::with_capacity(calls.min(TOGETHER));
    for first in (0..calls).step_by(TOGETHER) {
        values.clear();
        values.extend((first..calls.min(first + TOGETHER)).map(&own));
        greatest_to_first(comm, values.as_flattened_mut()).await?;
        if comm.rank() == 0 {
            values.iter().copied().for_each(&mut greatest);
        }
    }
    Ok(())
}

/// Times of the calls that this rank keeps, in nanoseconds of its clock: begin and end.
#[derive(Debug)]
pub(crate) struct Collection {
    collect: Collect,
    basis: Basis,
    needed: Needed,
    /// Number of calls that a time is the sum of.
    calls_together: f64,
    own: Vec<[i64; 2]>,
    thinning: Thinning,
}

impl Collection {
    /// Creates the collection of a measurement whose times have this basis, and are each of a number of calls, for a processing
    /// that needs these times.
    pub(crate) fn new(collect: Collect, basis: Basis, needed: Needed, calls_together: u32) -> Self {
        Self {
            collect,
            basis,
            needed,
            calls_together: f64::from(calls_together),
            own: Vec::new(),
            thinning: Thinning::default(),
        }
    }

    /// Adds a batch of calls, the first of which has the number `first`, of which some are kept. Rank 0 gets these, and the times of
    /// the valid ones for the stopping rule: those of the slowest rank if the processing uses these, as SKaMPI does, and run-times
    /// otherwise.
    pub(crate) async fn add<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        mut spans: Vec<CallSpan>,
        first: u32,
        thinning: Thinning,
    ) -> Result<Option<(Observations, Vec<f64>)>, MeasureError> {
        self.thinning.raise(thinning, &mut self.own);
        let mut calls = first..;
        spans.retain(|_| calls.next().is_some_and(|call| thinning.keeps(call)));
        let time = |span: &CallSpan| [context.nanos(span.start), context.nanos(span.end)];
        let from = self.own.len();
        self.own.extend(spans.iter().map(time));
        let times = &self.own[from..];
        let is_global = self.basis == Basis::Global;
        let (mut states, mut run_times, mut slowest) = (Vec::new(), Vec::new(), Vec::new());
        let own = |call: usize| {
            let [start, end] = times[call];
            let length = end.saturating_sub(start);
            // By local clocks, a rank's own duration counts.
            let [start, end] = if is_global { [start, end] } else { [0, length] };
            // The least start is the greatest negative one.
            let severity = severity(spans[call].state);
            [severity, start.saturating_neg(), end, length]
        };
        let add = |[state, negative_start, end, length]: [i64; 4]| {
            let state = worst_state(state);
            states.push(state);
            run_times.push(self.per_call(end.saturating_add(negative_start)));
            if state == ObservationState::Valid {
                slowest.push(self.per_call(length));
            }
        };
        reduce_calls(context.comm, spans.len(), own, add).await?;
        let found = || Observations::new(1, states, CallTimes::Means(run_times));
        let found = (context.comm.rank() == 0).then(found).flatten();
        Ok(found.map(|found| match self.needed {
            Needed::Calls(CallTime::Slowest) => (found, slowest),
            _ => {
                let run_times = found.run_times();
                (found, run_times)
            }
        }))
    }

    /// Returns the time of one call, of which several may be timed together.
    fn per_call(&self, nanos: i64) -> f64 {
        nanos as f64 / self.calls_together
    }

    /// Collects the times that a processing needs, of the valid ones of the observations that rank 0 has after this thinning.
    /// There must be a valid one; otherwise, and on other ranks, nothing is returned.
    pub(crate) async fn times<M: Comm>(
        mut self,
        comm: &M,
        root: u32,
        kept: Option<(&Observations, Thinning)>,
    ) -> Result<Option<Times>, MeasureError> {
        let all = kept.map(|(observations, _)| observations);
        let all = all.filter(|all| all.count(ObservationState::Valid) > 0);
        match self.needed {
            Needed::Calls(time) if time.is_run_time(self.basis) => {
                return Ok(all.map(|all| Times::Calls(all.run_times())));
            }
            _ => {}
        }
        self.thin(comm, kept.map(|(_, thinning)| thinning)).await?;
        self.keep_valid(comm, kept.map(|(observations, _)| observations))
            .await?;
        if self.own.is_empty() {
            return Ok(None);
        }
        let own = self
            .own
            .iter()
            .map(|[start, end]| end.saturating_sub(*start));
        let found = match self.needed {
            Needed::Calls(time) => Times::Calls(self.of_calls(comm, time, root).await?),
            Needed::Ranks(figure) => {
                let mut own: Vec<f64> = own.map(|time| self.per_call(time)).collect();
                Times::Ranks(of_ranks(comm, figure, &mut own).await?)
            }
            Needed::Pooled { factor } => {
                let (threshold, kept) =
                    pooled::without_outliers(comm, own.collect(), factor).await?;
                Times::Pooled { threshold, kept }
            }
        };
        Ok((comm.rank() == 0).then_some(found))
    }

    /// Returns the times of this rank's calls that rank 0 has after this thinning, with the states that it knows.
    pub(crate) async fn own_times<M: Comm>(
        &mut self,
        comm: &M,
        kept: Option<(&Observations, Thinning)>,
    ) -> Result<Observations, CommError> {
        self.thin(comm, kept.map(|(_, thinning)| thinning)).await?;
        let states = kept.map_or(&[][..], |(observations, _)| observations.states());
        let states = states.iter().map(|state| *state as u8).collect();
        let states = broadcast_bytes(comm, states).await?;
        let states = states
            .iter()
            .filter_map(|place| ObservationState::ALL.get(usize::from(*place)).copied());
        let own = self.own.iter();
        let times = match self.basis {
            Basis::Means => CallTimes::Means(
                own.map(|[start, end]| self.per_call(end.saturating_sub(*start)))
                    .collect(),
            ),
            Basis::Local => CallTimes::Local(own.map(observation).collect()),
            Basis::Global => CallTimes::Global(own.map(observation).collect()),
        };
        // All ranks have kept the same calls.
        Ok(Observations::new(1, states.collect(), times).unwrap_or_else(Observations::none))
    }

    /// Collects the imbalance of the calls that rank 0 has after this thinning, if it is wanted.
    pub(crate) async fn exits<M: Comm>(
        &mut self,
        comm: &M,
        thinning: Option<Thinning>,
    ) -> Result<Option<Exits>, CommError> {
        if self.collect != Collect::Exits {
            return Ok(None);
        }
        self.thin(comm, thinning).await?;
        let exits = exits::reduce_ends(comm, &self.own, TOGETHER).await?;
        Ok((comm.rank() == 0).then_some(exits))
    }

    /// Drops the calls that rank 0 has dropped by this thinning.
    async fn thin<M: Comm>(
        &mut self,
        comm: &M,
        thinning: Option<Thinning>,
    ) -> Result<(), CommError> {
        let level = thinning.map_or(0_u64, |thinning| thinning.level().into());
        let thinning = Thinning::at(broadcast(comm, level).await? as u32);
        self.thinning.raise(thinning, &mut self.own);
        Ok(())
    }

    /// Drops the calls that are not valid, as rank 0 knows.
    async fn keep_valid<M: Comm>(
        &mut self,
        comm: &M,
        all: Option<&Observations>,
    ) -> Result<(), CommError> {
        let mut bits = vec![0_u8; self.own.len().div_ceil(8)];
        if let Some(all) = all {
            for call in all.valid() {
                bits[call / 8] |= 1 << (call % 8);
            }
        }
        let bits = broadcast_bytes(comm, bits).await?;
        let mut calls = 0..;
        let is_valid = |call: usize| bits[call / 8] >> (call % 8) & 1 == 1;
        self.own.retain(|_| calls.next().is_some_and(is_valid));
        Ok(())
    }

    /// Returns a time of each call, on rank 0.
    async fn of_calls<M: Comm>(
        &self,
        comm: &M,
        time: CallTime,
        root: u32,
    ) -> Result<Vec<f64>, CommError> {
        let is_root = comm.rank() == root;
        let own = |call: usize| {
            let [start, end] = self.own[call];
            let length = end.saturating_sub(start);
            match time {
                CallTime::Slowest => [length, 0],
                CallTime::SinceRoot if is_root => [end, start],
                CallTime::SinceRoot => [end, i64::MIN],
                CallTime::Root | CallTime::RunTime if is_root => [length, 0],
                CallTime::Root | CallTime::RunTime => [i64::MIN, 0],
            }
        };
        let mut times = Vec::new();
        let add = |[end, start]: [i64; 2]| times.push(self.per_call(end.saturating_sub(start)));
        reduce_calls(comm, self.own.len(), own, add).await?;
        Ok(times)
    }
}

/// Returns mean, minimum and maximum of a figure over all ranks.
async fn of_ranks<M: Comm>(
    comm: &M,
    figure: PerRank,
    times: &mut [f64],
) -> Result<Extremes, MeasureError> {
    let own = figure.of(times)?.to_bits();
    let combine = |a: [u64; 3], b: [u64; 3]| {
        let [sum, min, max] = [0, 1, 2].map(|i| (f64::from_bits(a[i]), f64::from_bits(b[i])));
        [sum.0 + sum.1, min.0.min(min.1), max.0.max(max.1)].map(f64::to_bits)
    };
    let [sum, min, max] = all_reduce(comm, [own; 3], combine)
        .await?
        .map(f64::from_bits);
    Ok(Extremes {
        mean: sum / f64::from(comm.size()),
        min,
        max,
    })
}

/// States of a call on a rank, from the best to the worst: a call is only valid if it is on all ranks.
const STATES: [ObservationState; 3] = [
    ObservationState::Valid,
    ObservationState::Long,
    ObservationState::Late,
];

fn severity(state: ObservationState) -> i64 {
    let place = STATES.iter().position(|one| *one == state);
    place.map_or(0, |place| place as i64)
}

fn worst_state(severity: i64) -> ObservationState {
    let found = usize::try_from(severity).ok();
    let found = found.and_then(|place| STATES.get(place));
    found.copied().unwrap_or(ObservationState::Late)
}

fn observation<D: downbeat_clock_core::Domain>([start, end]: &[i64; 2]) -> Observation<D> {
    let [start, end] = [*start, *end].map(Timestamp::from_nanos);
    Observation { start, end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ClockBasis;
    use crate::operation::MessageCoordinator;
    use crate::processing::Processing;
    use downbeat_clock_core::{ClockModel, ReadOrdering, TickRate, Ticks};
    use downbeat_sync::{ThreadCluster, block_on_ready};
    use proptest::prelude::*;

    /// Clock that is never read.
    struct Stopped;

    impl Clock for Stopped {
        fn ticks(&self) -> Ticks {
            Ticks(0)
        }

        fn ordering(&self) -> ReadOrdering {
            ReadOrdering::Fenced
        }
    }

    /// State, start and duration of each call on one rank.
    type Calls = Vec<(usize, u64, i64)>;

    /// Collected calls.
    struct Collected {
        /// Observations on rank 0.
        observations: Observations,
        /// Times that the processing needs.
        times: Option<Times>,
        /// Times that the stopping rule sees.
        seen: Vec<f64>,
        /// The observations with the times of every rank, as these kept them.
        all: Observations,
    }

    /// Collects calls, of which those from the 7th on are drifted, with clocks of this basis.
    fn collected(basis: Basis, needed: Needed, ranks: &[Calls], most: usize) -> Collected {
        let program = |comm: &downbeat_sync::ThreadComm| {
            let rate = TickRate::NANOSECOND;
            let context = MeasureContext {
                comm,
                coordinator: &MessageCoordinator(comm),
                clock: &Stopped,
                clock_basis: ClockBasis::Global(
                    ClockModel::through(Ticks(0), Timestamp::ORIGIN, rate).unwrap(),
                ),
            };
            let span = |(state, start, takes): &(usize, u64, i64)| CallSpan {
                start: Ticks(*start),
                end: Ticks(start.saturating_add_signed(*takes)),
                state: STATES[*state],
            };
            let calls = &ranks[comm.rank() as usize];
            let mut collection = Collection::new(Collect::RunTimes, basis, needed, 1);
            let (mut all, mut thinning, mut first) = (None, Thinning::default(), 0);
            let mut seen = Vec::new();
            for batch in calls.chunks(5) {
                let level = block_on_ready(broadcast(comm, u64::from(thinning.level()))).unwrap();
                let spans = batch.iter().map(span).collect();
                let added = collection.add(&context, spans, first, Thinning::at(level as u32));
                first += batch.len() as u32;
                let Some((added, rule)) = block_on_ready(added).unwrap() else {
                    continue;
                };
                seen.extend(rule);
                match &mut all {
                    None => all = Some(added),
                    Some(all) => all.append(added),
                }
                thinning.limit(all.as_mut().unwrap(), most);
            }
            if let Some(all) = &mut all {
                all.mark_drifted(7);
            }
            let kept = all.as_ref().map(|all| (all, thinning));
            let own = block_on_ready(collection.own_times(comm, kept)).unwrap();
            let times = block_on_ready(collection.times(comm, 1, kept)).unwrap();
            (own, all.map(|all| (all, times, seen)))
        };
        let ranks = ThreadCluster::new(ranks.len() as u32).run(program).unwrap();
        let (own, mut first): (Vec<_>, Vec<_>) = ranks.into_iter().unzip();
        assert!(first.iter().skip(1).all(Option::is_none));
        let (observations, times, seen) = first.swap_remove(0).unwrap();
        Collected {
            observations,
            times,
            seen,
            all: Observations::of_ranks(&own).unwrap(),
        }
    }

    /// Returns what the stopping rule sees of all calls.
    fn seen(basis: Basis, needed: Needed, ranks: &[Calls]) -> Vec<f64> {
        let slowest = needed == Needed::Calls(CallTime::Slowest) || basis != Basis::Global;
        let time = |call: usize| {
            let of_call = || ranks.iter().map(move |calls| calls[call]);
            let end =
                |(_, start, takes): (usize, u64, i64)| start.saturating_add_signed(takes) as i64;
            let start = |(_, start, _): (usize, u64, i64)| start as i64;
            let time = match slowest {
                true => of_call().map(|one| end(one) - start(one)).max(),
                false => Some(of_call().map(end).max()? - of_call().map(start).min()?),
            };
            time.filter(|_| of_call().all(|(state, ..)| state == 0))
                .map(|time| time as f64)
        };
        (0..ranks[0].len()).filter_map(time).collect()
    }

    fn calls() -> impl Strategy<Value = Vec<Calls>> {
        (2_usize..6, 1_usize..20).prop_flat_map(|(ranks, calls)| {
            let state = prop_oneof![9 => Just(0_usize), 1 => Just(1), 1 => Just(2)];
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
                    let needed = processing.needed();
                    let found = collected(basis, needed, &ranks, most);
                    let Collected { observations, times, all, .. } = &found;
                    prop_assert_eq!(observations.states(), all.states());
                    prop_assert_eq!(observations.run_times(), all.run_times(), "{} {:?}", label, basis);
                    if most >= ranks[0].len() {
                        prop_assert_eq!(&found.seen, &seen(basis, needed, &ranks), "{} {:?}", label, basis);
                    }
                    let Some(times) = times else {
                        prop_assert_eq!(all.count(ObservationState::Valid), 0);
                        continue;
                    };
                    let figures = [processing.figures(times), processing.apply(all, 1)].map(Result::unwrap);
                    for (found, expected) in figures[0].iter().zip(&figures[1]) {
                        let error = (found.nanos - expected.nanos).abs();
                        prop_assert!(error <= 1e-9 * expected.nanos.abs(), "{} {:?}: {:?}", label, basis, figures);
                    }
                    prop_assert_eq!(figures[0].len(), figures[1].len());
                }
            }
        }
    }
}
