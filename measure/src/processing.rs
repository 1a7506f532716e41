//! From what all ranks saw of many calls to the figures that a benchmark prints: section 2 and table 4 of the paper on
//! reproducible MPI benchmarking.

mod error;
mod extremes;
mod global;
#[cfg(test)]
mod hand;
mod label;
mod median;
mod mpi_bench;
mod nbc_bench;
mod osu;
mod rank_averages;
mod root_best;
mod skampi;

pub use error::ProcessingError;

use downbeat_records::stats::{Confidence, Sample};
use downbeat_records::{Basis, CallTimes, ObservationState, Observations};

/// How observations become figures. Only valid observations count.
///
/// # What fits what
/// A scheme gives stamps of one [`Basis`]: MS1 times every call by the ranks' own clocks (`Local`), MS4 and Round-Time
/// time every call by one clock (`Global`), and MS2 and MS3 time many calls at once, of which only means are known
/// (`Means`).
///
/// | processing | label | MS1 | MS2, MS3 | MS4, Round-Time |
/// |---|---|---|---|---|
/// | Downbeat's | `median` | yes | yes: of means | yes |
/// | PS1 SKaMPI | `skampi` | yes | no: needs the slowest rank of each call | yes |
/// | PS2 mpicroscope, MPIBlib | `extremes`, `extremes/root` | yes | no: the extremes of means are not those of calls | yes |
/// | PS3 OSU | `osu` | yes | yes | yes |
/// | PS4 MPIBlib | `global` | no: needs one clock | no: needs one clock | yes |
/// | PS5 MPIBench | `mpibench` | yes | no: a mean has swallowed its outliers | yes |
/// | PS6 NBCBench | `nbcbench/mean` | yes | yes | yes |
/// | | `nbcbench/median`, `/min`, `/max` | yes | no: those of means are not those of calls | yes |
/// | PS7 IMB, Phloem | `rank-averages` | yes | yes | yes |
/// | PS8 mpptest | `root-best` | yes | yes | yes |
///
/// A call that was timed by itself is a series of one, so PS7 and PS8 take it, though the programs that they come from do
/// not time single calls. A series is no call: so PS1, PS2 and PS5 do not take series. All but `median` and PS4 know
/// nothing but how long each rank was in a call, also where there is one clock: that is how they were published.
///
/// # Labels
/// The names above, or `ps1` to `ps8`. Behind a `/` may stand the confidence of an interval (`extremes/0.99`,
/// `extremes/root/0.99`, `global/0.99`; 0.95 if left out), the factor of `mpibench/2`, and what `nbcbench/median` takes
/// of every rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Processing {
    /// Downbeat's own: median, quartiles, mean, least and greatest of the [run-times](Observations::run_time).
    #[default]
    Median,
    /// PS1, SKaMPI: mean, standard deviation and standard error of the middle half of the calls, by the time of the
    /// slowest rank of each.
    Skampi,
    /// PS2, mpicroscope and MPIBlib: mean, least and greatest of the times of the slowest rank of each call, and the
    /// interval that the mean is in.
    Extremes {
        /// Take the root's times instead of the slowest rank's, as MPIBlib can.
        root_only: bool,
        /// That of the interval; MPIBlib's is 95 %.
        confidence: Confidence,
    },
    /// PS3, OSU: the mean of each rank, and of these the mean, the least and the greatest.
    Osu,
    /// PS4, MPIBlib: the mean of the times from the root's start to the last rank's end, and the interval that it is in.
    Global {
        /// That of the interval; MPIBlib's is 95 %.
        confidence: Confidence,
    },
    /// PS5, MPIBench: mean, least and greatest of the times of all calls on all ranks but for outliers.
    MpiBench {
        /// A time is an outlier if it is more than this many times the 99th percentile of all times; at least 1.
        /// MPIBench's is 2.
        a: f64,
    },
    /// PS6, NBCBench: one figure of each rank, and the greatest of these.
    NbcBench {
        /// Which figure.
        of: PerRank,
    },
    /// PS7, Intel's benchmarks and Phloem: the mean of each rank, and of these the mean, the least and the greatest.
    RankAverages,
    /// PS8, mpptest: the least of the root's means.
    RootBest,
}

/// What is taken of all times of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they say what they are")]
pub enum PerRank {
    Mean,
    Median,
    Min,
    Max,
}

