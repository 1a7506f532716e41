//! What all commands that measure operations have in common.

use clap::Args;
use downbeat_common::bench::{GlobalClockOptions, OutputOptions};
use downbeat_common::{CalibrationOptions, Failure, bench};
use downbeat_measure::{MeasureError, Measurement};
use downbeat_records::GroupKey;

use crate::clock::Kind;
use crate::end_all_ranks;
use crate::ranks::{PlaceOptions, Ranks};

/// Where and by what clocks ranks measure, in which order, and what becomes of it.
#[derive(Args, Debug)]
pub(crate) struct SessionOptions {
    /// Draws the order of the measurements by lot [default: another each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) sync: GlobalClockOptions,
    /// The clock that every rank reads
    #[arg(long, value_enum, default_value_t = Kind::Tsc, ignore_case = true)]
    pub(crate) clock: Kind,
    #[command(flatten)]
    pub(crate) place: PlaceOptions,
    #[command(flatten)]
    pub(crate) calibration: CalibrationOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// All ranks go on with what they measured, or fail alike; where one is alone with its failure, that ends all of them.
pub(crate) fn agree_on_measured(
    ranks: &Ranks<'_>,
    key: &GroupKey,
    measured: Result<Option<Measurement>, MeasureError>,
) -> Result<Option<Measurement>, Failure> {
    if let Err(why) = &measured
        && why.is_local()
    {
        end_all_ranks(ranks.failure(format!("{key}: {why}")));
    }
    bench::agree_on_measured(ranks.all, key, measured)
}
