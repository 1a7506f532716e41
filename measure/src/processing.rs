//! Processing of the observations of all ranks into the figures that a benchmark prints: section 2 and table 4 of Hunold 2016.

mod extremes;
mod figure;
mod global;
mod label;
mod median;
mod mpi_bench;
mod nbc_bench;
mod osu;
mod percentiles;
mod root_best;
mod skampi;
#[cfg(test)]
mod test_data;
mod valid_calls;

use downbeat_records::stats::Confidence;
use downbeat_sync::Comm;

use crate::error::{MeasureError, MethodError};
use crate::scheme::Basis;
pub(crate) use figure::ProcessedCalls;
pub use figure::{Figure, PerRank};
pub use percentiles::Percentile;
pub(crate) use valid_calls::ValidCalls;

/// Processing of observations into figures. Only valid observations count.
///
/// # Schemes that a processing fits
/// A scheme provides times of one [`Basis`]: MS1 times every call by the ranks' local clocks (`Local`), MS4 and Round-Time
/// time every call by the global clock (`Global`), and MS2 and MS3 time many calls together and provide only means
/// (`Means`).
///
/// | processing | label | MS1 | MS2, MS3 | MS4, Round-Time |
/// |---|---|---|---|---|
/// | Downbeat's | `median` | yes | yes: of means | yes |
/// | | `percentiles` | yes | no: those of means are not those of calls | yes |
/// | PS1 SKaMPI | `skampi` | yes | no: needs the slowest rank of each call | yes |
/// | PS2 mpicroscope, MPIBlib | `extremes`, `extremes/root` | yes | no: the extremes of means are not those of calls | yes |
/// | PS3 OSU | `osu` | yes | yes | yes |
/// | PS4 MPIBlib | `global` | no: needs one clock | no: needs one clock | yes |
/// | PS5 MPIBench | `mpibench` | yes | no: a mean hides its outliers | yes |
/// | PS6 NBCBench | `nbcbench/mean` | yes | yes | yes |
/// | | `nbcbench/median`, `/min`, `/max` | yes | no: those of means are not those of calls | yes |
/// | PS7 IMB, Phloem | `rank-averages` | yes | yes | yes |
/// | PS8 mpptest | `root-best` | yes | yes | yes |
///
/// A call that was timed by itself is a series of one, so PS7 and PS8 accept it, though the programs that they come from
/// do not time single calls. PS1, PS2 and PS5 need single calls, and do not accept series. All but `median`, `percentiles` and PS4 use
/// only the duration of a call on each rank, even with a global clock: that is how they were published.
///
/// Intervals of means are by [`BatchMeans`](downbeat_records::stats::BatchMeans), which allows for calls that depend on each
/// other. The suites take them for independent, and print intervals that may be ten times too narrow. Where there is no reliable
/// interval, there is none.
///
/// # Labels
/// The names above, or `ps1` to `ps8`, optionally followed by `/` and the confidence of an interval (`extremes/0.99`,
/// `extremes/root/0.99`, `global/0.99`; 0.95 if left out), the factor (`mpibench/2`), or the figure of every rank
/// (`nbcbench/median`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Processing {
    /// Downbeat's own: median, quartiles, mean, minimum and maximum of the
    /// [run-times](downbeat_records::Observation).
    #[default]
    Median,
    /// 50th, 90th, 99th and 99.9th percentile and maximum of the run-times. A percentile that fewer than about ten run-times exceed is
    /// left out.
    Percentiles,
    /// PS1, SKaMPI: mean, standard deviation and standard error of the middle half of the calls, by the time of each call's
    /// slowest rank.
    Skampi,
    /// PS2, mpicroscope and MPIBlib: mean, minimum and maximum of the times of each call's slowest rank, and the confidence
    /// interval of the mean.
    Extremes {
        /// True to take the times of the root instead of the slowest rank, as MPIBlib can.
        root_only: bool,
        /// Confidence of the interval; 95 % in MPIBlib.
        confidence: Confidence,
    },
    /// PS3, OSU: mean, minimum and maximum of the ranks' means.
    Osu,
    /// PS4, MPIBlib: mean of the times from the root's start to the last rank's end, and its confidence interval.
    Global {
        /// Confidence of the interval; 95 % in MPIBlib.
        confidence: Confidence,
    },
    /// PS5, MPIBench: mean, minimum and maximum of the times of all calls on all ranks without outliers.
    MpiBench {
        /// Multiple of the 99th percentile of all times above which a time is an outlier; at least 1, and 2 in MPIBench.
        factor: f64,
    },
    /// PS6, NBCBench: maximum of a figure over all ranks.
    NbcBench {
        /// Figure of each rank.
        per_rank: PerRank,
    },
    /// PS7, Intel's benchmarks and Phloem: mean, minimum and maximum of the ranks' means.
    RankAverages,
    /// PS8, mpptest: minimum of the root's means.
    RootBest,
}

