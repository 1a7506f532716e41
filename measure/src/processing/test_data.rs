//! Observations that can be processed by hand, and by one rank that knows those of all.

use downbeat_records::stats::Sample;
use downbeat_records::{Observation, ObservationState, Observations};
use downbeat_sync::{Comm, ThreadCluster, block_on_ready};

use super::figure::{Extremes, PerRank};
use super::{
    Figure, ProcessedCalls, Processing, ValidCalls, extremes, global as since_root, median,
    mpi_bench, nbc_bench, osu, percentiles, root_best, skampi,
};
use crate::error::MeasureError;
use crate::scheme::Basis;

/// Observations of each rank, of as many calls in the same states.
#[derive(Clone, Debug)]
pub(crate) struct RankedCalls {
    pub(crate) basis: Basis,
    pub(crate) ranks: Vec<Observations>,
}

/// Calls from the state of each, and the begin and duration on each rank.
fn ranked(basis: Basis, calls: &[(ObservationState, Vec<(i64, f64)>)]) -> RankedCalls {
    let count = calls.first().map_or(1, |(_, ranks)| ranks.len());
    let of_rank = |rank: usize| {
        let observe = |(state, ranks): &(ObservationState, Vec<(i64, f64)>)| Observation {
            state: *state,
            begin: ranks[rank].0,
            nanos: ranks[rank].1,
        };
        Observations(calls.iter().map(observe).collect())
    };
    let ranks = (0..count).map(of_rank).collect();
    RankedCalls { basis, ranks }
}

/// Valid calls by local clocks, from the duration of each call on each rank.
pub(super) fn local(calls: &[&[i64]]) -> RankedCalls {
    let call = |times: &&[i64]| {
        let skewed = (1..)
            .zip(*times)
            .map(|(rank, time)| (1_000_000 * rank, *time as f64));
        (ObservationState::Valid, skewed.collect())
    };
    ranked(Basis::Local, &calls.iter().map(call).collect::<Vec<_>>())
}

/// Means of series of calls: the state of each, and the mean on each rank.
pub(super) fn means(calls: &[(ObservationState, &[f64])]) -> RankedCalls {
    let call = |(state, means): &(ObservationState, &[f64])| {
        (*state, means.iter().map(|mean| (0, *mean)).collect())
    };
    ranked(Basis::Means, &calls.iter().map(call).collect::<Vec<_>>())
}

/// Calls of two ranks by a global clock: state, and start and end on each rank.
pub(super) type GlobalCalls = Vec<(ObservationState, [(i64, i64); 2])>;

pub(super) fn global(calls: &[(ObservationState, [(i64, i64); 2])]) -> RankedCalls {
    let call = |(state, ranks): &(ObservationState, [(i64, i64); 2])| {
        let stamps = ranks.map(|(start, end)| (start, (end - start) as f64));
        (*state, stamps.to_vec())
    };
    ranked(Basis::Global, &calls.iter().map(call).collect::<Vec<_>>())
}

/// Five calls with the run-times 50, 30, -, 45 and 35.
pub(super) fn five_calls() -> GlobalCalls {
    vec![
        (ObservationState::Valid, [(0, 40), (5, 50)]),
        (ObservationState::Valid, [(100, 130), (101, 120)]),
        (ObservationState::Late, [(200, 900), (800, 990)]),
        (ObservationState::Valid, [(300, 340), (295, 310)]),
        (ObservationState::Valid, [(400, 410), (395, 430)]),
    ]
}

impl RankedCalls {
    /// Returns a time of each call from the observations of it on all ranks.
    fn times(&self, time: impl Fn(&[Observation]) -> f64) -> Vec<f64> {
        let of_call = |call: usize| self.ranks.iter().map(|own| own[call]).collect::<Vec<_>>();
        let valid = (0..self.ranks[0].len()).filter(|call| self.ranks[0][*call].is_valid());
        valid.map(|call| time(&of_call(call))).collect()
    }

    /// Returns the observations on all ranks.
    pub(crate) fn all(&self) -> Observations {
        let observe = |call: usize| {
            let ranks: Vec<Observation> = self.ranks.iter().map(|own| own[call]).collect();
            Observation {
                state: ranks[0].state,
                begin: 0,
                nanos: match self.basis {
                    Basis::Global => run_time(&ranks),
                    _ => slowest(&ranks),
                },
            }
        };
        Observations((0..self.ranks[0].len()).map(observe).collect())
    }

