//! Options and steps that several commands share.

use downbeat_timers::skew::SkewSpec;
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::bench::{GlobalClockOptions, GroupOutcome, OutputOptions};
use downbeat_common::page::PageOptions;
use downbeat_common::records::{CsvFile, Factors};
use downbeat_common::{CalibrationOptions, Failure, PrintOptions, bench};
use downbeat_measure::{MeasureError, Measurement};
use downbeat_records::GroupKey;

use downbeat_sync::MpiComm;
use mpi::environment::Universe;

use crate::abort::abort_all_ranks;
use crate::clock::{CalibratedCounter, JobClockName, RankClocks};
use crate::factors;
use crate::ranks::{JobRanks, PlaceOptions};

/// Options of all commands that measure operations.
#[derive(Args, Debug)]
pub(crate) struct SessionOptions {
    /// Seed of the random order of the measurements [default: different each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) sync: GlobalClockOptions,
    /// Clock that every rank reads
    #[arg(long, value_enum, default_value_t = JobClockName::TSC, ignore_case = true)]
    pub(crate) clock: JobClockName,
    #[command(flatten)]
    pub(crate) place: PlaceOptions,
    #[command(flatten)]
    pub(crate) calibration: CalibrationOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

impl SessionOptions {
    /// Files that the command reads.
    pub(crate) fn inputs(&self) -> Vec<&Path> {
        inputs(&self.calibration, &self.place)
    }

    /// Finds the ranks of the job, and checks that their places suffice for the algorithm.
    pub(crate) fn find_ranks<'a>(
        &self,
        universe: &'a Universe,
        all: &'a MpiComm,
    ) -> Result<JobRanks<'a>, Failure> {
        let ranks = JobRanks::find(universe, all, &self.place)?;
        let selected = self.sync.selected();
        selected.map_or(Ok(()), |algorithm| {
            ranks.have_levels_of("--sync", &algorithm)
        })?;
        Ok(ranks)
    }

    /// Finds the clock of each rank. All ranks call this.
    pub(crate) fn find_clocks<'mpi>(
        &self,
        ranks: &JobRanks<'mpi>,
    ) -> Result<RankClocks<'mpi>, Failure> {
        RankClocks::find(ranks, self.clock, false, &self.calibration, None)
    }
}

/// Options of all commands that compare clocks.
#[derive(Args, Debug)]
pub(crate) struct ComparisonOptions {
    #[arg(long, value_name = "SPEC", help = SkewSpec::HELP)]
    pub(crate) skew: Option<SkewSpec>,
    #[command(flatten)]
    pub(crate) place: PlaceOptions,
    #[command(flatten)]
    pub(crate) calibration: CalibrationOptions,
    #[command(flatten)]
    pub(crate) page: PageOptions,
    #[command(flatten)]
    pub(crate) print: PrintOptions,
    /// Write the results to a CSV file, each as soon as it is known
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl ComparisonOptions {
    /// Finds the clock with this name on each rank, with artificial errors if there are any; for the true errors also the counter that
    /// all ranks share. All ranks call this.
    pub(crate) fn find_clocks<'mpi>(
        &self,
        ranks: &JobRanks<'mpi>,
        name: JobClockName,
        truth: bool,
    ) -> Result<RankClocks<'mpi>, Failure> {
        RankClocks::find(ranks, name, truth, &self.calibration, self.skew.as_ref())
    }

    /// Adds the counter, the places of the ranks, and the artificial errors of their clocks to the factors.
    pub(crate) fn add_to(
        &self,
        ranks: &JobRanks<'_>,
        counter: Option<&CalibratedCounter>,
        factors: Factors,
    ) -> Factors {
        let factors = factors::add_place(ranks, factors::add_counter(counter, factors));
        factors::add_skew(ranks, self.skew.as_ref(), factors)
    }

    /// Checks on rank 0 that the page can be written and replaces no input, and creates the CSV file, as far as they are wanted. All ranks
    /// call this.
    pub(crate) fn begin_outputs(
        &self,
        ranks: &JobRanks<'_>,
        create: impl FnOnce(&Path) -> Result<CsvFile, Failure>,
    ) -> Result<Option<CsvFile>, Failure> {
        ranks.begin_outputs(&inputs(&self.calibration, &self.place), |outputs| {
            self.page.add_to(outputs)?;
            let Some(path) = &self.csv else {
                return Ok(None);
            };
            outputs.claim("--csv", path)?;
            create(path).map(Some)
        })
    }
}

/// Returns the files that these options name.
fn inputs<'a>(calibration: &'a CalibrationOptions, place: &'a PlaceOptions) -> Vec<&'a Path> {
    let inputs = [calibration.input(), place.input()];
    inputs.into_iter().flatten().collect()
}

/// Returns the measurement on all ranks, or the same failure. Ends the job if this rank fails while the others wait.
pub(crate) fn agree_on_measured(
    ranks: &JobRanks<'_>,
    key: &GroupKey,
    measured: Result<Option<Measurement>, MeasureError>,
) -> Result<Option<GroupOutcome>, Failure> {
    if let Err(why) = &measured
        && why.is_local()
    {
        abort_all_ranks(ranks.failure(format!("{key}: {why}")));
    }
    bench::agree_on_measured(ranks.all, key, measured)
}
