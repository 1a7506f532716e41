//! Default methods of the suites.

use downbeat_clock_core::Duration;

use super::Preset;
use crate::{
    Barrier, Decay, EachCall, Method, PerRank, Processing, RoundTime, Scheme, Series, Stopping,
    Windows,
};
use downbeat_records::stats::Confidence;

impl Preset {
    /// Returns the method for messages of this size.
    pub fn method(self, bytes: u64) -> Method {
        let (warm_up, scheme, stopping, processing) = match self {
            Self::Osu => osu(bytes),
            Self::Imb => (
                2,
                imb_series(bytes),
                Stopping::Count { most: 1 },
                Processing::RankAverages,
            ),
            Self::Phloem => (
                1,
                PHLOEM_SERIES,
                Stopping::Count { most: 1 },
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
                Stopping::Count { most: 100 },
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
            Self::Mpptest => (0, MPPTEST_SERIES, MPPTEST_STOPPING, Processing::RootBest),
            Self::ReproMpi => (0, ROUNDS, REPRO_MPI_SLICE, Processing::Median),
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

const EACH_CALL: Scheme = Scheme::EachCall(EachCall {
    barrier: Barrier::Library,
});

const WINDOWS: Scheme = Scheme::Windows(Windows { window: None });

const ROUNDS: Scheme = Scheme::RoundTime(RoundTime {
    slack: 0.2,
    adaptive: false,
});

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

const REPRO_MPI_SLICE: Stopping = Stopping::TimeSlice {
    slice: Duration::from_secs(5),
    most: 1_000_000,
};

const PHLOEM_SERIES: Scheme = Scheme::Series(Series {
    barrier_after_each: true,
    within: Some(Duration::from_millis(50)),
    ..Series::new(1_000)
});

const MPPTEST_SERIES: Scheme = Scheme::Series(Series {
    untimed: 1,
    ..Series::new(50)
});

const MPPTEST_STOPPING: Stopping = Stopping::NearLeast {
    bound: 0.05,
    times: 3,
    least: 4,
    most: 30,
};

fn osu(bytes: u64) -> (u32, Scheme, Stopping, Processing) {
    const LARGE: u64 = 8_192;
    let (warm_up, most) = if bytes > LARGE {
        (10, 100)
    } else {
        (100, 1_000)
    };
    (
        warm_up,
        EACH_CALL,
        Stopping::Count { most },
        Processing::Osu,
    )
}

fn imb_series(bytes: u64) -> Scheme {
    const MOST: u64 = 1_000;
    const VOLUME: u64 = 40 << 20;
    let calls = VOLUME.checked_div(bytes).unwrap_or(MOST).clamp(1, MOST) as u32;
    Scheme::Series(Series {
        barriers_before: 2,
        within: Some(Duration::from_secs(10)),
        ..Series::new(calls)
    })
}
