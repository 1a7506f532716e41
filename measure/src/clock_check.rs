//! Check of the global clock during a measurement: the clocks of the ranks drift apart since their synchronization.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::check::TreeOffset;
use downbeat_sync::{Comm, collective};

use crate::context::{ClockBasis, MeasureContext};
use crate::error::MeasureError;
use crate::operation::Coordinator;

/// Checks of the clocks during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockChecks {
    /// Largest possible offset of a rank before the measurement.
    pub before: Duration,
    /// Largest possible offset of a rank after the last observation.
    pub after: Duration,
    /// Largest possible offset of a rank in any check.
    pub offset: Duration,
    /// Largest possible drift of a rank, from the synchronization to the end of any segment with valid observations. The
    /// difference of both directions of messages cancels out in it.
    pub drift: Duration,
    /// Number of synchronizations before and during the measurement.
    pub synchronizations: u32,
}

impl ClockChecks {
    /// Drift that is accepted, as a share of the median run-time.
    pub const PERMITTED_SHARE: f64 = 0.02;

    /// Name of the drift among the figures.
    pub const DRIFT: &str = "clock_drift";

    /// Returns the figures of a record, with their names.
    pub fn figures(&self) -> [(&'static str, Duration); 4] {
        [
            ("clock_before", self.before),
            ("clock_after", self.after),
            ("clock_offset", self.offset),
            (Self::DRIFT, self.drift),
        ]
    }
}

/// Largest figures of all ranks, of one check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockCheck {
    /// Drift of a clock beyond the random error of the check.
    pub(crate) proven: Duration,
    /// Drift of a clock, and the random error of the check.
    pub(crate) possible: Duration,
    /// Largest possible offset, the unknown difference of both directions of messages included.
    pub(crate) offset: Duration,
}

/// Checks of a clock, which remember the first offset.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    first: Option<TreeOffset>,
}

impl ClockWatch {
    /// Returns the watch of the clock of a measurement, or `None` if no clock can drift: it is local, or all ranks read one.
    pub(crate) fn new<M: Comm, T: Coordinator, K: Clock>(
        context: &MeasureContext<'_, M, T, K>,
    ) -> Option<Self> {
        let first = match &context.clock_basis {
            ClockBasis::Local(_) => return None,
            // Its synchronization is unknown.
            ClockBasis::Global(_) => None,
            ClockBasis::Synchronized(global) => Some(global.offset()?),
        };
        Some(Self { first })
    }

    /// Checks the clocks of all ranks, which all call this.
    pub(crate) async fn check<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<ClockCheck, MeasureError> {
        let found = TreeOffset::measure(context.clock, &context.global()?, context.comm).await?;
        let first = *self.first.get_or_insert(found);
        let drift = (found.offset - first.offset).abs();
        let noise = if found == first {
            found.noise
        } else {
            // Messages that took longer may have been delayed in one direction.
            found.noise + first.noise + (found.half_width - first.half_width).abs()
        };
        let own = ClockCheck {
            proven: (drift - noise).max(Duration::ZERO),
            possible: drift + noise,
            offset: found.most(),
        };
        let own = [own.proven, own.possible, own.offset];
        let most = |a: [Duration; 3], b: [Duration; 3]| core::array::from_fn(|i| a[i].max(b[i]));
        let [proven, possible, offset] = collective::all_reduce(context.comm, own, most).await?;
        Ok(ClockCheck {
            proven,
            possible,
            offset,
        })
    }
}