/// A figure that a benchmark prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What it is called: no blanks, no `=`.
    pub name: &'static str,
    /// Its value in nanoseconds.
    pub nanos: f64,
}

impl Processing {
    /// The factor of MPIBench for outliers.
    pub const MPI_BENCH_FACTOR: f64 = 2.0;

    /// Whether it makes sense of such stamps. To be asked before anything is measured.
    ///
    /// # Errors
    /// Why it does not; or that a parameter is out of its range.
    pub fn fits(&self, basis: Basis) -> Result<(), ProcessingError> {
        let single_calls = |what| match basis {
            Basis::Global | Basis::Local => Ok(()),
            Basis::Means => Err(ProcessingError::NeedsSingleCalls { what }),
        };
        match self {
            Self::Median | Self::Osu | Self::RankAverages | Self::RootBest => Ok(()),
            Self::NbcBench { of: PerRank::Mean } => Ok(()),
            Self::Skampi => single_calls("the slowest rank of each call"),
            Self::Extremes { .. } => single_calls("the least and the greatest time of a call"),
            Self::NbcBench { .. } => single_calls("the times of each rank"),
            Self::MpiBench { a } if a.is_finite() && *a >= 1.0 => {
                single_calls("the calls that are outliers")
            }
            Self::MpiBench { a } => Err(ProcessingError::Factor(*a)),
            Self::Global { .. } if basis == Basis::Global => Ok(()),
            Self::Global { .. } => Err(ProcessingError::NeedsGlobalClock),
        }
    }

    /// The figures. The first is the one to report; those that need two values are left out if there is one.
    ///
    /// # Errors
    /// When it does not [fit](Self::fits), when there is no such rank as the root, when no observation is valid, or when
    /// a time is not finite.
    pub fn apply(
        &self,
        observations: &Observations,
        root: usize,
    ) -> Result<Vec<Figure>, ProcessingError> {
        self.fits(observations.call_times().basis())?;
        if root >= observations.ranks() {
            return Err(ProcessingError::NoSuchRoot {
                root,
                ranks: observations.ranks(),
            });
        }
        if observations.count(ObservationState::Valid) == 0 {
            let [late, long] = [ObservationState::Late, ObservationState::Long]
                .map(|state| observations.count(state));
            return Err(ProcessingError::NothingValid { late, long });
        }
        if any_not_finite(observations) {
            return Err(ProcessingError::NotFinite);
        }
        match *self {
            Self::Median => median::figures(observations),
            Self::Skampi => skampi::figures(observations),
            Self::Extremes {
                root_only,
                confidence,
            } => extremes::figures(observations, root_only.then_some(root), confidence),
            Self::Osu => osu::figures(observations),
            Self::Global { confidence } => global::figures(observations, root, confidence),
            Self::MpiBench { a } => mpi_bench::figures(observations, a),
            Self::NbcBench { of } => nbc_bench::figures(observations, of),
            Self::RankAverages => rank_averages::figures(observations),
            Self::RootBest => root_best::figures(observations, root),
        }
    }
}

impl Figure {
    const fn new(name: &'static str, nanos: f64) -> Self {
        Self { name, nanos }
    }
}

/// Whether a mean that a rank sent is none. Comparisons would pass over it. Stamps are whole numbers, and always finite.
fn any_not_finite(observations: &Observations) -> bool {
    let ranks = observations.ranks();
    match observations.call_times() {
        CallTimes::Means(means) => observations.valid().any(|call| {
            means[call * ranks..(call + 1) * ranks]
                .iter()
                .any(|mean| !mean.is_finite())
        }),
        CallTimes::Global(_) | CallTimes::Local(_) => false,
    }
}

/// The times of one rank in all valid calls.
fn times_of(observations: &Observations, rank: usize) -> Vec<f64> {
    observations
        .valid()
        .map(|call| observations.time(call, rank))
        .collect()
}

/// The time of the slowest rank in each valid call: not the run-time, which begins when the first rank does.
fn slowest_times(observations: &Observations) -> Vec<f64> {
    let slowest = |call| {
        (0..observations.ranks())
            .map(|rank| observations.time(call, rank))
            .fold(f64::MIN, f64::max)
    };
    observations.valid().map(slowest).collect()
}

