//! `sync`: durations of synchronization algorithms, and the offsets of the clocks afterwards.

use std::collections::BTreeMap;

use clap::Args;
use downbeat_clock_core::{ClockModel, Counter, Duration, Global};
use downbeat_common::cli::Labels;
use downbeat_common::output::count;
use downbeat_common::records::{
    ClockRecord, CsvFile, ExplainedRuns, Factors, LargestDeviation, RunRecord, TrueErrors,
};
use downbeat_common::{Failure, OffsetCheckOptions, ProgressBar, TrialOptions, agree_blocking};
use downbeat_sync::check::{AccuracyCheck, RankOffset};
use downbeat_sync::{Algorithm, Comm, CommError, Synchronized, block_on_ready, collective};

use crate::Job;
use crate::clock::{JobClockName, RankClocks};
use crate::comparison::ComparisonOptions;
use crate::factors;
use crate::ranks::JobRanks;
use crate::truth::{reads_counter, true_offsets};

/// Options of `sync` for all ranks.
#[derive(Args, Debug)]
pub struct SyncOptions {
    #[arg(long, value_name = "LABELS", help = Labels::HELP, value_parser = Labels::parse_single, default_value = "auto")]
    algorithm: Labels,
    /// Clock that every rank reads
    #[arg(long, value_enum, default_value_t = JobClockName::TSC, ignore_case = true)]
    clock: JobClockName,
    #[command(flatten)]
    trial: TrialOptions,
    #[command(flatten)]
    comparison: ComparisonOptions,
}

/// Options of `sync` for ranks whose clocks are measured.
#[derive(Args, Debug)]
#[command(
    after_help = "Offsets are measured with messages. With --truth the true errors are shown as well: the ranks of one machine \
                  share a counter. They are as certain as the counters of the cores agree, which is measured first: the ranks 0 and 1 swap \
                  their cores, if each has one of its own.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi sync \\\n    \
                  --algorithm hca3/1000/skampi/100,cube/1000/100 --repeat 10 -o sync.html\n  \
                  mpirun -np 2 downbeat-mpi sync --skew offset=1s,drift=20ppm --truth"
)]
pub struct MeasuredSyncOptions {
    #[command(flatten)]
    sync: SyncOptions,
    #[command(flatten)]
    check: OffsetCheckOptions,
    /// Seed of the selection of ranks by --sample
    #[arg(long, default_value_t = 1, allow_hyphen_values = true)]
    seed: u64,
    /// Show the true errors, too, and how certain they are: ranks 0 and 1 swap their cores for some 20 ms. All ranks must run on one
    /// machine
    #[arg(long)]
    truth: bool,
    /// Compute the true errors of clocks with --skew at the times of --check, instead of waiting for these times and measuring offsets
    #[arg(long, requires = "truth", conflicts_with_all = ["check_by", "sample", "seed"])]
    predict: bool,
}

/// Tries the algorithms on all ranks, which all call this, and shows the results on rank 0.
///
/// # Errors
/// If a clock or a file cannot be used, or a rank is gone.
pub fn run<J: Job>(options: &MeasuredSyncOptions, job: &J) -> Result<(), Failure> {
    let sync = &options.sync;
    let ranks = JobRanks::find(job, &sync.comparison.place)?;
    let check = options.check.check(options.seed, ranks.all.size())?;
    let check = (!options.predict).then_some(check);
    SyncSession::new(sync, check, options.truth, &ranks)?.try_all()
}

/// Tries the algorithms as [`run`] does, on ranks whose true errors can be computed.
///
/// # Errors
/// As [`run`].
pub fn run_known<J: Job>(options: &SyncOptions, job: &J) -> Result<(), Failure> {
    let ranks = JobRanks::find(job, &options.comparison.place)?;
    SyncSession::new(options, None, true, &ranks)?.try_all()
}

/// Tries one algorithm once, as [`run_known`] does; returns the result on rank 0.
///
/// # Errors
/// As [`run`].
pub fn try_known_once<J: Job>(
    options: &SyncOptions,
    algorithm: Algorithm,
    job: &J,
) -> Result<RunRecord, Failure> {
    let ranks = JobRanks::find(job, &options.comparison.place)?;
    let session = SyncSession::new(options, None, true, &ranks)?;
    session.try_one(algorithm, 1, &ranks.progress(0.0))
}

