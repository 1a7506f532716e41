//! Times of messages, with which the drift of clocks is compared.

use downbeat::LocalTime;
use downbeat_clock_core::Duration;
use downbeat_common::bench::GroupOutcome;
use downbeat_common::{Failure, agree_blocking};
use downbeat_jobs::JobRanks;
use downbeat_jobs::drift::TransferTimes;
use downbeat_measure::mpi::{MpiGroup, MpiOperation, OperationKind, OperationSettings};
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{Scheme, Series};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{ClockBasis, MeasureContext, Method};
use downbeat_records::GroupKey;
use downbeat_sync::block_on_ready;

use crate::job::{JobClock, MpiJob};
use crate::session::agree_on_measured;

/// Measures the latency of a message from rank 0 to rank 1, and the run-time of an allreduce; returns them on rank 0.
pub(crate) fn measure_transfer(
    ranks: &JobRanks<'_, MpiJob<'_>>,
    local: &LocalTime<JobClock<'_>>,
) -> Result<Option<TransferTimes>, Failure> {
    let group = MpiGroup::all(ranks.all).map_err(Failure::run)?;
    // The median of means over several calls, measured with one clock: independent of the offsets between clocks.
    let method = Method {
        warm_up: 10,
        scheme: Scheme::Series(Series::new(100)),
        stopping: Stopping::TimeSlice {
            slice: Duration::from_millis(500),
            most: 21,
        },
        processing: Processing::Median,
        root: 0,
    };
    let measure = |name: &str| -> Result<Option<f64>, Failure> {
        let kind: OperationKind = name.parse().map_err(Failure::run)?;
        let settings = OperationSettings::default();
        let prepared = MpiOperation::prepare(kind, &group, TransferTimes::BYTES, &settings);
        let prepared = prepared.map_err(|why| ranks.failure(why));
        let mut operation = agree_blocking(ranks.all, prepared)?;
        let context = MeasureContext {
            comm: group.comm(),
            coordinator: &group,
            clock: &local.clock,
            clock_basis: ClockBasis::Local(local.model),
        };
        let measured = block_on_ready(method.measure(&context, &mut operation));
        let key = GroupKey {
            operation: name.to_owned(),
            bytes: TransferTimes::BYTES,
            ranks: group.size(),
        };
        match agree_on_measured(ranks, &key, measured)? {
            Some(GroupOutcome::Measured(measured)) => {
                Ok(measured.figures.first().map(|figure| figure.nanos))
            }
            _ => Ok(None),
        }
    };
    let (ping_pong, allreduce) = (measure("ping-pong")?, measure("allreduce")?);
    let times = ping_pong.zip(allreduce);
    Ok(times.map(|(both_ways, allreduce_ns)| TransferTimes {
        message_ns: both_ways / 2.0,
        allreduce_ns,
    }))
}
