//! `downbeat-mpi sync`: how long each algorithm takes, and how far apart the clocks are afterwards.

use std::path::PathBuf;

use clap::Args;
use downbeat_common::cli::Labels;
use downbeat_common::output::{self, count};
use downbeat_common::records::{
    self, CsvFile, Factors, LargestDeviation, RunRecord, SyncRunsReport,
};
use downbeat_common::{
    CalibrationOptions, Failure, ProgressBar, SkewSpec, Trial, TrialOptions, agree,
};
use downbeat_sync::{Comm, LocalClock, MpiComm, SyncError, block_on_ready};

use crate::clock::{ClockUser, Kind, Timebase, Tsc};
use crate::factors;
use crate::ranks::{PlaceOptions, Ranks};
use crate::truth::{Traceable, largest_error};
use downbeat_common::block_on_ready_failure;

#[derive(Args, Debug)]
#[command(
    after_help = "What is shown is measured by messages. With --truth it is also known: on one machine all ranks share a counter.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi sync --algorithm hca3/1000/skampi/100,jk/100/skampi/20 --repeat 10\n  \
                  mpirun -np 2 downbeat-mpi sync --skew offset=1s,drift=20ppm --truth"
)]
pub(crate) struct Options {
    #[arg(long, value_name = "LABELS", help = Labels::HELP, default_value = "hca3/1000/skampi/100")]
    algorithm: Labels,
    /// The clock that every rank reads
    #[arg(long, value_enum, default_value_t = Kind::Tsc, ignore_case = true)]
    clock: Kind,
    #[command(flatten)]
    trial: TrialOptions,
    #[arg(long, value_name = "SPEC", help = SkewSpec::HELP)]
    skew: Option<SkewSpec>,
    /// Tell the true error, too; all ranks must run on one machine
    #[arg(long)]
    truth: bool,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    calibration: CalibrationOptions,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write a line for every run and check, as soon as it is known
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, comm: &MpiComm) -> Result<(), Failure> {
    let ranks = Ranks::find(comm, &options.place)?;
    if options.truth && !ranks.one_machine {
        let why = "the ranks run on different machines, or on one that does not say which it is: they share no counter";
        return Err(Failure::option("--truth", why));
    }
    let tsc = match options.truth || options.clock == Kind::Tsc {
        true => Some(Tsc::calibrated(&ranks, &options.calibration)?),
        false => None,
    };
    options.clock.give(
        &ranks,
        tsc.as_ref(),
        &Session {
            options,
            ranks: &ranks,
            tsc,
        },
    )
}

struct Session<'a> {
    options: &'a Options,
    ranks: &'a Ranks<'a>,
    tsc: Option<Tsc>,
}

impl ClockUser for Session<'_> {
    fn with<K: Traceable + Copy>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        match &self.options.skew {
            Some(spec) => self.try_all(&base.skewed(self.ranks, spec)?),
            None => self.try_all(base),
        }
    }
}

impl Session<'_> {
    /// The algorithms take turns, so that what changes in the machine meets all of them.
    fn try_all<K: Traceable>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let factors = self.factors();
        let csv = options.csv.as_ref().filter(|_| ranks.all.rank() == 0);
        let csv = csv.map(|path| CsvFile::create(path, &factors)).transpose();
        let mut csv = block_on_ready_failure(agree(ranks.all, csv))?;
        let progress = ProgressBar::new(if ranks.all.rank() == 0 {
            self.seconds()
        } else {
            0.0
        });
        let mut runs = Vec::new();
        for run in 1..=options.trial.repeat {
            for algorithm in &options.algorithm.0 {
                let trial = options.trial.trial(*algorithm).map_err(Failure::run)?;
                let record = self.try_one(base, &trial, run, &progress);
                let record = block_on_ready_failure(agree(ranks.all, record))?;
                // The rank that failed itself has spoken, if one did.
                let record = record.ok_or_else(|| Failure::run(format!("{algorithm} failed")))?;
                let written = csv.as_mut().map_or(Ok(()), |csv| csv.append(&record));
                block_on_ready_failure(agree(ranks.all, written))?;
                runs.push(record);
            }
        }
        drop(progress);
        let shown = if ranks.all.rank() == 0 {
            self.show(factors, runs)
        } else {
            Ok(())
        };
        block_on_ready_failure(agree(ranks.all, shown))
    }

    fn try_one<K: Traceable>(
        &self,
        base: &Timebase<K>,
        trial: &Trial,
        run: u32,
        progress: &ProgressBar,
    ) -> Result<Option<RunRecord>, Failure> {
        let ranks = self.ranks;
        let me = LocalClock::new(&base.clock, base.local)
            .source(base.source)
            .placement(ranks.place);
        let mut errors: Vec<Option<LargestDeviation>> = Vec::new();
        let tried = trial.run(
            &me,
            ranks.all,
            |time| progress.sleep(time),
            async |synchronized| {
                errors.push(match &self.tsc {
                    Some(tsc) if self.options.truth => {
                        largest_error(ranks, tsc, &base.clock, &synchronized.model).await?
                    }
                    _ => None,
                });
                Ok(())
            },
        );
        match block_on_ready(tried) {
            Ok(tried) => Ok(Some(RunRecord::new(trial, run, &tried, &errors))),
            Err(SyncError::OtherRank(_)) => Ok(None),
            Err(why) => Err(ranks.failure(format!("{}: {why}", trial.algorithm))),
        }
    }

    /// How long all this takes at least.
    fn seconds(&self) -> f64 {
        let longest = self
            .options
            .trial
            .check
            .iter()
            .max()
            .map_or(0.0, |wait| wait.as_secs_f64());
        longest * self.options.algorithm.0.len() as f64 * f64::from(self.options.trial.repeat)
    }

    /// Everything that the result depends on, as rank 0 knows it.
    fn factors(&self) -> Factors {
        let Self {
            options,
            ranks,
            tsc,
        } = self;
        let trial = &options.trial;
        let mut factors = factors::of_job(ranks, options.clock)
            .with("check", &trial.check_by)
            .with("sample", &trial.sample)
            .with("repeat", &trial.repeat)
            .with("seed", &trial.seed);
        factors = factors::of_tsc(tsc.as_ref(), factors);
        if let Some(spec) = &options.skew {
            factors = factors::of_skew(ranks, spec, factors);
        }
        factors
    }

    fn show(&self, factors: Factors, runs: Vec<RunRecord>) -> Result<(), Failure> {
        if self.options.json {
            return output::print_json(&SyncRunsReport {
                schema: "downbeat.sync_runs",
                version: 1,
                factors,
                runs,
            });
        }
        let Self { options, ranks, .. } = self;
        let (size, nodes) = (
            count(ranks.all.size() as usize, "rank"),
            count(ranks.nodes(), "node"),
        );
        let (clock, repeat) = (options.clock, count(options.trial.repeat as usize, "run"));
        let (table, check_by) = (records::table(&runs), options.trial.check_by);
        let truth = if options.truth {
            "\nTrue errors: by the counter that all ranks share.\n"
        } else {
            "\n"
        };
        output::print(&format!(
            "{size} on {nodes}, clock {clock}, {repeat} of each\n\n{table}\nOffsets: to rank 0, as measured by \
             {check_by}.{truth}"
        ))
    }
}
