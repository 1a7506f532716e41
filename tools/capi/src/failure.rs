//! Failures of calls.

use core::ffi::c_int;
use core::fmt::Display;

use crate::status::DOWNBEAT_ERROR_NULL;

/// Reason why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: c_int,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: c_int, why: impl Display) -> Self {
        Self {
            status,
            message: why.to_string(),
        }
    }

    /// Makes failures of this kind of other errors.
    pub(crate) fn of<E: Display>(status: c_int) -> impl Fn(E) -> Self {
        move |why| Self::new(status, why)
    }

    #[cold]
    pub(crate) fn null(name: &str) -> Self {
        Self::new(DOWNBEAT_ERROR_NULL, format_args!("{name} is NULL"))
    }
}