impl Processing {
    /// MPIBench's factor for outliers.
    pub const MPI_BENCH_FACTOR: f64 = 2.0;

    /// Checks that the processing fits times of this basis. Call this before measuring.
    ///
    /// # Errors
    /// If it does not fit, or a parameter is out of its range.
    pub fn fits(&self, basis: Basis) -> Result<(), MethodError> {
        let single_calls = |what| match basis {
            Basis::Global | Basis::Local => Ok(()),
            Basis::Means => Err(MethodError::NeedsSingleCalls { what }),
        };
        match self {
            Self::Median | Self::Osu | Self::RankAverages | Self::RootBest => Ok(()),
            Self::NbcBench {
                per_rank: PerRank::Mean,
            } => Ok(()),
            Self::Percentiles => single_calls("the percentiles of calls"),
            Self::Skampi => single_calls("the slowest rank of each call"),
            Self::Extremes { .. } => single_calls("the least and the greatest time of a call"),
            Self::NbcBench { .. } => single_calls("the times of each rank"),
            Self::MpiBench { factor } if factor.is_finite() && *factor >= 1.0 => {
                single_calls("the calls that are outliers")
            }
            Self::MpiBench { factor } => Err(MethodError::OutlierFactor(*factor)),
            Self::Global { .. } if basis == Basis::Global => Ok(()),
            Self::Global { .. } => Err(MethodError::NeedsGlobalClock),
        }
    }

    /// Computes the figures on rank 0, from the times of all ranks that they need.
    /// Figures that need two values are left out if there is only one. All ranks call
    /// this; what others than rank 0 get is of no use.
    pub(crate) async fn process<M: Comm>(
        &self,
        calls: &ValidCalls<'_, M>,
    ) -> Result<Result<ProcessedCalls, MeasureError>, MeasureError> {
        let observed = match self.uses_run_times(calls.basis) {
            true => &calls.all,
            false => &calls.own,
        };
        if observed.valid().next().is_none() {
            return Ok(Err(MeasureError::nothing(&calls.all)));
        }
        Ok(match *self {
            Self::Median => median::figures(&calls.all.run_times()),
            Self::Percentiles => percentiles::figures(&calls.all.run_times()),
            Self::Skampi => skampi::figures(&calls.slowest().await?),
            Self::Extremes {
                root_only,
                confidence,
            } => {
                let times = match root_only {
                    true => calls.of_root().await?,
                    false => calls.slowest().await?,
                };
                extremes::figures(&times, confidence)
            }
            Self::Osu | Self::RankAverages => {
                Ok(osu::figures(&calls.of_ranks(PerRank::Mean).await?))
            }
            Self::Global { confidence } => global::figures(&calls.since_root().await?, confidence),
            Self::MpiBench { factor } => {
                let own = calls.own.valid().map(|own| own.nanos as i64);
                let kept = mpi_bench::without_outliers(calls.comm, own.collect(), factor);
                Ok(mpi_bench::figures(kept.await?))
            }
            Self::NbcBench { per_rank } => Ok(nbc_bench::figures(&calls.of_ranks(per_rank).await?)),
            Self::RootBest => root_best::figures(&calls.of_root().await?),
        })
    }

    /// Returns true if the run-times suffice, which rank 0 has; otherwise every rank
    /// needs its own valid observations.
    pub(crate) fn uses_run_times(&self, basis: Basis) -> bool {
        let is_run_time = basis != Basis::Global && self.uses_slowest();
        is_run_time || matches!(self, Self::Median | Self::Percentiles)
    }

