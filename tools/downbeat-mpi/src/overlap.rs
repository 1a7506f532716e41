//! Overlap of non-blocking operations with computation.

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::bench::{ALONE, COMPUTE, RankTimes};
use downbeat_common::cli::positive;
use downbeat_common::records::Factors;
use downbeat_measure::mpi::{MpiGroup, MpiOperation, OperationKind};
use downbeat_measure::{MeasureContext, MeasureError, Measurement, Method};
use downbeat_sync::{MpiComm, block_on_ready, collective};

use crate::job::JobClock;

#[derive(Args, Debug)]
pub(crate) struct OverlapOptions {
    /// Computation in each call of iallreduce+compute, ... [default: as long as the operation alone takes]
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    compute: Option<Duration>,
    /// Number of calls of MPI_Test during that computation, by which the operation can progress
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000), allow_hyphen_values = true)]
    tests: u32,
}

impl OverlapOptions {
    /// Adds the options to the factors if they apply to one of the operations.
    pub(crate) fn factors(&self, kinds: &[OperationKind], factors: Factors) -> Factors {
        if !kinds.iter().any(|kind| kind.is_overlapped()) {
            return factors;
        }
        let factors = factors.with("tests", &self.tests);
        match self.compute {
            None => factors,
            Some(compute) => factors.with(COMPUTE, &compute),
        }
    }

    /// Measures an overlapped operation: first without computation, for the time that it takes alone. All ranks of the group call this.
    pub(crate) fn measure(
        &self,
        operation: &mut MpiOperation,
        method: &Method,
        context: &MeasureContext<'_, MpiComm, MpiGroup, JobClock<'_>>,
        times: &mut RankTimes,
    ) -> Result<Option<Measurement>, MeasureError> {
        operation.compute_for(Duration::ZERO, 0);
        // Replaced by the times with the computation, if there is one.
        let alone = times.measure(method, context, operation);
        let nanos = match &alone {
            Ok(Some(measured)) => measured.figures.first().map_or(0.0, |figure| figure.nanos),
            // Only rank 0 knows.
            Ok(None) | Err(MeasureError::NothingValid { .. }) => 0.0,
            Err(_) => return alone,
        };
        let shared = collective::broadcast(context.comm, nanos);
        let nanos = block_on_ready(shared).map_err(MeasureError::Comm)?;
        if nanos <= 0.0 {
            return alone;
        }
        let alone = Duration::from_nanos(nanos.round() as i64);
        let compute = self.compute.unwrap_or(alone);
        operation.compute_for(compute, self.tests);
        let measured = times.measure(method, context, operation)?;
        Ok(measured.map(|mut measured| {
            measured
                .details
                .extend([(ALONE, alone), (COMPUTE, compute)]);
            measured
        }))
    }
}
