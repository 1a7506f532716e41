//! What all commands that measure operations do together with all ranks.

use downbeat_common::bench::{self, OutputOptions, Results};
use downbeat_common::records::Factors;
use downbeat_common::{Failure, agree_blocking};
use downbeat_measure::{GroupKey, MeasureError, Measured};
use downbeat_sync::{Comm, block_on_ready, collective};

use crate::end_all_ranks;
use crate::ranks::Ranks;

/// The seed that was asked for, or one that rank 0 draws by lot.
pub(crate) fn seed(ranks: &Ranks<'_>, asked_for: Option<u64>) -> Result<u64, Failure> {
    let seed = asked_for.unwrap_or_else(downbeat_common::random_seed);
    block_on_ready(collective::broadcast(ranks.all, seed)).map_err(Failure::run)
}

/// Begins the record of rank 0, if there is to be one.
pub(crate) fn begin(
    ranks: &Ranks<'_>,
    output: &OutputOptions,
    factors: &Factors,
    facts: &Factors,
) -> Result<Results, Failure> {
    let results = if ranks.all.rank() == 0 { output.begin(factors, facts) } else { Ok(Results::default()) };
    agree_blocking(ranks.all, results)
}

/// All ranks go on with what they measured, or fail alike.
pub(crate) fn agree_on_measured(
    ranks: &Ranks<'_>,
    key: &GroupKey,
    measured: Result<Option<Measured>, MeasureError>,
) -> Result<Option<Measured>, Failure> {
    if let Err(why) = &measured
        && why.is_of_one_rank()
    {
        end_all_ranks(ranks.failure(format!("{key}: {why}")));
    }
    bench::agree_on_measured(ranks.all, key, measured)
}
