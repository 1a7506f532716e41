//! `downbeat-mpi drift`: how the clocks of the ranks drift apart over minutes, and what a line leaves of that.

mod report;

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use downbeat_clock_core::{Clock, Duration, Global};
use downbeat_common::cli::positive;
use downbeat_common::records::{CsvFile, Factors};
use downbeat_common::{CalibrationOptions, Failure, ProgressBar, SkewSpec, agree_blocking};
use downbeat_measure::{
    ClockBasis, DriftRound, DriftWatch, MeasureContext, Method, MpiGroup, MpiOperation,
    OffsetSeries, OperationKind, OperationSettings, Processing, Scheme, Series, Stopping,
};
use downbeat_records::GroupKey;
use downbeat_sync::{Comm, MpiComm, OffsetAlgorithm, SyncError, block_on_ready, collective};

use crate::clock::{ClockUser, Kind, Timebase, Tsc};
use crate::ranks::{PlaceOptions, Ranks};
use crate::truth::Traceable;
use crate::{factors, session};
use report::{Latencies, Report};

#[derive(Args, Debug)]
#[command(
    after_help = "Clocks are looked at as they are: nothing is synchronized. A drift of 1 ppm is a microsecond per second.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi drift --during 10min --windows 10s,1min,5min --csv offsets.csv\n  \
                  mpirun -np 2 downbeat-mpi drift --skew drift=20ppm,wander=0.1ppm --during 30s --windows 5s,15s"
)]
pub(crate) struct Options {
    /// How long to look at the clocks
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = positive, allow_hyphen_values = true)]
    during: Duration,
    /// How often
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive, allow_hyphen_values = true)]
    every: Duration,
    /// How long the windows are through which lines are laid, with commas; each holds three offsets at least [default: 10s
    /// and 60s, as far as there is time for them, or all]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = positive, allow_hyphen_values = true)]
    windows: Vec<Duration>,
    /// How to look at them: OFFSET ALGORITHM/EXCHANGES
    #[arg(
        long,
        value_name = "LABEL",
        default_value = "skampi/100",
        allow_hyphen_values = true
    )]
    check_by: OffsetAlgorithm,
    /// The clock that every rank reads
    #[arg(long, value_enum, default_value_t = Kind::Monotonic, ignore_case = true)]
    clock: Kind,
    #[arg(long, value_name = "SPEC", help = SkewSpec::HELP)]
    skew: Option<SkewSpec>,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    calibration: CalibrationOptions,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write a line for every offset, as soon as it is known
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// A look at all clocks more often than that is none: an offset takes some microseconds itself.
const MOST_ROUNDS: u64 = 10_000_000;

/// In a line through fewer offsets there is nothing to see.
const LEAST_IN_WINDOW: i64 = 3;

impl Options {
    fn windows(&self) -> Result<Vec<Duration>, Failure> {
        if self.every > self.during {
            let why = format!(
                "{} is longer than the whole run of {}",
                self.every, self.during
            );
            return Err(Failure::option("--every", why));
        }
        if self.watch().rounds() > MOST_ROUNDS {
            return Err(Failure::option(
                "--every",
                format!("{} is too often for {}", self.every, self.during),
            ));
        }
        let least = Duration::from_nanos(self.every.as_nanos().saturating_mul(LEAST_IN_WINDOW));
        let fits = |window: Duration| window >= least && window <= self.during;
        if let Some(window) = self.windows.iter().find(|window| !fits(**window)) {
            return Err(Failure::option(
                "--windows",
                match *window > self.during {
                    true => format!("{window} is longer than the whole run of {}", self.during),
                    false => {
                        format!(
                            "{window} does not hold {LEAST_IN_WINDOW} offsets: there is one every {}",
                            self.every
                        )
                    }
                },
            ));
        }
        let usual = [10, 60]
            .map(Duration::from_secs)
            .into_iter()
            .filter(|window| fits(*window));
        let mut windows: Vec<Duration> = match self.windows.as_slice() {
            [] => usual.collect(),
            asked_for => asked_for.to_vec(),
        };
        if windows.is_empty() && fits(self.during) {
            windows.push(self.during);
        }
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

pub(crate) fn run(options: &Options, comm: &MpiComm) -> Result<(), Failure> {
    if comm.size() < 2 {
        return Err(Failure::Input(
            "clocks drift apart between ranks, and there is only one".to_owned(),
        ));
    }
    let windows = options.windows()?;
    let ranks = Ranks::find(comm, &options.place)?;
    let tsc = match options.clock {
        Kind::Tsc => Some(Tsc::calibrated(&ranks, &options.calibration)?),
        _ => None,
    };
    options.clock.give(
        &ranks,
        tsc.as_ref(),
        &Session {
            options,
            ranks: &ranks,
            windows,
            tsc,
        },
    )
}

struct Session<'a> {
    options: &'a Options,
    ranks: &'a Ranks<'a>,
    windows: Vec<Duration>,
    tsc: Option<Tsc>,
}

impl ClockUser for Session<'_> {
    fn with<K: Traceable + Copy>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        match &self.options.skew {
            Some(spec) => self.look_on(&base.skewed(self.ranks, spec)?),
            None => self.look_on(base),
        }
    }
}

/// What rank 0 learns while it looks on.
#[derive(Default)]
struct Seen {
    /// Of every rank.
    samples: Vec<Vec<downbeat_clock_core::OffsetSample<Global>>>,
    contradictory: Vec<u64>,
    looks: u64,
    failure: Option<Failure>,
}

