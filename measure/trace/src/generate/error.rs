//! Why there is no trace of a program that never ran.

use core::fmt;

use crate::TraceError;
use downbeat_sync::ClusterError;

/// Why there is no trace of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntheticError {
    /// A parameter makes no sense.
    Parameter(ClusterError),
    /// There is too much for a trace.
    Trace(TraceError),
}

impl fmt::Display for SyntheticError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(error) => error.fmt(f),
            Self::Trace(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SyntheticError {}

impl From<ClusterError> for SyntheticError {
    fn from(error: ClusterError) -> Self {
        Self::Parameter(error)
    }
}

impl From<TraceError> for SyntheticError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}
