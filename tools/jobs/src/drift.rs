//! `downbeat-mpi drift`: drift between the clocks of the ranks over minutes, and the residuals of linear models of it.

mod page;
mod report;

use std::fmt::Write as _;

use clap::Args;
use downbeat::LocalTime;
use downbeat_clock_core::{Duration, Global};
use downbeat_common::Failure;
use downbeat_common::cli::positive;
use downbeat_common::records::{CsvFile, Factors};
use downbeat_measure::drift::{DriftRound, DriftWatch, OffsetSeries};
use downbeat_sync::{Comm, OffsetAlgorithm};

use crate::Job;
use crate::clock::{JobClock, JobClockName, RankClocks};
use crate::comparison::ComparisonOptions;
use crate::factors;
use crate::ranks::JobRanks;
use crate::watch;
use report::DriftReport;
pub use report::TransferTimes;

/// Options of `drift`.
#[derive(Args, Debug)]
#[command(
    after_help = "The clocks are not synchronized. A drift of 1 ppm is one microsecond per second.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi drift --during 10min \\\n    \
                  --windows 10s,1min,5min --csv offsets.csv -o drift.html\n  \
                  mpirun -np 2 downbeat-mpi drift --skew drift=20ppm,wander=0.1ppm \\\n    \
                  --during 30s --windows 5s,15s"
)]
pub struct DriftOptions {
    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = positive, allow_hyphen_values = true)]
    during: Duration,
    /// Interval between two measurements of the offsets
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive, allow_hyphen_values = true)]
    every: Duration,
    /// Lengths of the windows to which lines are fitted, separated by commas; each holds at least three offsets [default: 10s
    /// and 60s as far as they are shorter than the duration]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = positive, allow_hyphen_values = true)]
    windows: Vec<Duration>,
    /// Offset algorithm and number of its exchanges: ALGORITHM/EXCHANGES
    #[arg(
        long,
        value_name = "LABEL",
        default_value = "skampi/100",
        allow_hyphen_values = true
    )]
    check_by: OffsetAlgorithm,
    /// Clock that every rank reads
    #[arg(long, default_value_t = JobClockName::MONOTONIC, value_parser = JobClockName::machine_parser(), ignore_case = true)]
    clock: JobClockName,
    #[command(flatten)]
    comparison: ComparisonOptions,
}

/// Minimum number of offsets to which a line is fitted; it always meets two of them.
const MIN_OFFSETS: i64 = 3;

impl DriftOptions {
    fn windows(&self) -> Result<Vec<Duration>, Failure> {
        if self.every > self.during {
            let why = format!(
                "{} is longer than the whole run of {}",
                self.every, self.during
            );
            return Err(Failure::option("--every", why));
        }
        watch::check(&self.watch())?;
        let min = Duration::from_nanos(self.every.as_nanos().saturating_mul(MIN_OFFSETS));
        let fits = |window: Duration| window >= min && window <= self.during;
        if let Some(window) = self.windows.iter().find(|window| !fits(**window)) {
            return Err(Failure::option(
                "--windows",
                match *window > self.during {
                    true => format!("{window} is longer than the whole run of {}", self.during),
                    false => {
                        format!(
                            "{window} is too short for {MIN_OFFSETS} offsets, one every {}",
                            self.every
                        )
                    }
                },
            ));
        }
        let default = [10, 60]
            .map(Duration::from_secs)
            .into_iter()
            .filter(|window| fits(*window) && *window < self.during);
        let mut windows: Vec<Duration> = match self.windows.as_slice() {
            [] => default.collect(),
            given => given.to_vec(),
        };
        windows.sort_unstable();
        windows.dedup();
        Ok(windows)
    }

    fn watch(&self) -> DriftWatch {
        DriftWatch {
            every: self.every,
            during: self.during,
            offset: self.check_by,
        }
    }
}

/// Observes the offsets of all ranks, which all call this, after `measure_transfer` has measured messages by a clock.
///
/// # Errors
/// If there is one rank, or a clock or a file cannot be used.
pub fn run<J: Job>(
    options: &DriftOptions,
    job: &J,
    measure_transfer: impl FnOnce(
        &JobRanks<'_, J>,
        &LocalTime<JobClock<J>>,
    ) -> Result<Option<TransferTimes>, Failure>,
) -> Result<(), Failure> {
    if job.comm().size() < 2 {
        return Err(Failure::Input(
            "drift is measured between ranks, and there is only one".to_owned(),
        ));
    }
    let windows = options.windows()?;
    let ranks = JobRanks::find(job, &options.comparison.place)?;
    let comparison = &options.comparison;
    let session = DriftSession {
        options,
        ranks: &ranks,
        windows,
        clocks: comparison.find_clocks(&ranks, options.clock, false)?,
    };
    session.observe(|| measure_transfer(&ranks, &session.clocks.local))
}

