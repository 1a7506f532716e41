//! Options of all commands that compare clocks.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::page::PageOptions;
use downbeat_common::records::{CsvFile, Factors};
use downbeat_common::{CalibrationOptions, Failure, PrintOptions};
use downbeat_timers::skew::SkewSpec;

use crate::clock::{CalibratedCounter, JobClockName, RankClocks};
use crate::ranks::{JobRanks, PlaceOptions};
use crate::{Job, factors};

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
    pub(crate) fn find_clocks<J: Job>(
        &self,
        ranks: &JobRanks<'_, J>,
        name: JobClockName,
        truth: bool,
    ) -> Result<RankClocks<J>, Failure> {
        RankClocks::find(ranks, name, truth, &self.calibration, self.skew.as_ref())
    }

    /// Adds the counter, the places of the ranks, and the artificial errors of their clocks to the factors.
    pub(crate) fn add_to<J: Job>(
        &self,
        ranks: &JobRanks<'_, J>,
        counter: Option<&CalibratedCounter>,
        factors: Factors,
    ) -> Factors {
        let factors = factors::add_place(ranks, factors::add_counter(counter, factors));
        factors::add_skew(ranks, self.skew.as_ref(), factors)
    }

    /// Checks on rank 0 that the page can be written and replaces no input, and creates the CSV file, as far as they are wanted. All ranks
    /// call this.
    pub(crate) fn begin_outputs<J: Job>(
        &self,
        ranks: &JobRanks<'_, J>,
        create: impl FnOnce(&Path) -> Result<CsvFile, Failure>,
    ) -> Result<Option<CsvFile>, Failure> {
        let inputs = [self.calibration.input(), self.place.input()];
        ranks.begin_outputs(inputs, |outputs| {
            self.page.add_to(outputs)?;
            let Some(path) = &self.csv else {
                return Ok(None);
            };
            outputs.claim("--csv", path)?;
            create(path).map(Some)
        })
    }
}