    /// Returns true if the time of a call is that of its slowest rank: then the stopping
    /// rule sees these times, too.
    pub(crate) fn uses_slowest(&self) -> bool {
        matches!(
            self,
            Self::Skampi
                | Self::Extremes {
                    root_only: false,
                    ..
                }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::test_data::{five_calls, global, local, means};
    use super::*;
    use crate::Method;
    use crate::scheme::{RoundTime, Scheme, Series};
    use crate::stopping::Stopping;
    use downbeat_records::{ObservationState, Observations};

    const ALL: [(&str, [bool; 3]); 14] = [
        // Fits a global clock, local clocks, means.
        ("median", [true, true, true]),
        ("percentiles", [true, true, false]),
        ("ps1", [true, true, false]),
        ("ps2", [true, true, false]),
        ("ps2/root", [true, true, false]),
        ("ps3", [true, true, true]),
        ("ps4", [true, false, false]),
        ("ps5", [true, true, false]),
        ("nbcbench/mean", [true, true, true]),
        ("nbcbench/median", [true, true, false]),
        ("nbcbench/min", [true, true, false]),
        ("nbcbench/max", [true, true, false]),
        ("ps7", [true, true, true]),
        ("ps8", [true, true, true]),
    ];

    fn method(scheme: Scheme, processing: Processing) -> Method {
        Method {
            warm_up: 0,
            scheme,
            stopping: Stopping::Count { most: 2 },
            processing,
            root: 0,
        }
    }

    #[test]
    fn misfits_are_refused_and_all_others_processed() {
        let times: &[&[i64]] = &[&[30, 40], &[20, 25]];
        let series: [&[f64]; 2] = [&[30.0, 40.0], &[20.0, 25.0]];
        let means = means(&series.map(|means| (ObservationState::Valid, means)));
        for (label, fits) in ALL {
            let processing: Processing = label.parse().unwrap();
            for (observations, fits) in [global(&five_calls()), local(times), means.clone()]
                .iter()
                .zip(fits)
            {
                let basis = observations.basis;
                assert_eq!(processing.fits(basis).is_ok(), fits, "{label} on {basis:?}");
                if fits {
                    let figures = observations.process(&processing, 0);
                    assert!(figures.is_ok(), "{label} on {basis:?}: {figures:?}");
                }
            }
        }
    }

    #[test]
    fn figures_are_finite_and_their_names_fit_into_records() {
        for (label, _) in ALL {
            let calls = global(&five_calls());
            let figures = calls.process(&label.parse().unwrap(), 1).unwrap();
            assert!(!figures.is_empty(), "{label}");
            for figure in figures {
                assert!(figure.nanos.is_finite(), "{label}: {figure:?}");
                assert!(
                    !figure.name.contains([' ', '=', ',']),
                    "{label}: {figure:?}"
                );
            }
        }
    }

    #[test]
    fn without_a_valid_observation_there_is_no_figure() {
        for (label, _) in ALL {
            let mut calls = five_calls();
            for (state, _) in &mut calls {
                *state = if *state == ObservationState::Valid {
                    ObservationState::Late
                } else {
                    ObservationState::Long
                };
            }
            let processing = label.parse().unwrap();
            let error = global(&calls).process(&processing, 0).unwrap_err();
            assert_eq!(
                error,
                MeasureError::NothingValid {
                    late: 4,
                    long: 1,
                    drifted: 0
                },
                "{label}"
            );
            let error = global(&calls[..0]).process(&processing, 0).unwrap_err();
            assert_eq!(
                error,
                MeasureError::nothing(&Observations::default()),
                "{label}"
            );
        }
    }

    #[test]
    fn a_method_checks_that_its_processing_fits_its_scheme() {
        let round_time = Scheme::RoundTime(RoundTime::default());
        for (label, [fits_global, _, fits_means]) in ALL {
            let processing = label.parse().unwrap();
            let check = |scheme| method(scheme, processing).check().is_ok();
            assert_eq!(check(round_time), fits_global, "{label}");
            assert_eq!(
                check(Scheme::Series(Series::new(10))),
                fits_means,
                "{label}"
            );
        }
        let check = |factor| method(round_time, Processing::MpiBench { factor }).check();
        for factor in [0.99, -2.0, f64::INFINITY] {
            assert_eq!(check(factor), Err(MethodError::OutlierFactor(factor)));
        }
        assert!(check(f64::NAN).is_err());
    }

    #[test]
    fn means_that_are_not_finite_are_refused() {
        for wrong in [f64::NAN, f64::INFINITY] {
            let values: [&[f64]; 2] = [&[1.0], &[wrong]];
            let means = means(&values.map(|means| (ObservationState::Valid, means)));
            for label in [
                "median",
                "osu",
                "nbcbench/mean",
                "rank-averages",
                "root-best",
            ] {
                let found = means.process(&label.parse().unwrap(), 0);
                assert_eq!(found, Err(MeasureError::NotFinite), "{label} of {wrong}");
            }
        }
    }
}