struct DriftSession<'a, J: Job> {
    options: &'a DriftOptions,
    ranks: &'a JobRanks<'a, J>,
    windows: Vec<Duration>,
    clocks: RankClocks<J>,
}

/// Offsets of all ranks, as rank 0 measured them.
#[derive(Default)]
struct ObservedOffsets {
    /// One list for each rank.
    samples: Vec<Vec<downbeat_clock_core::offset::OffsetSample<Global>>>,
    /// Number of measurements of each rank whose messages contradicted each other.
    contradictory: Vec<u64>,
    rounds: u64,
}

impl<J: Job> DriftSession<'_, J> {
    fn observe(
        &self,
        measure_transfer: impl FnOnce() -> Result<Option<TransferTimes>, Failure>,
    ) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let factors = self.factors();
        let create = |path: &_| {
            CsvFile::with_columns(path, &factors, "after_s,rank,at_ns,offset_ns,half_width_ns")
        };
        let mut csv = options.comparison.begin_outputs(ranks, create)?;
        let latencies = measure_transfer()?;
        let size = ranks.all.size() as usize;
        let mut offsets = ObservedOffsets {
            samples: vec![Vec::new(); size],
            contradictory: vec![0; size],
            ..ObservedOffsets::default()
        };
        let local = &self.clocks.local;
        let clock = (&local.clock, &local.model);
        let take = async |round: DriftRound<'_>| Ok(offsets.add(round, csv.as_mut()));
        watch::run(&options.watch(), ranks, clock, take)?;
        ranks.on_first(|| self.show(&factors, offsets, latencies))
    }

    /// Returns the factors on which the results depend, as rank 0 knows them.
    fn factors(&self) -> Factors {
        let Self {
            options,
            ranks,
            clocks,
            ..
        } = self;
        let factors = factors::for_experiment(ranks, clocks.name)
            .with("started", &downbeat_common::now())
            .with("during", &options.during)
            .with("every", &options.every)
            .with("check", &options.check_by);
        options
            .comparison
            .add_to(ranks, clocks.counter.as_ref(), factors)
    }

    fn show(
        &self,
        factors: &Factors,
        offsets: ObservedOffsets,
        latencies: Option<TransferTimes>,
    ) -> Result<(), Failure> {
        let latencies = latencies.ok_or_else(|| Failure::run("latencies were not measured"))?;
        let Self {
            options,
            ranks,
            windows,
            ..
        } = self;
        let missed = options.watch().rounds() - offsets.rounds;
        let mut report = DriftReport::new(factors, latencies, missed);
        for (rank, (samples, contradictory)) in offsets
            .samples
            .into_iter()
            .zip(offsets.contradictory)
            .enumerate()
            .skip(1)
        {
            let series = OffsetSeries::new(samples);
            let series = series.map_err(|why| Failure::Run(format!("rank {rank}: {why}")))?;
            report.add(rank, contradictory, &series, windows, options.every);
        }
        let clock = self.clocks.name;
        let DriftOptions {
            during,
            every,
            check_by,
            ..
        } = options;
        let headline = format!(
            "{}, clock {clock}, during {during} every {every}, offsets to rank 0 by {check_by}",
            ranks.description()
        );
        let ComparisonOptions { page, print, .. } = &options.comparison;
        page.write_or(
            &headline,
            || report.page(),
            || print.print(|| &report, || report.text(&headline)),
        )
    }
}

impl ObservedOffsets {
    /// Adds the offsets of a round, and writes them to the CSV file.
    fn add(&mut self, round: DriftRound<'_>, csv: Option<&mut CsvFile>) -> Result<(), Failure> {
        self.rounds += 1;
        let mut lines = String::new();
        for one in round.offsets {
            // Writing to a string cannot fail.
            let _ = write!(lines, "{},{}", round.after.as_secs_f64(), one.rank);
            let _ = match one.sample {
                Some(sample) => {
                    let width = sample
                        .half_width
                        .map_or_else(String::new, |width| width.as_nanos().to_string());
                    writeln!(
                        lines,
                        ",{},{},{width}",
                        sample.at.as_nanos(),
                        sample.offset.as_nanos()
                    )
                }
                None => writeln!(lines, ",,,"),
            };
            match one.sample {
                Some(sample) => self.samples[one.rank as usize].push(sample),
                None => self.contradictory[one.rank as usize] += 1,
            }
        }
        csv.map_or(Ok(()), |csv| csv.write(&lines))
    }
}