/// The mean of every rank's times.
fn means_of_ranks(observations: &Observations) -> Result<Vec<f64>, ProcessingError> {
    (0..observations.ranks())
        .map(|rank| Ok(Sample::new(&mut times_of(observations, rank))?.mean()))
        .collect()
}

fn least(sample: &Sample<'_>) -> f64 {
    sample.quantile(0.0)
}

fn greatest(sample: &Sample<'_>) -> f64 {
    sample.quantile(1.0)
}

/// Mean, least and greatest, as nearly everybody reports.
fn mean_and_extremes(sample: &Sample<'_>) -> Vec<Figure> {
    let (mean, min, max) = (sample.mean(), least(sample), greatest(sample));
    vec![
        Figure::new("mean", mean),
        Figure::new("min", min),
        Figure::new("max", max),
    ]
}

/// The ends of the interval that the mean is in; nothing if there is but one value.
fn interval_of_mean(sample: &Sample<'_>, confidence: Confidence) -> impl Iterator<Item = Figure> {
    let interval = sample.mean_interval(confidence);
    interval.into_iter().flat_map(|at| {
        [
            Figure::new("mean-low", at.low),
            Figure::new("mean-high", at.high),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::hand::{five_calls, global, local};
    use super::*;

    const ALL: [(&str, [bool; 3]); 13] = [
        // On one clock, on local ones, on means.
        ("median", [true, true, true]),
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

    #[test]
    fn what_makes_no_sense_is_refused_before_and_after_measuring() {
        let times: &[&[i64]] = &[&[30, 40], &[20, 25]];
        let means = CallTimes::Means(vec![30.0, 40.0, 20.0, 25.0]);
        let means = Observations::new(2, vec![ObservationState::Valid; 2], means).unwrap();
        for (label, fits) in ALL {
            let processing: Processing = label.parse().unwrap();
            for (observations, fits) in [global(&five_calls()), local(times), means.clone()]
                .iter()
                .zip(fits)
            {
                let basis = observations.call_times().basis();
                assert_eq!(processing.fits(basis).is_ok(), fits, "{label} on {basis:?}");
                let applied = processing.apply(observations, 0);
                assert_eq!(
                    applied.err(),
                    processing.fits(basis).err(),
                    "{label} on {basis:?}"
                );
            }
        }
    }

    #[test]
    fn figures_are_finite_and_their_names_fit_into_records() {
        for (label, _) in ALL {
            let figures = label
                .parse::<Processing>()
                .unwrap()
                .apply(&global(&five_calls()), 1)
                .unwrap();
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
            let error = label
                .parse::<Processing>()
                .unwrap()
                .apply(&global(&calls), 0)
                .unwrap_err();
            assert_eq!(
                error,
                ProcessingError::NothingValid { late: 4, long: 1 },
                "{label}"
            );
            let error = label
                .parse::<Processing>()
                .unwrap()
                .apply(&global(&calls[..0]), 0)
                .unwrap_err();
            assert_eq!(
                error,
                ProcessingError::NothingValid { late: 0, long: 0 },
                "{label}"
            );
        }
    }

    #[test]
    fn what_cannot_be_processed_is_said() {
        let calls = global(&five_calls());
        assert_eq!(
            Processing::Osu.apply(&calls, 2),
            Err(ProcessingError::NoSuchRoot { root: 2, ranks: 2 })
        );
        for a in [0.99, -2.0, f64::INFINITY] {
            assert_eq!(
                Processing::MpiBench { a }.apply(&calls, 0),
                Err(ProcessingError::Factor(a))
            );
        }
        assert!(
            Processing::MpiBench { a: f64::NAN }
                .fits(Basis::Local)
                .is_err()
        );
        for wrong in [f64::NAN, f64::INFINITY] {
            let means = Observations::new(
                1,
                vec![ObservationState::Valid; 2],
                CallTimes::Means(vec![1.0, wrong]),
            )
            .unwrap();
            for label in [
                "median",
                "osu",
                "nbcbench/mean",
                "rank-averages",
                "root-best",
            ] {
                let found = label.parse::<Processing>().unwrap().apply(&means, 0);
                assert_eq!(found, Err(ProcessingError::NotFinite), "{label} of {wrong}");
            }
        }
    }
}
