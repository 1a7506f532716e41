//! Computation during a non-blocking operation.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;
use core::hint::spin_loop;
use core::time::Duration;
use std::time::Instant;

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Request};

/// Computation of a certain duration, which only reads the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Computation {
    pub(super) duration: Duration,
    /// Number of calls of `MPI_Test`, equally spaced, by which the operation can progress.
    pub(super) tests: u32,
}

impl Computation {
    /// Computes, and tests a request.
    #[inline(always)]
    pub(super) fn run(&self, request: &mut MPI_Request) -> Result<(), MpiError> {
        if self.duration.is_zero() {
            return Ok(());
        }
        self.compute(request)
    }

    fn compute(&self, request: &mut MPI_Request) -> Result<(), MpiError> {
        let begin = Instant::now();
        let until = |end: Duration| {
            while begin.elapsed() < end {
                spin_loop();
            }
        };
        for number in 1..=self.tests {
            until(
                self.duration
                    .mul_f64(f64::from(number) / f64::from(self.tests + 1)),
            );
            let mut is_done: c_int = 0;
            // SAFETY: a constant.
            let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
            // SAFETY: MPI has created the request, so it is running; the status is ignored.
            let code = unsafe { ffi::MPI_Test(request, &raw mut is_done, no_status) };
            MpiError::check("MPI_Test", code)?;
        }
        until(self.duration);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::calls::no_request;

    #[test]
    fn a_computation_takes_at_least_its_duration() {
        let computation = Computation {
            duration: Duration::from_micros(300),
            tests: 0,
        };
        let begin = Instant::now();
        let mut request = no_request();
        assert!(computation.run(&mut request).is_ok());
        assert!(begin.elapsed() >= computation.duration);
        assert!(Computation::default().run(&mut request).is_ok());
    }
}