impl Session<'_> {
    fn look_on<K: Clock>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let factors = self.factors();
        let csv = options.csv.as_ref().filter(|_| ranks.all.rank() == 0);
        let csv = csv.map(|path| {
            CsvFile::with_columns(path, &factors, "after_s,rank,at_ns,offset_ns,half_width_ns")
        });
        let mut csv = agree_blocking(ranks.all, csv.transpose())?;
        let latencies = self.latencies(base)?;
        let all = ranks.all.size() as usize;
        let mut seen = Seen {
            samples: vec![Vec::new(); all],
            contradictory: vec![0; all],
            ..Seen::default()
        };
        let watched = {
            let progress = ProgressBar::new(if ranks.all.rank() == 0 {
                options.during.as_secs_f64()
            } else {
                0.0
            });
            block_on_ready(collective::barrier(ranks.all)).map_err(Failure::run)?;
            let began = Instant::now();
            let passed = || {
                Duration::from_nanos(i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX))
            };
            let pause = |time: Duration| progress.sleep(time.max(Duration::ZERO));
            let clock = (&base.clock, &base.local);
            let take = |round: DriftRound<'_>| seen.take(round, csv.as_mut());
            block_on_ready(options.watch().run(clock, ranks.all, passed, pause, take))
        };
        let mine = match watched {
            Ok(()) => seen.failure.take().map_or(Ok(()), Err),
            // The rank that failed itself has something to say.
            Err(SyncError::OtherRank(_)) => Ok(()),
            Err(why) => Err(ranks.failure(why)),
        };
        agree_blocking(ranks.all, mine)?;
        let shown = if ranks.all.rank() == 0 {
            self.show(&factors, seen, latencies)
        } else {
            Ok(())
        };
        agree_blocking(ranks.all, shown)
    }

    /// How long a message takes from rank 0 to rank 1, and how long all ranks take to combine something: on rank 0.
    fn latencies<K: Clock>(&self, base: &Timebase<K>) -> Result<Option<Latencies>, Failure> {
        let ranks = self.ranks;
        let group = MpiGroup::all(ranks.all).map_err(Failure::run)?;
        // The mean of some calls, of which the median: neither depends on what any two clocks have in common.
        let scheme = Scheme::Series(Series::new(100));
        let stopping = Stopping::TimeSlice {
            slice: Duration::from_millis(500),
            most: 21,
        };
        let method = Method {
            warm_up: 10,
            scheme,
            stopping,
            processing: Processing::Median,
            root: 0,
        };
        let measure = |name: &str| {
            let kind: OperationKind = name.parse().map_err(Failure::run)?;
            let prepared = MpiOperation::prepare(
                kind,
                &group,
                Latencies::BYTES,
                &OperationSettings::default(),
            );
            let mut operation =
                agree_blocking(ranks.all, prepared.map_err(|why| ranks.failure(why)))?;
            let time = ClockBasis::Local(base.local);
            let context = MeasureContext {
                comm: group.comm(),
                coordinator: &group,
                clock: &base.clock,
                clock_basis: time,
            };
            let measured = block_on_ready(method.measure(&context, &mut operation));
            let key = GroupKey {
                operation: name.to_owned(),
                bytes: Latencies::BYTES,
                ranks: group.size(),
            };
            let measured = session::agree_on_measured(ranks, &key, measured)?;
            Ok(measured.and_then(|measured| measured.figures.first().map(|figure| figure.nanos)))
        };
        let (ping_pong, allreduce) = (measure("ping-pong")?, measure("allreduce")?);
        Ok(ping_pong
            .zip(allreduce)
            .map(|(both_ways, allreduce_ns)| Latencies {
                message_ns: both_ways / 2.0,
                allreduce_ns,
            }))
    }

    /// Everything that the result depends on, as rank 0 knows it.
    fn factors(&self) -> Factors {
        let Self {
            options,
            ranks,
            tsc,
            ..
        } = self;
        let mut factors = factors::of_machine(ranks, factors::of_job(ranks, options.clock))
            .with("started", &downbeat_common::now())
            .with("during", &options.during)
            .with("every", &options.every)
            .with("check", &options.check_by);
        factors = factors::of_tsc(tsc.as_ref(), factors);
        match &options.skew {
            Some(spec) => factors::of_skew(ranks, spec, factors),
            None => factors,
        }
    }

    fn show(
        &self,
        factors: &Factors,
        seen: Seen,
        latencies: Option<Latencies>,
    ) -> Result<(), Failure> {
        let latencies = latencies.ok_or_else(|| Failure::run("latencies were not measured"))?;
        let Self {
            options,
            ranks,
            windows,
            ..
        } = self;
        let missed = options.watch().rounds() - seen.looks;
        let mut report = Report::new(factors, latencies, missed);
        for (rank, (samples, contradictory)) in seen
            .samples
            .into_iter()
            .zip(seen.contradictory)
            .enumerate()
            .skip(1)
        {
            let series = OffsetSeries::new(samples);
            let series = series.map_err(|why| Failure::Run(format!("rank {rank}: {why}")))?;
            report.add(rank, contradictory, &series, windows, options.every);
        }
        report.show(options.json, ranks, options)
    }
}

impl Seen {
    /// Keeps and writes what was seen in a look.
    fn take(&mut self, round: DriftRound<'_>, csv: Option<&mut CsvFile>) -> ControlFlow<()> {
        self.looks += 1;
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
        self.failure = csv.and_then(|csv| csv.write(&lines).err());
        if self.failure.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
