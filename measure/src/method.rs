//! Method by which an operation is measured, and its checks.

use downbeat_clock_core::{Clock, ReadOrdering};
use downbeat_sync::Comm;

use crate::barrier::Barrier;
use crate::context::MeasureContext;
use crate::error::{MeasureError, MethodError};
use crate::operation::Coordinator;
use crate::processing::Processing;
use crate::scheme::{Basis, Scheme};
use crate::stopping::Stopping;

/// Method by which an operation is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Number of warm-up calls, which are discarded.
    pub warm_up: u32,
    /// Scheme that makes observations.
    pub scheme: Scheme,
    /// Rule that decides when there are enough observations.
    pub stopping: Stopping,
    /// Processing that computes figures from observations.
    pub processing: Processing,
    /// Root for the processing.
    pub root: u32,
}

impl Method {
    /// Checks that the processing fits the scheme. Call this before measuring.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn check(&self) -> Result<(), MethodError> {
        self.processing.fits(self.basis())
    }

    /// Checks that an operation can be called as the scheme does, given that it [fits a series](crate::Operation::fits_series).
    ///
    /// # Errors
    /// If calls are timed together and the operation cannot be prepared between them.
    pub fn check_series(&self, fits_series: bool) -> Result<(), MethodError> {
        match self.scheme.repeats_calls() && !fits_series {
            true => Err(MethodError::NotInSeries),
            false => Ok(()),
        }
    }

    /// Returns true if the ranks need a global clock.
    pub fn needs_global_time(&self) -> bool {
        let barrier = self.scheme.barrier();
        self.basis() == Basis::Global || barrier.is_some_and(Barrier::needs_global_clock)
    }

    /// Returns the clocks that calls are timed by. Barriers work with local clocks, unless the processing needs a global one.
    pub(crate) fn basis(&self) -> Basis {
        match self.scheme {
            Scheme::Series(_) => Basis::Means,
            Scheme::Windows(_) | Scheme::RoundTime(_) | Scheme::RoundGrid(_) => Basis::Global,
            Scheme::EachCall(_) if self.processing.fits(Basis::Local).is_ok() => Basis::Local,
            Scheme::EachCall(_) => Basis::Global,
        }
    }

    /// Checks that these ranks and their clock allow the method.
    pub(crate) fn check_context<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<(), MeasureError> {
        if context.clock.ordering() == ReadOrdering::Unordered {
            return Err(MeasureError::UnorderedClock);
        }
        self.check()?;
        if self.root >= context.comm.size() {
            return Err(MeasureError::NoSuchRoot {
                root: self.root as usize,
                ranks: context.comm.size() as usize,
            });
        }
        Ok(())
    }
}
