//! Range checks of simulation parameters.

use crate::ClusterError;

/// Checks that a value is a finite number that is not negative.
///
/// # Errors
/// [`ClusterError::Parameter`] with the name of the parameter.
pub fn require_non_negative(value: f64, name: impl FnOnce() -> String) -> Result<(), ClusterError> {
    require(
        value.is_finite() && value >= 0.0,
        name,
        "a number that is not negative",
    )
}

pub(super) fn positive(value: f64, name: impl FnOnce() -> String) -> Result<(), ClusterError> {
    require(value.is_finite() && value > 0.0, name, "a positive number")
}

/// Checks a condition of a parameter.
///
/// # Errors
/// [`ClusterError::Parameter`] with the name of the parameter.
pub fn require(
    good: bool,
    name: impl FnOnce() -> String,
    must: &'static str,
) -> Result<(), ClusterError> {
    if good {
        Ok(())
    } else {
        Err(ClusterError::Parameter { name: name(), must })
    }
}
