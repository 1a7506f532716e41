//! What all commands that measure operations do with what they measured.

use downbeat_common::{Failure, bench};
use downbeat_measure::{GroupKey, MeasureError, Measured};

use crate::end_all_ranks;
use crate::ranks::Ranks;

/// All ranks go on with what they measured, or fail alike; where one is alone with its failure, that ends all of them.
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