    /// Processes as one rank that knows all observations.
    pub(crate) fn process_centrally(
        &self,
        processing: &Processing,
        root: usize,
    ) -> Result<ProcessedCalls, MeasureError> {
        let own = |figure: PerRank| {
            let of_rank = |own: &Observations| figure.of(&mut own.run_times());
            let mut figures = self
                .ranks
                .iter()
                .map(of_rank)
                .collect::<Result<Vec<_>, _>>()?;
            Ok::<_, MeasureError>(Extremes::of(&Sample::new(&mut figures)?))
        };
        let of_root = || self.times(|ranks| ranks[root].nanos);
        let from_root = |ranks: &[Observation]| {
            let last = ranks.iter().map(Observation::end).max().unwrap();
            (last - ranks[root].begin) as f64
        };
        match *processing {
            Processing::Median => median::figures(&self.all().run_times()),
            Processing::Percentiles => percentiles::figures(&self.all().run_times()),
            Processing::Skampi => skampi::figures(&self.times(slowest)),
            Processing::Extremes {
                root_only: false,
                confidence,
            } => extremes::figures(&self.times(slowest), confidence),
            Processing::Extremes { confidence, .. } => extremes::figures(&of_root(), confidence),
            Processing::Osu | Processing::RankAverages => Ok(osu::figures(&own(PerRank::Mean)?)),
            Processing::Global { confidence } => {
                since_root::figures(&self.times(from_root), confidence)
            }
            Processing::MpiBench { factor } => {
                let mut times: Vec<f64> = self
                    .ranks
                    .iter()
                    .flat_map(Observations::run_times)
                    .collect();
                let sample = Sample::new(&mut times)?;
                let t99 = sample.quantile(mpi_bench::PERCENTILE);
                let threshold = mpi_bench::threshold(t99, factor);
                let kept = sample.values().partition_point(|time| *time <= threshold);
                let kept = Extremes::of(&Sample::new(&mut times[..kept])?);
                Ok(mpi_bench::figures((threshold, kept)))
            }
            Processing::NbcBench { per_rank } => Ok(nbc_bench::figures(&own(per_rank)?)),
            Processing::RootBest => root_best::figures(&of_root()),
        }
    }

    /// Processes on all ranks, and as one rank that knows all; the results are equal.
    pub(super) fn process(
        &self,
        processing: &Processing,
        root: usize,
    ) -> Result<Vec<Figure>, MeasureError> {
        let found = ThreadCluster::new(self.ranks.len() as u32).run(|comm| {
            let own = &self.ranks[comm.rank() as usize];
            let calls = ValidCalls {
                comm,
                basis: self.basis,
                root: root as u32,
                all: if comm.rank() == 0 {
                    self.all()
                } else {
                    Observations::default()
                },
                own: own.clone(),
            };
            block_on_ready(processing.process(&calls)).and_then(|found| found)
        });
        let found = found.unwrap().swap_remove(0)?;
        let expected = self.process_centrally(processing, root)?;
        assert_eq!(found.no_interval, expected.no_interval);
        for (found, expected) in found.figures.iter().zip(&expected.figures) {
            let error = (found.nanos - expected.nanos).abs();
            assert!(
                error <= 1e-9 * expected.nanos.abs(),
                "{found:?}, not {expected:?}"
            );
        }
        assert_eq!(found.figures.len(), expected.figures.len());
        Ok(found.figures)
    }
}

fn slowest(ranks: &[Observation]) -> f64 {
    let nanos = ranks.iter().map(|own| own.nanos);
    nanos.max_by(f64::total_cmp).unwrap()
}

fn run_time(ranks: &[Observation]) -> f64 {
    let last = ranks.iter().map(Observation::end).max();
    let first = ranks.iter().map(|own| own.begin).min();
    (last.unwrap() - first.unwrap()) as f64
}

/// Processes by a label, and compares names and values of all figures.
pub(super) fn expect(label: &str, calls: &RankedCalls, root: usize, figures: &[(&str, f64)]) {
    let found = calls.process(&label.parse().unwrap(), root).unwrap();
    let names: Vec<&str> = found.iter().map(|figure| figure.name).collect();
    assert_eq!(
        names,
        figures.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "{label}"
    );
    for (Figure { name, nanos }, (_, expected)) in found.iter().zip(figures) {
        assert!(
            (nanos - expected).abs() <= 1e-9 * expected.abs(),
            "{label}: {name} is {nanos}, not {expected}"
        );
    }
}
