//! `downbeat-mpi sync`: durations of synchronization algorithms, and the offsets of the clocks afterwards.

use std::collections::BTreeMap;

use clap::Args;
use downbeat_common::cli::Labels;
use downbeat_common::output::count;
use downbeat_common::records::{CsvFile, ExplainedRuns, Factors, RunRecord, TrueErrors};
use downbeat_common::{Failure, ProgressBar, Trial, TrialOptions, agree_blocking};
use downbeat_sync::{MpiComm, block_on_ready};
use mpi::environment::Universe;

use crate::clock::{JobClockName, RankClocks};
use crate::factors;
use crate::ranks::JobRanks;
use crate::session::ComparisonOptions;
use crate::truth::largest_error;

#[derive(Args, Debug)]
#[command(
    after_help = "Offsets are measured with messages. With --truth the true errors are shown as well: the ranks of one machine \
                  share a counter. They are as certain as the counters of the cores agree, which is measured first: the ranks 0 and 1 swap \
                  their cores, if each has one of its own.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi sync \\\n    \
                  --algorithm hca3/1000/skampi/100,cube/1000/100 --repeat 10 -o sync.html\n  \
                  mpirun -np 2 downbeat-mpi sync --skew offset=1s,drift=20ppm --truth"
)]
pub(crate) struct MpiSyncOptions {
    #[arg(long, value_name = "LABELS", help = Labels::HELP, default_value = "cube/1000/100")]
    algorithm: Labels,
    /// Clock that every rank reads
    #[arg(long, value_enum, default_value_t = JobClockName::TSC, ignore_case = true)]
    clock: JobClockName,
    #[command(flatten)]
    trial: TrialOptions,
    /// Show the true errors, too, and how certain they are: ranks 0 and 1 swap their cores for some 20 ms. All ranks must run on one
    /// machine
    #[arg(long)]
    truth: bool,
    #[command(flatten)]
    comparison: ComparisonOptions,
}

pub(crate) fn run(
    options: &MpiSyncOptions,
    universe: &Universe,
    comm: &MpiComm,
) -> Result<(), Failure> {
    let ranks = JobRanks::find(universe, comm, &options.comparison.place)?;
    let mut algorithms = options.algorithm.0.iter();
    algorithms.try_for_each(|algorithm| ranks.have_levels_of("--algorithm", algorithm))?;
    let comparison = &options.comparison;
    let session = MpiSyncSession {
        options,
        ranks: &ranks,
        clocks: comparison.find_clocks(&ranks, options.clock, options.truth)?,
    };
    session.try_all()
}

struct MpiSyncSession<'a> {
    options: &'a MpiSyncOptions,
    ranks: &'a JobRanks<'a>,
    clocks: RankClocks<'a>,
}

impl MpiSyncSession<'_> {
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
                let trial = options.trial.trial(*algorithm).map_err(Failure::run)?;
                let record = match self.try_one(&trial, run, &progress) {
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
        trial: &Trial,
        run: u32,
        progress: &ProgressBar,
    ) -> Result<RunRecord, Failure> {
        let Self { ranks, clocks, .. } = self;
        let mut errors: Vec<TrueErrors> = Vec::new();
        let me = ranks.local_clock(&clocks.local);
        let result = trial.run(
            &me,
            ranks.all,
            |time| progress.sleep(time),
            async |synchronized| {
                let largest = match &clocks.counter {
                    Some(counter) if self.options.truth => {
                        largest_error(ranks, counter, me.clock(), &synchronized.model).await?
                    }
                    _ => None,
                };
                errors.push(TrueErrors {
                    largest,
                    beyond_bound: None,
                });
                Ok(())
            },
        );
        let result = ranks.agree_on_reason(&trial.algorithm, block_on_ready(result))?;
        Ok(RunRecord::new(trial, run, &result, &errors))
    }

    /// Lower limit of the duration of all runs.
    fn min_seconds(&self) -> f64 {
        let MpiSyncOptions {
            trial, algorithm, ..
        } = self.options;
        let longest = trial.check.iter().max();
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
        } = self;
        let trial = &options.trial;
        let factors = factors::for_job(ranks, options.clock)
            .with("check", &trial.check_by)
            .with("sample", &trial.sample)
            .with("repeat", &trial.repeat)
            .with("seed", &trial.seed);
        options
            .comparison
            .add_to(ranks, clocks.counter.as_ref(), factors)
    }

    fn show(&self, factors: &Factors, runs: &[RunRecord]) -> Result<(), Failure> {
        let options = self.options;
        let (clock, repeat) = (options.clock, count(options.trial.repeat as usize, "run"));
        let check_by = options.trial.check_by;
        let counters = self.clocks.counter.and_then(|counter| counter.agreement);
        let truth =
            counters.map_or_else(String::new, |counters| format!("\n{}", counters.describe()));
        let title = format!(
            "{}, clock {clock}, {repeat} of each",
            self.ranks.description()
        );
        let explanation = format!("Offsets: to rank 0, as measured by {check_by}.{truth}\n");
        let explained = ExplainedRuns {
            title: &title,
            explanation: &explanation,
            factors,
            runs,
        };
        explained.show(&options.comparison.page, options.comparison.print)
    }
}