struct SyncSession<'a, J: Job> {
    options: &'a SyncOptions,
    /// Check of the clocks with messages; without one, their true errors are computed.
    check: Option<AccuracyCheck>,
    /// True if the true errors are wanted.
    truth: bool,
    ranks: &'a JobRanks<'a, J>,
    clocks: RankClocks<J>,
}

impl<'a, J: Job> SyncSession<'a, J> {
    fn new(
        options: &'a SyncOptions,
        check: Option<AccuracyCheck>,
        truth: bool,
        ranks: &'a JobRanks<'a, J>,
    ) -> Result<Self, Failure> {
        let mut algorithms = options.algorithm.0.iter();
        algorithms.try_for_each(|algorithm| ranks.have_levels_of("--algorithm", algorithm))?;
        let clocks = options
            .comparison
            .find_clocks(ranks, options.clock, truth)?;
        let is_known = clocks
            .counter
            .is_some_and(|counter| reads_counter(&clocks.local.clock, &counter));
        if check.is_none() && !is_known {
            let why = format!("{} does not run as the counter does", clocks.name);
            return Err(Failure::option("--predict", why));
        }
        Ok(Self {
            options,
            check,
            truth,
            ranks,
            clocks,
        })
    }

    /// Tries the algorithms in turns, so that changes of the machine affect all of them.
    fn try_all(&self) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let factors = self.factors();
        let create = |path: &_| CsvFile::create(path, &factors);
        let mut csv = options.comparison.begin_outputs(ranks, create)?;
        let progress = ranks.progress(self.min_seconds());
        let mut runs = Vec::new();
        // The first one of each algorithm.
        let mut failures: BTreeMap<usize, String> = BTreeMap::new();
        for run in 1..=options.trial.repeat {
            for (number, algorithm) in options.algorithm.0.iter().enumerate() {
                let record = match self.try_one(*algorithm, run, &progress) {
                    Ok(record) => record,
                    // A fault of one algorithm costs no other its results.
                    Err(Failure::Run(why)) => {
                        failures.entry(number).or_insert(why);
                        continue;
                    }
                    Err(other) => return Err(other),
                };
                let written = csv.as_mut().map_or(Ok(()), |csv| csv.append(&record));
                agree_blocking(ranks.all, written)?;
                runs.push(record);
            }
        }
        drop(progress);
        if !runs.is_empty() {
            ranks.on_first(|| self.show(&factors, &runs))?;
        }
        match failures.is_empty() {
            true => Ok(()),
            false => {
                let failures: Vec<String> = failures.into_values().collect();
                Err(Failure::Run(failures.join("; ")))
            }
        }
    }

    fn try_one(
        &self,
        algorithm: Algorithm,
        run: u32,
        progress: &ProgressBar,
    ) -> Result<RunRecord, Failure> {
        let Self { options, ranks, .. } = self;
        let trial = options.trial.trial(algorithm, self.check);
        let me = ranks.local_clock(&self.clocks.local);
        let before = block_on_ready(self.true_offsets(&me.base().renamed(), Duration::ZERO))?;
        let mut errors: Vec<Vec<RankOffset>> = Vec::new();
        let result = trial.run(
            &me,
            ranks.all,
            |time| progress.sleep(time),
            async |synchronized| {
                let offsets = self.true_offsets(&synchronized.model, Duration::ZERO);
                errors.push(offsets.await?);
                Ok(())
            },
        );
        let result = ranks.agree_on_reason(&trial.algorithm, block_on_ready(result))?;
        if trial.check.is_none() {
            for after in &trial.waits {
                let offsets = self.true_offsets(&result.synchronized.model, *after);
                errors.push(block_on_ready(offsets)?);
            }
        }
        let largest = errors.iter().map(|offsets| TrueErrors {
            largest: LargestDeviation::of_offsets(offsets),
            beyond_bound: None,
            beyond_error: None,
        });
        let clocks = self.describe_clocks(&before, &result.synchronized, &errors);
        Ok(RunRecord {
            clocks: block_on_ready(clocks)?,
            ..RunRecord::new(&trial, run, &result, &largest.collect::<Vec<_>>())
        })
    }

    /// Returns the true offsets of what ranks show by this model, this long after now, on rank 0; none if they are not wanted.
    async fn true_offsets(
        &self,
        shown: &ClockModel<Counter, Global>,
        after: Duration,
    ) -> Result<Vec<RankOffset>, CommError> {
        let RankClocks { local, counter, .. } = &self.clocks;
        match counter {
            Some(counter) if self.truth => {
                true_offsets(self.ranks, counter, &local.clock, shown, after).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Describes the clock of each rank whose true errors are known, on rank 0.
    async fn describe_clocks(
        &self,
        before: &[RankOffset],
        synchronized: &Synchronized,
        errors: &[Vec<RankOffset>],
    ) -> Result<Vec<ClockRecord>, CommError> {
        let Synchronized { quality, bound, .. } = synchronized;
        let own = (
            bound.half_width(),
            quality.residual_deviation,
            quality.left_out,
        );
        let all = collective::gather(self.ranks.all, own).await?;
        let skew = self.options.comparison.skew.as_ref();
        let describe = |known: &RankOffset| {
            let rank = known.rank;
            let (half_width, deviation, left_out) = all[rank as usize];
            let place = &self.ranks.places[rank as usize];
            let skew = skew.map(|spec| spec.for_clock(spec.clock_of_rank(rank, place.node)));
            let of_rank = |offsets: &Vec<RankOffset>| {
                let offset = offsets.iter().find(|offset| offset.rank == rank)?;
                Some(offset.sample?.offset.as_nanos())
            };
            Some(ClockRecord {
                rank,
                offset_ns: known.sample?.offset.as_nanos(),
                drift_ppm: skew.map_or(0.0, |skew| skew.drift * 1e6),
                residual_deviation_ns: deviation.filter(|it| !it.is_nan()),
                half_width_ns: half_width.as_nanos(),
                left_out,
                errors_ns: errors.iter().map(of_rank).collect(),
            })
        };
        Ok(before.iter().filter_map(describe).collect())
    }

    /// Lower limit of the duration of all runs.
    fn min_seconds(&self) -> f64 {
        let SyncOptions {
            trial, algorithm, ..
        } = self.options;
        let longest = trial.check.iter().max().filter(|_| self.check.is_some());
        longest.map_or(0.0, |wait| wait.as_secs_f64())
            * algorithm.0.len() as f64
            * f64::from(trial.repeat)
    }

    /// Returns the factors on which the results depend, as rank 0 knows them.
    fn factors(&self) -> Factors {
        let Self {
            options,
            ranks,
            clocks,
            ..
        } = self;
        let mut factors = factors::for_job(ranks, clocks.name);
        if let Some(check) = &self.check {
            factors = factors
                .with("check", &check.offset)
                .with("sample", &check.ranks.share())
                .with("seed", &check.ranks.seed());
        }
        let factors = factors.with("repeat", &options.trial.repeat);
        options
            .comparison
            .add_to(ranks, clocks.counter.as_ref(), factors)
    }

    fn show(&self, factors: &Factors, runs: &[RunRecord]) -> Result<(), Failure> {
        let options = self.options;
        let (clock, repeat) = (
            self.clocks.name,
            count(options.trial.repeat as usize, "run"),
        );
        let counters = self.clocks.counter.and_then(|counter| counter.agreement);
        let measured = self.check.map(|check| {
            let check_by = check.offset;
            format!("Offsets: to rank 0, as measured by {check_by}.\n")
        });
        let truth = counters.map(|counters| counters.describe() + "\n");
        let title = format!(
            "{}, clock {clock}, {repeat} of each",
            self.ranks.description()
        );
        let explanation: String = measured.into_iter().chain(truth).collect();
        let explained = ExplainedRuns {
            title: &title,
            explanation: &explanation,
            factors,
            runs,
        };
        explained.show(&options.comparison.page, options.comparison.print)
    }
}
