//! Options and steps that several commands share.

use std::path::Path;

use clap::Args;
use downbeat_common::bench::{GlobalClockOptions, GroupOutcome, OutputOptions};
use downbeat_common::{CalibrationOptions, Failure, bench};
use downbeat_jobs::{JobClockName, PlaceOptions};
use downbeat_measure::{MeasureError, Measurement};
use downbeat_records::GroupKey;

use crate::abort::abort_all_ranks;
use crate::job::{JobRanks, MpiJob, RankClocks};

/// Options of all commands that measure operations.
#[derive(Args, Debug)]
pub(crate) struct SessionOptions {
    /// Seed of the random order of the measurements [default: different each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) sync: GlobalClockOptions,
    /// Clock that every rank reads
    #[arg(long, default_value_t = JobClockName::TSC, value_parser = JobClockName::machine_parser(), ignore_case = true)]
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
    pub(crate) fn inputs(&self) -> [Option<&Path>; 2] {
        [self.calibration.input(), self.place.input()]
    }

    /// Finds the ranks of the job, and checks that their places suffice for the algorithm.
    pub(crate) fn find_ranks<'a>(&self, job: &'a MpiJob<'a>) -> Result<JobRanks<'a>, Failure> {
        let ranks = JobRanks::find(job, &self.place)?;
        let selected = self.sync.selected();
        selected.map_or(Ok(()), |algorithm| {
            ranks.have_levels_of("--sync", &algorithm)
        })?;
        Ok(ranks)
    }

    /// Finds the clock of each rank. All ranks call this.
    pub(crate) fn find_clocks<'a>(&self, ranks: &JobRanks<'a>) -> Result<RankClocks<'a>, Failure> {
        RankClocks::find(ranks, self.clock, false, &self.calibration, None)
    }
}

/// Returns the measurement on all ranks, or the same failure. Ends the job if this rank fails while the others wait.
pub(crate) fn agree_on_measured(
    ranks: &downbeat_jobs::JobRanks<'_, MpiJob<'_>>,
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
