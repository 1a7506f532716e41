//! Default methods of the suites.

use downbeat_clock_core::Duration;

use super::Preset;
use crate::processing::{PerRank, Processing};
use crate::scheme::{BarrierPlace, EachCall, RoundTime, Scheme, Series, TimeLimit, Trial, Windows};
use crate::stopping::{Decay, Stopping};
use crate::{Barrier, Method};
use downbeat_records::stats::Confidence;

/// Name of the operation that needs no other barriers.
const BARRIER: &str = "barrier";

impl Preset {
    /// Returns the method for an operation and messages of this size. The name of the operation is that of MPI without `MPI_`, in
    /// lower case; suites treat some of them in another way.
    pub fn method(self, operation: &str, bytes: u64) -> Method {
        let is_barrier = operation == BARRIER;
        let (warm_up, scheme, stopping, processing) = match self {
            Self::Osu => osu(operation, bytes),
            Self::Imb if is_barrier => (
                100,
                imb_series(1_000, Trial::Second),
                ONE_SERIES,
                Processing::RankAverages,
            ),
            Self::Imb => imb(imb_calls(bytes)),
            Self::Imb4 => (
                2,
                imb_series(imb_calls(bytes), Trial::Five),
                ONE_SERIES,
                Processing::RankAverages,
            ),
            Self::Phloem => (
                1,
                Scheme::Series(Series {
                    barrier_after_each: !is_barrier,
                    ..PHLOEM_SERIES
                }),
                ONE_SERIES,
                Processing::RankAverages,
            ),
            Self::Phloem16 if is_barrier => (
                1,
                Scheme::Series(PHLOEM_SERIES),
                ONE_SERIES,
                Processing::RankAverages,
            ),
            Self::Phloem16 => (
                1,
                PHLOEM_CALLS,
                Stopping::Count { most: 1_000 },
                Processing::RankAverages,
            ),
            Self::Skampi => (
                0,
                WINDOWS,
                Stopping::RelativeError {
                    bound: 0.03,
                    least: 8,
                    most: 32,
                    independent: true,
                },
                Processing::Skampi,
            ),
            Self::NbcBench => (
                0,
                WINDOWS,
                Stopping::Count { most: 50 },
                Processing::NbcBench {
                    per_rank: PerRank::Median,
                },
            ),
            Self::MpiBench => (0, EACH_CALL, Stopping::Count { most: 1_000 }, MPI_BENCH),
            Self::MpiBlib => (0, EACH_CALL, MPI_BLIB_INTERVAL, EXTREMES),
            Self::Mpicroscope => (
                0,
                EACH_CALL,
                Stopping::Decay {
                    decay: Decay::Linear,
                    batch: 100,
                    most: 1_000,
                },
                EXTREMES,
            ),
            Self::Mpptest => (
                0,
                Scheme::Series(Series {
                    untimed: u32::from(!is_barrier),
                    barriers_after: 1,
                    ..Series::new(50)
                }),
                MPPTEST_STOPPING,
                Processing::RootBest,
            ),
            Self::ReproMpi => (0, REPRO_MPI_ROUNDS, REPRO_MPI_STOPPING, Processing::Median),
            Self::ReproMpi2018 => (0, ROUNDS_2018, SLICE_2018, Processing::Median),
        };
        Method {
            warm_up,
            scheme,
            stopping,
            processing,
            root: 0,
        }
    }
}

const ONE_SERIES: Stopping = Stopping::Count { most: 1 };

const EACH_CALL: Scheme = Scheme::EachCall(EachCall::new(Barrier::Library));

const WINDOWS: Scheme = Scheme::Windows(Windows { window: None });

const REPRO_MPI_ROUNDS: Scheme = Scheme::RoundTime(RoundTime {
    slack: 2.0,
    adaptive: false,
    barrier: Some(Barrier::Library),
    by_messages: true,
});

const REPRO_MPI_STOPPING: Stopping = Stopping::TimeSlice {
    slice: Duration::from_secs(2),
    most: 500,
};

const ROUNDS_2018: Scheme = Scheme::RoundTime(RoundTime {
    slack: 0.2,
    adaptive: false,
    barrier: None,
    by_messages: false,
});

const SLICE_2018: Stopping = Stopping::TimeSlice {
    slice: Duration::from_secs(5),
    most: 1_000_000,
};

const MPI_BENCH: Processing = Processing::MpiBench {
    factor: Processing::MPI_BENCH_FACTOR,
};

const EXTREMES: Processing = Processing::Extremes {
    root_only: false,
    confidence: Confidence::USUAL,
};

const MPI_BLIB_INTERVAL: Stopping = Stopping::Interval {
    confidence: Confidence::USUAL,
    bound: 0.025,
    least: 5,
    most: 100,
    independent: true,
};

const PHLOEM_LIMIT: TimeLimit = TimeLimit {
    within: Duration::from_millis(50),
    trial: Trial::Five,
};

const PHLOEM_SERIES: Series = Series {
    limit: Some(PHLOEM_LIMIT),
    ..Series::new(1_000)
};

/// The barriers in the loop are messages of the program.
const PHLOEM_CALLS: Scheme = Scheme::EachCall(EachCall {
    place: BarrierPlace::After,
    barriers_before: 1,
    limit: Some(PHLOEM_LIMIT),
    ..EachCall::new(Barrier::Dissemination)
});

const MPPTEST_STOPPING: Stopping = Stopping::NearLeast {
    bound: 0.05,
    times: 3,
    least: 4,
    most: 30,
};

fn osu(operation: &str, bytes: u64) -> (u32, Scheme, Stopping, Processing) {
    const LARGE: u64 = 8_192;
    let (warm_up, most) = if bytes > LARGE {
        (10, 100)
    } else {
        (100, 1_000)
    };
    let place = match operation {
        BARRIER => BarrierPlace::Absent,
        "reduce" => BarrierPlace::Before,
        _ => BarrierPlace::After,
    };
    let scheme = Scheme::EachCall(EachCall {
        place,
        ..EachCall::new(Barrier::Library)
    });
    (warm_up, scheme, Stopping::Count { most }, Processing::Osu)
}

const IMB_LIMIT: Duration = Duration::from_secs(10);

/// Returns the number of calls of IMB.
fn imb_calls(bytes: u64) -> u32 {
    const MOST: u64 = 1_000;
    const VOLUME: u64 = 40 << 20;
    VOLUME.checked_div(bytes).unwrap_or(MOST).clamp(1, MOST) as u32
}

fn imb(calls: u32) -> (u32, Scheme, Stopping, Processing) {
    let scheme = Scheme::EachCall(EachCall {
        place: BarrierPlace::After,
        barriers_before: 2,
        limit: Some(TimeLimit {
            within: IMB_LIMIT,
            trial: Trial::Second,
        }),
        ..EachCall::new(Barrier::Library)
    });
    // A single call has no warm-up.
    let warm_up = (calls / 10).max(1).min(calls - 1);
    let stopping = Stopping::Count { most: calls };
    (warm_up, scheme, stopping, Processing::RankAverages)
}

fn imb_series(calls: u32, trial: Trial) -> Scheme {
    Scheme::Series(Series {
        barriers_before: 2,
        limit: Some(TimeLimit {
            within: IMB_LIMIT,
            trial,
        }),
        ..Series::new(calls)
    })
}
